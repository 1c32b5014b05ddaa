"""Products of float32 numbers in float32: no TensorFloat-32 and no bfloat16 in their place."""

import threading
from collections.abc import Callable
from typing import Any

import torch


class FullPrecision:
    """Switches reduced precision off while at least one thread is inside.

    PyTorch's switches belong to the whole process. They are set back when the last thread has left,
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
    """Turn every switch to full precision; returns what turns them back."""
    backends = torch.backends
    # PyTorch has two generations of these switches. The older ones cannot be read once somebody
    # has set the newer ones to what the older ones have no word for; then they stay untouched.
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
    # Setting this one sets the precision as well, which has one value more: the precision is last.
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
