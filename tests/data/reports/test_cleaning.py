"""Cleaning as the authors' own code did it, on texts made to break it."""

import json

import pytest

from vlscore.data import clean_gloria, clean_limitr, clean_mgca


@pytest.fixture(scope="module")
def nasty_texts(shared):
    path = shared / "encoders" / "edge_cases" / "text_public.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_limitr_sentences_equal_the_authors(nasty_texts):
    for case in nasty_texts:
        expected = " ".join(case.get("limitr_sentences") or [])
        assert clean_limitr(case["text"]) == expected


def test_mgca_sentences_equal_the_authors_where_they_keep_the_report(nasty_texts):
    kept = [case for case in nasty_texts if case["mgca_sentences"] is not None]
    assert kept
    for case in kept:
        assert clean_mgca(case["text"]) == " ".join(case["mgca_sentences"])


def test_quirks_that_change_numbers():
    assert clean_limitr("Nodule of 4.2 cm, pH 7.4 now.") == "nodule of 2 cm ph 4 now"
    assert clean_limitr("naïve 3 µm ½") == "nave 3 m"
    assert clean_gloria("Normal. No change.") == "no change"
    assert clean_limitr("Normal. No change.") == "normal no change"
