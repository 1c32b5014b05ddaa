"""A space that both modalities share: what it undoes, what it keeps, what it refuses."""

import math

import numpy as np
import pytest
import torch

from vlscore.encoders import SharedSpace
from vlscore.errors import InvalidSetting
from vlscore.metrics import image_gain_distance, sides


def _pairs(seed, n=300, d=6):
    """Images that show what reports state, elsewhere and smaller; one direction is long."""
    rng = np.random.default_rng(seed)
    lengths = np.array([5.0, 1, 1, 1, 1, 1])
    content = rng.normal(size=(n, d)) * lengths
    return 0.2 * content + 7.0, content - 3.0, content


def test_the_gap_and_the_scale_are_undone():
    images, reports, content = _pairs(0)
    space = SharedSpace.fit(images, reports, ridge=math.inf)
    torch.testing.assert_close(space.images(images), space.reports(reports))
    expected = content - content.mean(0)
    np.testing.assert_allclose(space.reports(reports), expected, atol=1e-12)
    assert space.scale == pytest.approx(5)


def test_without_a_ridge_every_direction_is_equally_long():
    _, reports, _ = _pairs(1)
    space = SharedSpace.fit(reports, reports, ridge=0.0)
    covariance = np.cov(space.reports(reports).numpy().T, bias=True)
    np.testing.assert_allclose(covariance, np.eye(6), atol=1e-10)


def test_a_ridge_lies_between():
    images, reports, _ = _pairs(2)
    ratios = []
    for ridge in (0.0, 0.3, 1.0, 10.0, math.inf):
        spread = SharedSpace.fit(images, reports, ridge=ridge).reports(reports).std(0)
        ratios.append(float(spread.max() / spread.min()))
    assert ratios == sorted(ratios)
    assert ratios[0] == pytest.approx(1, abs=0.01)
    assert ratios[-1] > 4


def test_directions_that_no_report_takes_vanish_without_a_ridge():
    _, reports, _ = _pairs(3)
    flat = np.concatenate([reports, np.zeros((300, 2))], axis=1)
    space = SharedSpace.fit(flat, flat, ridge=0.0)
    inside = space.reports(flat)
    assert inside.isfinite().all()
    astray = space.reports(flat + np.array([0.0] * 6 + [100.0] * 2))
    torch.testing.assert_close(astray, inside, rtol=0, atol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 1.0, math.inf])
def test_what_is_fitted_does_not_depend_on_where_and_how_large_the_embeddings_are(ridge):
    images, reports, _ = _pairs(4)
    space = SharedSpace.fit(images, reports, ridge=ridge)
    moved = SharedSpace.fit(3 * images - 1, 3 * reports + 2, ridge=ridge)
    i, g, r = space.images(images[:9]), space.reports(reports[9:18]), space.reports(reports[:9])
    j, h, s = (
        moved.images(3 * images[:9] - 1),
        moved.reports(3 * reports[9:18] + 2),
        moved.reports(3 * reports[:9] + 2),
    )
    factor = 9 if ridge == math.inf else 1
    torch.testing.assert_close(
        image_gain_distance(j, h, s), factor * image_gain_distance(i, g, r), rtol=1e-9, atol=1e-9
    )
    # Image and report of one study coincide here, whatever the directions' lengths.
    torch.testing.assert_close(sides(i, r, r)[1], torch.zeros(9).double(), rtol=0, atol=1e-9)


def test_what_spans_no_space_is_refused():
    images, reports, _ = _pairs(5)
    with pytest.raises(InvalidSetting, match="at least 20"):
        SharedSpace.fit(images[:19], reports)
    with pytest.raises(InvalidSetting, match="at least 20"):
        SharedSpace.fit(images[:, :5], reports)
    with pytest.raises(InvalidSetting, match="do not vary"):
        SharedSpace.fit(images, np.ones_like(reports))
    with pytest.raises(InvalidSetting, match="do not vary"):
        SharedSpace.fit(images * np.nan, reports)
    with pytest.raises(InvalidSetting, match="ridge"):
        SharedSpace.fit(images, reports, ridge=-1.0)
