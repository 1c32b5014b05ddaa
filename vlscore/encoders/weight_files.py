"""Weight files: finding, downloading and checking checkpoints and vocabularies.

`find_weights` finds a checkpoint and `vocabulary_file` the vocabulary of a tokenizer. `fetch`
downloads the checkpoints that weights/cards lists, and `verify` reads them whole. Networks of
metrics (weights/networks) are found, downloaded and checked in the same way. Nothing is
downloaded unless `fetch` or `download` is called, and a download fails at once without a network.
No function here imports torch to find a file.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from vlscore.core import file_digest
from vlscore.encoders.cards import PublishedWeights, entry_of, network_cards
from vlscore.encoders.first_digests import check_digest
from vlscore.encoders.hub import OFFLINE, cached_file, download, download_model, is_hub_id
from vlscore.encoders.registry import ENCODERS, SHIPPED
from vlscore.errors import ChecksumMismatch, UnknownName, WeightsNotFound


def path_from_file(path: str, source: str | Path) -> str:
    """Return the path that a file contains, unless it may be the name of a hub's repository.

    Raises: UnknownName for a text of the form organisation/repository that is no existing path.
    """
    if is_hub_id(path) and not Path(path).exists():
        raise UnknownName(
            f"{source} names {path!r}, and there is no such file or folder. Files cannot name a "
            "repository of a hub, because it would be downloaded: download it, and write its path"
        )
    return path


VOCABULARY_FILES = ("vocab.txt", "tokenizer.json")
CHECKPOINT_SUFFIXES = (".safetensors", ".ckpt", ".pt", ".pth", ".bin")


def checkpoint_in(path: Path, names: Sequence[str], *, guess: bool = True) -> Path:
    """Return `path` if it is a checkpoint, else the checkpoint in it under a published name.

    The safetensors conversion of a published name ("model.ckpt" -> "model.safetensors") also
    counts.

    Args:
        names: the published names, in order of preference.
        guess: whether a folder's only checkpoint may have any name.

    Raises: WeightsNotFound, saying what was looked for.
    """
    if path.is_file():
        return path
    if not path.is_dir():
        raise WeightsNotFound(f"{path}: no such checkpoint file or folder")
    for name in names:
        for candidate in (path / Path(name).with_suffix(".safetensors"), path / name):
            if candidate.is_file():
                return candidate
    found = sorted(p for p in path.iterdir() if p.suffix in CHECKPOINT_SUFFIXES)
    if guess and len(found) == 1:
        return found[0]
    held = ", ".join(each.name for each in found) or "no checkpoint at all"
    raise WeightsNotFound(
        f"{path} holds none of {', '.join(names)} but {held}; give the file itself as weights="
    )


def vocabulary_file(
    tokenizer: str | Path | None,
    *,
    next_to: Path,
    hub_id: str,
    names: Sequence[str] = VOCABULARY_FILES,
) -> Path:
    """Find the vocabulary of a tokenizer.

    The order of search is: `tokenizer`, a file, a folder or the id of a hub repository (only then
    the hub is used); the checkpoint's folder; the hub's cache of `hub_id`.

    Args:
        names: possible names of the file, in order of preference.

    Raises: WeightsNotFound, saying how to get it.
    """
    if tokenizer is not None:
        return _given_vocabulary(tokenizer, names)
    found = _vocabulary_in(next_to if next_to.is_dir() else next_to.parent, names)
    found = found or next((path for n in names if (path := cached_file(hub_id, n))), None)
    if found is None:
        raise WeightsNotFound(
            f"no {' or '.join(names)} is next to {next_to}; give the vocabulary of "
            f'{hub_id} as tokenizer=PATH, or tokenizer="{hub_id}" to download it'
        )
    return found


def download_vocabulary(hub_id: str, names: Sequence[str] = VOCABULARY_FILES) -> Path | None:
    """Download a vocabulary into the hub's cache; None if the hub has none."""
    for name in names:
        with contextlib.suppress(WeightsNotFound):
            return download(hub_id, name)
    return None


def _given_vocabulary(tokenizer: str | Path, names: Sequence[str]) -> Path:
    path, name = Path(tokenizer), str(tokenizer)
    if path.is_file():
        return path
    is_folder = path.is_dir()
    found = _vocabulary_in(path, names) if is_folder else None
    if not is_folder and is_hub_id(name):
        found = download_vocabulary(name, names)
    if found is None:
        raise WeightsNotFound(
            f"{path} is no vocabulary file, no folder with {' or '.join(names)}, and no hub "
            "repository that could be reached; give the path of a vocab.txt"
        )
    return found


def _vocabulary_in(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / n for n in names if (folder / n).is_file()), None)


HOME_VARIABLE = "VLSCORE_WEIGHTS"


