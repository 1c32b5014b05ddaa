"""ROUGE-L as rouge-score computes it, in memory that grows with a report's length."""

import random
import tracemalloc

import pytest
from rouge_score import rouge_scorer

from vlscore.metrics import compute
from vlscore.metrics.library.rouge_l import common_subsequence


@pytest.mark.parametrize("stemming", ["false", "true"])
def test_every_number_is_that_of_rouge_score(stemming):
    rng = random.Random(5)
    words = ["no", "left", "effusions", "effusion,", "the", "Lung;", "lungs", "2.5cm\nare", "?"]
    words += ["small", "right", "\u00e9"]
    texts = [" ".join(rng.choices(words, k=rng.randrange(12))) for _ in range(80)]
    candidates, references = texts[:40], texts[40:]
    scorer = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=stemming == "true")
    expected = [
        scorer.score(r, g)["rougeL"].fmeasure for g, r in zip(candidates, references, strict=True)
    ]
    (found,) = compute(f"rouge-l(stemming={stemming})", candidates, references).values()
    assert found.tolist() == pytest.approx(expected, rel=1e-15, abs=0)


def test_the_common_subsequence_is_the_longest():
    rng = random.Random(1)
    for _ in range(200):
        first, second = (rng.choices("abcd", k=rng.randrange(9)) for _ in range(2))
        table = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
        for i, a in enumerate(first):
            for k, b in enumerate(second):
                longer = max(table[i][k + 1], table[i + 1][k])
                table[i + 1][k + 1] = table[i][k] + 1 if a == b else longer
        assert common_subsequence(first, second) == table[-1][-1]


def test_long_reports_take_little_memory():
    words = [str(k % 500) for k in range(4000)]
    tracemalloc.start()
    common_subsequence(words, words[::-1])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A table of all pairs has 16 million places.
    assert peak < 4_000_000
