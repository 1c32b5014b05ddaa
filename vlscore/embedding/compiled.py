"""An encoder's towers under torch.compile, and as they are where that is not possible.

Compiling takes a minute or more for each tower in every process, and changes the last digits. What
it brings depends on the machine: see docs/scaling.md.
"""

import logging
import os
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from vlscore.encoders import JointEncoder, Tokens

_Tower = Callable[[Any], Tensor]


class CompiledTowers:
    """The towers of an encoder, which itself stays as it is.

    Each is compiled at its first batch, for batches of any size and length. Where one cannot be
    compiled, one warning says so, and all run as they are from then on.
    """

    def __init__(self, encoder: JointEncoder) -> None:
        self._encoder = encoder
        self._compiled: dict[str, _Tower] = {}
        self._is_possible = True

    def embed_images(self, pixels: Tensor) -> Tensor:
        """As of the encoder."""
        return self._run("embed_images", pixels)

    def embed_lateral_images(self, pixels: Tensor) -> Tensor:
        """As of the encoder."""
        return self._run("embed_lateral_images", pixels)

    def embed_reports(self, tokens: Tokens) -> Tensor:
        """As of the encoder."""
        return self._run("embed_reports", tokens)

    def _run(self, name: str, batch: Any) -> Tensor:
        tower: _Tower = getattr(self._encoder, name)
        if not self._is_possible:
            return tower(batch)
        from torch._dynamo.exc import TorchDynamoException

        if name not in self._compiled:
            # With fixed sizes, each length of reports would be compiled anew.
            self._compiled[name] = torch.compile(tower, dynamic=True)
        try:
            return self._compiled[name](batch)
        except TorchDynamoException as error:
            self._is_possible = False
            _warn(error)
            return tower(batch)


@cache
def can_compile(device: torch.device) -> bool:
    """Whether torch.compile works on this device, tried once; a warning says why where not."""
    if "TORCH_LOGS" not in os.environ:
        # Where a tower asks for a number it is compiled in parts, which is no user's business.
        logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
    try:
        torch.compile(lambda x: torch.sin(x) + 1)(torch.ones(8, device=device))
    except Exception as error:  # whatever is missing: a C++ compiler, Triton, a Python version
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
