"""The image pipeline of GLoRIA, which LIMITR, MGCA and its ConVIRT took over."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vlscore.encoders.blocks.area import shrink_by_area
from vlscore.encoders.blocks.levels import LevelsPipeline
from vlscore.encoders.blocks.pixels import (
    Grey,
    centre_crop,
    read_with_opencv,
    to_unit_range,
    too_elongated,
)
from vlscore.images import Radiograph

if TYPE_CHECKING:
    from torch import Tensor

SIDE = 256
CROP = 224


class PadCropPipeline(LevelsPipeline):
    """Longest side to 256 by OpenCV's area interpolation, black padding to a square, the middle
    224 pixels, grey levels to [-1, 1] in three equal channels."""

    stable_name = "vlscore.encoders.blocks.pad_crop:PadCropPipeline"

    def levels(self, radiograph: Radiograph) -> Grey:
        return self._levels(radiograph.to_uint8(), radiograph.name)

    def levels_as_authors(self, path: Path) -> Grey:
        return self._levels(read_with_opencv(path), str(path))

    def from_stored(self, stored: "Tensor") -> "Tensor":
        return to_unit_range(stored).sub(0.5).div(0.5).expand(-1, 3, -1, -1)

    def _levels(self, grey: Grey, name: str) -> Grey:
        return centre_crop(pad_to_square(grey, name), CROP)[np.newaxis].copy()


def pad_to_square(grey: Grey, name: str = "image") -> Grey:
    """(h, w) -> (256, 256): resized to fit, then padded with black evenly, the odd row last.

    Raises: UnreadableImage where nothing would be left of the shorter side.

    >>> pad_to_square(np.full((300, 100), 9, np.uint8)).any(axis=0).sum()
    np.int64(85)
    """
    height, width = grey.shape
    ratio = SIDE / max(height, width)
    # Truncated and never rounded, in this order of float64 operations.
    new_height = SIDE if height >= width else int(float(height) * ratio)
    new_width = SIDE if width >= height else int(float(width) * ratio)
    if not new_height or not new_width:
        raise too_elongated(height, width, name)
    resized = shrink_by_area(grey, new_width, new_height)
    rows, columns = SIDE - new_height, SIDE - new_width
    before = rows // 2, columns // 2
    padding = [(before[0], rows - before[0]), (before[1], columns - before[1])]
    return np.pad(resized, padding)