@dataclass(frozen=True)
class Fetched:
    """Downloaded files, and what is left to do by hand ("" for nothing).

    Attributes:
        digests: the sha256 of each file, and against what it was checked, in words.
    """

    paths: tuple[Path, ...]
    left_to_do: str
    digests: dict[Path, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Verified:
    """A checkpoint that was read safely and whole.

    Attributes:
        digest: digest of its tensors, in any container; JointEncoder.weights_digest.
        sha256: sha256 of the file.
        published_for: encoders and networks whose published checksum it has.
    """

    path: Path
    tensors: int
    numbers: int
    digest: str
    sha256: str
    published_for: tuple[str, ...]


@cache
def published_weights() -> dict[str, PublishedWeights]:
    """Return the source of the weights of each encoder that ships with vlscore, by name."""
    return {name: entry_of(name).weights for name in SHIPPED}


def weights_of(name: str) -> PublishedWeights:
    """Return the source of the weights of an encoder, or of a network that metrics run.

    Any spelling of an encoder's name is known. Raises: UnknownName.
    """
    try:
        known = name if name in network_cards() else ENCODERS.name_of(name)
    except UnknownName as error:
        networks = ", ".join(network_cards())
        raise UnknownName(f"{error}. Networks of metrics: {networks}") from None
    if (entry := _entry(known)) is None:
        raise UnknownName(f"{known} comes from a package of its own; its weights are not known")
    return entry


def weights_folder() -> Path:
    """Return the last folder of the search; it has a folder for each model, by its name."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "vlscore" / "weights"


def find_weights(
    name: str, weights: str | Path | None, file_names: Sequence[str], *, guess: bool = True
) -> Path:
    """Find the checkpoint file of an encoder.

    The search uses `weights`; without it VLSCORE_WEIGHTS (a file; or a folder, in which a folder
    with the encoder's name comes first), then the cache folder, then the hub's cache. A file that
    is found by name must have the published checksum; `weights` may be a model of the user.

    Args:
        file_names: names that the encoder's authors use, in order of preference.
        guess: whether the encoder's folder may hold one checkpoint of any other name.

    Raises:
        WeightsNotFound: no checkpoint was found; the message says what to do.
        ChecksumMismatch: the file that was found is not the published one.
    """
    if weights is not None:
        return checkpoint_in(Path(weights), file_names, guess=guess)
    searched = []
    for folder, may_guess in _searched(name):
        try:
            found = checkpoint_in(folder, file_names, guess=guess and may_guess)
        except WeightsNotFound:
            searched.append(str(folder))
            continue
        check_published(name, found)
        return found
    raise WeightsNotFound(_advice(name, file_names, searched))


def find_network(name: str) -> Path:
    """Find the checkpoint, or the folder, of a network that metrics run; download nothing.

    The search is that of `find_weights`, by the published names of the file alone.

    Raises: WeightsNotFound; ChecksumMismatch if the file is not the published one.
    """
    entry = network_cards()[name].weights
    if not entry.is_folder:
        return find_weights(name, None, entry.files[0].names, guess=False)
    searched = [folder for folder, _ in _searched(name) if folder.name == name]
    found = next((folder for folder in searched if (folder / "config.json").is_file()), None)
    if found is None:
        raise WeightsNotFound(_advice(name, ("config.json",), list(map(str, searched))))
    return found


def is_here(name: str) -> bool:
    """Return True if the checkpoint of an encoder or a network is found without `weights`."""
    entry = weights_of(name)
    try:
        if name in network_cards():
            return find_network(name).exists()
        for file in entry.files:
            find_weights(entry.name, None, file.names, guess=len(entry.files) == 1)
    except WeightsNotFound:
        return False
    return bool(entry.files) or entry.status == "bundled"


def check_published(name: str, path: Path) -> bool:
    """Return True if a file has its published checksum; False if none is published.

    Raises: ChecksumMismatch if it has another one.
    """
    entry = _entry(name)
    stated = next((file for file in entry.files if file.name == path.name), None) if entry else None
    if stated is None or not (stated.md5 or stated.sha256):
        return False
    if stated.sha256:
        kind, expected, found = "sha256", stated.sha256, file_digest(path)
    else:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "md5").hexdigest()
        kind, expected = "md5", str(stated.md5)
    if found != expected:
        raise ChecksumMismatch(
            f"{path} has the {kind} {found}, but the published file of {name} has {expected}: it "
            "is damaged or another version. Download it again; a model of your own can be given "
            "as weights=PATH"
        )
    return True


def _entry(name: str) -> PublishedWeights | None:
    if name in network_cards():
        return network_cards()[name].weights
    return published_weights().get(name)


def fetch(name: str) -> Fetched:
    """Download a checkpoint and its vocabulary into the hub's cache.

    HF_HOME and HF_HUB_OFFLINE are respected. A checkpoint that is on no hub must be downloaded by
    hand: then only the vocabulary is downloaded, and the result says what is left to do.

    Args: name: encoder, or network that metrics run.

    Raises: UnknownName; WeightsNotFound if the hub cannot be reached; ChecksumMismatch.
    """
    entry = weights_of(name)
    paths: list[Path] = []
    if entry.status == "bundled":
        return Fetched((), "")
    if entry.is_folder:
        assert entry.hub is not None
        paths += download_model(entry.hub, weights_folder() / entry.name, revision=entry.revision)
    if entry.hub:
        for file in entry.files:
            paths.append(_fetched(entry.name, entry.hub, file.name, entry.revision))
    if entry.vocabulary:
        vocabulary = download_vocabulary(entry.vocabulary)
        if vocabulary is None:
            raise WeightsNotFound(
                "its vocabulary could not be downloaded from "
                f"huggingface.co/{entry.vocabulary}: {OFFLINE}"
            )
        paths.append(vocabulary)
    stated = {file.name for file in entry.files if file.md5 or file.sha256}
    digests = {}
    for path in paths:
        recorded = f"{entry.name}/{path.name}"
        try:
            digests[path] = check_digest(
                path, recorded, weights_folder(), is_stated=path.name in stated
            )
        except ChecksumMismatch:
            _remove(path)
            raise
    return Fetched(tuple(paths), "" if entry.hub else _by_hand(entry), digests)


def _fetched(encoder: str, hub_id: str, name: str, revision: str | None) -> Path:
    """Download a file and check it; a damaged one leaves the hub's cache, and is asked for again.

    Raises: ChecksumMismatch if the hub itself sends another file.
    """
    was_cached = cached_file(hub_id, name, revision=revision) is not None
    path = download(hub_id, name, revision=revision)
    try:
        check_published(encoder, path)
    except ChecksumMismatch:
        _remove(path)
        if not was_cached:
            raise
        return _fetched(encoder, hub_id, name, revision)
    return path


def _remove(path: Path) -> None:
    """Remove a file from the hub's cache, so that it is asked for again, and found by nobody."""
    # In the cache a name is a link to the content.
    content = path.resolve()
    path.unlink()
    content.unlink(missing_ok=True)


def verify(path: str | Path) -> list[Verified]:
    """Read a checkpoint, or every checkpoint of a folder, safely and whole.

    Raises: the errors of `load_checkpoint`; ChecksumMismatch if a file has a published name and
        not the published checksum.
    """
    folder = Path(path)
    if not folder.is_dir():
        return [_verify_file(folder)]
    found = sorted(file for file in folder.iterdir() if file.suffix in CHECKPOINT_SUFFIXES)
    if not found:
        raise WeightsNotFound(f"{folder} holds no checkpoint ({', '.join(CHECKPOINT_SUFFIXES)})")
    return [_verify_file(file) for file in found]


def _verify_file(path: Path) -> Verified:
    from vlscore.encoders.checkpoints import load_checkpoint, tensors_digest

    tensors = load_checkpoint(path)
    return Verified(
        path=path,
        tensors=len(tensors),
        numbers=sum(tensor.numel() for tensor in tensors.values()),
        digest=tensors_digest(tensors),
        sha256=file_digest(path),
        published_for=tuple(
            name for name in (*published_weights(), *network_cards()) if check_published(name, path)
        ),
    )


def _searched(name: str) -> Iterator[tuple[Path, bool]]:
    """Yield places to search, and whether a lone checkpoint there must be this encoder's."""
    home = os.environ.get(HOME_VARIABLE)
    if home:
        if not Path(home).exists():
            raise WeightsNotFound(
                f"{HOME_VARIABLE} is {home}, which does not exist; set it to a checkpoint, or to "
                "a folder of checkpoints, or unset it"
            )
        if not Path(home).is_file():
            yield Path(home) / name, True
        # A single file is the checkpoint of the run's encoder.
        if not (Path(home).is_file() and name in network_cards()):
            yield Path(home), False
    yield weights_folder() / name, True
    entry = _entry(name)
    if entry and entry.hub:
        for file in entry.files:
            if (cached := cached_file(entry.hub, file.name, revision=entry.revision)) is not None:
                yield cached.parent, False


def _advice(name: str, file_names: Sequence[str], searched: Sequence[str]) -> str:
    entry = _entry(name)
    obtain = _by_hand(entry) if entry else "Get the checkpoint from its authors."
    return (
        f"{name} needs its authors' checkpoint ({' or '.join(file_names)}), which is not in "
        f"{', '.join(searched)}. {obtain}"
    )


def _by_hand(entry: PublishedWeights) -> str:
    return (
        f"{entry.obtain} Source: {entry.source}. Then give its path as weights=PATH (--weights), "
        f"or put it into {weights_folder() / entry.name}, or set {HOME_VARIABLE} to its folder."
    )
