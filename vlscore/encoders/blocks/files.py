"""Finding an encoder's files: its checkpoint, and the vocabulary of its tokenizer."""

from collections.abc import Sequence
from pathlib import Path

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


def vocabulary_file(tokenizer: str | Path | None, *, beside: Path, hub_id: str) -> Path:
    """Where a tokenizer's vocabulary is.

    Looked for in this order: `tokenizer`, a file, a folder or the id of a hub repository (only
    then is the hub asked); next to the checkpoint; what the hub's cache already holds of `hub_id`.

    Raises: WeightsNotFound, saying how to get it.
    """
    if tokenizer is not None:
        return _given_vocabulary(tokenizer)
    found = _vocabulary_in(beside if beside.is_dir() else beside.parent)
    found = found or _from_hub(hub_id, cached_only=True)
    if found is None:
        raise WeightsNotFound(
            f"no {' or '.join(VOCABULARY_FILES)} lies beside {beside}; give the vocabulary of "
            f'{hub_id} as tokenizer=PATH, or tokenizer="{hub_id}" to download it'
        )
    return found


def download_vocabulary(hub_id: str | None) -> Path | None:
    """A vocabulary from the hub, now in its cache; None where there is none to be had."""
    return None if hub_id is None else _from_hub(hub_id, cached_only=False)


def _given_vocabulary(tokenizer: str | Path) -> Path:
    path = Path(tokenizer)
    if path.is_file():
        return path
    if path.is_dir():
        found = _vocabulary_in(path)
        if found is None:
            raise WeightsNotFound(f"{path} holds no {' or '.join(VOCABULARY_FILES)}")
        return found
    name = str(tokenizer)
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        found = download_vocabulary(name)
        if found is not None:
            return found
        raise WeightsNotFound(
            f"no folder is called {name}, and no hub repository of that name could be reached "
            "(HF_HUB_OFFLINE=1 keeps to what is cached); give the path of a vocab.txt"
        )
    raise WeightsNotFound(f"{path}: no such vocabulary file or folder")


def _vocabulary_in(folder: Path) -> Path | None:
    return next((folder / n for n in VOCABULARY_FILES if (folder / n).is_file()), None)


def _from_hub(hub_id: str, *, cached_only: bool) -> Path | None:
    from huggingface_hub import hf_hub_download

    for name in VOCABULARY_FILES:
        try:
            return Path(hf_hub_download(hub_id, name, local_files_only=cached_only))
        except (
            Exception
        ):  # the hub library raises many unrelated types, all meaning "not to be had"
            continue
    return None
