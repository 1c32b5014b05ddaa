"""Checkpoints: read tensors from any usual container, and take their digests.

`load_checkpoint` reads tensors; no code in a file is ever run. `digest_of` remembers digests
between runs: a digest is found by the system's facts about the files (device, inode, size and time
of the last change). A background thread verifies that the file still has that content, and code
that writes results waits for it (`vlscore.core.confirm`).
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from vlscore.core import OFF, PLACE, BackgroundThread, Stopped, atomic_write, cache_folder
from vlscore.encoders.containers import Inert, read_archive, read_legacy
from vlscore.errors import (
    ChecksumMismatch,
    IncompatibleCheckpoint,
    InvalidSetting,
    UnsafeCheckpoint,
    VLScoreError,
    WeightsNotFound,
)

_DIGEST = re.compile(r"[0-9a-f]{64}")
# Version of the folder's content; another way to take digests needs another name.
_FOLDER = "digests-1"

_State = tuple[int, int, int, int]


class Compute(Protocol):
    """Function that takes a digest with some threads, and raises if it is stopped."""

    def __call__(self, threads: int | None, stopped: Stopped) -> str: ...


def digest_of(
    files: Sequence[Path], what: str, compute: Compute
) -> tuple[str, Callable[[], None] | None]:
    """Return the digest of files, from memory if they have not changed since.

    Args:
        files: files of which the digest is taken.
        what: name that distinguishes it from other digests of the same files.
        compute: function that takes the digest; called once, now or, with one thread, in the
            background.

    Returns: the digest; and, if it was remembered, a function that waits for the verification and
        raises ChecksumMismatch if the content is another.
    """
    states = [_state(path) for path in files]
    place = _place(states, what)
    known = _read_digests(place)
    if known is not None:
        return known, _Verification(files, states, known, compute, place).wait
    digest = compute(None, lambda: False)
    # The digest of a file that changed while it was read is not remembered.
    if place is not None and [_state(path) for path in files] == states:
        with contextlib.suppress(VLScoreError, OSError), atomic_write(place) as stream:
            stream.write(digest + "\n")
    return digest, None


class _Verification:
    """Verification of one digest in a background thread."""

    def __init__(
        self,
        files: Sequence[Path],
        states: Sequence[_State | None],
        expected: str,
        compute: Compute,
        place: Path | None,
    ) -> None:
        self._files, self._states = list(files), list(states)
        self._expected, self._place = expected, place
        self._found: str | None = None
        self._error: Exception | None = None
        self._compute = compute
        self._thread = BackgroundThread(self._take, "vlscore-digest")

    def wait(self) -> None:
        """Wait; raise ChecksumMismatch if a file changed since its digest was taken."""
        self._thread.wait()
        changed = [
            path
            for path, before in zip(self._files, self._states, strict=True)
            if _was_changed(before, _state(path))
        ]
        if not changed and self._found == self._expected:
            return
        if self._place is not None:
            with contextlib.suppress(OSError):
                self._place.unlink()
        if self._error is not None and not changed:
            raise ChecksumMismatch(
                f"{_names(self._files)} could not be verified ({type(self._error).__name__}); the "
                "results of this run were not written. Start it again"
            ) from self._error
        raise ChecksumMismatch(
            f"{_names(changed or self._files)} does not hold what it held when its digest was "
            "taken, although size and time of change say so: it was changed in place, or is "
            "damaged. The results of this run were not written; put the checkpoint right (`vlscore "
            "weights verify` reads it whole) and start the run again"
        )

    def _take(self, stopped: Stopped) -> None:
        try:
            self._found = self._compute(1, stopped)
        except Exception as error:  # after any error, the file is not known to be whole
            self._error = error


def _was_changed(before: _State | None, now: _State | None) -> bool:
    """Return True if the same file has changed; another file under its name does not count."""
    if before is None or now is None:
        return False
    return before[:2] == now[:2] and before != now


def _state(path: Path) -> _State | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _place(states: Sequence[_State | None], what: str) -> Path | None:
    """Return the file that remembers the digest of files in these states; None if impossible."""
    if os.environ.get(PLACE, "").strip().lower() == OFF or None in states:
        return None
    key = hashlib.sha256(json.dumps([what, states]).encode()).hexdigest()
    try:
        return cache_folder() / _FOLDER / key
    except RuntimeError:  # there is no home
        return None


def _read_digests(place: Path | None) -> str | None:
    try:
        text = place.read_text(encoding="ascii").strip() if place is not None else ""
    except (OSError, ValueError):
        return None
    return text if _DIGEST.fullmatch(text) else None


def _names(files: Sequence[Path]) -> str:
    return " and ".join(map(str, files))


_ZIP = b"PK\x03\x04"
_SAFETENSORS_HEADER = 8
# Names under which trainers store the state_dict, next to settings and scores.
_INNER = ("state_dict", "model_state_dict", "model")
_MOST_NESTED = 100
_BEGINNING = 256
# Layers that share weights refer to the same numbers a few times.
_MOST_SHOWN = 16
# Bytes that are hashed between two checks for a stop: some milliseconds.
_BLOCK = 1 << 22


def load_checkpoint(path: str | Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file, torch state_dict or lightning checkpoint, by key.

    Of a checkpoint that holds a "state_dict" (or "model") and other things, only that is returned.
    Keys are those of the file, with prefixes. Tensors share memory with the file, which must
    stay as long as they are in use.

    Raises:
        WeightsNotFound: there is no such file.
        UnsafeCheckpoint: it would run code, contradicts its own description, or is damaged.
        IncompatibleCheckpoint: it holds no tensors.
    """
    path = Path(path)
    if not path.is_file():
        raise WeightsNotFound(f"{path}: no such checkpoint file")
    content = _read(path)
    tensors = _tensors_of(content)
    if not tensors:
        raise IncompatibleCheckpoint(
            f"{path} holds no tensors by name, but {_kind(content)}; give a checkpoint "
            "with the model's state_dict, not a pickled model"
        )
    _check(tensors, path)
    return tensors


