"""Worker processes that decode images, one image at a time each, and their pool.

The standard library's process pools run the user's script again in every worker, which a script
without a `__main__` guard or from standard input does not survive, and they lose everything in
flight when one worker dies. Here a worker is a plain program at the end of two pipes: it never
reads the script, and its death affects only the image that it was decoding.

Pixels are written once, into shared memory (`slots`), or go through the pipe if no slot is free.
"""

import contextlib
import json
import math
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from vlscore import errors
from vlscore.data import ImagePolicy
from vlscore.embedding.slots import Slots
from vlscore.encoders import ImagePipeline
from vlscore.errors import VLScoreError

_CHILD = Path(__file__).with_name("worker_child.py")
# Importing torch and transformers from a cold disk on a busy machine takes a minute.
_SECONDS_TO_START = 300
_SECONDS_BETWEEN_WAKING = 5.0
_WAKE = getattr(signal, "SIGCONT", None)
# A worker costs seconds to start and hundreds of megabytes, so it must have enough images.
_IMAGES_FOR_A_WORKER = 16
# Limits of an answer: bytes of its line; types and bytes of pixels.
_MOST_OF_A_LINE = 1 << 16
_KINDS = ("uint8", "float16", "float32", "float64")
_MOST_PIXEL_BYTES = 1 << 30

Result = TypeVar("Result")


class CannotStart(Exception):
    """A worker process cannot be started at all; no image is to blame."""


class Died(Exception):
    """A worker process ended while it decoded an image."""


class Closed(Exception):
    """The pool was closed while an image was in it."""


class TookTooLong(Exception):
    """A worker process was ended because an image was not decoded in time."""


class Fault(Exception):
    """Decoding raised an unexpected error; only the name of its type is reported."""


class Worker:
    """One process that decodes images."""

    def __init__(self) -> None:
        self.is_ready = False
        self._slots = Slots()
        shared = self._slots.descriptor
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_CHILD), str(os.getpid()), str(_SECONDS_TO_START)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                pass_fds=() if shared is None else (shared,),
            )
        except (OSError, ValueError, TypeError) as error:
            raise CannotStart(f"{type(error).__name__}: {error}") from None
        finally:
            self._slots.close_descriptor()
        self._shared = shared
        self._requests = cast(IO[bytes], self._process.stdin)
        self._replies = cast(IO[bytes], self._process.stdout)

    def begin(self, task: bytes, seconds: float) -> None:
        """Send the pickled pipeline and policy, and wait until the worker has loaded them.

        Args:
            task: `packed(pipeline, policy)`.
            seconds: time limit of one image.
        Raises: CannotStart.
        """
        start = {
            "path": sys.path,
            "bytes": len(task),
            "seconds": seconds,
            "shared": None if self._shared is None else [self._shared, self._slots.size],
        }
        try:
            answer = self._ask(_line(start) + task, _SECONDS_TO_START)
        except Died as death:
            raise CannotStart(f"the process ended at once ({death})") from None
        except TookTooLong:
            raise CannotStart(f"it was not ready after {_SECONDS_TO_START} s") from None
        if "cannot_start" in answer:
            raise CannotStart(answer["cannot_start"])
        self.is_ready = True

    def decode(self, image: str, seconds: float) -> NDArray[Any]:
        """Return the pixels of the file at that path.

        Raises: VLScoreError of the pipeline; Fault for any other error of it; Died, TookTooLong:
            the process has ended.
        """
        slot = self._slots.take()
        is_used = False
        try:
            answer = self._ask(_line({"image": image, "slot": slot}), seconds)
            if "error" in answer:
                raise _error_of(answer)
            if "fault" in answer:
                raise Fault(str(answer["fault"]))
            header = _pixels_header(answer, slot)
            if header is None:
                raise self._end_of_nonsense()
            dtype, shape, size = header
            if slot is None or not answer.get("in_slot"):
                return np.frombuffer(self._read(size, seconds), dtype).reshape(shape)
            is_used = True
            return self._slots.pixels(slot, dtype, shape)
        finally:
            if slot is not None and not is_used:
                self._slots.give_back(slot)

    def end(self) -> None:
        """End the process at once; a thread that waits for its answer gets Died."""
        self._process.kill()

    def release(self) -> None:
        """End the process and free it; only if no thread waits for an answer."""
        self.end()
        self._process.wait()
        for stream in (self._requests, self._replies):
            # Data that was written and never read can no longer be flushed.
            with contextlib.suppress(OSError):
                stream.close()

    def _ask(self, question: bytes, seconds: float) -> dict[str, Any]:
        """Return the answer; the process ends itself if it takes longer than `seconds`."""
        began = time.monotonic()
        try:
            self._requests.write(question)
            self._requests.flush()
            self._wait()
            line = self._replies.readline(_MOST_OF_A_LINE)
        except OSError:
            line = b""
        if not line.endswith(b"\n"):
            if len(line) == _MOST_OF_A_LINE:
                raise self._end_of_nonsense()
            raise self._why_ended(began, seconds)
        # Answers are json and plain bytes: a decoder that a malicious file controls can send wrong
        # pixels, but no pickled program.
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise self._end_of_nonsense()
        return answer

    def _wait(self) -> None:
        """Wait for an answer, and continue the process if somebody has stopped it.

        A stopped process does not notice its own time limit. Continuing a running one has no
        effect; and if the whole job is stopped, this process is, too.
        """
        if _WAKE is None:
            return
        while not select.select([self._replies], [], [], _SECONDS_BETWEEN_WAKING)[0]:
            self._process.send_signal(_WAKE)

    def _read(self, size: int, seconds: float) -> bytearray:
        """Read some bytes of pixels from the pipe."""
        began = time.monotonic()
        content = bytearray(size)
        view, done = memoryview(content), 0
        while done < size:
            try:
                count = self._replies.readinto(view[done:])  # type: ignore[attr-defined]
            except OSError:
                count = 0
            if not count:
                raise self._why_ended(began, seconds)
            done += count
        return content

    def _why_ended(self, began: float, seconds: float) -> "Died | TookTooLong":
        """Return why the process has ended."""
        status = self._process.wait()
        if time.monotonic() - began >= seconds:
            return TookTooLong()
        return Died(_ending(status))

    def _end_of_nonsense(self) -> Died:
        self._process.kill()
        self._process.wait()
        return Died("its answer was none")


