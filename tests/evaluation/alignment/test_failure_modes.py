"""Failure modes: mean errors of each oracle's reports, one-sided tests, false discoveries."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.evaluation.alignment.samples import KINDS, make_rexval, rated, write_csv
from vlscore.errors import InvalidSetting
from vlscore.evaluation import compare_errors, failure_modes, read_ratings


@pytest.fixture
def rexval(tmp_path):
    folder, counts = make_rexval(tmp_path / "rexval", studies=8, raters=3)
    return read_ratings(folder), counts


def means_of(pairs):
    """(candidate, which errors, category) -> its row."""
    rows = compare_errors(pairs, resamples=20)["means"].to_dict("records")
    return {(row["candidate"], row["which"], row["category"]): row for row in rows}


def compared(pairs):
    return compare_errors(pairs, resamples=20)["tests"].to_dict("records")


def test_means_are_those_of_the_table_by_category_and_significance(rexval):
    pairs, counts = rexval
    means = means_of(pairs)
    for place, kind in enumerate(KINDS):
        mine = counts[:, place :: len(KINDS)].mean(axis=0)
        each = means[kind, "significant", "4 wrong severity"]
        assert each["mean"] == pytest.approx(mine[:, 3, 1].mean(), abs=1e-12)
        assert each["n"] == 8
        each = means[kind, "insignificant", "any category"]
        assert each["mean"] == pytest.approx(mine[:, :, 0].sum(axis=1).mean(), abs=1e-12)
        each = means[kind, "all", "1 false finding"]
        assert each["mean"] == pytest.approx(mine[:, 0].sum(axis=1).mean(), abs=1e-12)
        assert each["mean.low"] <= each["mean"] <= each["mean.high"]


def test_tests_and_their_correction_are_scipys(rexval):
    pairs, counts = rexval
    tests = [each for each in compared(pairs) if each["which"] == "significant"]
    assert len(tests) == 4 * 3 * 7
    raw = []
    for each in tests:
        if each["category"] == "any category":
            errors = counts[..., 1].sum(axis=-1).mean(axis=0)
        else:
            errors = counts[:, :, int(each["category"][0]) - 1, 1].mean(axis=0)
        first, second = (
            errors[KINDS.index(k) :: len(KINDS)] for k in (each["candidate"], each["other"])
        )
        expected = stats.ttest_rel(first, second, alternative="greater")
        assert each["p_value"] == pytest.approx(expected.pvalue, abs=1e-12)
        assert each["difference"] == pytest.approx((first - second).mean(), abs=1e-12)
        raw.append(each["p_value"])
    adjusted = stats.false_discovery_control(raw, method="bh")
    np.testing.assert_allclose([each["adjusted_p"] for each in tests], adjusted, atol=1e-12)


def test_an_oracle_that_is_worse_is_named_and_none_is_where_nothing_differs():
    rng = np.random.default_rng(3)
    base = rng.integers(0, 3, 30)
    studies = [f"s{k}" for k in range(30)] * 2
    counts = np.concatenate([base, base + rng.integers(1, 3, 30)])[None]
    names = ("good",) * 30 + ("bad",) * 30
    pairs = replace(rated({"rating": counts}, studies), candidates=names)
    tests = compared(pairs)
    worse = [(each["candidate"], each["other"]) for each in tests if each["is_worse"]]
    assert worse == [("bad", "good")]
    same = replace(pairs, ratings={"rating": np.tile(base, 2)[None] * 1.0})
    tests = compared(same)
    assert [each["p_value"] for each in tests] == [1.0, 1.0]
    assert not any(each["is_worse"] for each in tests)


def test_one_study_has_no_test_and_no_interval():
    frames = compare_errors(rated({"rating": [[1.0, 4.0]]}, ["s", "s"]), resamples=20)
    assert frames["means"]["mean"].tolist() == [1.0, 4.0]
    assert frames["means"]["mean.low"].isna().all()
    assert frames["tests"]["p_value"].isna().all()
    assert not frames["tests"]["is_worse"].any()


def test_a_rater_whose_row_is_broken_is_left_out_of_the_categories(tmp_path):
    rows = [
        {
            "study_id": study,
            "candidate_id": metric,
            "rater": rater,
            "category": category,
            "significant": "true",
            "rating": 1,
        }
        for study in ("s1", "s2")
        for metric in ("m1", "m2")
        for rater in ("a", "b")
        for category in ("false", "missed")
    ]
    rows[0]["rating"] = "many"
    pairs = read_ratings(write_csv(tmp_path / "ratings.csv", rows))
    counts = pairs.counts["missed", True]
    assert np.isnan(counts[0, 0])
    assert counts[1, 0] == 1
    assert means_of(pairs)["m1", "all", "missed"]["mean"] == 1


def test_ratings_that_count_no_errors_are_refused():
    with pytest.raises(InvalidSetting, match="counts of errors"):
        compare_errors(rated({"rating": [[1.0, 2.0]]}, meaning="quality"))
    with pytest.raises(InvalidSetting, match="between 0 and 1"):
        compare_errors(rated({"rating": [[1.0, 2.0]]}), rate=1.0)


def test_columns_of_counts_are_categories():
    pairs = rated({"false": [[1.0, 4.0]], "missed": [[0.0, 2.0]]}, ["s", "t"])
    assert [category for *_, category in means_of(pairs)] == ["false", "missed"] * 2


def test_reports_of_one_study_make_tables_without_intervals(tmp_path):
    run = failure_modes(rated({"rating": [[1.0, 4.0]]}, ["s", "s"]), tmp_path / "out", resamples=20)
    assert run.tables[0].rows == (("c0", "1", "1.000 [-]"), ("c1", "1", "4.000 [-]"))
