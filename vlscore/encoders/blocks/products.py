"""Linear maps by oneDNN, which PyTorch leaves to MKL in float32.

MKL uses a part of the units of processors that are not Intel's: on an AMD EPYC, oneDNN takes half
of its time. On Intel's both take the same.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


def linear(layer: nn.Linear, x: Tensor) -> Tensor:
    """`layer(x)`; by oneDNN where nothing is learned, in float32, on a CPU.

    The sums are the same in another order: results differ by float32's rounding errors.
    """
    if not _is_for_onednn(x):
        found: Tensor = layer(x)
        return found
    return functional.linear(x.to_mkldnn(), layer.weight, layer.bias).to_dense()


def _is_for_onednn(x: Tensor) -> bool:
    return (
        x.device.type == "cpu"
        and x.dtype == torch.float32
        and x.numel() > 0
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        # Where there is no MKL, the processor is another and PyTorch's choice is a good one.
        and torch.backends.mkl.is_available()
        and torch.backends.mkldnn.is_available()
    )
