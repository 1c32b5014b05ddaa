"""BLEU against NLTK and against pycocoevalcap's formula, written out here."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from tests.metrics.contract import values_of
from vlscore.metrics import compute

WORDS = st.lists(st.sampled_from(["no", "effusion", "left", "small", "heart", "."]), max_size=25)


def _pycocoevalcap(candidate: list[str], reference: list[str], order: int) -> float:
    """Sentence BLEU with the tiny constants of pycocoevalcap's bleu_scorer."""
    product = 1.0
    for n in range(1, order + 1):
        ours = Counter(tuple(candidate[k : k + n]) for k in range(len(candidate) - n + 1))
        theirs = Counter(tuple(reference[k : k + n]) for k in range(len(reference) - n + 1))
        matched = sum((ours & theirs).values())
        product *= (matched + 1e-15) / (max(0, len(candidate) - n + 1) + 1e-9)
    score = product ** (1 / order)
    ratio = (len(candidate) + 1e-15) / (len(reference) + 1e-9)
    return score * math.exp(1 - 1 / ratio) if 0 < ratio < 1 else score


def _has_all_orders(candidate: list[str], reference: list[str], order: int) -> bool:
    grams = [
        {tuple(words[k : k + order]) for k in range(len(words) - order + 1)}
        for words in (candidate, reference)
    ]
    return bool(grams[0] & grams[1])


@pytest.mark.parametrize("order", [1, 2, 4])
@given(candidate=WORDS, reference=WORDS.filter(len))
def test_equals_nltk_and_pycocoevalcap_where_every_order_matches(order, candidate, reference):
    name = f"bleu-{order}(tokens=cxr)"
    value = compute([name], [" ".join(candidate)], [" ".join(reference)])[name][0]
    if not _has_all_orders(candidate, reference, order):
        assert value == 0
        return
    weights = (1 / order,) * order
    assert value == pytest.approx(sentence_bleu([reference], candidate, weights), rel=1e-12)
    assert value == pytest.approx(_pycocoevalcap(candidate, reference, order), rel=1e-7)


@given(candidate=WORDS.filter(lambda words: len(words) >= 4), reference=WORDS.filter(len))
def test_add_k_smoothing_equals_nltk_method2(candidate, reference):
    name = "bleu-4(smoothing=add-k,tokens=cxr)"
    value = compute([name], [" ".join(candidate)], [" ".join(reference)])[name][0]
    if not set(candidate) & set(reference):
        assert value == 0
        return
    expected = sentence_bleu([reference], candidate, smoothing_function=SmoothingFunction().method2)
    assert value == pytest.approx(expected, rel=1e-12)


def test_case_and_punctuation_do_not_hide_words():
    values = compute(["bleu-1"], ["No effusion, no nodule."], ["no effusion , no nodule ."])
    assert values["bleu-1"].tolist() == [1.0]


def test_cxr_tokens_keep_commas_on_words():
    name = "bleu-1(tokens=cxr)"
    value = compute([name], ["no effusion, clear."], ["no effusion , clear ."])[name][0]
    # "no", "clear" and "." match of "no effusion, clear ."; the candidate is one token short.
    assert value == pytest.approx(3 / 4 * np.exp(1 - 5 / 4))


@pytest.mark.parametrize(
    ("candidate", "reference", "expected"),
    # Numbers of fast_bleu 0.0.90, BLEU([reference.split(" ")], {"b": (1/2, 1/2)}).
    [
        (".", ".", 0.3162277660168379),
        ("a", "a b", 0.11633369384516794),
        ("a", "a b c d", 0.01574405340649719),
        ("a b", "b a", 0.3162277660168379),
        ("a b c", "c d", 0.12909944487358058),
        ("a", "b", 0.0),
        ("a b", "c d", 0.0),
        ("a b", "", 0.0),
        ("", "a", 0.0),
        ("", "", 0.0),
    ],
)
def test_bleu_of_radcliq_is_that_of_fast_bleu(candidate, reference, expected):
    name = "bleu-2(smoothing=floor,tokens=cxr)"
    found = values_of(name, [candidate], [reference]).columns[0][0]
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("space", ["\n", "\t", "\r\n", "\u00a0", "\u2003", "\u2028"])
def test_cxr_tokens_split_at_blanks_alone(space):
    """As str(...).lower().replace(".", " .").split(" ") of CXR-Report-Metric."""
    candidate, reference = f"The lungs are clear.{space}No effusion.", "clear. No effusion."
    g, r = (
        [word for word in text.lower().replace(".", " .").split(" ") if word]
        for text in (candidate, reference)
    )
    assert len(g) == 7
    matches = sum(min(g.count(word), r.count(word)) for word in set(g))
    found = compute(["bleu-1(tokens=cxr)"], [candidate], [reference])["bleu-1(tokens=cxr)"][0]
    assert found == pytest.approx(matches / len(g) * min(1, np.exp(1 - len(r) / len(g))))
