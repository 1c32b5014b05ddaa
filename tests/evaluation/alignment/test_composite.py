"""Composites: the weights are the best there are, and what they promise holds for new studies."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evaluation.alignment.samples import aligned, rated, valued, write_csv
from vlscore.errors import InvalidSetting
from vlscore.evaluation import AlignmentSettings, fit_composite, read_ratings
from vlscore.evaluation.alignment.composite_fit import simplex_weights
from vlscore.metrics import Scorer

FIT = AlignmentSettings(fit="total errors", resamples=20)
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
    return pairs, {
        "bleu-1": -truth + rng.normal(scale=0.7, size=len(truth)),
        "bounding-sphere": truth + rng.normal(size=len(truth)),
        "rouge-l": rng.normal(size=len(truth)),
    }


def _taus(fitted):
    """Names -> tau_b, and of the composite: cross-validated, and on the pairs fitted to."""
    taus = fitted.set_index("metric")["tau_b"]
    return taus, taus.iloc[-2], taus.iloc[-1]


def test_what_says_nothing_gets_no_weight_and_directions_are_kept():
    pairs, values = _set()
    turned = {"bounding-sphere"}
    composite, fitted, _ = fit_composite(valued(values, turned), pairs, FIT)
    weights = {each.metric: each.weight for each in composite.inputs}
    assert weights["bleu-1"] > weights["bounding-sphere"] > 0.1
    assert weights["rouge-l"] < 0.1
    means = {each.metric: each.mean for each in composite.inputs}
    expected = values["bounding-sphere"].mean()
    assert means["bounding-sphere"] == pytest.approx(expected, abs=1e-12)
    alone, validated, _ = _taus(fitted)
    assert validated > alone["rouge-l"] + 0.3
    assert composite.low < composite.tau_b == validated < composite.high


def test_cross_validation_tells_noise_where_the_fitted_pairs_flatter():
    """Metrics that know nothing promise something on the pairs fitted to, and keep nothing."""
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth = rng.poisson(2, 60).astype(float)
        pairs = rated({"total errors": [truth]}, [f"s{k // 2}" for k in range(60)])
        values = {f"m{k}": rng.normal(size=60) for k in range(12)}
        found.append(_taus(fit_composite(valued(values), pairs, FIT)[1])[1:])
    validated, in_sample = np.mean(found, axis=0)
    assert in_sample > 0.05
    assert validated < in_sample - 0.05


def test_a_fold_never_sees_the_study_it_is_tested_on():
    """Studies of one rating each would be read off by whoever saw another pair of the study."""
    rng = np.random.default_rng(0)
    truth = np.repeat(rng.permutation(20).astype(float), 4)
    pairs = rated({"total errors": [truth]}, [f"s{k // 4}" for k in range(80)])
    values = {
        f"m{k}": np.repeat(rng.normal(size=20), 4) + rng.normal(0, 1e-3, 80) for k in range(15)
    }
    _, validated, in_sample = _taus(fit_composite(valued(values), pairs, FIT)[1])
    assert validated < in_sample


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": AlignmentSettings(fit="quality")}, "it has: total errors"),
        ({"values": {}}, "no metric is left"),
        ({"values": {"bleu-1": np.ones(90)}}, "all are constant"),
        ({"pairs": rated({"total errors": [[1.0, 2.0] * 45]}, ["a", "b", "c"] * 30)}, "3 studies"),
        ({"pairs": rated({"total errors": [[1.0] * 90]})}, "the same total errors"),
        ({"pairs": rated({"total errors": [[1.0] * 90]}, meaning="ranks")}, "cannot be fitted"),
    ],
)
def test_what_cannot_be_fitted_is_refused(change, message):
    pairs, values = _set()
    given = {"values": values, "pairs": pairs, "settings": FIT, **change}
    scored = valued(given["values"])
    with pytest.raises(InvalidSetting, match=message):
        fit_composite(scored, given["pairs"], given["settings"])


def test_pairs_without_a_value_and_constant_metrics_are_left_out():
    pairs, values = _set()
    values["bleu-1"][:6] = np.nan
    values["meteor"] = np.zeros(90)
    composite, _, notes = fit_composite(valued(values), pairs, FIT)
    assert (composite.pairs, composite.studies) == (84, 28)
    assert notes == ["meteor is left out: all its values are equal"]


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
    first = aligned(pairs, tmp_path / "fit", scorer=scorer, fit="rating", resamples=30)
    assert first.tables[0].title == "A composite fitted to rating"
    file = tmp_path / "fit" / "composite.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    assert [each["metric"] for each in content["inputs"]] == ["bleu-1", "rouge-l", "bleu-4"]
    again = aligned(pairs, tmp_path / "fit", scorer=scorer, fit="rating", resamples=30)
    assert again.unchanged

    use = Scorer(metrics=f"composite:{file},bleu-1")
    told = aligned(pairs, tmp_path / "told", scorer=use, resamples=30)
    agreement = told.frame("agreements").iloc[0]
    assert agreement["metric"] == f"composite(file={file}) (in-sample upper bound)"
    assert any("36 of these 36 pairs" in note for note in told.notes)
    in_sample = _taus(first.frame("composite"))[2]
    assert agreement["tau_b"] == pytest.approx(in_sample, abs=1e-12)

    other = read_ratings(write_csv(tmp_path / "other.csv", _rows(5)))
    fresh = aligned(other, tmp_path / "fresh", scorer=use, resamples=30)
    assert fresh.frame("agreements")["metric"][0] == f"composite(file={file})"

    # One pair that it was fitted to is enough, whatever its study is called now.
    known = {**_rows(4)[1], "study_id": "renamed"}
    partly = read_ratings(write_csv(tmp_path / "partly.csv", [*_rows(5), known]))
    mixed = aligned(partly, tmp_path / "mixed", scorer=use, resamples=30)
    assert "upper bound" in mixed.frame("agreements")["metric"][0]
    assert any("1 of these 37" in note for note in mixed.notes)


def test_values_from_elsewhere_and_composites_are_no_part_of_a_composite(ratings, tmp_path):
    pairs = read_ratings(ratings)
    rows = [
        {"study_id": study, "candidate_id": candidate, "mine": k}
        for k, (study, candidate) in enumerate(zip(pairs.studies, pairs.candidates, strict=True))
    ]
    values = write_csv(tmp_path / "values.csv", rows)
    run = aligned(
        pairs,
        tmp_path / "out",
        scorer=Scorer(metrics="bleu-1,rouge-l"),
        values=values,
        fit="rating",
        resamples=30,
    )
    assert set(run.frame("composite")["metric"][:2]) == {"bleu-1", "rouge-l"}
    assert any("mine can be no part" in note for note in run.notes)
