"""Alterations of films: what changes, and what does not."""

import numpy as np
import pytest

from vlscore.evaluation.audit.alterations import (
    Box,
    blank,
    harmless,
    hidden,
    joined,
    mirrored,
    places_elsewhere,
    region_of,
)
from vlscore.evaluation.audit.audit_settings import HARMLESS

RNG = np.random.default_rng(0)


@pytest.fixture(params=[np.uint8, np.uint16])
def film(request):
    most = np.iinfo(request.param).max
    rows, columns = np.mgrid[:120, :160]
    smooth = (rows + columns) / 280
    noise = np.random.default_rng(1).normal(0, 0.02, smooth.shape)
    return np.rint(most * np.clip(smooth + noise, 0, 1)).astype(request.param)


def test_only_the_region_is_covered_and_nothing_of_it_remains(film):
    box = Box(30, 40, 90, 100)
    most = np.iinfo(film.dtype).max
    marked = film.copy()
    marked[60:70, 50:60] = most
    covered = hidden(marked, box)
    outside = np.ones(film.shape, bool)
    outside[box.top : box.bottom, box.left : box.right] = False
    assert (covered[outside] == marked[outside]).all()
    # The mark inside leaves no trace: without it the result is the same.
    assert (covered == hidden(film, box)).all()
    assert covered.dtype == film.dtype


def test_a_covered_region_has_the_levels_of_its_border(film):
    """On a plane, the surface between the borders is the plane."""
    most = np.iinfo(film.dtype).max
    rows, columns = np.mgrid[:120, :160]
    plane = np.rint(most * (rows + columns) / 280).astype(film.dtype)
    covered = hidden(plane, Box(30, 40, 90, 100)).astype(float)
    assert np.abs(covered - plane).max() < 0.05 * most


@pytest.mark.parametrize("box", [Box(0, 0, 160, 120), Box(0, 0, 20, 120), Box(150, 110, 160, 120)])
def test_a_region_at_the_edge_is_covered(film, box):
    marked = film.copy()
    marked[box.top : box.bottom, box.left : box.right] ^= 1
    assert (hidden(marked, box) == hidden(film, box)).all()


def test_mirroring_twice_gives_the_film(film):
    assert (mirrored(mirrored(film)) == film).all()
    assert not (mirrored(film) == film).all()


def test_a_blank_film_depends_on_no_pixel(film):
    one, two = (blank(each, np.random.default_rng(3)) for each in (film, film[::-1]))
    assert (one == two).all()
    assert one.std() < 0.02 * np.iinfo(film.dtype).max < one.mean() < 0.2 * np.iinfo(film.dtype).max


@pytest.mark.parametrize("kind", HARMLESS)
def test_a_harmless_change_is_small_and_none_is_nothing(film, kind):
    changed = harmless(film, kind, np.random.default_rng(2))
    assert changed.dtype == film.dtype
    assert changed.shape == film.shape
    assert not (changed == film).all()
    assert np.corrcoef(changed.ravel(), film.ravel())[0, 1] > 0.99
    again = harmless(film, kind, np.random.default_rng(2))
    assert (changed == again).all()


def test_regions_lie_on_the_side_of_the_report():
    """The patient's right is on the left of the picture."""
    shape = (200, 100)
    right = region_of("opacity", ("right",), ("upper lobe",), shape)
    left = region_of("opacity", ("left",), ("upper lobe",), shape)
    assert right.right <= 50 <= left.left
    assert right.bottom <= 100
    assert region_of("pleural_effusion", ("left",), (), shape).top >= 100
    assert region_of("cardiomegaly", (), (), shape).area > 0
    assert region_of("degenerative_change", (), (), shape) is None


def covered_by(boxes, shape):
    """Return the number of boxes on each pixel."""
    counts = np.zeros(shape, int)
    for left, top, right, bottom in boxes:
        counts[top:bottom, left:right] += 1
    return counts


def test_the_other_region_has_the_same_size_and_overlaps_none():
    shape, box, other = (120, 160), Box(30, 40, 60, 70), Box(100, 10, 140, 60)
    for seed in range(20):
        (found,) = places_elsewhere([box], [other], shape, np.random.default_rng(seed))
        assert found.right - found.left == box.right - box.left
        assert found.area == box.area
        assert not found.overlaps(box)
        assert not found.overlaps(other)
        assert found == found.within(shape)
    assert places_elsewhere([Box(0, 0, 160, 100)], [], shape, RNG) == []
    assert places_elsewhere([], [], shape, RNG) == []


def test_a_region_that_fits_nowhere_in_its_shape_gets_other_proportions():
    """The heart's rectangle, which fits neither above, nor below, nor beside itself."""
    for shape in ((256, 256), (2991, 2320), (90, 120)):
        box = region_of("cardiomegaly", (), (), shape)
        (found,) = places_elsewhere([box], [], shape, np.random.default_rng(0))
        assert found.area == pytest.approx(box.area, rel=0.02)
        assert covered_by([box, found], shape).max() == 1


def test_every_region_of_a_finding_has_another_one():
    shape, boxes = (100, 100), [Box(5, 60, 35, 95), Box(65, 60, 95, 95)]
    for seed in range(20):
        found = places_elsewhere(boxes, [], shape, np.random.default_rng(seed))
        assert [each.area for each in found] == pytest.approx([30 * 35] * 2, rel=0.02)
        assert covered_by([*boxes, *found], shape).max() == 1


@pytest.mark.parametrize("seed", range(20))
def test_joined_regions_cover_the_same_and_none_twice(seed):
    rng = np.random.default_rng(seed)
    corners = rng.integers(0, 30, (6, 2))
    boxes = [
        Box(x, y, x + int(w), y + int(h))
        for (x, y), (w, h) in zip(corners.tolist(), rng.integers(1, 12, (6, 2)), strict=True)
    ]
    one, other = covered_by(boxes, (50, 50)), covered_by(joined(boxes), (50, 50))
    assert other.max() == 1
    assert (other[one > 0] == 1).all()
    apart = [Box(0, 0, 4, 4), Box(4, 0, 8, 4), Box(20, 20, 21, 21)]
    assert sorted(joined(apart)) == apart
