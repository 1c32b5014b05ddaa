"""Processes that decode images, one image at a time each, and the pool that lends them out.

The standard library's process pools run the user's script again in every worker, which a script
without a `__main__` guard or from standard input does not survive, and they lose everything in
flight when one worker dies. A worker here is a plain program at the end of two pipes: it never
sees the script, and its death concerns the one image that it was decoding.
"""

import contextlib
import json
import os
import pickle
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
from vlscore.encoders import ImagePipeline
from vlscore.errors import VLScoreError
from vlscore.images import ImagePolicy

_CHILD = Path(__file__).with_name("worker_child.py")
# Importing torch and transformers from a cold disk on a busy machine takes a minute.
_SECONDS_TO_START = 300
# A worker costs seconds to start and hundreds of megabytes: it must have something to do.
_IMAGES_FOR_A_WORKER = 16

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
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_CHILD), str(os.getpid()), str(_SECONDS_TO_START)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        except (OSError, ValueError, TypeError) as error:
            raise CannotStart(f"{type(error).__name__}: {error}") from None
        self._requests = cast(IO[bytes], self._process.stdin)
        self._replies = cast(IO[bytes], self._process.stdout)

    def begin(self, task: bytes, seconds: float) -> None:
        """Hand over the pickled pipeline and policy, and wait until they are understood.

        Args:
            task: `packed(pipeline, policy)`.
            seconds: time limit of one image.
        Raises: CannotStart.
        """
        start = {"path": sys.path, "bytes": len(task), "seconds": seconds}
        try:
            answer, _ = self._ask(_line(start) + task, _SECONDS_TO_START)
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
        answer, content = self._ask(_line(image), seconds)
        if "error" in answer:
            kind = getattr(errors, answer["error"], VLScoreError)
            raise kind(answer["message"])
        if "fault" in answer:
            raise Fault(answer["fault"])
        return np.frombuffer(content, answer["dtype"]).reshape(answer["shape"])

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

    def _ask(self, question: bytes, seconds: float) -> tuple[dict[str, Any], bytearray]:
        """Its answer; the process ends itself where that takes longer than `seconds`."""
        began = time.monotonic()
        try:
            self._requests.write(question)
            self._requests.flush()
            line = self._replies.readline()
            # Pixels come as plain bytes: a decoder that was taken over by the file it reads can
            # send wrong pixels, and no pickled program.
            answer = json.loads(line) if line.endswith(b"\n") else {}
            content = bytearray(answer.get("bytes", 0))
            if answer and self._read_into(content):
                return answer, content
        except OSError:
            pass
        status = self._process.wait()
        if time.monotonic() - began >= seconds:
            raise TookTooLong
        raise Died(_ending(status))

    def _read_into(self, content: bytearray) -> bool:
        view, done = memoryview(content), 0
        while done < len(content):
            count = self._replies.readinto(view[done:])  # type: ignore[attr-defined]
            if not count:
                return False
            done += count
        return True


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
