"""The best texts under a metric of texts."""

import numpy as np
import pytest

from vlscore.errors import InvalidReport, VLScoreError
from vlscore.metrics import Batch, Computed, Metric, Plan, compute, memo
from vlscore.retrieval import TextSearch
from vlscore.retrieval import text_search as text_metrics

WORDS = ["lung", "effusion", "clear", "left", "right", "small", "heart", "normal", "edema", "no"]


def texts(count, seed):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(count)]


@pytest.mark.parametrize("at_once", [7, 100])
def test_it_is_brute_force_whatever_the_stretch(monkeypatch, at_once):
    monkeypatch.setattr(text_metrics, "_AT_ONCE", at_once)
    corpus, references = texts(40, 0), texts(5, 1)
    excluded = {1: [3, 4], 4: list(range(38))}
    found = TextSearch("bleu-1", corpus).search(references, k=4, excluded=excluded)
    for number, reference in enumerate(references):
        scores = compute(["bleu-1"], corpus, [reference] * 40)["bleu-1"]
        left = [row for row in range(40) if row not in excluded.get(number, ())]
        best = sorted(left, key=lambda row: (-scores[row], row))[:4]
        assert found[number] == [(row, scores[row]) for row in best]
    some = TextSearch("bleu-1", corpus).search(references[:1], k=2, rows=[[5, 9, 5, 2]])
    scores = compute(["bleu-1"], corpus, references[:1] * 40)["bleu-1"]
    best = sorted([2, 5, 9], key=lambda row: (-scores[row], row))[:2]
    assert some == [[(row, scores[row]) for row in best]]


MADE: list[str] = []


def _words(texts):
    MADE.extend(texts)
    return [set(text.split()) for text in texts]


class CountedWords(Metric):
    """Shared words, read once in each text; a reference without words has no value."""

    name = "shared-words"
    description = "words in common"
    bounds = (0.0, None)

    def compute(self, batch):
        candidates, references = (
            batch.memo.read(_words, texts) for texts in (batch.candidates, batch.references)
        )
        pairs = list(zip(candidates, references, strict=True))
        failures = {k: InvalidReport("no words") for k, (_, r) in enumerate(pairs) if not r}
        return Computed([np.array([float(len(c & r)) for c, r in pairs])], failures=failures)


@pytest.fixture
def counted():
    """A metric of words, and every text of which these were read."""
    memo.forget()
    MADE.clear()
    return CountedWords(), MADE


def test_what_is_made_of_a_text_is_made_once(counted):
    metric, made = counted
    corpus = list(dict.fromkeys(texts(200, 2)))
    references = ["lung left", "heart clear", "no edema here"]
    TextSearch(metric, corpus).search(references)
    assert sorted(made) == sorted({*corpus, *references})


def test_a_reference_without_a_value_fails_alone(counted):
    metric, _ = counted
    first, nothing, last = TextSearch(metric, ["lung", "left"]).search(["lung", "", "left"], k=1)
    assert (first, last) == ([(0, 1.0)], [(1, 1.0)])
    assert isinstance(nothing, VLScoreError)
    with pytest.raises(InvalidReport, match="no words"):
        raise nothing


def test_a_fitted_metric_is_fitted_to_the_corpus():
    corpus = ["no left effusion", "no small effusion", "the heart is normal", "no left effusion"]
    plan = Plan("cider-d").fit(corpus)
    (metric,) = plan.metrics
    reference = "small effusion"
    scores = plan.values(Batch(corpus, [reference] * 4))[metric].columns[0]
    best = sorted(range(4), key=lambda row: (-scores[row], row))[:2]
    assert best[0] == 1
    (found,) = TextSearch("cider-d", corpus).search([reference], k=2)
    assert found == [(row, scores[row]) for row in best]
