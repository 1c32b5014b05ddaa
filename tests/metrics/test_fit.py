"""Metrics that are fitted to the references of a run: one pass, and the signature tells of it."""

import json
from collections import Counter

import numpy as np
import pytest

from vlscore.errors import InvalidReport, InvalidSetting
from vlscore.evaluation import evaluate
from vlscore.metrics import Batch, Computed, Metric, Plan, Provider, Scorer, compute, compute_values


class _RareWords(Provider):
    """Share of the candidate's words that fewer than half of the references hold."""

    library = "vlscore"

    def is_fitted(self, metric):
        return True

    def fit(self, metric, references, state=None):
        words, count = state or (Counter(), 0)
        for text in references:
            words.update(set(text.split()))
            count += 1
        return words, count

    def compute(self, metric, batch):
        words, count = batch.fitted
        return Computed(
            [
                np.array(
                    [
                        np.mean([words[w] * 2 < count for w in text.split()] or [0.0])
                        for text in batch.candidates
                    ]
                )
            ]
        )


RARE = Metric(
    name="rare-words",
    description="share of rare words",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    uses_image=False,
    uses_reference=False,
    citation="here",
    provider=_RareWords(),
)
REFERENCES = ["clear lungs", "clear heart", "clear effusion", "no effusion"]


def test_a_plan_is_fitted_to_all_references_not_to_the_batch():
    plan = Plan([RARE, "rouge-l"])
    assert plan.needs_fit
    assert plan.needs.references
    fitted = plan.fit(iter(REFERENCES))
    assert not fitted.needs_fit
    assert plan.needs_fit
    (alone,) = fitted.values(Batch(["clear heart"], ["clear heart"]))[RARE].headline
    assert alone == 0.5
    assert fitted.signature(RARE).get("fit").startswith("4-references@")
    assert not Plan("rouge-l").needs_fit
    backwards = plan.fit(REFERENCES[::-1])
    assert backwards.signature(RARE) == fitted.signature(RARE)
    assert plan.fit([*REFERENCES[1:], "x"]).signature(RARE) != fitted.signature(RARE)


def test_a_plan_that_was_not_fitted_fits_to_each_batch_and_says_so():
    values = compute_values([RARE], ["clear heart"], ["clear heart"])[RARE]
    assert values.headline.tolist() == [0.0]
    assert values.signature.get("fit").startswith("1-references@")
    assert Plan([RARE]).signature(RARE).get("fit") == "each-batch"
    assert compute([RARE], [], [])["rare-words"].shape == (0,)


@pytest.fixture
def table(tmp_path):
    rows = [
        {"id": str(k), "reference": text, "candidate": "clear heart"}
        for k, text in enumerate([*REFERENCES, "   "])
    ]
    path = tmp_path / "studies.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_evaluate_fits_to_the_whole_table_before_it_computes(table, tmp_path, monkeypatch):
    monkeypatch.setattr("vlscore.evaluation.scoring.executor._TEXTS_IN_CHUNK", 2)
    result = evaluate(table, tmp_path / "out", Scorer(metrics=[RARE]))
    signature = result.summary.metrics["rare-words"].signature
    assert signature.get("fit").startswith("4-references@")
    scores = [row["rare-words"] for row in result.first_scores(5)]
    assert scores == [0.5, 0.5, 0.5, 0.5, None]


def test_further_metrics_keep_the_fit_and_other_references_are_another_run(table, tmp_path):
    evaluate(table, tmp_path / "out", Scorer(metrics="rouge-l"))
    result = evaluate(table, tmp_path / "out", Scorer(metrics=["rouge-l", RARE]))
    assert result.summary.metrics["rare-words"].signature.get("fit").startswith("4-references@")
    elsewhere = Scorer(metrics=[RARE]).fit(["clear", "no"])
    with pytest.raises(InvalidSetting, match=r"fit: 4-references@[0-9a-f]{12} against 2-ref"):
        evaluate(table, tmp_path / "out", elsewhere)


def test_what_is_no_list_of_texts_is_refused():
    with pytest.raises(InvalidReport, match="not one text"):
        Plan([RARE]).fit("no effusion")
    with pytest.raises(InvalidReport, match="not one text"):
        Scorer(metrics=[RARE]).fit("no effusion")
    with pytest.raises(InvalidReport, match=r"references\[1\] must be a text, not a float"):
        Plan([RARE]).fit(["no effusion", 0.5])