def tensors_digest(
    tensors: Mapping[str, Tensor],
    *,
    threads: int | None = None,
    stopped: Stopped = lambda: False,
) -> str:
    """Compute the hexadecimal sha256 of keys, types, shapes and values, in any order and container.

    Args:
        threads: number of threads; default: one a core and four more. With 1 none is started.
        stopped: function that is called several times a second; True ends the work.

    Raises: CancelledError if it was stopped.

    >>> tensors_digest({"a": torch.zeros(2)}) == tensors_digest({"a": torch.zeros(2).clone()})
    True
    """
    keys = sorted(tensors)
    if threads == 1:
        parts = [_digest_of_one(key, tensors[key], stopped) for key in keys]
    else:
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(lambda key: _digest_of_one(key, tensors[key], stopped), keys))
    return hashlib.sha256(b"".join(parts)).hexdigest()


def is_mapped(path: Path) -> bool:
    """Return True if tensors of this file can be used without a copy, as long as it exists."""
    return path.suffix == ".safetensors"


def convert(source: str | Path, target: str | Path, *, overwrite: bool = False) -> str:
    """Write a checkpoint's tensors as safetensors, which any library reads without pickle.

    Keys and values do not change; tensors that share memory are each written in full.

    Returns: the `tensors_digest`, the same for both files.
    Raises: InvalidSetting if `target` may not be written; the errors of `load_checkpoint`.
    """
    target = Path(target)
    if target.suffix != ".safetensors":
        raise InvalidSetting(f"{target}: the converted file's name must end in .safetensors")
    if target.exists() and not overwrite:
        raise InvalidSetting(
            f"{target} exists already; choose another name, or say overwrite (--overwrite)"
        )
    from safetensors.torch import save

    tensors = load_checkpoint(source)
    separate = {
        key: value.clone(memory_format=torch.contiguous_format) for key, value in tensors.items()
    }
    with atomic_write(target, "wb") as file:
        file.write(save(separate, metadata={"format": "pt"}))
    return tensors_digest(separate)


def _tensors_of(content: Any) -> dict[str, Tensor]:
    """Return the state_dict in a checkpoint, searched in the order in which trainers nest it."""
    seen: set[int] = set()

    def look(place: Any) -> dict[str, Tensor]:
        # A dictionary may appear in many places, even inside itself.
        if not isinstance(place, dict) or id(place) in seen or len(seen) >= _MOST_NESTED:
            return {}
        seen.add(id(place))
        for name in _INNER:
            if inner := look(place.get(name)):
                return inner
        return {
            key: value.detach()
            for key, value in place.items()
            if isinstance(key, str) and isinstance(value, Tensor)
        }

    return look(content)


def _check(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Refuse names that are not text, and few bytes described as many tensors."""
    for key in tensors:
        # Half of a surrogate pair is possible in a pickle, but not in a file name or digest.
        if any("\ud800" <= letter <= "\udfff" for letter in key):
            raise UnsafeCheckpoint(f"{path} has a tensor whose name is no text: {key!a}")
    shown = sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
    held = path.stat().st_size
    if shown > _MOST_SHOWN * held:
        raise UnsafeCheckpoint(
            f"{path} of {held:,} bytes describes tensors of {shown:,} bytes, naming the same "
            "numbers again and again; it was not loaded"
        )


def _kind(content: Any) -> str:
    if isinstance(content, Inert):
        return "a pickled object"
    return f"a {type(content).__name__}"


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        beginning = file.read(_BEGINNING)
    head = beginning[: _SAFETENSORS_HEADER + 1]
    _refuse_downloads_gone_wrong(path, beginning)
    if path.suffix == ".safetensors" or head[_SAFETENSORS_HEADER:] == b"{":
        return _read_safetensors(path)
    if head.startswith(_ZIP):
        return read_archive(path)
    return read_legacy(path)


def _refuse_downloads_gone_wrong(path: Path, beginning: bytes) -> None:
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head")):
        raise IncompatibleCheckpoint(
            f"{path} is a web page, not a checkpoint: the download ended at a page that asks to "
            "confirm or to log in. Download it in a browser"
        )
    if text.startswith(b"version https://git-lfs"):
        raise IncompatibleCheckpoint(
            f"{path} is a pointer of Git LFS, not the checkpoint: `git lfs pull` fetches the file"
        )


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, ValueError) as error:
        raise UnsafeCheckpoint(f"{path} is damaged: {error}; download it again") from None


def _digest_of_one(key: str, tensor: Tensor, stopped: Stopped) -> bytes:
    digest = hashlib.sha256(f"{key}\n{tensor.dtype}\n{tuple(tensor.shape)}\n".encode())
    content = tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
    for start in range(0, len(content), _BLOCK):
        if stopped():
            raise CancelledError
        digest.update(content[start : start + _BLOCK])
    return digest.digest()
