"""Agreement with raters against SciPy and counting by hand, and what says nothing."""

import itertools

import numpy as np
import pytest
from scipy import stats

from tests.evaluation.alignment.samples import rated, valued
from vlscore.errors import InvalidSetting
from vlscore.evaluation import AlignmentSettings, alignment_tables, compare_with_raters

FEW = AlignmentSettings(resamples=50)

OF_SCIPY = {
    "tau_b": lambda x, y: stats.kendalltau(x, y, variant="b").statistic,
    "tau_c": lambda x, y: stats.kendalltau(x, y, variant="c").statistic,
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
}
LOWER = {"poor"}


def _set(n=40, raters=3, per_study=4, seed=0):
    rng = np.random.default_rng(seed)
    severity = rng.integers(0, 5, n)
    ratings = {
        "total errors": severity + rng.integers(0, 3, (raters, n)),
        "significant errors": severity // 2 + rng.integers(0, 2, (raters, n)),
        "place": rng.integers(0, 3, (raters, n)),
    }
    studies = [str(k // per_study) for k in range(n)]
    good = -severity + rng.normal(0, 0.5, n)
    poor = severity + rng.normal(0, 4, n)
    return rated(ratings, studies), good, poor


def rows_of(values, pairs, name="agreements", **options):
    """The records of one frame."""
    settings = AlignmentSettings(resamples=options.pop("resamples", 50))
    frames = compare_with_raters(valued(values, LOWER), pairs, settings, **options)
    return frames[name].to_dict("records")


def test_correlations_equal_scipy_and_are_oriented_towards_agreement():
    pairs, good, poor = _set()
    found = rows_of({"good": good, "poor": poor}, pairs)
    assert len(found) == 6
    for row in found:
        oriented = good if row["metric"] == "good" else -poor
        mean = pairs.ratings[row["rating"]].mean(axis=0)
        for kind, of_scipy in OF_SCIPY.items():
            assert row[kind] == pytest.approx(of_scipy(oriented, -mean), abs=1e-12)
            assert row[f"{kind} by pair"] == row[kind]
        assert (row["n"], row["studies"]) == (40, 10)
    assert found[0]["tau_b"] > 0.5


def test_studies_that_repeat_widen_the_interval_by_study():
    pairs, good, _ = _set(n=20, per_study=1)
    repeated = rated(
        {"total errors": pairs.ratings["total errors"].repeat(4, axis=1)},
        [str(k // 4) for k in range(80)],
    )
    (row,) = rows_of({"m": good.repeat(4)}, repeated, resamples=1000)
    narrow = row["tau_b by pair.high"] - row["tau_b by pair.low"]
    assert row["tau_b.high"] - row["tau_b.low"] > 1.5 * narrow


def test_a_missing_value_costs_that_metric_alone():
    pairs, good, poor = _set()
    holes = good.copy()
    holes[[0, 7]] = np.nan
    frames = compare_with_raters(valued({"holes": holes, "poor": poor}, LOWER), pairs, FEW)
    counts = frames["agreements"].groupby("metric")["n"].unique()
    assert (counts["holes"], counts["poor"]) == ([38], [40])
    kept = ~np.isnan(holes)
    mean = pairs.ratings["total errors"].mean(axis=0)
    tau = OF_SCIPY["tau_b"](holes[kept], -mean[kept])
    assert frames["agreements"]["tau_b"][0] == pytest.approx(tau, abs=1e-12)
    other = OF_SCIPY["tau_b"](-poor[kept], -mean[kept])
    difference = frames["differences"].to_dict("records")[0]
    assert difference["difference"] == pytest.approx(tau - other, abs=1e-12)
    assert difference["n"] == 38


def test_differences_are_tested_and_adjusted_over_all_pairs_of_metrics():
    pairs, good, poor = _set(n=120)
    values = {"good": good, "poor": poor, "same": good}
    found = rows_of(values, pairs, "differences", resamples=200)
    mine = [row for row in found if row["rating"] == "total errors"]
    assert [(row["metric"], row["other"]) for row in mine] == [
        ("good", "poor"),
        ("good", "same"),
        ("poor", "same"),
    ]
    assert mine[0]["p_value"] == pytest.approx(2 / 201)
    assert mine[0]["difference.low"] > 0
    assert (mine[1]["difference"], mine[1]["p_value"]) == (0, 1)
    adjusted = stats.false_discovery_control([row["p_value"] for row in mine])
    assert [row["adjusted_p"] for row in mine] == pytest.approx(list(adjusted))
    assert {row["rating"] for row in found} == {"total errors", "significant errors"}


def test_the_raters_own_ceiling():
    pairs, good, _ = _set(raters=3)
    found = rows_of({"m": good}, pairs, "ceilings")[0]
    values = pairs.ratings["total errors"]
    between = np.mean(
        [OF_SCIPY["tau_b"](values[a], values[b]) for a, b in itertools.combinations(range(3), 2)]
    )
    against = np.mean(
        [OF_SCIPY["tau_b"](values[a], np.delete(values, a, 0).mean(axis=0)) for a in range(3)]
    )
    assert found["between"] == pytest.approx(between, abs=1e-12)
    assert found["against_others"] == pytest.approx(against, abs=1e-12)
    assert found["between.low"] < found["between"] < found["between.high"]
    _, counts = np.unique(values.sum(axis=0), return_counts=True)
    ties = np.sqrt(1 - (counts * (counts - 1)).sum() / (40 * 39))
    assert found["ties"] == pytest.approx(ties, abs=1e-12)


def test_single_raters_have_their_own_rows():
    pairs, good, _ = _set()
    values = pairs.ratings["total errors"].astype(float)
    values[1, 3] = np.nan
    own = rated({"total errors": values}, list(pairs.studies))
    found = rows_of({"m": good}, own, "raters")
    assert [row["n"] for row in found] == [40, 39, 40]
    kept = ~np.isnan(values[1])
    expected = OF_SCIPY["tau_b"](good[kept], -values[1][kept])
    assert found[1]["tau_b"] == pytest.approx(expected, abs=1e-12)


def test_ranking_counts_comparisons_by_hand():
    ratings = {"total errors": [[0, 1, 1, 2, 0], [0, 0, 1, 2, np.nan]]}
    pairs = rated(ratings, ["a", "a", "a", "b", "b"])
    mine, others = rows_of({"m": np.array([3.0, 3.0, 1.0, 5.0, 4.0])}, pairs, "rankings")
    # Rater 0: a0-a1 better/tie, a0-a2 better/better, a1-a2 tie/better, b0-b1 worse/better.
    # Rater 1: a0-a1 tie/tie, a0-a2 better/better, a1-a2 better/better; b1 is not rated.
    assert (mine["comparisons"], mine["studies"], mine["decided"]) == (7, 2, 5)
    assert mine["same"] == pytest.approx(4 / 7)
    assert mine["right"] == pytest.approx(3.5 / 5)
    assert mine["rater_ties"] == mine["metric_ties"] == pytest.approx(2 / 7)
    # Three comparisons that both raters make, each way round; they agree on a0-a2.
    assert (others["metric"], others["comparisons"]) == ("another rater", 6)
    assert others["same"] == pytest.approx(2 / 6)


def test_ranks_are_compared_within_studies_only():
    ranks = rated({"rank": [[1, 2, 3, 1, 2, 3]]}, list("aaabbb"), meaning="ranks")
    perfect = np.array([0.9, 0.8, 0.7, 0.3, 0.2, 0.1])
    frames = compare_with_raters(valued({"m": perfect}), ranks, FEW)
    assert frames["agreements"].empty
    assert frames["ceilings"].empty
    (row,) = frames["rankings"].to_dict("records")
    assert row["same"] == row["right"] == 1
    titles = [table.title for table in alignment_tables(frames, ranks.primary)]
    assert titles == ["Ranking two candidates of a study: rank"]


def test_what_says_nothing_is_nan_and_still_makes_tables():
    frames = compare_with_raters(valued({"m": np.ones(1)}), rated({"total errors": [[2]]}), FEW)
    (only,) = frames["agreements"].to_dict("records")
    assert only["n"] == 1
    assert np.isnan([only["tau_b"] or np.nan, only["pearson by pair.low"] or np.nan]).all()
    assert frames["raters"].empty
    assert frames["rankings"].empty
    assert frames["ceilings"][["between", "against_others", "ties"]].isna().all(axis=None)

    (two,) = rows_of({"m": np.array([1.0, 2.0])}, rated({"e": [[5, 4]]}))
    assert two["tau_b"] == 1
    # Two pairs are perfect in every resample, which says nothing of how they vary.
    bounds = [two[f"{c}{by}{end}"] for c in OF_SCIPY for by in ("", " by pair")
              for end in (".low", ".high")]  # fmt: skip
    assert all(value is None or np.isnan(value) for value in bounds)

    values = {"c": np.ones(4), "o": np.array([1.0, 2.0, np.nan, 4.0]), "n": np.full(4, np.nan)}
    pairs = rated({"total errors": [[1, 2, 3, 4], [1, 1, 1, 1]]})
    frames = compare_with_raters(valued(values), pairs, FEW)
    taus = frames["agreements"]["tau_b"].astype(float)
    assert taus[1] == -1
    assert np.isnan(taus[[0, 2]]).all()
    assert frames["differences"]["adjusted_p"].isna().all()
    assert frames["ceilings"]["between"].isna().all()
    for table in alignment_tables(frames, pairs.primary):
        assert "nan" not in table.text(300)


def test_bad_input_is_refused():
    pairs, _, _ = _set()
    with pytest.raises(InvalidSetting, match="no metric"):
        compare_with_raters(valued({}), pairs)
    with pytest.raises(InvalidSetting, match="3 rows of values for 40 pairs"):
        compare_with_raters(valued({"m": np.ones(3)}), pairs)


@pytest.mark.parametrize("raters", [1, 3])
def test_the_progress_of_the_resampling_ends_at_its_total(raters):
    pairs, good, poor = _set(raters=raters)
    calls = []

    def on_phase(what, total):
        assert what == "resampling"
        calls.append(total)
        return lambda done, failed: calls.append(done)

    poor[3] = np.nan
    rows_of({"good": good, "poor": poor}, pairs, on_phase=on_phase)
    total, *done = calls
    assert done == list(range(1, total + 1))
