"""ResNet-50 image trunks."""

from torch import Tensor, nn
from torch.nn import functional
from torchvision.models import ResNet, resnet50

PATCH_WIDTH = 1024
POOLED_WIDTH = 2048


def resnet50_trunk() -> ResNet:
    """torchvision's ResNet-50 without its classifier and without weights."""
    trunk = resnet50(weights=None)
    trunk.fc = nn.Identity()
    return trunk


def feature_maps(trunk: ResNet, pixels: Tensor) -> tuple[Tensor, Tensor]:
    """(n, 3, h, w) -> layer 3's (n, 1024, h/16, w/16) and layer 4's (n, 2048, h/32, w/32)."""
    x = trunk.maxpool(trunk.relu(trunk.bn1(trunk.conv1(pixels))))
    middle = trunk.layer3(trunk.layer2(trunk.layer1(x)))
    return middle, trunk.layer4(middle)


def pool(feature_map: Tensor) -> Tensor:
    """(n, c, h, w) -> (n, c), the mean over places."""
    return functional.adaptive_avg_pool2d(feature_map, 1).flatten(1)


def as_places(feature_map: Tensor) -> Tensor:
    """(n, c, h, w) -> (n, h * w, c), one vector for each place, row by row."""
    return feature_map.flatten(2).transpose(1, 2)


def enlarge_to_299(pixels: Tensor) -> Tensor:
    """What GLoRIA's image encoder, and those derived from it, do to 224-pixel input first."""
    return functional.interpolate(pixels, size=(299, 299), mode="bilinear", align_corners=True)
