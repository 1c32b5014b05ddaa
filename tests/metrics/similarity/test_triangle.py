"""The area against exact arithmetic, and the laws it must keep."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from vlscore.errors import InvalidSetting
from vlscore.metrics import foot, score_of_area, sides, triangle_area, vlscore

D = 768
N = 25


def exact_area(i, g, r) -> mpmath.mpf:
    """Eq. 1 as printed, with 60 digits."""
    with mpmath.workdps(60):
        a = [mpmath.mpf(float(x)) - mpmath.mpf(float(y)) for x, y in zip(g, i, strict=True)]
        e = [mpmath.mpf(float(x)) - mpmath.mpf(float(y)) for x, y in zip(r, i, strict=True)]
        determinant = mpmath.fdot(a, a) * mpmath.fdot(e, e) - mpmath.fdot(a, e) ** 2
        return mpmath.sqrt(determinant) / 2


def _unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _generic(rng):
    return rng.normal(size=(3, N, D))


def _modality_gap(rng):
    gap = 5 * _unit(rng.normal(size=(1, D)))
    i, g, r = rng.normal(size=(3, N, D)) / math.sqrt(D)
    return _unit(i + gap), _unit(g - gap), _unit(r - gap)


def _near_reference(distance):
    def make(rng):
        i, r = _unit(rng.normal(size=(N, D))), _unit(rng.normal(size=(N, D)))
        return i, r + distance * _unit(rng.normal(size=(N, D))), r

    return make


def _mid_line(off):
    def make(rng):
        i, r = _unit(rng.normal(size=(N, D))), _unit(rng.normal(size=(N, D)))
        return i, (i + r) / 2 + off * _unit(rng.normal(size=(N, D))), r

    return make


def _common_offset(rng):
    return 50 * _unit(rng.normal(size=(1, D))) + rng.normal(size=(3, N, D))


def _short_edge(rng):
    i, g = rng.normal(size=(2, N, D))
    return i, g, i + 1e-3 * _unit(rng.normal(size=(N, D)))


CASES = {
    "generic": (_generic, 1e-6),
    "modality gap": (_modality_gap, 1e-6),
    "g = r + 1e-2": (_near_reference(1e-2), 1e-6),
    "g = r + 1e-4": (_near_reference(1e-4), 1e-6),
    "mid-line, off 1e-3": (_mid_line(1e-3), 1e-4),
    "mid-line, off 1e-4": (_mid_line(1e-4), 1e-4),
    "offset 50, spread 1": (_common_offset, 1e-6),
    "|r - i| = 1e-3": (_short_edge, 1e-6),
}


@pytest.mark.parametrize("case", CASES)
def test_relative_error_against_exact_arithmetic(case):
    make, float32_bound = CASES[case]
    i, g, r = (np.asarray(x, dtype=np.float32) for x in make(np.random.default_rng(0)))
    exact = [exact_area(*row) for row in zip(i, g, r, strict=True)]
    for dtype, bound in ((torch.float64, 1e-12), (torch.float32, float32_bound)):
        area = triangle_area(i, g, r, dtype=dtype)
        assert area.dtype == dtype
        errors = [
            abs(float((mpmath.mpf(float(t)) - e) / e)) for t, e in zip(area, exact, strict=True)
        ]
        assert max(errors) <= bound


def test_the_textbook_determinant_would_fail_where_the_residual_holds():
    i, g, r = (
        torch.tensor(np.asarray(x, dtype=np.float32))
        for x in _near_reference(1e-4)(np.random.default_rng(0))
    )
    a, e = g - i, r - i
    determinant = (a * a).sum(1) * (e * e).sum(1) - (a * e).sum(1) ** 2
    textbook = 0.5 * determinant.clamp(min=0).sqrt().double()
    exact = triangle_area(i, g, r)
    assert ((textbook - exact).abs() / exact).max() > 0.1
    residual = triangle_area(i, g, r, dtype=torch.float32).double()
    assert ((residual - exact).abs() / exact).max() < 1e-6


points = hnp.arrays(np.float64, (3, 5, 4), elements=st.floats(-100, 100, allow_nan=False, width=32))
laws = settings(max_examples=60, deadline=None)


@laws
@given(points)
def test_symmetric_in_candidate_and_reference(x):
    i, g, r = x
    scale = float(np.abs(x).max() ** 2) or 1.0
    torch.testing.assert_close(
        triangle_area(i, g, r), triangle_area(i, r, g), rtol=1e-9, atol=1e-13 * scale
    )


@laws
@given(points, st.integers(0, 2**32 - 1))
def test_invariant_to_translation_and_rotation(x, seed):
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.normal(size=(4, 4)))
    moved = x @ rotation + rng.normal(size=4)
    scale = float(np.abs(x).max() ** 2) + 1.0
    torch.testing.assert_close(
        triangle_area(*x), triangle_area(*moved), rtol=1e-7, atol=1e-10 * scale
    )


@laws
@given(points, st.floats(0.01, 100))
def test_scales_with_the_square(x, s):
    scale = float(np.abs(x).max() ** 2) * s**2 or 1.0
    torch.testing.assert_close(
        triangle_area(*(s * x)), s**2 * triangle_area(*x), rtol=1e-9, atol=1e-13 * scale
    )


@laws
@given(points)
def test_zero_where_two_points_coincide(x):
    p, q, _ = x
    zero = torch.zeros(5, dtype=torch.float64)
    for triple in ((p, p, q), (p, q, p), (q, p, p), (p, p, p)):
        assert torch.equal(triangle_area(*triple), zero)


@laws
@given(points, st.floats(1e-6, 1e6))
def test_score_stays_between_zero_and_one(x, C):
    score = vlscore(*x, C)
    assert ((score >= 0) & (score <= 1)).all()
    assert torch.equal(score, score_of_area(triangle_area(*x), C))


@laws
@given(st.floats(-50, 50), st.integers(0, 2**32 - 1))
def test_any_point_of_the_line_is_perfect_and_its_foot_is_its_parameter(s, seed):
    i, r = np.random.default_rng(seed).normal(size=(2, 1, 6))
    g = i + s * (r - i)
    assert vlscore(i, g, r, C=1.0).item() == pytest.approx(1.0, abs=1e-9)
    assert foot(i, g, r).item() == pytest.approx(s, abs=1e-9)


def test_foot_is_undefined_without_a_line():
    assert foot([1.0, 2.0], [5.0, 6.0], [1.0, 2.0]).isnan().all()


def test_area_is_the_same_alone_and_in_any_batch():
    i, g, r = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 600, 32)))
    together = triangle_area(i, g, r)
    backwards = triangle_area(i.flip(0), g.flip(0), r.flip(0)).flip(0)
    alone = torch.cat([triangle_area(*row) for row in zip(i, g, r, strict=True)])
    torch.testing.assert_close(together, alone, rtol=1e-13, atol=0)
    torch.testing.assert_close(together, backwards, rtol=1e-13, atol=0)


def test_heron_agrees_with_the_sides():
    i, g, r = np.random.default_rng(1).normal(size=(3, 50, 20))
    a, b, c = sides(i, g, r)
    s = (a + b + c) / 2
    heron = (s * (s - a) * (s - b) * (s - c)).sqrt()
    torch.testing.assert_close(triangle_area(i, g, r), heron, rtol=1e-10, atol=0)


def test_gradient_of_the_area_is_finite_and_right():
    i, g, r = torch.from_numpy(np.random.default_rng(2).normal(size=(3, 4, 6)))
    g.requires_grad_(True)
    assert torch.autograd.gradcheck(lambda g: triangle_area(i, g, r), g)


@pytest.mark.parametrize("C", [0, -1, float("nan")])
def test_C_must_be_positive(C):
    with pytest.raises(InvalidSetting, match="C must be a positive number"):
        vlscore([0.0, 0.0], [0.0, 1.0], [1.0, 0.0], C)


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(InvalidSetting, match=r"\(2, 3\), \(3, 3\), \(2, 3\)"):
        triangle_area(np.zeros((2, 3)), np.zeros((3, 3)), np.zeros((2, 3)))


def test_nan_embeddings_give_nan_not_a_perfect_score():
    assert vlscore([0.0, math.nan], [0.0, 1.0], [1.0, 0.0], C=1.0).isnan().all()


@pytest.mark.gpu
def test_the_device_does_not_change_the_area():
    x = torch.from_numpy(np.random.default_rng(3).normal(size=(3, 1000, D)).astype(np.float32))
    torch.testing.assert_close(
        triangle_area(*x.cuda()).cpu(), triangle_area(*x), rtol=1e-12, atol=0
    )


def test_what_is_said_of_rows_that_are_collinear_but_for_rounding():
    """Exact fractions: a relative error of 1e-16 times the way over the height, and no more."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(200):
        r = rng.normal(size=2).astype(np.float32)
        g = (r * np.float32(rng.uniform(0.1, 0.9))).astype(np.float32)
        i = np.zeros(2, np.float32)
        (x, y), (u, v) = ([Fraction(float(each)) for each in point] for point in (g, r))
        exact = abs(x * v - y * u) / 2
        if exact == 0:
            continue
        found = Fraction(float(triangle_area(i, g, r)[0]))
        relative = float(abs(found - exact) / exact)
        edge = float(np.linalg.norm(r.astype(np.float64)))
        way = min(np.linalg.norm(g.astype(float)), np.linalg.norm((g - r).astype(float)))
        height = 2 * float(exact) / edge
        assert relative <= max(1e-12, 4e-16 * way / height)
        largest = max(largest, relative)
    # The bound of other rows does not hold here.
    assert largest > 1e-12
