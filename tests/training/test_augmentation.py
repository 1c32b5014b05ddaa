"""What each setting of an augmentation does to an image, by its own description."""

import numpy as np
import pytest

from vlscore.training.augmentation import Augmentation

_NAMES = [
    *("crop", "x", "y", "rotation", "zoom", "brightness", "contrast", "blur", "stretch"),
    *("down", "across"),
]


class _Drawn:
    """A generator that draws what a test wants: -1 to 1 for each of the settings."""

    def __init__(self, **at: float) -> None:
        self.values = np.zeros(11)
        for name, value in at.items():
            self.values[_NAMES.index(name)] = value

    def uniform(self, low, high, count):
        assert (low, high, count) == (-1, 1, 11)
        return self.values


def _changed(grey, settings, **drawn):
    return Augmentation("tried", "here", **settings)(grey, _Drawn(**drawn))


@pytest.mark.parametrize("direction", ["down", "across"])
@pytest.mark.parametrize("sign", [1, -1])
def test_shading_is_none_in_the_middle_and_half_the_share_at_the_edges_of_one_axis(direction, sign):
    grey = np.full((101, 81), 100, np.uint8)
    shaded = _changed(grey, {"shading": 0.3}, **{direction: sign})
    line = shaded[:, 40] if direction == "down" else shaded[50]
    assert line[len(line) // 2] == 100
    assert (line[0], line[-1]) == ((85, 115) if sign > 0 else (115, 85))
    assert np.all(np.diff(line.astype(int)) * sign >= 0)


def test_shading_of_both_axes_reaches_the_whole_share_in_the_corners():
    shaded = _changed(np.full((41, 41), 100, np.uint8), {"shading": 0.3}, down=1, across=1)
    assert (shaded[0, 0], shaded[-1, -1], shaded[0, -1]) == (70, 130, 100)


@pytest.mark.parametrize(("drawn", "factor"), [(1, 1.2), (-1, 0.8), (0, 1)])
def test_brightness_multiplies_the_grey_levels(drawn, factor):
    grey = np.array([[0, 50], [100, 200]], np.uint8)
    assert np.array_equal(
        _changed(grey, {"brightness": 0.2}, brightness=drawn), np.rint(grey * factor)
    )


@pytest.mark.parametrize(("drawn", "factor"), [(1, 1.2), (-1, 0.8)])
def test_contrast_moves_grey_levels_from_their_mean(drawn, factor):
    grey = np.array([[50, 100], [100, 150]], np.uint8)
    changed = _changed(grey, {"contrast": 0.2}, contrast=drawn)
    assert np.array_equal(changed, np.rint(100 + (grey.astype(float) - 100) * factor))


def test_grey_levels_do_not_leave_the_range_of_a_byte():
    grey = np.array([[0, 250]], np.uint8)
    assert _changed(grey, {"brightness": 0.2}, brightness=1).max() == 255


@pytest.mark.parametrize(("drawn", "moved"), [({"x": 1}, (0, -5)), ({"y": -1}, (5, 0))])
def test_a_shift_is_a_share_of_the_longer_side(drawn, moved):
    """The section of the image that is shown moves: the image itself, the other way."""
    grey = np.zeros((51, 31), np.uint8)
    grey[25, 15] = 255
    shifted = _changed(grey, {"shift": 0.1}, **drawn)
    assert shifted[25 + moved[0], 15 + moved[1]] == 255
    assert np.count_nonzero(shifted) == 1


@pytest.mark.parametrize(("drawn", "distance"), [(1, 20), (-1, 5)])
def test_a_zoom_is_between_its_ends(drawn, distance):
    grey = np.zeros((81, 81), np.uint8)
    grey[40, 30:51:20] = 255
    zoomed = _changed(grey, {"zoom": (0.5, 2.0)}, zoom=drawn)
    bright = np.flatnonzero(zoomed[40] > 200)
    assert (40 - bright.min(), bright.max() - 40) == (distance, distance)


def test_a_crop_shows_its_share_of_the_area():
    """A quarter of the area is half of each side, drawn twice as large."""
    grey = np.zeros((81, 81), np.uint8)
    grey[40, 30:51:20] = 255
    cropped = _changed(grey, {"crop": 0.25}, crop=-1)
    assert list(np.flatnonzero(cropped[40] > 200)) == [20, 60]


def test_a_stretch_widens_by_its_root_and_flattens_as_much():
    grey = np.zeros((81, 81), np.uint8)
    grey[40, [20, 60]] = grey[[20, 60], 40] = 255
    stretched = _changed(grey, {"stretch": 3.0}, stretch=0.5)  # (1 + 3) ** 0.5 between the axes
    factor = 2**0.5
    across = np.flatnonzero(stretched[40] > 60)
    down = np.flatnonzero(stretched[:, 40] > 60)
    assert 40 + 20 * factor == pytest.approx(across.max(), abs=1)
    assert 40 + 20 / factor == pytest.approx(down.max(), abs=1)


def test_a_rotation_is_in_degrees():
    grey = np.zeros((81, 81), np.uint8)
    grey[40, 70] = 255
    turned = _changed(grey, {"rotation": 90}, rotation=1)
    assert np.argwhere(turned > 100).tolist() == [[70, 40]]


@pytest.mark.parametrize(("drawn", "deviation"), [(-1, 0.1), (1, 2.0)])
def test_a_blur_has_its_standard_deviation_in_pixels(drawn, deviation):
    grey = np.zeros((41, 41), np.uint8)
    grey[20, 20] = 255
    blurred = _changed(grey, {"blur": 2.0}, blur=drawn)
    peak = 255 / (2 * np.pi * deviation**2) if deviation > 1 else 255
    assert blurred[20, 20] == pytest.approx(peak, abs=1.5)
