"""Image decoding in worker processes, so that the model never waits for a JPEG.

Decoders are C libraries that read untrusted bytes. A file that crashes a decoder, or keeps it busy
without end, costs its own study and no other.
"""

import os
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.core import Space
from vlscore.data import ImagePolicy, is_plain_file
from vlscore.embedding.batches import Work
from vlscore.embedding.cached import FileContent, pixels_entry, pixels_of, stored_shape
from vlscore.embedding.workers import (
    CannotStart,
    Closed,
    Died,
    Fault,
    TookTooLong,
    Worker,
    WorkerPool,
    block_interrupts,
)
from vlscore.encoders import ImagePipeline
from vlscore.errors import InvalidSetting, UnreadableImage, VLScoreError

# float32 pixels (channels, height, width), or uint8 levels of them.
Stored = NDArray[Any]
SECONDS_PER_IMAGE = 120.0
# Time to start a worker: if all images together take less, no worker is needed.
_SECONDS_HERE = 2.0


class ImageDecoder:
    """Decoder of images to an encoder's pixels, in up to `workers` processes; 0 for this process.

    Workers are started when there is work for them. Files of formats that no damage crashes (PNG,
    JPEG, DICOM without compression) are decoded in this process for up to two seconds, so that a
    few of them start no worker. Every other file is decoded in a worker, within
    `seconds_per_image`, so that a crash or hang costs its own study alone.

    Use as a context manager; leaving it ends the workers. They also end with this process, for any
    reason.
    """

    def __init__(
        self,
        pipeline: ImagePipeline,
        policy: ImagePolicy,
        workers: int = 0,
        *,
        seconds_per_image: float = SECONDS_PER_IMAGE,
        pixels: Space | None = None,
        work: Work | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._pixels = pixels
        self._work = work or Work()
        self._policy = policy
        self._workers = workers
        self._seconds = seconds_per_image
        self._seconds_here = 0.0
        self._held: list[_Task] = []
        self._pool: WorkerPool | None = None
        self._threads: ThreadPoolExecutor | None = None
        self._cannot_start = False
        self._shape: tuple[int, ...] = ()
        self._has_shape = False

    def __enter__(self) -> "ImageDecoder":
        return self

    def __exit__(self, *_: object) -> None:
        if self._threads is not None and self._pool is not None:
            self._pool.close()
            self._threads.shutdown(wait=True, cancel_futures=True)
            self._pool.release()
        self._threads = self._pool = None

    @property
    def processes_started(self) -> int:
        """Number of worker processes that this decoder has started since it was entered."""
        return 0 if self._pool is None else self._pool.started

    def submit(self, image: Any, content: FileContent | None = None) -> "PendingPixels":
        """Begin decoding; only paths are sent to workers, images in memory are cheap to convert.

        Args:
            content: content of a file; its pixels are then read from the cache or stored in it.
        """
        if content is not None and (known := self._known(content)) is not None:
            self._work.add(pixels_from_cache=1)
            return self._pending(image, lambda: known, content)
        return self._pending(image, self._begun(image, content), content)

    def _pending(
        self, image: Any, collect: "Callable[[], Stored]", content: FileContent | None
    ) -> "PendingPixels":
        return PendingPixels(image, collect, content, from_stored=self._pipeline.from_stored)

    def _known(self, content: FileContent) -> Stored | None:
        entry = None
        if self._pixels is not None:
            entry = self._pixels.get([content.digest]).get(content.digest)
        if entry is None:
            return None
        if not self._has_shape:
            self._shape, self._has_shape = stored_shape(self._pipeline, self._policy), True
        return pixels_of(entry, self._pipeline, self._shape)

    def _begun(self, image: Any, content: FileContent | None) -> "Callable[[], Stored]":
        """Begin decoding; return a function that waits, counts the image and caches its pixels."""
        collect = self._decoding(image)

        def finish() -> Stored:
            if isinstance(image, str | os.PathLike):
                self._work.add(images_decoded=1)
            stored = collect()
            # A file that has changed since it was hashed may have been decoded after the change.
            if self._pixels is not None and content is not None and content.is_unchanged():
                entry = pixels_entry(stored, self._pipeline)
                if entry is not None:
                    self._pixels.put({content.digest: entry})
            return stored

        return finish

    def _decoding(self, image: Any) -> "Callable[[], Stored]":
        if self._workers < 1 or self._cannot_start or not isinstance(image, str | os.PathLike):
            return lambda: self._decode_here(image)
        task = _Task(os.fsdecode(image), is_plain=self._is_starting() and is_plain_file(image))
        if task.is_plain and self._seconds_here < _SECONDS_HERE:
            self._held.append(task)
        else:
            self._hand_over(task)
        return lambda: self._collect(task)

    def _is_starting(self) -> bool:
        """Return True if no worker is ready yet; until then this process decodes, too."""
        return self._pool is None or not self._pool.has_answered

    def _decode_here(self, image: Any) -> Stored:
        return self._pipeline.load_stored(image, self._policy)

    def _decode_plain(self, task: "_Task") -> Stored:
        began = time.monotonic()
        try:
            return self._decode_here(task.path)
        finally:
            self._seconds_here += time.monotonic() - began
            if self._held and self._seconds_here >= _SECONDS_HERE:
                for held in self._held:
                    if not held.is_claimed():
                        self._hand_over(held)
                self._held.clear()

    def _hand_over(self, task: "_Task") -> None:
        if self._pool is None or self._threads is None:
            self._pool = WorkerPool(self._pipeline, self._policy, self._workers, self._seconds)
            self._threads = ThreadPoolExecutor(
                self._workers, "vlscore-decoding", initializer=block_interrupts
            )
        self._pool.expect()
        task.future = self._threads.submit(_decode, self._pool, task, self._seconds)

    def _collect(self, task: "_Task") -> Stored:
        future = task.future
        if future is None or (task.is_plain and self._is_starting() and task.claim()):
            task.claim()
            task.is_here = True
        if task.is_here or future is None:
            return self._decode_plain(task)
        try:
            return future.result()
        except (CancelledError, Closed):
            raise InvalidSetting(
                f"{task.path}: the decoder was closed before its pixels were asked for; "
                "ask for them inside its with block"
            ) from None
        except CannotStart as problem:
            self._warn_once(problem)
            return self._decode_here(task.path)

    def _warn_once(self, problem: CannotStart) -> None:
        if self._cannot_start:
            return
        self._cannot_start = True
        advice = ""
        if type(self._pipeline).__module__ == "__main__":
            advice = (
                f". {type(self._pipeline).__name__} is defined in the script that runs, which "
                "workers do not read: move it into a module that the script imports"
            )
        warnings.warn(
            f"no worker process can be started ({problem}){advice}. Images are decoded in this "
            "process, one after the other; workers=0 asks for that",
            RuntimeWarning,
            stacklevel=4,
        )


class PendingPixels:
    """Future pixels of one image, or its embedding if that is known already.

    Attributes:
        content: content of the file; None if the image is no file.
        embedding: (d,) float32; None if pixels will be computed.
    """

    def __init__(
        self,
        image: Any,
        collect: Callable[[], Stored],
        content: FileContent | None = None,
        *,
        from_stored: Callable[[Tensor], Tensor] = lambda stored: stored,
        embedding: Tensor | None = None,
    ) -> None:
        self.content = content
        self.embedding = embedding
        self._image = image
        self._collect = collect
        self._from_stored = from_stored

    @classmethod
    def known(cls, image: Any, embedding: Tensor) -> "PendingPixels":
        """Make one for an image that need not be decoded."""

        def refuse() -> Stored:
            raise InvalidSetting("the pixels of an image whose embedding is known are not decoded")

        return cls(image, refuse, embedding=embedding)

    def result(self) -> Tensor:
        """Wait for pixels, float32 (channels, height, width). Raises: VLScoreError."""
        return self._from_stored(self.stored()[None])[0]

    def stored(self) -> Tensor:
        """Wait for the result: float32 pixels, or uint8 levels that become pixels in a batch.

        Raises: VLScoreError that names the image.
        """
        try:
            return torch.from_numpy(self._collect())
        except VLScoreError:
            raise
        except Exception as error:  # decoders of untrusted bytes may raise any error
            is_file = isinstance(self._image, str | os.PathLike)
            name = os.fsdecode(self._image) if is_file else type(self._image).__name__
            kind = str(error) if isinstance(error, Fault) else type(error).__name__
            # The cause's message is left out: decoders may quote the header of a DICOM file.
            raise UnreadableImage(
                f"{name}: {kind} while decoding; the file is damaged, or the encoder's image "
                "pipeline cannot use it"
            ) from None


class _Task:
    """One image that is decoded by a worker or this process, whichever claims it first."""

    def __init__(self, path: str, is_plain: bool) -> None:
        self.path = path
        self.is_plain = is_plain
        self.is_here = False
        self.future: Future[NDArray[Any]] | None = None
        self._claim = threading.Lock()

    def claim(self) -> bool:
        """Claim the task; return True if no other has claimed it."""
        return self._claim.acquire(blocking=False)

    def is_claimed(self) -> bool:
        return self._claim.locked()


def _decode(pool: WorkerPool, task: _Task, seconds: float) -> NDArray[Any]:
    """Return pixels from a worker; a file that ends two workers is refused."""
    deaths = 0

    def decode(worker: Worker) -> NDArray[Any]:
        if not deaths and not task.claim():
            return np.empty(0)  # not needed: this process decoded it meanwhile
        return worker.decode(task.path, seconds)

    try:
        try:
            return pool.run(decode)
        except Died:
            # Workers may also be ended from outside, for instance if memory is short.
            deaths = 1
            return pool.run(decode)
    except TookTooLong:
        raise UnreadableImage(
            f"{task.path}: not decoded within {seconds:g} s; it is damaged or malicious. Convert "
            "it again from its source, or leave the study out"
        ) from None
    except Died as death:
        raise UnreadableImage(
            f"{task.path}: the decoder crashed on this file, and again in a new process ({death}); "
            "it is damaged or malicious, or needs more memory than there is. Convert it again from "
            "its source, or leave the study out"
        ) from None
    except CannotStart as problem:
        if not deaths:
            raise
        # A file that ended a worker is not decoded in this process.
        raise UnreadableImage(
            f"{task.path}: the process that decoded it has ended, and no other can be started "
            f"({problem}); try again when there is more memory"
        ) from None
