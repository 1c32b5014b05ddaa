"""Decoding images in worker processes, so that the model never waits for a JPEG.

A file that crashes a decoder (they are C libraries reading untrusted bytes) costs its own study
and no other: the pool is rebuilt, and whatever was in flight is decoded again, each file alone.
"""

import multiprocessing
import signal
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vlscore.encoders import ImagePipeline
from vlscore.errors import UnreadableImage, VLScoreError
from vlscore.images import ImagePolicy


class ImageDecoder:
    """Turns images into an encoder's pixels, in `workers` processes or, with 0, right here.

    Use as a context manager; leaving it stops the workers.
    """

    def __init__(self, pipeline: ImagePipeline, policy: ImagePolicy, workers: int = 0) -> None:
        self._pipeline = pipeline
        self._policy = policy
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> "ImageDecoder":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def submit(self, image: Any) -> "PendingPixels":
        """Begin decoding; only paths travel to workers, images in memory are cheap to convert."""
        if self._workers < 1 or (not isinstance(image, str) and not hasattr(image, "__fspath__")):
            return PendingPixels(image, lambda: self._decode_here(image))
        future = self._submit_to_pool(image)
        return PendingPixels(image, lambda: self._collect(image, future))

    def _decode_here(self, image: Any) -> Tensor:
        return self._pipeline.load(image, self._policy)

    def _submit_to_pool(self, image: Any) -> "Future[np.ndarray]":
        if self._pool is None:
            self._pool = self._new_pool(self._workers)
        try:
            return self._pool.submit(_decode, image)
        except BrokenProcessPool:
            self._pool = self._new_pool(self._workers)
            return self._pool.submit(_decode, image)

    def _collect(self, image: Any, future: "Future[np.ndarray]") -> Tensor:
        try:
            return torch.from_numpy(future.result())
        except BrokenProcessPool:
            return self._decode_alone(image)

    def _decode_alone(self, image: Any) -> Tensor:
        with self._new_pool(1) as pool:
            try:
                return torch.from_numpy(pool.submit(_decode, image).result())
            except BrokenProcessPool:
                raise UnreadableImage(
                    f"{image}: the decoder crashed on this file; it is damaged or malicious. "
                    "Convert it again from its source, or leave the study out"
                ) from None

    def _new_pool(self, workers: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            workers,
            # Not fork: a child forked beside running threads of torch or CUDA can deadlock.
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_worker,
            initargs=(self._pipeline, self._policy),
        )


class PendingPixels:
    """The promise of one image's pixels."""

    def __init__(self, image: Any, collect: Callable[[], Tensor]) -> None:
        self._image = image
        self._collect = collect

    def result(self) -> Tensor:
        """float32 (channels, height, width). Raises VLScoreError naming the image."""
        try:
            return self._collect()
        except VLScoreError:
            raise
        except (OSError, ValueError, RuntimeError, MemoryError) as error:
            is_file = isinstance(self._image, str | Path)
            name = str(self._image) if is_file else type(self._image).__name__
            # The cause's own words stay out: decoders may quote the header of a DICOM file.
            raise UnreadableImage(f"{name}: {type(error).__name__} while decoding") from None


_worker: tuple[ImagePipeline, ImagePolicy] | None = None


def _start_worker(pipeline: ImagePipeline, policy: ImagePolicy) -> None:
    global _worker
    # Ctrl-C is the main process's business: it stops the workers itself.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)
    _worker = (pipeline, policy)


def _decode(image: Any) -> np.ndarray:
    assert _worker is not None
    pipeline, policy = _worker
    return pipeline.load(image, policy).numpy()
