"""Tensors: embeddings brought to one shape, and full precision of float32 products."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.core.vectors import without_mask
from vlscore.errors import InvalidSetting

ArrayLike = Tensor | NDArray[Any] | Sequence[Any]


def triples(*points: ArrayLike) -> tuple[Tensor, ...]:
    """Convert numbers (n, d) or (d,) to floating-point (n, d); a single row is repeated n times.

    Raises: InvalidSetting, with the shapes, if they have others or do not fit together.
    """
    rows = [torch.as_tensor(without_mask(x)) for x in points]
    for x in rows:
        if x.ndim not in (1, 2):
            raise InvalidSetting(f"embeddings have shape (n, d) or (d,), not {tuple(x.shape)}")
    rows = [x if x.is_floating_point() else x.double() for x in map(torch.atleast_2d, rows)]
    count = max(len(x) for x in rows)
    if len({x.shape[1] for x in rows}) > 1 or any(len(x) not in (1, count) for x in rows):
        shapes = ", ".join(str(tuple(x.shape)) for x in rows)
        raise InvalidSetting(f"embeddings must have one shape (n, d); these have {shapes}")
    return tuple(x.expand(count, -1) for x in rows)


class FullPrecision:
    """Switch off reduced precision while at least one thread is inside the context.

    PyTorch's switches belong to the whole process. They are restored when the last thread has left,
    also after an exception. Use `FULL_PRECISION`, of which there must be only one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._restore: Callable[[], None] = lambda: None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._restore = _switch_off()
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._restore()


FULL_PRECISION = FullPrecision()


def _switch_off() -> Callable[[], None]:
    """Turn every switch to full precision; return the function that restores them."""
    backends = torch.backends
    # PyTorch has two generations of these switches. The older ones cannot be read if somebody has
    # set the newer ones to a value that the older ones do not know; then the older ones stay.
    old: tuple[bool, bool, str] | None
    try:
        old = (
            backends.cuda.matmul.allow_tf32,
            backends.cudnn.allow_tf32,
            torch.get_float32_matmul_precision(),
        )
    except RuntimeError:
        old = None
    switches = _newer_switches()
    new = [switch.fp32_precision for switch in switches]
    if old is not None:
        _set_older(False, False, "highest")
    for switch in switches:
        switch.fp32_precision = "ieee"

    def restore() -> None:
        if old is not None:
            _set_older(*old)
        for switch, value in zip(switches, new, strict=True):
            switch.fp32_precision = value

    return restore


def _set_older(matmul: bool, cudnn: bool, precision: str) -> None:
    torch.backends.cudnn.allow_tf32 = cudnn
    # The precision comes last: it has one more value, and the lines above change it, too.
    torch.backends.cuda.matmul.allow_tf32 = matmul
    torch.set_float32_matmul_precision(precision)


def _newer_switches() -> list[Any]:
    backends: Any = torch.backends
    if not hasattr(backends.cuda.matmul, "fp32_precision"):
        return []
    places = (backends.cuda.matmul, backends.cudnn, backends.mkldnn)
    inner = [
        getattr(place, name, None) for place in places[1:] for name in ("matmul", "conv", "rnn")
    ]
    return [
        place
        for place in (places[0], *inner)
        if place is not None and hasattr(place, "fp32_precision")
    ]
