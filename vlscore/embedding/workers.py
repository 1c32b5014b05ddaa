"""Memory that this process shares with one that decodes images, so that pixels are written once.

The memory is a file without a name (memfd_create, Linux), handed over by its descriptor: nothing
lies in /dev/shm, and the memory is gone when both processes are, however they end. Its size is
sealed before the other process starts, because a process that could shrink it would end this one
with SIGBUS. Elsewhere than on Linux there are no slots, and pixels come through the pipe.

Processes that decode images, one image at a time each, and the pool that lends them out.

The standard library's process pools run the user's script again in every worker, which a script
without a `__main__` guard or from standard input does not survive, and they lose everything in
flight when one worker dies. A worker here is a plain program at the end of two pipes: it never
sees the script, and its death concerns the one image that it was decoding. Pixels come through
memory that both share (`slots`), and through the pipe where none of it is free.
"""

import contextlib
import json
import math
import mmap
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from vlscore import errors
from vlscore.data import ImagePolicy
from vlscore.encoders import ImagePipeline
from vlscore.errors import VLScoreError

# Of one process that decodes. Pages that nobody wrote to take no memory.
_BYTES = 32 << 20
_PAGE = 4096

if sys.platform == "linux":
    import fcntl

    def _sealed_file(size: int) -> int:
        descriptor = os.memfd_create("vlscore-pixels", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, size)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

else:

    def _sealed_file(size: int) -> int:
        raise OSError("this system has no files without a name that can be sealed")


class Slots:
    """A bounded number of places for pixels; each is free again when its array is forgotten.

    Attributes:
        descriptor: of the shared file, for the process that writes; None where there is none.
        size: of the shared file, in bytes.
    """

    def __init__(self, size: int = _BYTES) -> None:
        self.size = size
        self.descriptor: int | None = None
        self._memory: mmap.mmap | None = None
        # All of it until the size of an image is known.
        self._room = size
        self._free: deque[int] = deque()
        with contextlib.suppress(OSError, AttributeError):
            self.descriptor = _sealed_file(size)
            self._memory = mmap.mmap(self.descriptor, size)
            self._free.append(0)

    def close_descriptor(self) -> None:
        """Close the descriptor once the other process has it; the memory stays."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def take(self) -> tuple[int, int] | None:
        """(offset, bytes) of a free slot; None where all hold pixels that are still in use."""
        try:
            # The one that was freed last is in the processor's cache, and has its memory already.
            return self._free.pop(), self._room
        except IndexError:
            return None

    def give_back(self, slot: tuple[int, int]) -> None:
        """Free a slot that nothing was written to."""
        self._free.append(slot[0])

    def pixels(
        self, slot: tuple[int, int], dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> NDArray[Any]:
        """The array in a slot, not copied; the slot is taken for as long as the array is used."""
        assert self._memory is not None
        offset, _ = slot
        count = int(np.prod(shape, dtype=np.int64))
        flat = np.frombuffer(self._memory, dtype, count, offset)
        if self._room == self.size:
            self._cut(flat.nbytes)
        # Views of the array hold it, and so do tensors that were made of it.
        weakref.finalize(flat, self._free.append, offset).atexit = False
        return flat.reshape(shape)

    def _cut(self, image_bytes: int) -> None:
        """Divide the memory for images of this size, or up to twice that: they may differ a bit."""
        room = max(_PAGE, 1 << max(image_bytes - 1, 0).bit_length())
        if room < self.size:
            self._room = room
            self._free.extend(reversed(range(room, self.size - room + 1, room)))


_CHILD = Path(__file__).with_name("worker_child.py")
# Importing torch and transformers from a cold disk on a busy machine takes a minute.
_SECONDS_TO_START = 300
_SECONDS_BETWEEN_WAKING = 5.0
_WAKE = getattr(signal, "SIGCONT", None)
# A worker costs seconds to start and hundreds of megabytes: it must have something to do.
_IMAGES_FOR_A_WORKER = 16
# What a worker may answer: a line of so many bytes; pixels of these types, of so many bytes.
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
    """Decoding raised something unforeseen; the name of its type is all that is told."""


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
        """Hand over the pickled pipeline and policy, and wait until they are understood.

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
        """Pixels of the file at that path.

        Raises: VLScoreError as the pipeline raised it; Fault for whatever else it raised; Died,
            TookTooLong: the process has ended.
        """
        slot = self._slots.take()
        is_used = False
        try:
            answer = self._ask(_line({"image": image, "slot": slot}), seconds)
            if "error" in answer:
                raise _stated_error(answer)
            if "fault" in answer:
                raise Fault(str(answer["fault"]))
            stated = _stated_pixels(answer, slot)
            if stated is None:
                raise self._end_of_nonsense()
            dtype, shape, size = stated
            if slot is None or not answer.get("in_slot"):
                return np.frombuffer(self._read(size, seconds), dtype).reshape(shape)
            is_used = True
            return self._slots.pixels(slot, dtype, shape)
        finally:
            if slot is not None and not is_used:
                self._slots.give_back(slot)

    def end(self) -> None:
        """End the process at once; whoever waits for its answer sees it die."""
        self._process.kill()

    def release(self) -> None:
        """End the process and forget it; only where nobody waits for an answer."""
        self.end()
        self._process.wait()
        for stream in (self._requests, self._replies):
            # What was written and never read cannot be flushed any more.
            with contextlib.suppress(OSError):
                stream.close()

    def _ask(self, question: bytes, seconds: float) -> dict[str, Any]:
        """Its answer; the process ends itself where that takes longer than `seconds`."""
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
        # Answers are json and plain bytes: a decoder that was taken over by the file it reads can
        # send wrong pixels, and no pickled program.
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            raise self._end_of_nonsense()
        return answer

    def _wait(self) -> None:
        """Wait for an answer, and wake the process where somebody has stopped it.

        A stopped process does not notice its own time limit. Waking one that runs does nothing; and
        where the whole job is stopped, this process is, too.
        """
        if _WAKE is None:
            return
        while not select.select([self._replies], [], [], _SECONDS_BETWEEN_WAKING)[0]:
            self._process.send_signal(_WAKE)

    def _read(self, size: int, seconds: float) -> bytearray:
        """So many bytes of pixels from the pipe."""
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
        """Why the process has ended, which it has."""
        status = self._process.wait()
        if time.monotonic() - began >= seconds:
            return TookTooLong()
        return Died(_ending(status))

    def _end_of_nonsense(self) -> Died:
        self._process.kill()
        self._process.wait()
        return Died("its answer was none")


