"""Sentences as medspaCy cuts them, by its own answers and by hand."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.networks.constructed import GOLDENS
from tests.metrics.networks.constructed_ratescore import CUT
from vlscore.metrics.networks.rush import sentence_spans, sentences

GOLDEN = json.loads((GOLDENS / "ratescore.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", range(len(CUT)))
def test_reports_are_cut_as_by_medspacy(row):
    assert sentences(CUT[row]) == GOLDEN["sentences"][row]


def test_worked_examples():
    text = "Small effusion. No edema.\n1. Heart normal.  2. Clear"
    assert [text[a:b] for a, b in sentence_spans(text)] == [
        "Small effusion.",
        "No edema.",
        "1. Heart normal.",
        "2. Clear",
    ]
    # A point between lower-case words ends no sentence. A number behind a line break begins one,
    # but not where a blank stands before the point.
    assert sentences("no edema . no effusion") == ["no edema . no effusion"]
    assert sentences("Clear lungs.\n2) No edema") == ["Clear lungs.", "2) No edema"]
    assert sentences("Clear lungs .\n2) No edema") == ["Clear lungs .\n2) No edema"]


@pytest.mark.parametrize("text", ["", " \n ", "..", "x", "\u200b"])
def test_texts_without_a_sentence_have_none(text):
    assert sentences(text) == []


@given(st.text(alphabet="aB1. \n:,-()\u00e9\xa0\u2019", max_size=60))
def test_sentences_are_parts_of_the_text_in_order(text):
    at = 0
    for sentence in sentences(text):
        assert sentence == sentence.strip()
        assert len(sentence) >= 3
        at = text.index(sentence, at) + len(sentence)
