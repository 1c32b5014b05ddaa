"""A linear map that is computed by oneDNN where MKL does not use the processor's units.

PyTorch multiplies matrices in float32 by Intel's MKL, which leaves the 512-bit units of other
makers' processors idle: on an AMD EPYC it reaches 100 of the 230 Gflop/s that oneDNN, the library
that PyTorch convolves with, reaches on one core. Both round as float32 does: either is as far from
the product in float64 as the other, and from each other within 2e-6 of the largest value.
"""

import platform
from functools import cache, partial
from typing import TypeVar

import torch
from torch import Tensor, nn

from vlscore.encoders.inference import of_weights_alone, processor_facts

Model = TypeVar("Model", bound=nn.Module)

# Rows are handed over in blocks: oneDNN keeps a program and a buffer for every number of rows that
# it has met, a megabyte and more each.
_ROWS_A_THREAD = 256
_MOST_ROWS = 4096
# A block is filled up to a multiple of this, so that few numbers of rows occur.
_MULTIPLE = 32


class Linear(nn.Linear):
    """nn.Linear, in half the time where `uses_onednn` holds and no gradient is wanted.

    A row's result is then the same whatever rows stand beside it. Weights in bfloat16 are
    multiplied in bfloat16, whatever comes in. Under autocast the numbers are PyTorch's; the weights
    become 16-bit ones once for all batches of `unchanging_weights`, not once for each.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        if self.weight.dtype is torch.bfloat16:
            return super().forward(input.to(torch.bfloat16))
        if _is_autocast_alone(input, self.weight):
            half = torch.get_autocast_dtype(input.device.type)
            weight, bias = of_weights_alone(self, partial(_cast, self, half))
            if weight.dtype is half:
                return nn.functional.linear(input.to(half), weight, bias)
        if not _is_for_onednn(input, self.weight):
            return super().forward(input)
        rows = input.reshape(-1, self.in_features)
        count = len(rows)
        block = min(_ROWS_A_THREAD * torch.get_num_threads(), _MOST_ROWS)
        if 0 < count <= block and count % _MULTIPLE == 0:
            found = self._product(rows)
        else:
            found = rows.new_empty(count, self.out_features)
            for start in range(0, count, block):
                part = rows[start : start + block]
                lacking = -len(part) % _MULTIPLE
                whole = nn.functional.pad(part, (0, 0, 0, lacking)) if lacking else part
                found[start : start + block] = self._product(whole)[: len(part)]
        return found.view(*input.shape[:-1], self.out_features)

    def _product(self, rows: Tensor) -> Tensor:
        # What torch.compile puts in the place of nn.Linear.
        found: Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, self.weight, self.bias, "none", [], ""
        )
        return found


def by_onednn(model: Model) -> Model:
    """Let the linear maps of a library's model be computed as `Linear` does; returns the model."""
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = Linear
    return model


def in_bfloat16(model: Model) -> Model:
    """Keep the weights of all `Linear` maps in bfloat16, and the rest as it is; returns the model.

    The numbers are those of PyTorch's autocast, which turns the same weights into bfloat16 again
    for every batch.
    """
    for module in model.modules():
        if isinstance(module, Linear):
            module.to(torch.bfloat16)
    return model


@cache
def uses_onednn() -> bool:
    """Whether this processor has 512-bit units that MKL leaves idle, and PyTorch has oneDNN."""
    facts = processor_facts()
    return (
        platform.machine() in ("x86_64", "AMD64")
        and "avx512f" in facts.flags
        and facts.maker not in ("", "GenuineIntel")
        and torch.backends.mkl.is_available()
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def _cast(layer: nn.Linear, half: torch.dtype) -> tuple[Tensor, Tensor | None]:
    return layer.weight.to(half), None if layer.bias is None else layer.bias.to(half)


def _is_autocast_alone(input: Tensor, weight: Tensor) -> bool:
    """Autocast of float32 weights, nothing recorded."""
    return (
        torch.is_autocast_enabled(input.device.type)
        and weight.dtype is torch.float32
        and not torch.is_grad_enabled()
    )


def _is_for_onednn(input: Tensor, weight: Tensor) -> bool:
    """Plain float32 on a CPU, nothing recorded, compiled, cast or pretended."""
    return (
        not torch.compiler.is_compiling()
        and uses_onednn()
        and not torch.is_grad_enabled()
        and type(input) is Tensor
        and input.device.type == weight.device.type == "cpu"
        and input.dtype == weight.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        and bool(torch.backends.mkldnn.enabled)
    )
