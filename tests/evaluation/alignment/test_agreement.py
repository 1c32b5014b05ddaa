"""Agreement with raters against SciPy and counting by hand, and what says nothing."""

import itertools
import time

import numpy as np
import pytest
from scipy import stats

from tests.evaluation.alignment.samples import rated
from vlscore.errors import InvalidSetting
from vlscore.evaluation import (
    MeasuredMetric,
    Pair,
    align,
    alignment_of,
    all_tables,
    failure_modes,
    failure_modes_of,
    sensitivity,
    sensitivity_of_pairs,
)
from vlscore.metrics import find_metric

PAIRS = rated({"total errors": [[0, 1, 2]]}, ["a", "a", "b"])
CHANGED = Pair("s", "change-location", True, "Left effusion.", "Right effusion.")
OF_SCIPY = {
    "tau_b": lambda x, y: stats.kendalltau(x, y, variant="b").statistic,
    "tau_c": lambda x, y: stats.kendalltau(x, y, variant="c").statistic,
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
}


def _set(n=40, raters=3, per_study=4, seed=0):
    rng = np.random.default_rng(seed)
    severity = rng.integers(0, 5, n)
    ratings = {
        "total errors": severity + rng.integers(0, 3, (raters, n)),
        "significant errors": severity // 2 + rng.integers(0, 2, (raters, n)),
        "place": rng.integers(0, 3, (raters, n)),
    }
    studies = [str(k // per_study) for k in range(n)]
    good = MeasuredMetric("good", -severity + rng.normal(0, 0.5, n))
    poor = MeasuredMetric("poor", severity + rng.normal(0, 4, n), higher_is_better=False)
    return rated(ratings, studies), good, poor


def test_correlations_equal_scipy_and_are_oriented_towards_agreement():
    pairs, good, poor = _set()
    found = alignment_of([good, poor], pairs, resamples=50)
    assert len(found.agreements) == 6
    for each in found.agreements:
        metric = good if each.metric == "good" else poor
        mean = pairs.ratings[each.rating].mean(axis=0)
        for kind, of_scipy in OF_SCIPY.items():
            expected = of_scipy(metric.oriented, -mean)
            assert each.by_study[kind].estimate == pytest.approx(expected, abs=1e-12)
            assert each.by_pair[kind].estimate == each.by_study[kind].estimate
        assert (each.n, each.studies) == (40, 10)
    assert found.agreements[0].by_study["tau_b"].estimate > 0.5
    assert MeasuredMetric.of(find_metric("bleu-4"), good.values).higher_is_better


def test_studies_that_repeat_widen_the_interval_by_study():
    pairs, good, _ = _set(n=20, per_study=1)
    repeated = rated(
        {"total errors": pairs.ratings["total errors"].repeat(4, axis=1)},
        [str(k // 4) for k in range(80)],
    )
    (found,) = alignment_of([MeasuredMetric("m", good.values.repeat(4))], repeated).agreements
    wide, narrow = found.by_study["tau_b"], found.by_pair["tau_b"]
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_a_missing_value_costs_that_metric_alone():
    pairs, good, poor = _set()
    holes = good.values.copy()
    holes[[0, 7]] = np.nan
    found = alignment_of([MeasuredMetric("holes", holes), poor], pairs, resamples=50)
    counts = {(each.metric, each.rating): each.n for each in found.agreements}
    assert counts["holes", "place"] == 38
    assert counts["poor", "place"] == 40
    kept = ~np.isnan(holes)
    mean = pairs.ratings["total errors"].mean(axis=0)
    tau = OF_SCIPY["tau_b"](holes[kept], -mean[kept])
    assert found.agreements[0].by_study["tau_b"].estimate == pytest.approx(tau, abs=1e-12)
    (difference, _) = found.differences
    other = OF_SCIPY["tau_b"](poor.oriented[kept], -mean[kept])
    assert difference.difference.estimate == pytest.approx(tau - other, abs=1e-12)
    assert difference.n == 38


def test_differences_are_tested_and_adjusted_over_all_pairs_of_metrics():
    pairs, good, poor = _set(n=120)
    same = MeasuredMetric("same", good.values)
    found = alignment_of([good, poor, same], pairs, resamples=200)
    mine = [each for each in found.differences if each.rating == "total errors"]
    assert [(each.metric, each.other) for each in mine] == [
        ("good", "poor"),
        ("good", "same"),
        ("poor", "same"),
    ]
    assert mine[0].p_value == pytest.approx(2 / 201)
    assert mine[0].difference.low > 0
    assert (mine[1].difference.estimate, mine[1].p_value) == (0, 1)
    adjusted = stats.false_discovery_control([each.p_value for each in mine])
    assert [each.adjusted_p for each in mine] == pytest.approx(list(adjusted))
    assert {each.rating for each in found.differences} == {"total errors", "significant errors"}


def test_the_raters_own_ceiling():
    pairs, good, _ = _set(raters=3)
    found = alignment_of([good], pairs, resamples=50).ceilings[0]
    values = pairs.ratings["total errors"]
    between = np.mean(
        [OF_SCIPY["tau_b"](values[a], values[b]) for a, b in itertools.combinations(range(3), 2)]
    )
    against = np.mean(
        [OF_SCIPY["tau_b"](values[a], np.delete(values, a, 0).mean(axis=0)) for a in range(3)]
    )
    assert found.between.estimate == pytest.approx(between, abs=1e-12)
    assert found.against_others.estimate == pytest.approx(against, abs=1e-12)
    assert found.between.low < found.between.estimate < found.between.high
    _, counts = np.unique(values.sum(axis=0), return_counts=True)
    ties = np.sqrt(1 - (counts * (counts - 1)).sum() / (40 * 39))
    assert found.ties == pytest.approx(ties, abs=1e-12)


def test_single_raters_have_their_own_rows():
    pairs, good, _ = _set()
    values = pairs.ratings["total errors"].astype(float)
    values[1, 3] = np.nan
    found = alignment_of([good], rated({"total errors": values}, list(pairs.studies)), resamples=50)
    assert [each.n for each in found.per_rater] == [40, 39, 40]
    kept = ~np.isnan(values[1])
    expected = OF_SCIPY["tau_b"](good.values[kept], -values[1][kept])
    assert found.per_rater[1].tau_b.estimate == pytest.approx(expected, abs=1e-12)


def test_ranking_counts_comparisons_by_hand():
    ratings = {"total errors": [[0, 1, 1, 2, 0], [0, 0, 1, 2, np.nan]]}
    pairs = rated(ratings, ["a", "a", "a", "b", "b"])
    metric = MeasuredMetric("m", np.array([3.0, 3.0, 1.0, 5.0, 4.0]))
    mine, others = alignment_of([metric], pairs, resamples=50).rankings
    # Rater 0: a0-a1 better/tie, a0-a2 better/better, a1-a2 tie/better, b0-b1 worse/better.
    # Rater 1: a0-a1 tie/tie, a0-a2 better/better, a1-a2 better/better; b1 is not rated.
    assert (mine.comparisons, mine.studies, mine.decided) == (7, 2, 5)
    assert mine.same.estimate == pytest.approx(4 / 7)
    assert mine.right.estimate == pytest.approx(3.5 / 5)
    assert mine.rater_ties == pytest.approx(2 / 7)
    assert mine.metric_ties == pytest.approx(2 / 7)
    # Three comparisons that both raters make, each way round; they agree on a0-a2.
    assert (others.metric, others.comparisons) == ("another rater", 6)
    assert others.same.estimate == pytest.approx(2 / 6)


def test_ranks_are_compared_within_studies_only():
    ranks = rated({"rank": [[1, 2, 3, 1, 2, 3]]}, list("aaabbb"), meaning="ranks")
    perfect = MeasuredMetric("m", np.array([0.9, 0.8, 0.7, 0.3, 0.2, 0.1]))
    found = alignment_of([perfect], ranks, resamples=50)
    assert not found.agreements
    assert not found.ceilings
    (ranking,) = found.rankings
    assert ranking.same.estimate == ranking.right.estimate == 1
    assert [table.title for table in all_tables(found)] == [
        "Ranking two candidates of a study: rank"
    ]


def test_what_says_nothing_is_nan_and_still_makes_tables():
    metric = MeasuredMetric("m", np.array([1.0]))
    found = alignment_of([metric], rated({"total errors": [[2]]}), resamples=20)
    (only,) = found.agreements
    assert np.isnan([only.by_study["tau_b"].estimate, only.by_pair["pearson"].low]).all()
    assert (only.n, found.per_rater, found.rankings) == (1, [], [])
    (ceiling,) = found.ceilings
    assert (ceiling.between, ceiling.against_others) == (None, None)
    assert np.isnan(ceiling.ties)

    two = alignment_of(
        [MeasuredMetric("m", np.array([1.0, 2.0]))], rated({"e": [[5, 4]]}), resamples=50
    )
    assert two.agreements[0].by_study["tau_b"].estimate == 1
    # Two pairs are perfect in every resample, which says nothing of how they vary.
    for name, found in two.agreements[0].by_study.items():
        assert np.isnan([found.low, found.high, two.agreements[0].by_pair[name].low]).all()

    constant = MeasuredMetric("c", np.ones(4))
    other = MeasuredMetric("o", np.array([1.0, 2.0, np.nan, 4.0]))
    nothing = MeasuredMetric("n", np.full(4, np.nan))
    ratings = {"total errors": [[1, 2, 3, 4], [1, 1, 1, 1]]}
    found = alignment_of([constant, other, nothing], rated(ratings), resamples=20)
    taus = [each.by_study["tau_b"].estimate for each in found.agreements]
    assert np.isnan(taus[0])
    assert taus[1] == -1
    assert np.isnan(taus[2])
    assert all(np.isnan(each.adjusted_p) for each in found.differences)
    assert np.isnan(found.ceilings[0].between.estimate)
    for table in all_tables(found):
        assert "nan" not in table.text(300)


def test_bad_input_is_refused():
    pairs, good, _ = _set()
    with pytest.raises(InvalidSetting, match="no metric"):
        alignment_of([], pairs)
    with pytest.raises(InvalidSetting, match="two metrics have the name good"):
        alignment_of([good, good], pairs)
    with pytest.raises(InvalidSetting, match=r"shape \(3,\) for 40 pairs"):
        alignment_of([MeasuredMetric("m", np.ones(3))], pairs)


def test_equal_seeds_give_equal_numbers():
    pairs, good, poor = _set()
    first, second = (alignment_of([good, poor], pairs, resamples=30, seed=4) for _ in range(2))
    assert first.agreements == second.agreements
    assert first.rankings == second.rankings


def test_the_size_of_rexval_takes_seconds():
    pairs, _, _ = _set(n=200, raters=6)
    rng = np.random.default_rng(1)
    mean = pairs.means["total errors"]
    metrics = [MeasuredMetric(f"m{k}", rng.normal(size=200) - mean) for k in range(20)]
    begin = time.process_time()
    found = alignment_of(metrics, pairs, resamples=1000)
    assert len(found.agreements) == 60
    assert time.process_time() - begin < 30


@pytest.mark.parametrize(
    ("former", "now", "arguments"),
    [
        (align, alignment_of, ([MeasuredMetric("m", np.array([4.0, 2.0, 1.0]))], PAIRS)),
        (failure_modes, failure_modes_of, (PAIRS,)),
        (sensitivity, sensitivity_of_pairs, ([CHANGED], ["bleu-1"])),
    ],
)
def test_a_call_of_an_earlier_release_warns_and_gives_the_same(former, now, arguments):
    message = f"{former.__name__} with these arguments is now {now.__name__}"
    with pytest.warns(DeprecationWarning, match=message):
        found = former(*arguments, resamples=20)
    assert repr(found) == repr(now(*arguments, resamples=20))
