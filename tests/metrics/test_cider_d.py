"""CIDEr-D against pycocoevalcap's formula written out here, and its numbers on real reports.

The real numbers were made by tests/metrics/goldens/make_pycocoevalcap.py.
"""

import json
import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.metrics.contract import values_of
from vlscore.metrics import Batch, Plan, compute

GOLDENS = Path(__file__).with_name("goldens") / "pycocoevalcap.json"
NAME = "cider-d(tokens=cxr)"
WORDS = st.lists(st.sampled_from(["no", "effusion", "left", "small", "heart", "."]), max_size=12)


def _grams(words, order):
    return Counter(tuple(words[k : k + order]) for k in range(len(words) - order + 1))


def _expected(candidates, references, sigma=6.0):
    """Vedantam et al. 2015, Eq. 4 (CIDEr-D), an order at a time, from the definition."""
    pairs = [(g.split(), r.split()) for g, r in zip(candidates, references, strict=True)]
    scores = np.zeros(len(pairs))
    for order in range(1, 5):
        holding = defaultdict(int)
        for _, reference in pairs:
            for gram in _grams(reference, order):
                holding[gram] += 1
        weight = {gram: math.log(len(pairs) / count) for gram, count in holding.items()}
        unseen = math.log(len(pairs))
        for row, (candidate, reference) in enumerate(pairs):
            g, r = (
                {gram: n * weight.get(gram, unseen) for gram, n in _grams(words, order).items()}
                for words in (candidate, reference)
            )
            norm = math.sqrt(sum(v * v for v in g.values()) * sum(v * v for v in r.values()))
            if norm:
                dot = sum(min(g[gram], r[gram]) * r[gram] for gram in g.keys() & r.keys())
                apart = max(len(candidate) - 1, 0) - max(len(reference) - 1, 0)
                scores[row] += 10 / 4 * dot / norm * math.exp(-(apart**2) / (2 * sigma**2))
    return scores


@given(pairs=st.lists(st.tuples(WORDS, WORDS.filter(len)), min_size=2, max_size=6))
@settings(deadline=None)
def test_equals_the_definition(pairs):
    candidates, references = ([" ".join(each[k]) for each in pairs] for k in (0, 1))
    values = compute([NAME], candidates, references)[NAME]
    if np.isnan(values).any():
        assert (
            len(
                {
                    frozenset(r for n in (1, 2, 3, 4) for r in _grams(x.split(), n))
                    for x in references
                }
            )
            == 1
        )
        return
    np.testing.assert_allclose(values, _expected(candidates, references), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("system", json.loads(GOLDENS.read_text()))
def test_equals_pycocoevalcap_on_real_reports(shared, system):
    golden = json.loads(GOLDENS.read_text())[system]
    lines = (shared / "data" / "generated" / f"{system}.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    candidates, references = ([row[role] for row in rows] for role in ("candidate", "reference"))
    values = compute([NAME], candidates, references)[NAME]
    assert len(values) == golden["rows"]
    np.testing.assert_allclose(values[:20], golden["first"], rtol=1e-9, atol=1e-12)
    assert values.mean() == pytest.approx(golden["cider"], rel=1e-9)


def test_weights_come_from_the_run_not_from_the_batch():
    references = ["no effusion", "small effusion", "no nodule"]
    plan = Plan(NAME).fit(references)
    together = plan.values(Batch(references, references))
    (metric,) = plan.metrics
    alone = [plan.values(Batch([r], [r]))[metric].columns[0][0] for r in references]
    np.testing.assert_array_equal(together[metric].columns[0], alone)
    # Two words have no n-gram of three or four words: half of the orders count 0.
    assert alone == pytest.approx([5.0, 5.0, 5.0])


def test_references_that_are_all_alike_give_no_number():
    values = values_of("cider-d", ["no effusion"], ["no effusion"])
    assert np.isnan(values.columns[0][0])
    assert "fitted to (1) have the same" in str(values.failures[0])
