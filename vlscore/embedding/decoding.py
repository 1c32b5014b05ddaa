"""Image decoding in worker processes, so that the model never waits for a JPEG.

Decoders are C libraries that read untrusted bytes. A worker decodes one image at a time, so a file
that crashes a decoder, or keeps it busy without end, costs its own study and no other.
"""

import contextlib
import os
import pickle
import queue
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.core import warn_caller
from vlscore.data import ImagePolicy, is_plain_file
from vlscore.embedding.batches import Work
from vlscore.embedding.worker import CannotStart, Fault, Worker
from vlscore.encoders import ImagePipeline
from vlscore.errors import ImageNoteWarning, InvalidSetting, UnreadableImage, VLScoreError

# float32 pixels (channels, height, width), or uint8 grey levels of them.
Stored = NDArray[Any]
SECONDS_PER_IMAGE = 120.0
# A worker costs seconds to start and hundreds of megabytes, so it must have enough images.
_IMAGES_FOR_A_WORKER = 16


@dataclass(eq=False)
class _Task:
    """One image that is decoded by a worker, or by this process, which then cancels the future."""

    path: str
    is_plain: bool
    is_here: bool = False
    future: "Future[tuple[Stored, list[str]]]" = field(default_factory=Future)


class ImageDecoder:
    """Decoder of images to an encoder's pixels, in up to `workers` processes; 0 for this process.

    Workers are started when there is work for them. Files of formats that no damage crashes (PNG,
    JPEG, DICOM without compression) start none if they are few, and are decoded in this process
    until the first worker is ready. Every other file is decoded in a worker, within
    `seconds_per_image`.

    Use as a context manager; leaving it ends the workers. They also end with this process.
    """

    def __init__(
        self,
        pipeline: ImagePipeline,
        policy: ImagePolicy,
        workers: int = 0,
        *,
        seconds_per_image: float = SECONDS_PER_IMAGE,
        work: Work | None = None,
    ) -> None:
        self._pipeline, self._policy = pipeline, policy
        self._most, self._seconds = workers, seconds_per_image
        self._work = work or Work()
        self._submitted = 0
        self._queue: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._workers: list[Worker] = []
        self._threads: list[threading.Thread] = []
        self._is_ready = self._is_closed = self._is_warned = False
        self._problem: CannotStart | None = None
        self._noted: set[str] = set()

    def __enter__(self) -> "ImageDecoder":
        return self

    def __exit__(self, *_: object) -> None:
        self._is_closed = True
        for worker in self._workers:
            worker.kill()
        self._end_waiting(CannotStart("the decoder was closed"))
        self._queue.put(None)
        for thread in self._threads:
            thread.join()

    @property
    def processes_started(self) -> int:
        """Number of worker processes that were started."""
        return sum(worker.started for worker in self._workers)

    def submit(self, image: Any, digest: str | None = None) -> "PendingPixels":
        """Begin decoding; only paths are sent to workers, images in memory are cheap to convert.

        Args: digest: sha256 of a file.
        """
        is_file = isinstance(image, str | os.PathLike)
        task: _Task | None = None
        if is_file and self._most > 0 and self._problem is None:
            task = _Task(os.fsdecode(image), self._is_ready or is_plain_file(image))
            self._queue.put(task)
            self._submitted += 1
            if not task.is_plain or self._submitted > _IMAGES_FOR_A_WORKER:
                self._start_workers()
            if self._problem is not None:
                self._end_waiting(self._problem)

        def collect() -> Stored:
            if is_file:
                self._work.add(images_decoded=1)
            return self._decode_here(image) if task is None else self._collect(task)

        return PendingPixels(image, collect, digest=digest, from_stored=self._pipeline.from_stored)

    def _decode_here(self, image: Any) -> Stored:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ImageNoteWarning)
            stored = self._pipeline.load_stored(image, self._policy)
        for each in caught:
            if issubclass(each.category, ImageNoteWarning):
                self._note(str(each.message))
            else:
                warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
        return stored

    def _note(self, message: str) -> None:
        """Warn of a note on an image, once for all images that it is true of."""
        name, _, note = message.rpartition(": ")
        if note not in self._noted:
            self._noted.add(note)
            warn_caller(f"{name}: {note} (printed for the first such image)", ImageNoteWarning)

    def _collect(self, task: _Task) -> Stored:
        if task.is_plain and not self._is_ready and task.future.cancel():
            task.is_here = True
        if task.is_here:
            return self._decode_here(task.path)
        try:
            stored, notes = task.future.result()
        except Exception as error:
            if self._is_closed:
                raise InvalidSetting(
                    f"{task.path}: the decoder was closed before its pixels were read; read them "
                    "inside its with block"
                ) from None
            if not isinstance(error, CannotStart):
                raise
            self._warn_once(error)
            return self._decode_here(task.path)
        for note in notes:
            self._note(note)
        return stored

    def _start_workers(self) -> None:
        wanted = min(self._most, 1 + self._submitted // _IMAGES_FOR_A_WORKER)
        while len(self._threads) < wanted and self._problem is None:
            try:
                packed = pickle.dumps((self._pipeline, self._policy))
            except Exception as error:  # a user's objects may fail in any way
                self._end_waiting(CannotStart(f"{type(error).__name__}: {error}"))
                return
            worker = Worker(packed, self._seconds)
            thread = threading.Thread(target=self._serve, args=[worker], daemon=True)
            self._workers.append(worker)
            self._threads.append(thread)
            thread.start()

    def _serve(self, worker: Worker) -> None:
        """Give images to a worker until the decoder is closed; in a thread of its own."""
        try:
            worker.start()
        except CannotStart as problem:
            # Workers that are ready go on: there may be no memory for more.
            if not self._is_ready:
                self._end_waiting(problem)
            return
        self._is_ready = True
        while (task := self._queue.get()) is not None:
            if task.future.set_running_or_notify_cancel():
                try:
                    task.future.set_result(worker.decode(task.path))
                except Exception as error:  # it belongs to whoever asks for the pixels
                    task.future.set_exception(error)
        # The end is for all threads.
        self._queue.put(None)
        worker.close()

    def _end_waiting(self, problem: CannotStart) -> None:
        """Use no workers from here on; who waits for an image gets the error."""
        self._problem = problem
        with contextlib.suppress(queue.Empty):
            while (task := self._queue.get_nowait()) is not None:
                # This process may have decoded it.
                with contextlib.suppress(InvalidStateError):
                    task.future.set_exception(problem)
            self._queue.put(None)

    def _warn_once(self, problem: CannotStart) -> None:
        advice = ""
        if type(self._pipeline).__module__ == "__main__":
            advice = (
                f". {type(self._pipeline).__name__} is defined in the script that runs, which "
                "workers do not read: move it into a module that the script imports"
            )
        if not self._is_warned:
            self._is_warned = True
            warnings.warn(
                f"no worker process can be started ({problem}){advice}. Images are decoded in this "
                "process, one after the other; workers=0 asks for that",
                RuntimeWarning,
                stacklevel=5,
            )


@dataclass(eq=False)
class PendingPixels:
    """Future pixels of one image, or its embedding if that is known already.

    Attributes:
        image: path, array, ...
        collect: waits for the pixels; None if the embedding is known.
        digest: sha256 of the file; None if the image is no file.
        from_stored: makes pixels of what `collect` returns.
        embedding: (d,) float32; None if pixels will be computed.
    """

    image: Any
    collect: Callable[[], Stored] | None = None
    digest: str | None = field(default=None, kw_only=True)
    from_stored: Callable[[Tensor], Tensor] = field(default=lambda stored: stored, kw_only=True)
    embedding: Tensor | None = field(default=None, kw_only=True)

    def result(self) -> Tensor:
        """Wait for pixels, float32 (channels, height, width). Raises: VLScoreError."""
        return self.from_stored(self.stored()[None])[0]

    def stored(self) -> Tensor:
        """Wait for the result: float32 pixels, or uint8 levels that become pixels in a batch.

        Raises: VLScoreError that names the image.
        """
        if self.collect is None:
            raise InvalidSetting("the pixels of an image whose embedding is known are not decoded")
        try:
            return torch.from_numpy(self.collect())
        except VLScoreError:
            raise
        except Exception as error:  # decoders of untrusted bytes may raise any error
            is_file = isinstance(self.image, str | os.PathLike)
            name = os.fsdecode(self.image) if is_file else type(self.image).__name__
            kind = str(error) if isinstance(error, Fault) else type(error).__name__
            # The cause's message is left out: decoders may quote the header of a DICOM file.
            raise UnreadableImage(
                f"{name}: {kind} while decoding; the file is damaged, or the encoder's image "
                "pipeline cannot use it"
            ) from None
