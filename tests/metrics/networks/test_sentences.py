"""Sentences as medspaCy cuts them where PyRuSH is installed; parts of the report anywhere."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.networks.constructed import GOLDENS
from tests.metrics.networks.constructed_ratescore import CUT
from vlscore.metrics.networks.clinical_sentences import sentences

GOLDEN = json.loads((GOLDENS / "ratescore.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", range(len(CUT)))
def test_reports_are_cut_as_by_medspacy(row):
    pytest.importorskip("PyRuSH", reason="needs PyRuSH: pip install 'vlscore[ratescore]'")
    assert sentences(CUT[row]) == GOLDEN["sentences"][row]


@pytest.mark.parametrize("text", ["", " \n ", "..", "x"])
def test_texts_without_a_sentence_have_none(text):
    assert sentences(text) == []


@given(st.text(alphabet="aB1. \n:,-()\u00e9\xa0\u2019", max_size=60))
def test_sentences_are_parts_of_the_text_in_order(text):
    at = 0
    for sentence in sentences(text):
        assert sentence == sentence.strip()
        assert len(sentence) >= 3
        at = text.index(sentence, at) + len(sentence)
