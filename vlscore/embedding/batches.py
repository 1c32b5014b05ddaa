"""Batches for an encoder: their sizes, forward passes, compiled towers, and counts of work.

A batch of images has a fixed number of them. A batch of reports has a fixed number of tokens,
padding included, so its memory does not depend on the reports' length. `Forward` runs the towers
and halves the batches if memory is short.

`CompiledTowers` runs an encoder's towers under torch.compile, or unchanged if that is impossible.
Compiling takes a minute or more for each tower in every process, and changes the last digits. Its
gain depends on the machine: see docs/scaling.md.

`one_thread_if_small` computes small calls with one thread, which a busy machine hardly slows down.

`Work` counts how much was computed, and how much was in the cache.
"""

import contextlib
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.encoders import JointEncoder, Precision, Tokens, inference, is_short_of_memory
from vlscore.errors import InvalidSetting

IMAGES_ON_A_CPU = 16
# Device memory for each image in a batch; the largest published tower needs half of it.
_BYTES_PER_IMAGE = 256 << 20
_MOST_IMAGES = 128
# 1024 tokens for 16 images: a processor's matrix product is fastest from there on, and the
# smaller a batch, the less of it is padding. A GPU has 8192 for its 128 images.
_TOKENS_PER_IMAGE = 64
# Cost of a batch of reports besides its tokens (reading weights, starting kernels), as a
# share of a full one: on a processor that reads them at 10 GB/s, and on a large GPU.
_SHARE_OF_A_BATCH = 1 / 32
_SHARE_ON_A_GPU = 1 / 8

# A network of at most so many parameters computes so many images or reports of a training loop's
# batch in a tenth of a second with one thread.
_SMALL_NETWORK = 10_000_000
_FEW_ITEMS = 64

Item = TypeVar("Item")
Batch = TypeVar("Batch", Tensor, Tokens)


