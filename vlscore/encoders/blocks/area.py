"""OpenCV's area interpolation of large grey pictures: the same numbers in a quarter of the time.

OpenCV adds up the pixels of a row one after the other. Here whole rows are added up first, which a
processor does for many pixels at once; what is left then has as many rows as the result. The few
pixels whose mean lies so near to the middle between two grey levels that rounding errors decide are
computed once more, in OpenCV's own order.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Grey = NDArray[np.uint8]

# A box of fewer rows costs OpenCV no more than this.
_FEWEST_ROWS = 4
# OpenCV leaves out the edge of a box that covers less of a pixel than this.
_LEAST_SHARE = 1e-3
# In grey levels: several times what float32's rounding adds up to in the mean of a box.
_UNDECIDED = 1e-3


def shrink_by_area(grey: Grey, width: int, height: int) -> Grey:
    """`cv2.resize(grey, (width, height), interpolation=cv2.INTER_AREA)`, where it shrinks.

    Args:
        grey: (h, w) uint8.
        width, height: of the result, no larger than w and h.

    Returns: (height, width) uint8. On x86-64 they are equal to OpenCV's to the last one; elsewhere
        OpenCV may round single pixels otherwise, by one level.
    """
    import cv2

    rows, columns = _boxes(grey.shape[0], height), _boxes(grey.shape[1], width)
    if min(rows.size, columns.size) < _FEWEST_ROWS or (rows.is_whole and columns.is_whole):
        # For boxes of whole pixels OpenCV has a quick way of its own.
        resized = cv2.resize(grey, (width, height), interpolation=cv2.INTER_AREA)
        return np.asarray(resized, dtype=np.uint8)
    low = np.empty((height, grey.shape[1]), dtype=np.float32)
    for row, (start, stop) in enumerate(zip(rows.starts, rows.stops, strict=True)):
        cv2.reduce(grey[start:stop], 0, cv2.REDUCE_SUM, low[row : row + 1], cv2.CV_32F)
    low *= np.float32(1 / rows.size)
    for edge in (0, -1):
        low += grey[rows.places[:, edge]] * rows.weights[:, edge, np.newaxis]
    means = cv2.resize(low, (width, height), interpolation=cv2.INTER_AREA)
    found = np.rint(means)
    undecided = np.nonzero(np.abs(means - found) > 0.5 - _UNDECIDED)
    levels = found.astype(np.uint8)
    levels[undecided] = _as_opencv(grey, rows, columns, *undecided)
    return levels


@dataclass(frozen=True)
class _Boxes:
    """What each of n pixels of the result covers along one axis.

    Attributes:
        size: how many pixels that are, a broken number.
        starts, stops: (n,) those that are covered as a whole.
        places: (n, k) all of them; the first and the last are covered in part.
        weights: (n, k) float32, of `places` in the mean; 0 where there is no such pixel.
    """

    size: float
    starts: NDArray[np.intp]
    stops: NDArray[np.intp]
    places: NDArray[np.intp]
    weights: NDArray[np.float32]

    @property
    def is_whole(self) -> bool:
        return self.size.is_integer()


def _boxes(length: int, count: int) -> _Boxes:
    """An axis cut into `count` boxes, with OpenCV's operations in its order.

    They are those of computeResizeAreaTab in modules/imgproc/src/resize.cpp of OpenCV 4.10.
    """
    size = 1 / (count / length)
    first = np.arange(count) * size
    last = first + size
    covered = np.minimum(size, length - first)
    stops = np.minimum(np.floor(last).astype(np.intp), length - 1)
    starts = np.minimum(np.ceil(first).astype(np.intp), stops)
    before, after = starts - first, last - stops
    shares = np.minimum(np.minimum(after, 1), covered)
    inner = starts[:, np.newaxis] + np.arange((stops - starts).max(initial=0))
    is_inner = inner < stops[:, np.newaxis]
    places = np.column_stack([starts - 1, inner, stops])
    weights = np.column_stack(
        [
            np.where(before > _LEAST_SHARE, before, 0) / covered,
            is_inner / covered[:, np.newaxis],
            np.where(after > _LEAST_SHARE, shares, 0) / covered,
        ]
    )
    return _Boxes(size, starts, stops, places.clip(0, length - 1), weights.astype(np.float32))


def _as_opencv(
    grey: Grey, rows: _Boxes, columns: _Boxes, at_row: NDArray[np.intp], at_column: NDArray[np.intp]
) -> Grey:
    """(m,) single pixels of the result, in ResizeArea_Invoker's order of float32 operations."""
    across, down = columns.places[at_column], rows.places[at_row]
    boxes = grey[down[:, :, np.newaxis], across[:, np.newaxis, :]].astype(np.float32)
    means = np.zeros(len(boxes), dtype=np.float32)
    of_rows = np.zeros(boxes.shape[:2], dtype=np.float32)
    for k in range(boxes.shape[2]):
        of_rows += boxes[:, :, k] * columns.weights[at_column, k, np.newaxis]
    for k in range(boxes.shape[1]):
        means += of_rows[:, k] * rows.weights[at_row, k]
    return np.rint(means).astype(np.uint8)
