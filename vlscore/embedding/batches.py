"""Batches for an encoder: their sizes, forward passes, and counts of work.

A batch of images has a fixed number of them. A batch of reports has a fixed number of tokens,
padding included, so its memory does not depend on the reports' length. `Forward` runs the towers
and halves the batches if memory is short.

`Work` counts how much was computed, and how much was in the cache.
"""

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TypeVar

import torch
from torch import Tensor

from vlscore.embedding.encoder_source import EncoderSource
from vlscore.encoders import JointEncoder, Precision, Tokens, inference, is_short_of_memory
from vlscore.errors import InvalidSetting

IMAGES_ON_A_CPU = 16
# Device memory for each image in a batch; the largest published tower needs half of it.
_BYTES_PER_IMAGE = 256 << 20
_MOST_IMAGES = 128
# 1024 tokens for 16 images: a processor's matrix product is fastest from there on, and the
# smaller a batch, the less of it is padding. A GPU has 8192 for its 128 images.
_TOKENS_PER_IMAGE = 64

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


def by_length(lengths: Sequence[int], tokens: Callable[[], int]) -> Iterator[list[int]]:
    """Yield positions in batches of at most `tokens()`, padding included, the shortest first.

    A batch depends only on the items that are left. So a run that is resumed after some batches
    gets the same ones.

    >>> list(by_length([30, 10, 10, 50, 70], lambda: 60))
    [[1, 2], [0], [3], [4]]
    """
    order = sorted(range(len(lengths)), key=lambda position: lengths[position])
    start = 0
    while start < len(order):
        most, stop = tokens(), start + 1
        while stop < len(order) and lengths[order[stop]] * (stop + 1 - start) <= most:
            stop += 1
        yield order[start:stop]
        start = stop


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

    def __init__(
        self, encoder: JointEncoder | EncoderSource, precision: Precision, images: int
    ) -> None:
        self._encoder, self._precision = encoder, precision
        self.images = images

    def report_batches(self, lengths: Sequence[int]) -> Iterator[list[int]]:
        """Yield positions of reports in batches; `lengths` are their tokens."""
        return by_length(lengths, lambda: self.images * _TOKENS_PER_IMAGE)

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
                f"{device} has too little memory for {self._encoder.card.name} with a single image "
                "or report; choose another device (--device cpu), or stop other programs on it"
            )
        if device.type == "cuda":
            torch.cuda.empty_cache()
        half = max(images // 2, 1)
        if half < self.images:
            self.images = half
            warnings.warn(
                f"{device} has too little memory for a batch; from now on {half} images are "
                "embedded at once, and half as many tokens as before. To start with this, use "
                f"the batch size {half} (--batch-size {half})",
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


@dataclass
class Work:
    """Counts of one engine; threads may share it.

    Attributes:
        images_decoded: image files that were decoded, damaged ones included.
        images_embedded, reports_embedded: items that went through the encoder.
        images_from_cache, reports_from_cache: items whose embedding was in the cache.
    """

    images_decoded: int = 0
    images_embedded: int = 0
    reports_embedded: int = 0
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

    def cache_shares(self) -> str:
        """Return the shares from the cache for a line of progress; empty if there are none.

        >>> Work(images_from_cache=3, images_embedded=1, reports_embedded=4).cache_shares()
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
        if not (self.images_from_cache + self.reports_from_cache):
            return ""
        return f"cache: {', '.join(shares)}" if shares else ""
