"""Finding, fetching and checking the checkpoints that weights/cards lists.

Nothing is downloaded unless `fetch` is called, and nothing here imports torch to find a file.
"""

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vlscore.encoders.blocks.files import CHECKPOINT_SUFFIXES, checkpoint_in, download_vocabulary
from vlscore.encoders.blocks.hub import cached_file, download, reason_offline
from vlscore.encoders.cards import PublishedWeights, entry_of
from vlscore.encoders.registry import ENCODERS, SHIPPED
from vlscore.errors import ChecksumMismatch, UnknownName, WeightsNotFound

HOME_VARIABLE = "VLSCORE_WEIGHTS"


@dataclass(frozen=True)
class Fetched:
    """What was downloaded, and what is left to do by hand ("" where nothing is)."""

    paths: tuple[Path, ...]
    left_to_do: str


@dataclass(frozen=True)
class Verified:
    """A checkpoint that was read safely and whole.

    Attributes:
        digest: of its tensors, whatever the container; JointEncoder.weights_digest.
        sha256: of the file.
        published_for: the encoders whose stated checksum it has.
    """

    path: Path
    tensors: int
    numbers: int
    digest: str
    sha256: str
    published_for: tuple[str, ...]


@cache
def published_weights() -> dict[str, PublishedWeights]:
    """Where the weights of each encoder that ships with vlscore come from, by its name."""
    return {name: entry_of(name).weights for name in SHIPPED}


def weights_of(name: str) -> PublishedWeights:
    """Where the weights of one encoder come from; the name in any spelling. Raises UnknownName."""
    known = ENCODERS.name_of(name)
    if known not in published_weights():
        raise UnknownName(
            f"{known} comes from a package of its own; vlscore knows no weights of it"
        )
    return published_weights()[known]


def cache_folder() -> Path:
    """Where checkpoints are looked for last, each in a folder named as its encoder."""
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "vlscore" / "weights"


def find_weights(
    name: str, weights: str | Path | None, file_names: Sequence[str], *, guess: bool = True
) -> Path:
    """The checkpoint file of an encoder.

    Looked for in `weights`. Without it: in VLSCORE_WEIGHTS (a file; or a folder, in which a folder
    named as the encoder comes first), in the cache folder, and among what the hub's cache holds.
    What is found by name must have the checksum that the manifest states; `weights` may be a model
    of the user's own.

    Args:
        file_names: the names that the encoder's authors use, in order of preference.
        guess: whether the encoder's folder may hold one checkpoint of any other name.

    Raises:
        WeightsNotFound: saying what to do.
        ChecksumMismatch: the file that was found is not the published one.
    """
    if weights is not None:
        return checkpoint_in(Path(weights), file_names, guess=guess)
    searched = []
    for place, may_guess in _places(name):
        try:
            found = checkpoint_in(place, file_names, guess=guess and may_guess)
        except WeightsNotFound:
            searched.append(str(place))
            continue
        check_published(name, found)
        return found
    raise WeightsNotFound(_advice(name, file_names, searched))


def is_here(name: str) -> bool:
    """Whether an encoder would be found now, without `weights`."""
    entry = weights_of(name)
    try:
        for file in entry.files:
            find_weights(entry.name, None, file.names, guess=len(entry.files) == 1)
    except WeightsNotFound:
        return False
    return bool(entry.files) or entry.status == "bundled"


def check_published(name: str, path: Path) -> bool:
    """Whether a file has the checksum that the manifest states for it; False where none is stated.

    Raises: ChecksumMismatch where it has another.
    """
    entry = published_weights().get(name)
    stated = next((file for file in entry.files if file.name == path.name), None) if entry else None
    checksums = {"sha256": stated.sha256, "md5": stated.md5} if stated else {}
    for kind, expected in checksums.items():
        if expected is None:
            continue
        found = _file_digest(path, kind)
        if found != expected:
            raise ChecksumMismatch(
                f"{path} has the {kind} {found}, but {name}'s authors state {expected}: it is "
                "damaged or another version. Download it again; a model of your own can be given "
                "as weights=PATH"
            )
        return True
    return False


