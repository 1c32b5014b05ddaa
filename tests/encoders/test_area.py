"""Shrinking by area gives OpenCV's own pixels."""

import platform
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from vlscore.encoders.blocks import pixels as area
from vlscore.encoders.blocks.pixels import pad_to_square, shrink_by_area

# Compilers for other processors join multiplication and addition in OpenCV, which rounds once less.
EXACT = platform.machine() in ("x86_64", "AMD64")


def kinds(height: int, width: int) -> dict[str, NDArray[np.uint8]]:
    rng = np.random.default_rng(height * width)
    noise = rng.integers(0, 256, (height, width), dtype=np.uint8)
    # Means of two neighbouring levels: many lie in the middle between both.
    ties = np.indices((height, width)).sum(0).astype(np.uint8) % 2 + 7
    edges = np.where(noise[:, :1] > noise[:1], 255, 0).astype(np.uint8)
    return {"noise": noise, "ties": ties, "edges": edges, "white": np.full_like(noise, 255)}


def require_equal(found: NDArray[np.uint8], grey: NDArray[np.uint8]) -> None:
    height, width = found.shape
    wanted = cv2.resize(grey, (width, height), interpolation=cv2.INTER_AREA)
    apart = np.abs(found.astype(int) - wanted)
    assert apart.max() <= (0 if EXACT else 1)
    assert (apart > 0).mean() < 1e-3


@pytest.mark.parametrize(
    ("height", "width"),
    # A common detector; both ways round; twelve pixels each; a strip; few pixels a box; no smaller.
    [(3056, 2544), (2021, 2499), (3072, 3072), (3072, 2500), (1024, 300), (1500, 1029), (256, 256)],
)
def test_pixels_are_opencvs(height: int, width: int) -> None:
    longest = max(height, width)
    size = (256 * width // longest, 256 * height // longest)
    for grey in kinds(height, width).values():
        require_equal(shrink_by_area(grey, *size), grey)


def test_sizes_by_chance() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        height, width = rng.integers(500, 1500, 2).tolist()
        size = (rng.integers(1, width // 4), rng.integers(1, height // 4))
        grey = rng.integers(0, 256, (height, width), dtype=np.uint8)
        require_equal(shrink_by_area(grey, *map(int, size)), grey)


@pytest.mark.skipif(not EXACT, reason="OpenCV may join multiplication and addition here")
def test_pixels_that_rounding_decides_are_computed_in_opencvs_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without that, some of this picture's pixels are another level: the test above can fail."""
    grey = kinds(3056, 2544)["ties"]
    right = shrink_by_area(grey, 213, 256)
    require_equal(right, grey)
    monkeypatch.setattr(area, "_UNDECIDED", 0.0)
    assert (shrink_by_area(grey, 213, 256) != right).any()


def test_real_radiographs(shared: Path) -> None:
    paths = sorted((shared / "data" / "radiographs").glob("[!v]*"))
    if not paths:
        pytest.skip("no radiographs are present")
    for path in paths:
        grey = np.asarray(Image.open(path).convert("L").resize((2544, 3056)))
        require_equal(pad_to_square(grey)[:, 21:-22], grey)
