"""Finding an encoder's files: its checkpoint, and the vocabulary of its tokenizer."""

from collections.abc import Sequence
from pathlib import Path

from vlscore.encoders.blocks.hub import cached_file, download, is_hub_id
from vlscore.errors import WeightsNotFound

VOCABULARY_FILES = ("vocab.txt", "tokenizer.json")
CHECKPOINT_SUFFIXES = (".safetensors", ".ckpt", ".pt", ".pth", ".bin")


def checkpoint_in(place: Path, names: Sequence[str], *, guess: bool = True) -> Path:
    """The checkpoint that `place` is, or that it holds under one of its published names.

    A published name's safetensors conversion ("model.ckpt" -> "model.safetensors") is as good.

    Args:
        names: the published names, in order of preference.
        guess: whether a folder's only checkpoint is taken whatever its name.

    Raises: WeightsNotFound, saying what was looked for.
    """
    if place.is_file():
        return place
    if not place.is_dir():
        raise WeightsNotFound(f"{place}: no such checkpoint file or folder")
    for name in names:
        for candidate in (place / Path(name).with_suffix(".safetensors"), place / name):
            if candidate.is_file():
                return candidate
    found = sorted(p for p in place.iterdir() if p.suffix in CHECKPOINT_SUFFIXES)
    if guess and len(found) == 1:
        return found[0]
    held = ", ".join(path.name for path in found) or "no checkpoint at all"
    raise WeightsNotFound(
        f"{place} holds none of {', '.join(names)} but {held}; give the file itself as weights="
    )


def vocabulary_file(
    tokenizer: str | Path | None,
    *,
    beside: Path,
    hub_id: str,
    names: Sequence[str] = VOCABULARY_FILES,
) -> Path:
    """Where a tokenizer's vocabulary is.

    Looked for in this order: `tokenizer`, a file, a folder or the id of a hub repository (only
    then is the hub asked); next to the checkpoint; what the hub's cache already holds of `hub_id`.

    Args:
        names: what the file may be called, in order of preference.

    Raises: WeightsNotFound, saying how to get it.
    """
    if tokenizer is not None:
        return _given_vocabulary(tokenizer, names)
    found = _vocabulary_in(beside if beside.is_dir() else beside.parent, names)
    found = found or _cached_vocabulary(hub_id, names)
    if found is None:
        raise WeightsNotFound(
            f"no {' or '.join(names)} lies beside {beside}; give the vocabulary of "
            f'{hub_id} as tokenizer=PATH, or tokenizer="{hub_id}" to download it'
        )
    return found


def download_vocabulary(hub_id: str | None, names: Sequence[str] = VOCABULARY_FILES) -> Path | None:
    """A vocabulary from the hub, now in its cache; None where there is none to be had."""
    if hub_id is None or not is_hub_id(hub_id):
        return None
    for name in names:
        try:
            return download(hub_id, name)
        except WeightsNotFound:
            continue
    return None


def _given_vocabulary(tokenizer: str | Path, names: Sequence[str]) -> Path:
    path = Path(tokenizer)
    if path.is_file():
        return path
    if path.is_dir():
        found = _vocabulary_in(path, names)
        if found is None:
            raise WeightsNotFound(f"{path} holds no {' or '.join(names)}")
        return found
    name = str(tokenizer)
    if is_hub_id(name):
        found = download_vocabulary(name, names)
        if found is not None:
            return found
        raise WeightsNotFound(
            f"no folder is called {name}, and no hub repository of that name could be reached "
            "(HF_HUB_OFFLINE=1 keeps to what is cached); give the path of a vocab.txt"
        )
    raise WeightsNotFound(f"{path}: no such vocabulary file or folder")


def _vocabulary_in(folder: Path, names: Sequence[str]) -> Path | None:
    return next((folder / n for n in names if (folder / n).is_file()), None)


def _cached_vocabulary(hub_id: str, names: Sequence[str]) -> Path | None:
    return next((found for n in names if (found := cached_file(hub_id, n))), None)