class WorkerPool:
    """Up to `most` workers, started when there is work for them.

    Attributes:
        started: number of processes that were started.
        has_answered: whether one of them is or was ready.
    """

    def __init__(
        self, pipeline: ImagePipeline, policy: ImagePolicy, most: int, seconds: float
    ) -> None:
        self.started = 0
        self.has_answered = False
        self._pipeline, self._policy = pipeline, policy
        self._most = most
        self._seconds = seconds
        self._expected = 0
        self._task: bytes | None = None
        self._idle: list[Worker] = []
        self._workers: set[Worker] = set()
        self._problem: CannotStart | None = None
        self._is_closed = False
        self._changed = threading.Condition()

    def expect(self) -> None:
        """Count one more image, so that enough workers are started."""
        with self._changed:
            self._expected += 1
            self._changed.notify()

    def run(self, work: Callable[[Worker], Result]) -> Result:
        """Call `work` with the next free worker.

        Raises: CannotStart if there is no worker and none can be started; Closed; and any error of
            `work`. A worker that raised Died or TookTooLong is not used again.
        """
        worker = self._take_ready()
        try:
            result = work(worker)
        except (Died, TookTooLong):
            self._discard(worker)
            raise
        except BaseException:
            self._give_back(worker)
            raise
        self._give_back(worker)
        return result

    def close(self) -> None:
        """End all workers; threads that wait for their answers get Died."""
        with self._changed:
            self._is_closed = True
            for worker in self._workers:
                worker.end()
            self._changed.notify_all()

    def release(self) -> None:
        """Free the ended workers, once no thread waits for them."""
        for worker in self._workers:
            worker.release()
        self._workers.clear()

    def _take_ready(self) -> Worker:
        while True:
            worker: Worker | None = None
            try:
                worker = self._take()
                if not worker.is_ready:
                    worker.begin(self._packed(), self._seconds)
                    self.has_answered = True
                return worker
            except CannotStart as problem:
                if worker is not None:
                    self._discard(worker)
                with self._changed:
                    if not self._workers:
                        self._problem = problem
                        self._changed.notify_all()
                        raise
                    # Running workers continue: there may be no memory for more.
                    self._most = len(self._workers)

    def _take(self) -> Worker:
        with self._changed:
            while True:
                if self._is_closed:
                    raise Closed
                if self._problem is not None:
                    raise self._problem
                if self._idle:
                    return self._idle.pop()
                wanted = 1 + self._expected // _IMAGES_FOR_A_WORKER
                if len(self._workers) < min(self._most, wanted):
                    worker = Worker()
                    self._workers.add(worker)
                    self.started += 1
                    return worker
                self._changed.wait()

    def _give_back(self, worker: Worker) -> None:
        with self._changed:
            self._idle.append(worker)
            self._changed.notify()

    def _discard(self, worker: Worker) -> None:
        worker.release()
        with self._changed:
            self._workers.discard(worker)
            self._changed.notify()

    def _packed(self) -> bytes:
        if self._task is None:
            try:
                self._task = pickle.dumps((self._pipeline, self._policy))
            except Exception as error:  # a user's objects may fail in any way
                raise CannotStart(f"{type(error).__name__}: {error}") from None
        return self._task


def _error_of(answer: dict[str, Any]) -> VLScoreError:
    """Return the error that a worker names, if the project has one of that name."""
    kind = getattr(errors, str(answer["error"]), None)
    if not (isinstance(kind, type) and issubclass(kind, VLScoreError)):
        kind = VLScoreError
    return kind(str(answer.get("message", "")))


def _pixels_header(
    answer: dict[str, Any], slot: tuple[int, int] | None
) -> tuple[np.dtype[Any], tuple[int, ...], int] | None:
    """Return (type, shape, bytes) of the pixels that follow an answer; None if impossible."""
    dtype, shape = answer.get("dtype"), answer.get("shape")
    if dtype not in _KINDS or not isinstance(shape, list) or len(shape) > 4:
        return None
    if not all(isinstance(side, int) and 0 <= side <= _MOST_PIXEL_BYTES for side in shape):
        return None
    size = np.dtype(dtype).itemsize * math.prod(shape)
    room = slot[1] if slot is not None and answer.get("in_slot") else _MOST_PIXEL_BYTES
    return (np.dtype(dtype), tuple(shape), size) if size <= room else None


def block_interrupts() -> None:
    """Block Ctrl-C in the processes that this thread will start, from their first moment."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _line(content: Any) -> bytes:
    return json.dumps(content).encode("ascii") + b"\n"


def _ending(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
