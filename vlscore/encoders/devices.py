"""Devices and precision: run a model so that the same input gives the same numbers."""

import contextlib
from collections.abc import Iterator
from functools import cache
from typing import Literal, get_args

import torch
from torch import nn

from vlscore.core import FULL_PRECISION
from vlscore.errors import BrokenContract, InvalidSetting

Precision = Literal["fp32", "bf16", "fp16"]

# Linux's names of a processor's units for bfloat16: AVX-512 and AMX; NEON and SVE.
_BF16_FLAGS = {"avx512_bf16", "amx_bf16", "avx_ne_convert", "bf16", "svebf16"}

# The last one comes from cuBLAS and cuDNN, which allocate memory themselves.
_SHORTAGES = ("out of memory", "can't allocate memory", "_STATUS_ALLOC_FAILED")


@contextlib.contextmanager
def inference(device: torch.device, precision: Precision) -> Iterator[None]:
    """Switch off gradients; autocast for 16 bits; fp32 means fp32 (no TF32, no bfloat16).

    PyTorch's switches for reduced precision belong to the whole process. They are restored when
    the last thread has left, also after an exception.
    """
    check_precision(precision, device)
    half = torch.float16 if precision == "fp16" else torch.bfloat16
    with (
        FULL_PRECISION,
        torch.inference_mode(),
        torch.autocast(device.type, dtype=half, enabled=precision != "fp32"),
    ):
        yield


def check_precision(precision: str, device: torch.device | None = None) -> None:
    """Refuse a precision that is unknown, or does not work on this kind of device.

    Raises: InvalidSetting.
    """
    if precision not in get_args(Precision):
        raise InvalidSetting(f'precision is "fp32", "bf16" or "fp16", not {precision!r}')
    if precision == "fp16" and device is not None and device.type == "cpu":
        raise InvalidSetting(
            "fp16 is for GPUs: processors emulate it, which is slower than fp32 and less exact. "
            "Choose fp32, or bf16 where the processor has units for it"
        )


def why_slow(precision: Precision, device: torch.device) -> str | None:
    """Return why a precision will be slower than fp32 on this device, else None."""
    if precision != "bf16":
        return None
    if device.type == "cuda":
        if torch.cuda.is_bf16_supported(including_emulation=False):
            return None
        name = torch.cuda.get_device_name(device)
        return f"{name} does not support bf16, which will be slower than fp32; fp16 will not"
    flags = _processor_flags() if device.type == "cpu" else frozenset()
    if not flags or flags & _BF16_FLAGS:
        return None
    return "this processor does not support bf16, which will be slower than fp32"


@cache
def _processor_flags() -> frozenset[str]:
    """Return the abilities of the first processor from Linux; empty if unknown."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
            for line in stream:
                name, _, value = line.partition(":")
                if name.strip() in ("flags", "Features"):
                    return frozenset(value.split())
    except OSError:
        pass
    return frozenset()


def check_ready(encoder: nn.Module) -> None:
    """Refuse a model in training mode, whose dropout and batch statistics change its numbers.

    The mode is not changed here: the caller may be in the middle of training.

    Raises: BrokenContract.
    """
    if not any(module.training for module in encoder.modules()):
        return
    name = getattr(getattr(encoder, "card", None), "name", type(encoder).__name__)
    raise BrokenContract(
        f"{name} is in training mode, in which a score changes from call to call: call "
        "encoder.eval() first"
    )


def check_device(device: str | torch.device) -> torch.device:
    """Return the device of that name.

    Raises: InvalidSetting, with the devices of this machine, if it does not exist.

    >>> check_device("cpu")
    device(type='cpu')
    """
    counts = {
        "cpu": 1,
        "cuda": torch.cuda.device_count(),
        "mps": int(torch.backends.mps.is_available()),
    }
    try:
        found = torch.device(device)
        if (found.index or 0) < counts.get(found.type, 0):
            return found
        problem = f"there is no device {str(device)!r} here"
    except (RuntimeError, TypeError):
        problem = f"no device is called {device!r}"
    there = ["cpu", *(f"cuda:{n}" for n in range(counts["cuda"])), *["mps"] * counts["mps"]]
    hint = "" if counts["cuda"] else " (PyTorch finds no CUDA GPU)"
    raise InvalidSetting(f"{problem}; this machine has {', '.join(there)}{hint}")


def is_short_of_memory(error: BaseException) -> bool:
    """Return True for an error of too little memory; on a CPU torch raises a bare RuntimeError."""
    if isinstance(error, MemoryError | torch.cuda.OutOfMemoryError):
        return True
    words = str(error)
    return any(shortage in words for shortage in _SHORTAGES)
