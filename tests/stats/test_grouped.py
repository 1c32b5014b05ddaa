"""Intervals over groups, against resampling written out row by row."""

import numpy as np
import pytest
from scipy import stats

from vlscore.errors import InvalidSetting
from vlscore.stats import (
    auc,
    grouped,
    grouped_auc,
    grouped_mean,
    grouped_means,
)

RESAMPLES = 1500


def _sample(seed: int, groups: int = 30):
    """Values with a strong effect of the group, in groups of uneven sizes."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 6, groups)
    names = [f"g{k}" for k, size in enumerate(sizes) for _ in range(size)]
    x = np.repeat(rng.normal(size=groups), sizes) + 0.3 * rng.normal(size=len(names))
    y = np.round(x + rng.normal(size=len(names)), 1)
    return names, x, y


def _by_hand(statistic, names, *samples):
    """The cluster bootstrap as a loop: draw groups, join their rows, compute."""
    rng = np.random.default_rng(99)
    rows = [np.flatnonzero(np.array(names) == name) for name in dict.fromkeys(names)]
    drawn = []
    for _ in range(RESAMPLES):
        chosen = np.concatenate([rows[k] for k in rng.integers(len(rows), size=len(rows))])
        drawn.append(statistic(*(sample[chosen] for sample in samples)))
    return np.nanquantile(drawn, [0.025, 0.975])


def _agree(interval, expected):
    """Equal up to the noise of two independent bootstraps."""
    width = expected[1] - expected[0]
    assert interval.low == pytest.approx(expected[0], abs=0.12 * width)
    assert interval.high == pytest.approx(expected[1], abs=0.12 * width)


def test_mean():
    names, x, _ = _sample(1)
    interval = grouped_mean(x, names)
    assert interval.estimate == pytest.approx(x.mean(), rel=1e-12)
    _agree(interval, _by_hand(np.mean, names, x))


def test_mean_of_groups_of_one_is_the_ordinary_bootstrap():
    x = np.random.default_rng(2).normal(size=80)
    interval = grouped_mean(x, [str(k) for k in range(80)])
    expected = stats.bootstrap((x,), np.mean, method="percentile", rng=np.random.default_rng(3))
    _agree(interval, tuple(expected.confidence_interval))


def test_auc():
    names, x, y = _sample(5)
    positive = y > 0.4
    interval = grouped_auc(x, positive, names)
    assert interval.estimate == pytest.approx(auc(x[positive], x[~positive]), rel=1e-12)
    expected = _by_hand(lambda v, p: auc(v[p], v[~p]), names, x, positive)
    _agree(interval, expected)


def test_auc_of_more_rows_than_one_step_holds(monkeypatch):
    names, x, y = _sample(6)
    whole = grouped_auc(x, y > 0, names)
    monkeypatch.setattr(grouped, "_DRAWN_AT_ONCE", 500)
    assert grouped_auc(x, y > 0, names) == whole


def test_what_a_group_has_in_common_cancels_in_a_difference():
    rng = np.random.default_rng(8)
    names = [f"g{k}" for k in range(60)]
    common = 10 * rng.normal(size=60)
    more, less = common + 1 + 0.1 * rng.normal(size=60), common + 0.1 * rng.normal(size=60)
    others = [f"other {name}" for name in names]
    paired = grouped_means(np.subtract, (more, names), (less, names))
    apart = grouped_means(np.subtract, (more, names), (less, others))
    assert paired.estimate == pytest.approx(more.mean() - less.mean(), rel=1e-12)
    assert apart.estimate == pytest.approx(paired.estimate, rel=1e-12)
    assert paired.high - paired.low < 0.1
    assert apart.high - apart.low > 3


def test_groups_widen_the_interval_that_equal_values_would_narrow():
    x = np.random.default_rng(9).normal(size=20)
    alone = grouped_mean(x, [str(k) for k in range(20)])
    repeated = grouped_mean(np.repeat(x, 50), [str(k) for k in range(20) for _ in range(50)])
    assert repeated.low == pytest.approx(alone.low, rel=1e-9)
    assert repeated.high == pytest.approx(alone.high, rel=1e-9)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, float("nan")]])
def test_what_has_no_interval_is_refused(values):
    with pytest.raises(InvalidSetting):
        grouped_mean(values, ["a", "b"])
