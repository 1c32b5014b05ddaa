"""Convolutional image networks: ResNet-50 and EfficientNet-Lite0.

ResNet-50 (He et al., CVPR 2016) has the names that torchvision gives its tensors. Importing
torchvision takes as long as importing torch. Numbers are those of its model: to the last digit
where gradients are kept; where not, to 1e-6 of an embedding's length, for then a CPU computes each
convolution and its normalisation at once, in half the time. The tests compare both.

EfficientNet-Lite0 (Tan and Le, ICML 2019) has the form without squeeze-and-excitation and with
ReLU6 that its authors published in 2020. It is a small network whose ImageNet weights a package
index offers. Tensor names are those of timm's tf_efficientnet_lite0; `timm_names` converts those of
the package efficientnet_lite_pytorch.
"""

import re
from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from vlscore.encoders.devices import of_weights_alone

PATCH_WIDTH = 1024
POOLED_WIDTH = 2048
_EXPANSION = 4


class ResNet50(nn.Module):
    """ResNet-50: pixels (n, 3, h, w) -> 2048 numbers an image, passed through `fc`.

    The stride of a block is at its 3 by 3 convolution, as in torchvision ("version 1.5").

    Attributes:
        fc: the classifier; the identity, unless the owner sets one.
    """

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, kernel_size=7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)
        self.layer1 = _stage(64, 64, blocks=3, stride=1)
        self.layer2 = _stage(256, 128, blocks=4, stride=2)
        self.layer3 = _stage(512, 256, blocks=6, stride=2)
        self.layer4 = _stage(1024, 512, blocks=3, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc: nn.Module = nn.Identity()
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.fc(self.avgpool(feature_maps(self, pixels)[1]).flatten(1))
        return found


class _Bottleneck(nn.Module):
    def __init__(self, width: int, inner: int, stride: int) -> None:
        super().__init__()
        outer = inner * _EXPANSION
        self.conv1 = nn.Conv2d(width, inner, kernel_size=1, bias=False)
        self.bn1 = nn.BatchNorm2d(inner)
        self.conv2 = nn.Conv2d(inner, inner, kernel_size=3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(inner)
        self.conv3 = nn.Conv2d(inner, outer, kernel_size=1, bias=False)
        self.bn3 = nn.BatchNorm2d(outer)
        self.relu = nn.ReLU(inplace=True)
        self.downsample: nn.Sequential | None = None
        if stride > 1 or width != outer:
            shorter = nn.Conv2d(width, outer, kernel_size=1, stride=stride, bias=False)
            self.downsample = nn.Sequential(shorter, nn.BatchNorm2d(outer))

    def forward(self, x: Tensor) -> Tensor:
        found = self.relu(_normalised(x, self.conv1, self.bn1))
        found = self.relu(_normalised(found, self.conv2, self.bn2))
        found = _normalised(found, self.conv3, self.bn3)
        found += x if self.downsample is None else _normalised(x, *self.downsample)
        summed: Tensor = self.relu(found)
        return summed


def _normalised(x: Tensor, convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> Tensor:
    """Compute `norm(convolution(x))`, on a CPU without gradients in one step.

    The normalisation then only scales and shifts, so its factors are multiplied into the filters.
    With the channels of a pixel next to each other in memory, the convolution is faster, too.
    """
    mean, variance = norm.running_mean, norm.running_var
    if x.is_cuda or norm.training or torch.is_grad_enabled() or mean is None or variance is None:
        found: Tensor = norm(convolution(x))
        return found
    filters, shifts = of_weights_alone(convolution, partial(_folded, convolution, norm))
    return functional.conv2d(
        x.contiguous(memory_format=torch.channels_last),
        filters,
        shifts,
        convolution.stride,
        convolution.padding,
    )


def _folded(convolution: nn.Conv2d, norm: nn.BatchNorm2d) -> tuple[Tensor, Tensor]:
    """Return filters and shifts of a convolution that includes its normalisation."""
    mean, variance = norm.running_mean, norm.running_var
    assert mean is not None
    assert variance is not None
    factors = norm.weight * torch.rsqrt(variance + norm.eps)
    filters = convolution.weight * factors[:, None, None, None]
    filters = filters.contiguous(memory_format=torch.channels_last)
    return filters, norm.bias - mean * factors


def _stage(width: int, inner: int, *, blocks: int, stride: int) -> nn.Sequential:
    """Make the bottlenecks of one resolution; the first reads `width` channels and reduces."""
    first = _Bottleneck(width, inner, stride)
    rest = [_Bottleneck(inner * _EXPANSION, inner, 1) for _ in range(blocks - 1)]
    return nn.Sequential(first, *rest)


def feature_maps(trunk: ResNet50, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the maps of layer 3 (n, 1024, h/16, w/16) and layer 4 (n, 2048, h/32, w/32)."""
    x = trunk.maxpool(trunk.relu(_normalised(pixels, trunk.conv1, trunk.bn1)))
    middle = trunk.layer3(trunk.layer2(trunk.layer1(x)))
    return middle, trunk.layer4(middle)


def pool(feature_map: Tensor) -> Tensor:
    """Average (n, c, h, w) over places -> (n, c)."""
    return functional.adaptive_avg_pool2d(feature_map, 1).flatten(1)


def as_places(feature_map: Tensor) -> Tensor:
    """Reshape (n, c, h, w) -> (n, h * w, c): one vector for each place, row by row."""
    return feature_map.flatten(2).transpose(1, 2)


def enlarge_to_299(pixels: Tensor) -> Tensor:
    """Enlarge 224-pixel input, as GLoRIA's image encoder and its descendants do first."""
    return functional.interpolate(pixels, size=(299, 299), mode="bilinear", align_corners=True)


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