def default_batch_size(device: torch.device) -> int:
    """Return the images in one forward pass: 16 on a CPU; 16 to 128 on a GPU, by its memory.

    >>> default_batch_size(torch.device("cpu"))
    16
    """
    if device.type != "cuda":
        return IMAGES_ON_A_CPU
    memory = int(torch.cuda.get_device_properties(device).total_memory)
    return max(IMAGES_ON_A_CPU, min(memory // _BYTES_PER_IMAGE, _MOST_IMAGES))


def in_batches(items: Iterable[Item], size: Callable[[], int]) -> Iterator[list[Item]]:
    """Yield lists of `size()` items; `size` is called for each list, and the last may be shorter.

    >>> list(in_batches("abcde", lambda: 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    batch: list[Item] = []
    for item in items:
        batch.append(item)
        if len(batch) >= size():
            yield batch
            batch = []
    if batch:
        yield batch


def by_length(
    lengths: Sequence[int], tokens: Callable[[], int], share: float = _SHARE_OF_A_BATCH
) -> Iterator[list[int]]:
    """Yield positions in batches of at most `tokens()`, padding included, the shortest first.

    The batches have the least total cost: each costs its tokens with padding, plus `share` of
    `tokens()`. A batch depends only on the items that are left. So a run that is resumed after
    some batches gets the same ones.

    >>> list(by_length([30, 10, 10, 50, 70], lambda: 60))
    [[1, 2], [0], [3], [4]]
    """
    order = sorted(range(len(lengths)), key=lambda position: lengths[position])
    longest = np.array([lengths[position] for position in order], dtype=np.int64)
    start, most = 0, -1
    while start < len(order):
        if tokens() != most:
            # If memory was short, the remaining items are planned again.
            most = tokens()
            stops = _cheapest_stops(longest, most, round(share * most))
        stop = int(stops[start])
        yield order[start:stop]
        start = stop


def _cheapest_stops(lengths: NDArray[np.int64], most: int, besides: int) -> NDArray[np.int64]:
    """Return the end of a batch that begins at each position, with the least cost from there on.

    Args: lengths: ascending; most: tokens of a batch of several; besides: tokens that a batch costs
        in addition to its own.
    """
    count = len(lengths)
    cost = np.zeros(count + 1, dtype=np.int64)
    stops = np.zeros(count, dtype=np.int64)
    for start in range(count - 1, -1, -1):
        # No batch has more items than would fit if all were as short as the first.
        end = min(start + max(most // max(int(lengths[start]), 1), 1), count)
        size = np.arange(1, end - start + 1) * lengths[start:end]
        fitting = max(int(np.searchsorted(size, most, "right")), 1)
        total = size[:fitting] + cost[start + 1 : start + 1 + fitting]
        best = int(np.argmin(total))
        stops[start], cost[start] = start + 1 + best, total[best] + besides
    return stops


class _ThreadsBefore:
    """Number of threads of PyTorch before the first of several Python threads set it to 1."""

    def __init__(self) -> None:
        self._lock, self._users, self._first = threading.Lock(), 0, 1

    def enter(self) -> int:
        """Set one thread; return the number that `leave` restores."""
        with self._lock:
            before = torch.get_num_threads()
            if not self._users:
                self._first = before
            elif before == 1:
                # A thread that is new to PyTorch begins with what another one has set.
                before = self._first
            self._users += 1
            torch.set_num_threads(1)
            return before

    def leave(self, before: int) -> None:
        with self._lock:
            self._users -= 1
            torch.set_num_threads(before)


_threads_before = _ThreadsBefore()


@contextlib.contextmanager
def one_thread_if_small(encoder: JointEncoder, items: int) -> Iterator[None]:
    """Let PyTorch use one thread inside the block if its work is small, and then as many as before.

    On a busy machine, threads that wait for each other make a small call many times slower. The
    choice depends on the network and the number of items alone, because embeddings depend on the
    number of threads in their last digits: the load of the machine must not change a score.

    Args: items: images or reports of the whole call, those from a cache included, so that a call
        that is repeated after a stop chooses the same.
    """
    if not (
        items <= _FEW_ITEMS
        and encoder.device.type == "cpu"
        and "OMP_NUM_THREADS" not in os.environ
        and torch.backends.openmp.is_available()
        and sum(each.numel() for each in encoder.parameters()) <= _SMALL_NETWORK
    ):
        yield
        return
    before = _threads_before.enter()
    try:
        yield
    finally:
        _threads_before.leave(before)


def stacked(items: Sequence[Tensor], device: torch.device) -> Tensor:
    """Stack tensors of one shape (...) -> (n, ...), in memory from which the device can copy.

    This is the only copy of pixels between the worker that decoded them and the device.
    """
    if device.type != "cuda":
        return torch.stack(list(items))
    first = items[0]
    pinned = torch.empty((len(items), *first.shape), dtype=first.dtype, pin_memory=True)
    return torch.stack(list(items), out=pinned)


class Forward:
    """Forward passes of an encoder's towers; if memory is short, batches are halved from then on.

    Attributes:
        images: images of one batch.
    """

    def __init__(self, encoder: JointEncoder, precision: Precision, images: int) -> None:
        self._encoder, self._precision = encoder, precision
        self.images = images

    @property
    def tokens(self) -> int:
        """Tokens of one batch of reports, padding included."""
        return self.images * _TOKENS_PER_IMAGE

    def report_batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Yield positions of reports in batches for this device; `lengths` are their tokens."""
        share = _SHARE_ON_A_GPU if self._encoder.device.type == "cuda" else _SHARE_OF_A_BATCH
        return by_length(lengths, lambda: self.tokens, share)

    def __call__(self, embed: Callable[[Batch], Tensor], batch: Batch) -> Tensor:
        """Embed a batch that is on the CPU; return (n, d) float32, on the CPU.

        Raises: InvalidSetting if there is no memory for one item.
        """
        return self._halving(embed, batch, self.images)

    def _halving(self, embed: Callable[[Batch], Tensor], batch: Batch, images: int) -> Tensor:
        """Embed a batch, or halves of it; `images` is the batch size to which it belongs."""
        device = self._encoder.device
        try:
            with inference(device, self._precision):
                # On a GPU, reading the result waits for the copy.
                there = batch.to(device, non_blocking=device.type == "cuda")
                return embed(there).float().cpu()
        except (RuntimeError, MemoryError) as error:
            if not is_short_of_memory(error):
                raise
        # Outside the handler, because the error holds the memory of the failed batch.
        count = len(batch)
        if count == 1:
            raise InvalidSetting(
                f"{device} has no memory for {self._encoder.card.name} and a single image or "
                "report; choose another device (--device cpu), or end what else takes its memory"
            )
        if device.type == "cuda":
            torch.cuda.empty_cache()
        half = max(images // 2, 1)
        if half < self.images:
            self.images = half
            warnings.warn(
                f"{device} has too little memory for a batch; from here on {half} images are "
                "embedded at once, and half as many tokens as before. A batch size "
                f"(--batch-size) of {half} asks for that from the beginning",
                RuntimeWarning,
                stacklevel=4,
            )
        middle = count // 2
        parts = (_rows(batch, 0, middle), _rows(batch, middle, count))
        return torch.cat([self._halving(embed, part, half) for part in parts])


def _rows(batch: Batch, start: int, stop: int) -> Batch:
    if isinstance(batch, Tensor):
        return batch[start:stop]
    return batch.take(range(start, stop))


_Tower = Callable[[Any], Tensor]


class CompiledTowers:
    """Compiled towers of an encoder, which itself does not change.

    Each is compiled at its first batch, for batches of any size and length. If one cannot be
    compiled, there is one warning, and all run uncompiled from then on.
    """

    def __init__(self, encoder: JointEncoder) -> None:
        self._encoder = encoder
        self._compiled: dict[str, _Tower] = {}
        self._is_possible = True

    def embed_images(self, pixels: Tensor) -> Tensor:
        """Embed as the encoder does."""
        return self._run("embed_images", pixels)

    def embed_lateral_images(self, pixels: Tensor) -> Tensor:
        """Embed as the encoder does."""
        return self._run("embed_lateral_images", pixels)

    def embed_reports(self, tokens: Tokens) -> Tensor:
        """Embed as the encoder does."""
        return self._run("embed_reports", tokens)

    def _run(self, name: str, batch: Any) -> Tensor:
        tower: _Tower = getattr(self._encoder, name)
        if not self._is_possible:
            return tower(batch)
        from torch._dynamo.exc import TorchDynamoException

        if name not in self._compiled:
            # With fixed sizes, each length of reports would be compiled again.
            self._compiled[name] = torch.compile(tower, dynamic=True)
        try:
            return self._compiled[name](batch)
        except TorchDynamoException as error:
            self._is_possible = False
            _warn(error)
            return tower(batch)


@cache
def can_compile(device: torch.device) -> bool:
    """Return True if torch.compile works on this device, tried once; else warn why not."""
    if "TORCH_LOGS" not in os.environ:
        # A tower that reads a number is compiled in parts; the user need not know.
        logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    try:
        torch.compile(lambda x: torch.sin(x) + 1)(torch.ones(8, device=device))
    except Exception as error:  # anything may be missing: a C++ compiler, Triton, a Python version
        _warn(error)
        return False
    return True


def _warn(error: Exception) -> None:
    warnings.warn(
        f"torch.compile cannot be used ({type(error).__name__}); the encoder runs as it is. It "
        "needs a C++ compiler on a CPU (g++ or clang), and Triton on a GPU",
        RuntimeWarning,
        stacklevel=3,
    )


@dataclass
class Work:
    """Counts of one engine; threads may share it.

    Attributes:
        images_decoded: image files that were decoded, damaged ones included.
        images_embedded, reports_embedded: items that went through the encoder.
        pixels_from_cache: images whose pixels were in the cache.
        images_from_cache, reports_from_cache: items whose embedding was in the cache.
    """

    images_decoded: int = 0
    images_embedded: int = 0
    reports_embedded: int = 0
    pixels_from_cache: int = 0
    images_from_cache: int = 0
    reports_from_cache: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __getstate__(self) -> dict[str, int]:
        """Return the counts; a lock belongs to one process."""
        return self.to_dict()

    def __setstate__(self, state: dict[str, int]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def add(self, **counts: int) -> None:
        """Add to the counts of these names."""
        with self._lock:
            for name, count in counts.items():
                setattr(self, name, getattr(self, name) + count)

    def to_dict(self) -> dict[str, int]:
        """Return name -> count."""
        names = [each.name for each in fields(self) if not each.name.startswith("_")]
        return {name: getattr(self, name) for name in names}

    def since(self, before: Mapping[str, int]) -> dict[str, int]:
        """Return name -> count minus the count in `before`, an earlier result of `to_dict`."""
        return {name: count - before.get(name, 0) for name, count in self.to_dict().items()}

    def said(self) -> str:
        """Return the shares from the cache for a line of progress; empty if there are none.

        >>> Work(images_from_cache=3, images_embedded=1, reports_embedded=4).said()
        'cache: 75% of images, 0% of reports'
        """
        kinds = {
            "images": (self.images_from_cache, self.images_embedded),
            "reports": (self.reports_from_cache, self.reports_embedded),
        }
        shares = [
            f"{known / (known + computed):.0%} of {kind}"
            for kind, (known, computed) in kinds.items()
            if known + computed
        ]
        if not (self.images_from_cache + self.reports_from_cache + self.pixels_from_cache):
            return ""
        return f"cache: {', '.join(shares)}" if shares else ""