def fetch(name: str) -> Fetched:
    """Download an encoder's checkpoint and vocabulary into the hub's cache.

    HF_HOME and HF_HUB_OFFLINE are heeded. What is on no hub must be downloaded by hand: then only
    the vocabulary is fetched, and the result says what is left to do.

    Raises: UnknownName, WeightsNotFound where the hub cannot be reached, ChecksumMismatch.
    """
    entry = weights_of(name)
    paths = []
    if entry.status == "bundled":
        return Fetched((), "")
    if entry.hub:
        for file in entry.files:
            path = download(entry.hub, file.name, revision=entry.revision)
            check_published(entry.name, path)
            paths.append(path)
    if entry.vocabulary:
        vocabulary = download_vocabulary(entry.vocabulary)
        if vocabulary is None:
            raise WeightsNotFound(
                f"its vocabulary could not be had from huggingface.co/{entry.vocabulary}: "
                f"{reason_offline()}"
                + ("" if entry.hub else f". The checkpoint is on no hub: {_by_hand(entry)}")
            )
        paths.append(vocabulary)
    return Fetched(tuple(paths), "" if entry.hub else _by_hand(entry))


def verify(path: str | Path) -> list[Verified]:
    """Read a checkpoint, or every checkpoint of a folder, safely and whole.

    Raises: the errors of `load_checkpoint`; ChecksumMismatch where a file bears a published name
        but has not the checksum that the manifest states for it.
    """
    place = Path(path)
    if not place.is_dir():
        return [_verify_file(place)]
    found = sorted(file for file in place.iterdir() if file.suffix in CHECKPOINT_SUFFIXES)
    if not found:
        raise WeightsNotFound(f"{place} holds no checkpoint ({', '.join(CHECKPOINT_SUFFIXES)})")
    return [_verify_file(file) for file in found]


def _verify_file(path: Path) -> Verified:
    from vlscore.encoders.checkpoints import load_checkpoint, tensors_digest

    tensors = load_checkpoint(path)
    return Verified(
        path=path,
        tensors=len(tensors),
        numbers=sum(tensor.numel() for tensor in tensors.values()),
        digest=tensors_digest(tensors),
        sha256=_file_digest(path, "sha256"),
        published_for=tuple(name for name in published_weights() if check_published(name, path)),
    )


def _places(name: str) -> Iterator[tuple[Path, bool]]:
    """Where to look, and whether a lone checkpoint there must be this encoder's."""
    home = os.environ.get(HOME_VARIABLE)
    if home:
        if not Path(home).exists():
            raise WeightsNotFound(
                f"{HOME_VARIABLE} is {home}, which does not exist; set it to a checkpoint, or to "
                "a folder of checkpoints, or unset it"
            )
        if not Path(home).is_file():
            yield Path(home) / name, True
        yield Path(home), False
    yield cache_folder() / name, True
    entry = published_weights().get(name)
    if entry and entry.hub:
        for file in entry.files:
            if (cached := cached_file(entry.hub, file.name, revision=entry.revision)) is not None:
                yield cached.parent, False


def _advice(name: str, file_names: Sequence[str], searched: Sequence[str]) -> str:
    entry = published_weights().get(name)
    obtain = _by_hand(entry) if entry else "Get the checkpoint from its authors."
    return (
        f"{name} needs its authors' checkpoint ({' or '.join(file_names)}), which is not in "
        f"{', '.join(searched)}. {obtain}"
    )


def _by_hand(entry: PublishedWeights) -> str:
    return (
        f"{entry.obtain} Source: {entry.source}. Then give its path as weights=PATH (--weights), "
        f"or put it into {cache_folder() / entry.name}, or set {HOME_VARIABLE} to its folder."
    )


def _file_digest(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()
