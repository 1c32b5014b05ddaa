"""Capitals, articles and spaces around changed words."""

import pytest

from vlscore.perturb import apply_edits
from vlscore.perturb.edits import article_for, in_case_of, removed, replaced, with_capital


@pytest.mark.parametrize(
    ("words", "article"),
    [
        ("opacity", "an"),
        ("effusion", "an"),
        ("small effusion", "a"),
        ("unilateral effusion", "a"),
        ("European", "a"),
        ("one-sided effusion", "a"),
        ("unusual opacity", "an"),
        ("underlying mass", "an"),
        ("hour", "an"),
        ("RLL mass", "an"),
        ("LUL mass", "an"),
        ("NG tube", "an"),
        ("CT", "a"),
        ("SMALL EFFUSION", "a"),
        ("LARGE EFFUSION", "a"),
        ("OPACITY", "an"),
        ("5 mm nodule", "a"),
    ],
)
def test_articles(words, article):
    assert article_for(words) == article


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("There is a small effusion.", "small", "extensive", "There is an extensive effusion."),
        ("An apical opacity.", "apical", "basilar", "A basilar opacity."),
        ("AN APICAL OPACITY.", "APICAL", "BASILAR", "A BASILAR OPACITY."),
        ("A SMALL MASS.", "SMALL", "EXTENSIVE", "AN EXTENSIVE MASS."),
        ("a\nsmall mass", "small", "extensive", "an\nextensive mass"),
        ("The apical opacity.", "apical", "basilar", "The basilar opacity."),
        ("Vitamin a small mass", "small", "large", "Vitamin a large mass"),
        ("Pleura small", "small", "extensive", "Pleura extensive"),
        # Nobody knows how a mask is spoken.
        ("a stable XXXX mass", "stable ", "", "a XXXX mass"),
        ("an old mass", "old", "XXXX", "an XXXX mass"),
    ],
)
def test_articles_follow_what_is_replaced(text, old, new, expected):
    start = text.index(old)
    assert apply_edits(text, replaced(text, start, start + len(old), new)) == expected


@pytest.mark.parametrize(
    ("text", "gone", "opens", "expected"),
    [
        ("a stable opacity", "stable", False, "an opacity"),
        ("the stable  opacity", "stable", False, "the opacity"),
        ("Stable opacity", "Stable", True, "Opacity"),
        ("stable opacity", "stable", True, "opacity"),
        ("Stable XXXX", "Stable", True, "XXXX"),
    ],
)
def test_words_that_go(text, gone, opens, expected):
    start = text.index(gone)
    edits = removed(text, start, start + len(gone), opens=opens)
    assert apply_edits(text, edits) == expected


@pytest.mark.parametrize(
    ("word", "model", "expected"),
    [
        ("right", "left", "right"),
        ("right", "Left", "Right"),
        ("right", "LEFT", "RIGHT"),
        ("RUL", "RLL", "RUL"),
        ("RUL", "rll", "rul"),
        ("right-sided", "Left-Sided", "Right-sided"),
        ("large", "A", "Large"),
    ],
)
def test_capitals_of_a_model(word, model, expected):
    assert in_case_of(word, model) == expected


def test_first_letters():
    assert with_capital("no effusion", like="Small effusion") == "No effusion"
    assert with_capital("No effusion", like="small effusion") == "no effusion"
    assert with_capital("No effusion", like="") == "no effusion"
