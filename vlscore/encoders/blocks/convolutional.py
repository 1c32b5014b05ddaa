"""Convolutional image networks: ResNet-50 and EfficientNet-Lite0.

ResNet-50 (He et al., CVPR 2016) has the names and the numbers of torchvision's model. Importing
torchvision takes as long as importing torch.

EfficientNet-Lite0 (Tan and Le, ICML 2019) is timm's tf_efficientnet_lite0 without its head, in the
form without squeeze-and-excitation and with ReLU6 that its authors published in 2020. `timm_names`
converts the tensor names of the package efficientnet_lite_pytorch.
"""

import re
from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

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
        found = self.relu(self.bn1(self.conv1(x)))
        found = self.relu(self.bn2(self.conv2(found)))
        found = self.bn3(self.conv3(found))
        found += x if self.downsample is None else self.downsample(x)
        summed: Tensor = self.relu(found)
        return summed


def _stage(width: int, inner: int, *, blocks: int, stride: int) -> nn.Sequential:
    """Make the bottlenecks of one resolution; the first reads `width` channels and reduces."""
    first = _Bottleneck(width, inner, stride)
    rest = [_Bottleneck(inner * _EXPANSION, inner, 1) for _ in range(blocks - 1)]
    return nn.Sequential(first, *rest)


def feature_maps(trunk: ResNet50, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the maps of layer 3 (n, 1024, h/16, w/16) and layer 4 (n, 2048, h/32, w/32)."""
    x = trunk.maxpool(trunk.relu(trunk.bn1(trunk.conv1(pixels))))
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


CHANNELS = 320
STRIDE = 32
# Images whose intermediate results are in memory at once in training: 1 GB at 192 pixels.
_TRACED = 16
# A standardised image has a deviation of 1; the network was trained on levels from -1 to 1.
_INPUT_SCALE = 0.5


class EfficientNetLite(nn.Module):
    """(n, 1, side, side) -> (n, 320, side / 32, side / 32); the side is a multiple of 32.

    Normalisation uses the statistics of the published weights, in training too: so an image's
    vector does not depend on its batch, and small batches do no harm.
    """

    def __init__(self) -> None:
        super().__init__()
        import timm

        whole: Any = timm.create_model("tf_efficientnet_lite0")
        self.conv_stem, self.bn1, self.blocks = whole.conv_stem, whole.bn1, whole.blocks
        self._norms = [each for each in self.modules() if isinstance(each, nn.BatchNorm2d)]
        for norm in self._norms:
            norm.num_batches_tracked = None
            # Otherwise PyTorch adds the counts again to tensors that were read from a file.
            norm.track_running_stats = False
        self.train()

    def train(self, mode: bool = True) -> Self:
        """Set the mode of everything but normalisation."""
        super().train(mode)
        for norm in self._norms:
            norm.eval()
        return self

    def forward(self, pixels: Tensor) -> Tensor:
        if not torch.is_grad_enabled() or len(pixels) <= _TRACED:
            return self._maps(pixels)
        parts = [
            checkpoint(self._maps, part, use_reentrant=False) for part in pixels.split(_TRACED)
        ]
        return torch.cat(parts)

    def _maps(self, pixels: Tensor) -> Tensor:
        x = (pixels * _INPUT_SCALE).expand(-1, 3, -1, -1)
        x = x.contiguous(memory_format=torch.channels_last)
        found: Tensor = self.blocks(self.bn1(self.conv_stem(x)))
        return found


# Blocks of each of the seven stages.
_REPEATS = (1, 2, 2, 3, 3, 4, 1)
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
    places = [(stage, number) for stage, count in enumerate(_REPEATS) for number in range(count)]
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
