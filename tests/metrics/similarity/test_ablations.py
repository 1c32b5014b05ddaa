"""Cosines, the bounding sphere and CLIPScore against independent computations."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize
from scipy.spatial.distance import cosine as scipy_cosine_distance

from vlscore.metrics import (
    METRICS,
    bounding_sphere_radius,
    clipscore,
    cosine,
    height,
    image_centred_cosine,
    image_gain_cosine,
    image_gain_distance,
    midpoint_distance,
    refclipscore,
    segment_distance,
    vlscore,
)
from vlscore.metrics.embedded_metric import EmbeddedMetric

# Name -> function of images, candidates, references and C.
SIMILARITIES = {
    "vlscore": vlscore,
    "cosine": lambda i, g, r, C: cosine(g, r),
    "image-centred-cosine": lambda i, g, r, C: image_centred_cosine(i, g, r),
    "bounding-sphere": lambda i, g, r, C: bounding_sphere_radius(i, g, r),
    "clipscore": lambda i, g, r, C: clipscore(i, g),
    "refclipscore": lambda i, g, r, C: refclipscore(i, g, r),
    "height": lambda i, g, r, C: height(i, g, r),
    "segment-distance": lambda i, g, r, C: segment_distance(i, g, r),
    "midpoint-distance": lambda i, g, r, C: midpoint_distance(i, g, r),
    "image-gain-distance": lambda i, g, r, C: image_gain_distance(i, g, r),
    "image-gain-cosine": lambda i, g, r, C: image_gain_cosine(i, g, r),
}

points = hnp.arrays(np.float64, (3, 4, 3), elements=st.floats(-10, 10, width=32))
laws = settings(max_examples=60, deadline=None)


def _random(seed, shape=(3, 20, 16)):
    return np.random.default_rng(seed).normal(size=shape)


def test_cosines_against_scipy():
    i, g, r = _random(0)
    for k in range(len(i)):
        assert cosine(g, r)[k].item() == pytest.approx(1 - scipy_cosine_distance(g[k], r[k]))
        centred = 1 - scipy_cosine_distance(g[k] - i[k], r[k] - i[k])
        assert image_centred_cosine(i, g, r)[k].item() == pytest.approx(centred)


def test_cosine_of_the_origin_is_zero():
    assert cosine([0.0, 0.0], [1.0, 2.0]).item() == 0
    assert image_centred_cosine([1.0, 2.0], [1.0, 2.0], [3.0, 4.0]).item() == 0


@pytest.mark.parametrize("shape", ["generic", "obtuse", "collinear", "equilateral"])
def test_sphere_against_numerical_minimisation(shape):
    rng = np.random.default_rng(4)
    for _ in range(5):
        i, g, r = rng.normal(size=(3, 3))
        if shape == "obtuse":
            g = (i + r) / 2 + 0.1 * rng.normal(size=3)
        elif shape == "collinear":
            g = i + 0.3 * (r - i)
        elif shape == "equilateral":
            i, g, r = np.eye(3)
        triangle = np.stack([i, g, r])

        # Smallest t with |point - centre|² <= t for all three points: x holds centre and t.
        inside = {
            "type": "ineq",
            "fun": lambda x, triangle=triangle: x[3] - ((triangle - x[:3]) ** 2).sum(axis=1),
        }
        start = np.append(triangle.mean(0), 10.0)
        best = minimize(
            lambda x: x[3],
            start,
            method="SLSQP",
            constraints=inside,
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert bounding_sphere_radius(i, g, r).item() == pytest.approx(np.sqrt(best.fun), rel=1e-6)


@laws
@given(points)
def test_sphere_laws(x):
    i, g, r = x
    radius = bounding_sphere_radius(i, g, r)
    longest = np.max([np.linalg.norm(a - b, axis=1) for a, b in ((i, g), (i, r), (g, r))], axis=0)
    # Jung's theorem in the plane: half the diameter <= radius <= diameter / sqrt(3).
    assert (radius.numpy() >= longest / 2 * (1 - 1e-9)).all()
    assert (radius.numpy() <= longest / np.sqrt(3) * (1 + 1e-7) + 1e-300).all()
    scale = float(np.abs(x).max()) or 1.0
    torch.testing.assert_close(
        radius, bounding_sphere_radius(r, i, g), rtol=1e-6, atol=1e-7 * scale
    )


def test_two_points_that_coincide_leave_half_the_side():
    i, _, r = _random(5)
    half = np.linalg.norm(i - r, axis=1) / 2
    np.testing.assert_allclose(bounding_sphere_radius(i, r, r), half)
    np.testing.assert_allclose(bounding_sphere_radius(i, i, r), half)
    assert bounding_sphere_radius(i, i, i).max().item() == 0


def test_clipscore_and_its_harmonic_mean():
    i, g, r = _random(6)
    i_g, g_r = cosine(i, g).numpy(), cosine(g, r).numpy()
    clip = 2.5 * np.maximum(i_g, 0)
    np.testing.assert_allclose(clipscore(i, g), clip)
    ref = np.maximum(g_r, 0)
    both = (clip > 0) & (ref > 0)
    expected = np.zeros(len(clip))
    expected[both] = 2 / (1 / clip[both] + 1 / ref[both])
    np.testing.assert_allclose(refclipscore(i, g, r), expected)
    assert both.any()
    assert not both.all()


@pytest.mark.parametrize("name", SIMILARITIES)
@laws
@given(x=points)
def test_every_similarity_keeps_its_metrics_bounds_shape_and_dtype(name, x):
    value = SIMILARITIES[name](*torch.from_numpy(x), 3.0)
    assert value.shape == (4,)
    assert value.dtype == torch.float64
    low, high = METRICS[name].bounds
    if low is not None:
        assert (value >= low).all()
    if high is not None:
        assert (value <= high + 1e-12).all()


@pytest.mark.parametrize("name", SIMILARITIES)
def test_every_similarity_uses_what_its_metric_says(name):
    metric, similarity = METRICS[name], SIMILARITIES[name]
    i, g, r = torch.from_numpy(_random(7))
    other = torch.from_numpy(_random(8)[0])
    value = similarity(i, g, r, 50.0)
    assert metric.uses_image == (not torch.equal(value, similarity(other, g, r, 50.0)))
    assert metric.uses_reference == (not torch.equal(value, similarity(i, g, other, 50.0)))
    uses_C = not torch.equal(value, similarity(i, g, r, 25.0))
    assert uses_C == ("C" in metric.settings)


def test_every_metric_of_embeddings_of_ours_is_tested_here():
    ours = {name for name, metric in METRICS.items() if isinstance(metric, EmbeddedMetric)}
    assert ours == set(SIMILARITIES)
