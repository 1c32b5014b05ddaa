"""A worker process that decodes images, one at a time.

The process pools of the standard library run the user's script again in every worker, which a
script without a `__main__` guard or from standard input does not survive. Here a worker is a plain
program at the end of two pipes: it never reads the script, and ends when its pipe is closed.
"""

import contextlib
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any, cast

from numpy.typing import NDArray

from vlscore import errors
from vlscore.errors import UnreadableImage

_CHILD = Path(__file__).with_name("worker_child.py")
# What reading from a process raises that has ended, in the middle of an answer or before it.
_ENDED = (OSError, EOFError, pickle.UnpicklingError)


class CannotStart(Exception):
    """A worker process cannot be started at all; no image is to blame."""


class Fault(Exception):
    """Decoding raised an unexpected error; only the name of its type is reported."""


class Worker:
    """One process that decodes images, or another one if that has ended; used by one thread.

    Args:
        packed: pickle of an image pipeline and an image policy.
        seconds: time for one image.

    Attributes:
        started: number of processes that were started.
    """

    def __init__(self, packed: bytes, seconds: float) -> None:
        self.started = 0
        self._packed, self._seconds = packed, seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start a process and wait until it is ready. Raises: CannotStart."""
        with self._lock:
            if self._is_closed:
                raise CannotStart("the decoder was closed")
            try:
                # A group of its own: Ctrl-C is for this process, which ends its workers.
                self._process = subprocess.Popen(
                    [sys.executable, "-P", str(_CHILD)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    process_group=0,
                )
            except OSError as error:
                raise CannotStart(f"{type(error).__name__}: {error}") from None
            self.started += 1
        try:
            kind, content = self._ask(pickle.dumps((sys.path, self._seconds)) + self._packed)
        except _ENDED:
            raise CannotStart(f"it ended with {self._ending()}") from None
        if kind != "ready":
            self._ending()
            raise CannotStart(content)

    def decode(self, path: str) -> tuple[NDArray[Any], list[str]]:
        """Return the pixels of a file, and the notes on it.

        Raises: UnreadableImage for a file that ends two processes, or takes too long; Fault,
            VLScoreError; CannotStart.
        """
        ending = ""
        # Workers may also be ended from outside, for instance if memory is short.
        for is_second in (False, True):
            began = time.monotonic()
            try:
                if self._process is None:
                    self.start()
                kind, content = self._ask(pickle.dumps(path))
            except _ENDED:
                ending = self._ending()
                if time.monotonic() - began >= self._seconds:
                    raise UnreadableImage(
                        f"{path}: not decoded within {self._seconds:g} s; it is damaged or "
                        "malicious. Convert it again from its source, or leave the study out"
                    ) from None
            except CannotStart:
                if not is_second:
                    raise
            else:
                if kind == "fault":
                    raise Fault(content)
                if kind == "error":
                    raise getattr(errors, content[0], UnreadableImage)(content[1])
                return cast(tuple[NDArray[Any], list[str]], content)
        raise UnreadableImage(
            f"{path}: the decoder crashed on this file, and again in a new process ({ending}); it "
            "is damaged or malicious, or needs more memory than there is. Convert it again from "
            "its source, or leave the study out"
        )

    def kill(self) -> None:
        """End the process at once, from any thread; no other is started."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()

    def close(self) -> None:
        """End the process and close its pipes, from the thread that uses it."""
        self.kill()
        if self._process is not None:
            self._ending()

    def _ask(self, request: bytes) -> tuple[str, Any]:
        assert self._process is not None
        requests = cast(IO[bytes], self._process.stdin)
        requests.write(request)
        requests.flush()
        answer: tuple[str, Any] = pickle.load(cast(IO[bytes], self._process.stdout))
        return answer

    def _ending(self) -> str:
        """Wait for the end of the process; return how it ended."""
        with self._lock:
            process, self._process = self._process, None
        assert process is not None
        with contextlib.suppress(OSError):
            process.communicate()
        with contextlib.suppress(ValueError):
            return signal.Signals(-process.returncode).name
        return f"exit status {process.returncode}"
