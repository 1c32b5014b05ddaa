"""Metrics that are fitted to the references of a run: one pass, and the signature tells of it."""

import json
import warnings
from collections import Counter
from importlib import import_module

import numpy as np
import pytest

from tests.metrics.contract import values_of
from vlscore.evaluation import evaluate
from vlscore.metrics import Batch, Metric, Plan, Scorer, compute


class RareWords(Metric):
    """Share of the candidate's words that fewer than half of the references hold."""

    name = "rare-words"
    description = "share of rare words"
    bounds = (0.0, 1.0)
    uses_reference = False
    is_fitted = True

    def fit(self, references, state=None):
        words, count = state or (Counter(), 0)
        for text in references:
            words.update(set(text.split()))
            count += 1
        return words, count

    def compute(self, batch):
        words, count = batch.fitted
        shares = (
            np.mean([words[w] * 2 < count for w in text.split()] or [0.0])
            for text in batch.candidates
        )
        return np.array(list(shares))


RARE = RareWords()
REFERENCES = ["clear lungs", "clear heart", "clear effusion", "no effusion"]


def test_a_plan_is_fitted_to_all_references_not_to_the_batch():
    plan = Plan([RARE, "rouge-l"])
    assert plan.needs_fit
    assert plan.needs.references
    fitted = plan.fit(iter(REFERENCES))
    assert not fitted.needs_fit
    assert plan.needs_fit
    (alone,) = fitted.values(Batch(["clear heart"], ["clear heart"]))[RARE].columns[0]
    assert alone == 0.5
    assert fitted.signature_of(RARE).get("fit").startswith("4-references@")
    assert not Plan("rouge-l").needs_fit
    backwards = plan.fit(REFERENCES[::-1])
    assert backwards.signature_of(RARE) == fitted.signature_of(RARE)
    assert plan.fit([*REFERENCES[1:], "x"]).signature_of(RARE) != fitted.signature_of(RARE)


def test_a_plan_that_was_not_fitted_fits_to_each_batch_and_says_so():
    values = values_of(RARE, ["clear heart"], ["clear heart"])
    assert values.columns[0].tolist() == [0.0]
    assert values.signature.get("fit").startswith("1-references@")
    assert Plan([RARE]).signature_of(RARE).get("fit") == "each-batch"
    assert compute([RARE], [], [])["rare-words"].shape == (0,)


def test_batches_that_were_fitted_to_other_references_are_warned_of():
    scorer = Scorer(metrics=RARE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for candidate in ("clear heart", "no effusion"):
            scorer.score(None, [candidate] * 4, REFERENCES)
            scorer.fit(REFERENCES).score(None, candidate, REFERENCES[0])
    with pytest.warns(UserWarning, match="their numbers are not comparable"):
        scorer.score(None, "clear heart", REFERENCES[0])


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
    module = import_module("vlscore.evaluation.score_table")
    monkeypatch.setattr(module, "_TEXTS_AT_ONCE", 2)
    result = evaluate(table, tmp_path / "out", Scorer(metrics=[RARE]))
    assert "fit:4-references@" in str(result.signatures["rare-words"])
    scores = result.rows("scores.parquet")["rare-words"].tolist()
    assert scores == pytest.approx([0.5] * 4 + [np.nan], nan_ok=True)
