"""Composites: the weights are the best there are, and what they promise holds for new studies."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.alignment.samples import rated, write_csv
from vlscore.errors import InvalidSetting
from vlscore.evaluation import MeasuredMetric, align, fit_composite, read_ratings
from vlscore.evaluation.alignment.fitted import simplex_weights
from vlscore.metrics import Scorer

_WORDS = "small large left right effusion heart normal clear enlarged no edema nodule"
WORDS = _WORDS.split()


def _cost(z, y, w, ridge):
    return ((y - z @ w) ** 2).mean() + ridge * ((w - 1 / len(w)) ** 2).sum()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6), st.sampled_from([0.0, 0.1, 10.0]))
def test_no_other_weights_fit_better(seed, k, ridge):
    rng = np.random.default_rng(seed)
    z, y = rng.normal(size=(40, k)), rng.normal(size=40)
    w = simplex_weights(z, y, ridge)
    assert w.sum() == pytest.approx(1, abs=1e-12)
    assert (w >= 0).all()
    best = _cost(z, y, w, ridge)
    others = rng.dirichlet(np.ones(k), size=200)
    near = np.clip(w + rng.normal(scale=0.01, size=(200, k)), 1e-12, None)
    for other in np.concatenate([others, near / near.sum(axis=1, keepdims=True)]):
        assert best <= _cost(z, y, other, ridge) + 1e-9


def _set(studies=30, seed=1):
    rng = np.random.default_rng(seed)
    truth = rng.poisson(2, studies * 3).astype(float)
    pairs = rated({"total errors": [truth]}, [f"s{k // 3}" for k in range(len(truth))])
    useful = MeasuredMetric("bleu-1", -truth + rng.normal(scale=0.7, size=len(truth)))
    turned = MeasuredMetric("bounding-sphere", truth + rng.normal(size=len(truth)), False)
    noise = MeasuredMetric("rouge-l", rng.normal(size=len(truth)))
    return pairs, truth, useful, turned, noise


def test_what_says_nothing_gets_no_weight_and_directions_are_kept():
    pairs, _, useful, turned, noise = _set()
    fit = fit_composite([useful, turned, noise], pairs, "total errors", resamples=50)
    weights = {each.metric: each.weight for each in fit.composite.inputs}
    assert weights["bleu-1"] > weights["bounding-sphere"] > 0.1
    assert weights["rouge-l"] < 0.1
    means = {each.metric: each.mean for each in fit.composite.inputs}
    assert means["bounding-sphere"] == pytest.approx(turned.values.mean(), abs=1e-12)
    assert fit.cross_validated.estimate > fit.alone["rouge-l"].estimate + 0.3
    assert fit.cross_validated.low < fit.cross_validated.estimate < fit.cross_validated.high
    assert fit.composite.tau_b == fit.cross_validated.estimate


def test_cross_validation_tells_noise_where_the_fitted_pairs_flatter():
    """Metrics that know nothing promise something on the pairs fitted to, and keep nothing."""
    told, validated = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth = rng.poisson(2, 60).astype(float)
        pairs = rated({"total errors": [truth]}, [f"s{k // 2}" for k in range(60)])
        metrics = [MeasuredMetric(f"m{k}", rng.normal(size=60)) for k in range(12)]
        fit = fit_composite(metrics, pairs, "total errors", resamples=20)
        told.append(fit.told.estimate)
        validated.append(fit.cross_validated.estimate)
    assert np.mean(told) > 0.05
    assert np.mean(validated) < np.mean(told) - 0.05


def test_a_fold_never_sees_the_study_it_is_tested_on():
    """Studies of one rating each would be read off by whoever saw another pair of the study."""
    rng = np.random.default_rng(0)
    by_study = rng.permutation(20).astype(float)
    truth = np.repeat(by_study, 4)
    pairs = rated({"total errors": [truth]}, [f"s{k // 4}" for k in range(80)])
    metrics = [
        MeasuredMetric(f"m{k}", np.repeat(rng.normal(size=20), 4) + rng.normal(0, 1e-3, 80))
        for k in range(15)
    ]
    fit = fit_composite(metrics, pairs, "total errors", resamples=20)
    assert fit.cross_validated.estimate < fit.told.estimate


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rating": "quality"}, "it has: total errors"),
        ({"metrics": []}, "no metric is left"),
        ({"metrics": [MeasuredMetric("bleu-1", np.ones(90))]}, "all are constant"),
        ({"pairs": rated({"total errors": [[1.0, 2.0] * 45]}, ["a", "b", "c"] * 30)}, "3 studies"),
        ({"pairs": rated({"total errors": [[1.0] * 90]})}, "the same total errors"),
        ({"pairs": rated({"total errors": [[1.0] * 90]}, meaning="ranks")}, "cannot be fitted"),
    ],
)
def test_what_cannot_be_fitted_is_refused(change, message):
    pairs, _, useful, *_ = _set()
    given_now = {"metrics": [useful], "pairs": pairs, "rating": "total errors", **change}
    with pytest.raises(InvalidSetting, match=message):
        fit_composite(**given_now, resamples=20)


def test_pairs_without_a_value_and_constant_metrics_are_left_out():
    pairs, _, useful, _, noise = _set()
    useful.values[:6] = np.nan
    constant = MeasuredMetric("meteor", np.zeros(90))
    fit = fit_composite([useful, noise, constant], pairs, "total errors", resamples=20)
    assert (fit.composite.pairs, fit.composite.studies) == (84, 28)
    assert list(fit.left_out) == ["meteor"]


def _rows(seed):
    """Errors grow with the words that were exchanged."""
    rng = np.random.default_rng(seed)
    rows = []
    for study in range(12):
        reference = [str(rng.choice(WORDS)) for _ in range(10)]
        for wrong in (0, 2, 5):
            text = list(reference)
            for place in rng.choice(10, wrong, replace=False):
                text[place] = str(rng.choice(WORDS))
            rows.append(
                {
                    "study_id": f"{seed}-{study}",
                    "candidate_id": wrong,
                    "rating": wrong,
                    "reference": " ".join(reference),
                    "candidate": " ".join(text),
                }
            )
    return rows


@pytest.fixture
def ratings(tmp_path):
    return write_csv(tmp_path / "ratings.csv", _rows(4))


def test_a_fitted_composite_is_a_metric_and_is_named_where_it_was_told_the_answer(
    ratings, tmp_path
):
    pairs = read_ratings(ratings)
    scorer = Scorer(metrics="bleu-1,rouge-l,bleu-4")
    first = align(pairs, tmp_path / "fit", scorer=scorer, fit="rating", resamples=30)
    title = "A composite fitted to rating"
    assert title in [table.title for table in first.tables]
    file = tmp_path / "fit" / "composite.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    assert [each["metric"] for each in content["inputs"]] == ["bleu-1", "rouge-l", "bleu-4"]
    again = align(pairs, tmp_path / "fit", scorer=scorer, fit="rating", resamples=30)
    assert again.unchanged

    use = Scorer(metrics=f"composite:{file},bleu-1")
    told = align(pairs, tmp_path / "told", scorer=use, resamples=30)
    name = told.result.agreements[0].metric
    assert name == f"composite(file={file}) (in-sample upper bound)"
    assert any("36 of these 36 pairs" in note for note in told.notes)
    agreement = told.result.agreements[0].by_study["tau_b"].estimate
    assert agreement == pytest.approx(first.fit.told.estimate, abs=1e-12)

    other = read_ratings(write_csv(tmp_path / "other.csv", _rows(5)))
    fresh = align(other, tmp_path / "fresh", scorer=use, resamples=30)
    assert fresh.result.agreements[0].metric == f"composite(file={file})"

    # One pair that it was fitted to is enough, whatever its study is called now.
    known = {**_rows(4)[1], "study_id": "renamed"}
    partly = read_ratings(write_csv(tmp_path / "partly.csv", [*_rows(5), known]))
    mixed = align(partly, tmp_path / "mixed", scorer=use, resamples=30)
    assert "upper bound" in mixed.result.agreements[0].metric
    assert any("1 of these 37" in note for note in mixed.notes)


def test_values_from_elsewhere_and_composites_are_no_part_of_a_composite(ratings, tmp_path):
    pairs = read_ratings(ratings)
    rows = [
        {"study_id": study, "candidate_id": candidate, "mine": k}
        for k, (study, candidate) in enumerate(zip(pairs.studies, pairs.candidates, strict=True))
    ]
    values = write_csv(tmp_path / "values.csv", rows)
    run = align(
        pairs,
        tmp_path / "out",
        scorer=Scorer(metrics="bleu-1,rouge-l"),
        values=values,
        fit="rating",
        resamples=30,
    )
    assert [each.metric for each in run.fit.composite.inputs] == ["bleu-1", "rouge-l"]
    assert any("mine can be no part" in note for note in run.notes)
