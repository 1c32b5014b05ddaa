"""ResNet-50 (He et al., CVPR 2016) image trunks, under the names that torchvision gives tensors.

Importing torchvision takes as long as importing torch. Numbers are those of its model: to the last
digit where gradients are kept; where not, to 1e-6 of an embedding's length, for then a CPU computes
each convolution and its normalisation at once, in half the time. The tests compare both.
"""

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


def resnet50_trunk() -> ResNet50:
    """Make a ResNet-50 without a classifier, with random weights."""
    return ResNet50()


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