class WorkerPool:
    """Up to `most` workers, started as there is work for them.

    Attributes:
        started: how many processes were started so far.
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
        """Count one more image, so that there are workers enough."""
        with self._changed:
            self._expected += 1
            self._changed.notify()

    def run(self, work: Callable[[Worker], Result]) -> Result:
        """Do something with the next free worker.

        Raises: CannotStart where there is none and none can be started; Closed; and whatever the
            work raises. A worker that raised Died or TookTooLong is not used again.
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
        """End all workers; those who wait for their answers see them die."""
        with self._changed:
            self._is_closed = True
            for worker in self._workers:
                worker.end()
            self._changed.notify_all()

    def release(self) -> None:
        """Forget the ended workers, once nobody waits for them."""
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
                    # Those that run go on: there may be no memory for more.
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
            except Exception as error:  # objects of the user's own may fail in any way
                raise CannotStart(f"{type(error).__name__}: {error}") from None
        return self._task


def _stated_error(answer: dict[str, Any]) -> VLScoreError:
    """The error that a worker names, if the project has one of that name."""
    kind = getattr(errors, str(answer["error"]), None)
    if not (isinstance(kind, type) and issubclass(kind, VLScoreError)):
        kind = VLScoreError
    return kind(str(answer.get("message", "")))


def _stated_pixels(
    answer: dict[str, Any], slot: tuple[int, int] | None
) -> tuple[np.dtype[Any], tuple[int, ...], int] | None:
    """(type, shape, bytes) of the pixels that a worker announces; None of what cannot be."""
    dtype, shape = answer.get("dtype"), answer.get("shape")
    if dtype not in _KINDS or not isinstance(shape, list) or len(shape) > 4:
        return None
    if not all(isinstance(side, int) and 0 <= side <= _MOST_PIXEL_BYTES for side in shape):
        return None
    size = np.dtype(dtype).itemsize * math.prod(shape)
    room = slot[1] if slot is not None and answer.get("in_slot") else _MOST_PIXEL_BYTES
    return (np.dtype(dtype), tuple(shape), size) if size <= room else None


def block_interrupts() -> None:
    """Keep Ctrl-C from the processes that this thread will start, from their first moment."""
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
