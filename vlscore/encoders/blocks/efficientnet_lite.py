"""EfficientNet-Lite0: a small image network whose ImageNet weights a package index offers.

Architecture: Tan and Le, ICML 2019, in the form without squeeze-and-excitation and with ReLU6 that
its authors published as EfficientNet-Lite (2020). Tensor names are those of timm's
tf_efficientnet_lite0. `timm_names` converts those of the package efficientnet_lite_pytorch.
"""

import re
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

# Repeats, kernel size, stride, expansion and output channels of each stage (paper, table 1).
_STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)
_STEM = 32
CHANNELS = _STAGES[-1][-1]
STRIDE = 32
_NORM_EPSILON = 1e-3
# A standardised film has a deviation of 1; the network was trained on levels from -1 to 1.
_INPUT_SCALE = 0.5


class FixedNorm(nn.Module):
    """Batch normalisation with the statistics of the published weights, in training too.

    So an image's vector does not depend on its batch, and small batches do no harm.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        return functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, eps=_NORM_EPSILON
        )


class SameConvolution(nn.Conv2d):
    """Convolution with TensorFlow's "same" padding for inputs of an even height and width."""

    def __init__(
        self, channels_in: int, channels: int, size: int, stride: int = 1, groups: int = 1
    ) -> None:
        inside = size // 2 if stride == 1 else 0
        super().__init__(channels_in, channels, size, stride, inside, groups=groups, bias=False)
        before = (size - stride) // 2
        self._ends = (before, size - stride - before) * 2 if stride > 1 else ()

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(functional.pad(x, self._ends) if self._ends else x)


class _DepthwiseBlock(nn.Module):
    """First stage's block, without expansion."""

    def __init__(self, channels_in: int, channels: int, size: int, stride: int) -> None:
        super().__init__()
        self.conv_dw = SameConvolution(channels_in, channels_in, size, stride, channels_in)
        self.bn1 = FixedNorm(channels_in)
        self.conv_pw = SameConvolution(channels_in, channels, 1)
        self.bn2 = FixedNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.bn2(self.conv_pw(functional.relu6(self.bn1(self.conv_dw(x)))))
        return found


class _InvertedBlock(nn.Module):
    """Block that expands channels, filters each, and projects them."""

    def __init__(
        self, channels_in: int, channels: int, size: int, stride: int, expansion: int
    ) -> None:
        super().__init__()
        inside = channels_in * expansion
        self.conv_pw = SameConvolution(channels_in, inside, 1)
        self.bn1 = FixedNorm(inside)
        self.conv_dw = SameConvolution(inside, inside, size, stride, inside)
        self.bn2 = FixedNorm(inside)
        self.conv_pwl = SameConvolution(inside, channels, 1)
        self.bn3 = FixedNorm(channels)
        self._adds_input = stride == 1 and channels_in == channels

    def forward(self, x: Tensor) -> Tensor:
        y = functional.relu6(self.bn1(self.conv_pw(x)))
        y = functional.relu6(self.bn2(self.conv_dw(y)))
        found: Tensor = self.bn3(self.conv_pwl(y))
        return found + x if self._adds_input else found


class EfficientNetLite(nn.Module):
    """(n, 1, side, side) -> (n, 320, side / 32, side / 32); the side is a multiple of 32."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_stem = SameConvolution(3, _STEM, 3, 2)
        self.bn1 = FixedNorm(_STEM)
        stages, channels_in = [], _STEM
        for repeats, size, stride, expansion, channels in _STAGES:
            blocks: list[nn.Module] = []
            for number in range(repeats):
                step = stride if number == 0 else 1
                if expansion == 1:
                    blocks.append(_DepthwiseBlock(channels_in, channels, size, step))
                else:
                    blocks.append(_InvertedBlock(channels_in, channels, size, step, expansion))
                channels_in = channels
            stages.append(nn.Sequential(*blocks))
        self.blocks = nn.Sequential(*stages)

    def forward(self, pixels: Tensor) -> Tensor:
        x = (pixels * _INPUT_SCALE).expand(-1, 3, -1, -1)
        x = functional.relu6(
            self.bn1(self.conv_stem(x.contiguous(memory_format=torch.channels_last)))
        )
        found: Tensor = self.blocks(x)
        return found


_BLOCK = re.compile(r"_blocks\.(\d+)\._(\w+)\.(\w+)")
_FIRST = {"depthwise_conv": "conv_dw", "bn1": "bn1", "project_conv": "conv_pw", "bn2": "bn2"}
_OTHERS = {
    "expand_conv": "conv_pw",
    "bn0": "bn1",
    "depthwise_conv": "conv_dw",
    "bn1": "bn2",
    "project_conv": "conv_pwl",
    "bn2": "bn3",
}
_TOP = {
    "_conv_stem": "conv_stem",
    "_bn0": "bn1",
    "_conv_head": "conv_head",
    "_bn1": "bn2",
    "_fc": "classifier",
}


def timm_names(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename tensors of efficientnet_lite_pytorch as timm does; timm's names do not change."""
    places = [
        (stage, number) for stage, (repeats, *_) in enumerate(_STAGES) for number in range(repeats)
    ]
    renamed = {}
    for name, tensor in tensors.items():
        if (found := _BLOCK.fullmatch(name)) and int(found[1]) < len(places):
            stage, number = places[int(found[1])]
            part = (_OTHERS if stage else _FIRST).get(found[2], found[2])
            name = f"blocks.{stage}.{number}.{part}.{found[3]}"
        else:
            first, dot, rest = name.partition(".")
            name = _TOP.get(first, first) + dot + rest
        renamed[name] = tensor
    return renamed
