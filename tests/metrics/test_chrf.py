"""chrF against sacrebleu's own calls and the definition on a case that is counted by hand."""

import numpy as np
import pytest
from sacrebleu.metrics import CHRF

from tests.metrics.contract import corpus_of, values_of
from vlscore.metrics import compute
from vlscore.metrics.library.chrf import Chrf, ChrfPlusPlus

CANDIDATES = ["No effusion.", "The heart is small.", "", "lungs"]
REFERENCES = ["No pleural effusion.", "Heart size is normal.", "clear", "Lungs are clear."]


@pytest.mark.parametrize(("name", "words"), [("chrf", 0), ("chrf++", 2)])
def test_equals_sacrebleu_for_each_report_and_for_the_corpus(name, words):
    theirs = CHRF(word_order=words, lowercase=True)
    each = [
        theirs.sentence_score(g, [r]).score / 100
        for g, r in zip(CANDIDATES, REFERENCES, strict=True)
    ]
    values = values_of(name, CANDIDATES, REFERENCES)
    np.testing.assert_allclose(values.columns[0], each, rtol=1e-12)
    corpus = corpus_of(values)["corpus"][0]
    expected = theirs.corpus_score(CANDIDATES, [REFERENCES]).score / 100
    assert corpus == pytest.approx(expected, rel=1e-12)
    assert corpus != pytest.approx(np.mean(each), rel=1e-3)


def test_a_case_counted_by_hand():
    # Orders 1 and 2 alone have n-grams in both: precision (1 + 1) / 2 of "ab", recall (2/3 + 1/2)
    # / 2 of "abc"; order 3 exists in the reference alone and is left out.
    precision, recall = 1.0, (2 / 3 + 1 / 2) / 2
    expected = 5 * precision * recall / (4 * precision + recall)
    assert compute("chrf", ["ab"], ["abc"])["chrf"][0] == pytest.approx(expected)


def test_case_and_beta():
    assert compute("chrf", ["Clear"], ["clear"])["chrf"][0] == 1.0
    kept = compute("chrf(case=kept)", ["Clear"], ["clear"])["chrf(case=kept)"][0]
    assert kept < 1.0
    recall_heavy, even = (
        compute(f"chrf(beta={beta})", ["ab"], ["abc"]).popitem()[1][0] for beta in (3.0, 1.0)
    )
    assert recall_heavy < even


@pytest.mark.parametrize("metric", [Chrf(), ChrfPlusPlus(), Chrf(beta=1.0)])
def test_values_of_counts_equal_those_of_sacrebleu(metric):
    counts = np.random.default_rng(0).integers(0, 6, (300, metric.statistics // 3, 3))
    counts[..., 2] = np.minimum(counts[..., 2], counts[..., :2].min(axis=-1))
    counts[:5] = 0
    rows = counts.reshape(len(counts), -1)
    theirs = CHRF(char_order=6, word_order=metric.word_order, beta=metric.beta)
    expected = [theirs._compute_score_from_stats(row.tolist()).score / 100 for row in rows]
    found = metric.corpus_values(rows.astype(float))["corpus"]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)
