"""Finding, fetching and checking the checkpoints that weights/manifest.toml lists.

Nothing is downloaded unless `fetch` is called.
"""

import hashlib
import os
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from vlscore._resources import resource_path
from vlscore.encoders.blocks.files import CHECKPOINT_SUFFIXES, checkpoint_in, download_vocabulary
from vlscore.errors import ChecksumMismatch, UnknownName, WeightsNotFound

HOME_VARIABLE = "VLSCORE_WEIGHTS"


@dataclass(frozen=True)
class PublishedFile:
    """A file by its published name, and its checksums where its authors state them."""

    name: str
    md5: str | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class PublishedWeights:
    """One encoder's entry in weights/manifest.toml, where each field is explained."""

    name: str
    status: str
    files: tuple[PublishedFile, ...]
    licence: str
    obtain: str
    hub: str | None = None
    revision: str | None = None
    url: str | None = None
    vocabulary: str | None = None
    C: float | None = None
    calibrated_on: str | None = None

    @property
    def source(self) -> str:
        """Where the files come from, for people."""
        if self.hub:
            return f"huggingface.co/{self.hub}" + (f"@{self.revision}" if self.revision else "")
        return self.url or "-"


@dataclass(frozen=True)
class Fetched:
    """What was downloaded, and what is left to do by hand ("" where nothing is)."""

    paths: tuple[Path, ...]
    left_to_do: str


@dataclass(frozen=True)
class Verified:
    """A checkpoint that was read safely and whole.

    Attributes:
        digest: of its tensors, whatever the container; the signature's encoder checksum.
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
    """The manifest, by encoder."""
    with resource_path("weights", "manifest.toml").open("rb") as stream:
        tables: dict[str, dict[str, Any]] = tomllib.load(stream)
    return {
        name: PublishedWeights(
            name, **table | {"files": tuple(PublishedFile(**file) for file in table["files"])}
        )
        for name, table in tables.items()
    }


def weights_of(name: str) -> PublishedWeights:
    """The manifest's entry of one encoder. Raises UnknownName."""
    entry = published_weights().get(name)
    if entry is None:
        known = ", ".join(published_weights())
        raise UnknownName(f"the manifest lists no weights for {name!r}; it lists {known}")
    return entry


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
    names = [file.name for file in entry.files]
    try:
        for file_name in names:
            find_weights(name, None, [file_name], guess=len(names) == 1)
    except WeightsNotFound:
        return False
    return bool(names) or entry.status == "bundled"


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
    if entry.hub:
        for file in entry.files:
            path = _download(entry, file.name)
            check_published(name, path)
            paths.append(path)
    if entry.vocabulary:
        vocabulary = download_vocabulary(entry.vocabulary)
        if vocabulary is None:
            raise WeightsNotFound(_unreachable(entry.vocabulary, "its vocabulary"))
        paths.append(vocabulary)
    by_hand = entry.status != "bundled" and not entry.hub
    return Fetched(tuple(paths), _by_hand(entry) if by_hand else "")


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
        from huggingface_hub import try_to_load_from_cache

        for file in entry.files:
            cached = try_to_load_from_cache(entry.hub, file.name, revision=entry.revision)
            if isinstance(cached, str):
                yield Path(cached).parent, False


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


def _download(entry: PublishedWeights, file_name: str) -> Path:
    from huggingface_hub import hf_hub_download

    assert entry.hub is not None
    try:
        return Path(hf_hub_download(entry.hub, file_name, revision=entry.revision))
    except Exception as error:  # the hub library raises many unrelated types
        raise WeightsNotFound(
            f"{_unreachable(entry.hub, file_name)} ({type(error).__name__})"
        ) from None


def _unreachable(hub_id: str, what: str) -> str:
    return (
        f"{what} could not be had from huggingface.co/{hub_id}: is the network there, and "
        "HF_HUB_OFFLINE unset? HF_ENDPOINT names a mirror"
    )


def _file_digest(path: Path, kind: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, kind).hexdigest()
