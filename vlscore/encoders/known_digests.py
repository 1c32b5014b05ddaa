"""Digests of checkpoints, remembered between runs and verified while the work goes on.

A digest is found by what the system says of the files: device, inode, size and time of the last
change. That a file still holds what it held then is verified by a thread beside the work, and
whoever writes results waits for it (`vlscore._assurance`).
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from vlscore._background import BackgroundThread, Stopped
from vlscore._files import atomic_write
from vlscore.cache.place import OFF, PLACE, cache_folder
from vlscore.errors import ChecksumMismatch, VLScoreError

_DIGEST = re.compile(r"[0-9a-f]{64}")
# Of what lies in the folder; another way to take digests gets another name.
_FOLDER = "digests-1"

_State = tuple[int, int, int, int]


class Compute(Protocol):
    """Takes a digest in so many threads, and raises where it is told to stop before the end."""

    def __call__(self, threads: int | None, stopped: Stopped) -> str: ...


def digest_of(
    files: Sequence[Path], what: str, compute: Compute
) -> tuple[str, Callable[[], None] | None]:
    """The digest of what files hold, from memory where they have not changed since.

    Args:
        files: what the digest is taken of.
        what: tells it from other digests of the same files.
        compute: takes the digest; called once, here or, with one thread, in a thread beside the
            work.

    Returns: the digest; and, where it was remembered, what waits until it has been verified and
        raises ChecksumMismatch where the files hold something else.
    """
    states = [_state(path) for path in files]
    place = _place(states, what)
    known = _read(place)
    if known is not None:
        return known, _Verification(files, states, known, compute, place).wait
    digest = compute(None, lambda: False)
    # A file that changed while it was read is remembered under no state.
    if place is not None and [_state(path) for path in files] == states:
        with contextlib.suppress(VLScoreError, OSError), atomic_write(place) as stream:
            stream.write(digest + "\n")
    return digest, None


class _Verification:
    """One digest, taken again in a thread beside the work."""

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
        """Raises ChecksumMismatch where a file is not what it was when its digest was taken."""
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
        except Exception as error:  # whatever it is, the file is not known to be whole
            self._error = error


def _was_changed(before: _State | None, now: _State | None) -> bool:
    """Whether the file itself is another one than it was; one that took its name is no matter."""
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
    """Where a digest of files in these states is remembered; None where nothing is."""
    if os.environ.get(PLACE, "").strip().lower() == OFF or None in states:
        return None
    key = hashlib.sha256(json.dumps([what, states]).encode()).hexdigest()
    try:
        return cache_folder() / _FOLDER / key
    except RuntimeError:  # there is no home
        return None


def _read(place: Path | None) -> str | None:
    try:
        text = place.read_text(encoding="ascii").strip() if place is not None else ""
    except (OSError, ValueError):
        return None
    return text if _DIGEST.fullmatch(text) else None


def _names(files: Sequence[Path]) -> str:
    return " and ".join(map(str, files))
