"""Corrected candidates say what their references say."""

import pytest

from vlscore.findings import Span
from vlscore.metrics import ErrorItem, Judgement, Quote, RuleJudge, apply_corrections
from vlscore.perturb import ErrorCategory

JUDGE = RuleJudge()


def corrected(candidate, reference):
    return apply_corrections(candidate, reference, JUDGE.judge(candidate, reference), judge=JUDGE)


@pytest.mark.parametrize(
    ("candidate", "reference", "expected"),
    [
        ("Small left effusion.", "Small right effusion.", "Small right effusion."),
        ("Mild edema. No effusion.", "Severe edema.", "Severe edema. No effusion."),
        (
            "The heart is mildly enlarged.",
            "Severe cardiomegaly.",
            "The heart is severely enlarged.",
        ),
        ("Clear heart. Rib fracture.", "Clear heart.", "Clear heart."),
        ("Normal heart.", "Small left effusion.", "Normal heart. Small left effusion."),
        ("8 mm nodule.", "2 cm nodule.", "2 cm nodule."),
    ],
)
def test_corrections_by_hand(candidate, reference, expected):
    result = corrected(candidate, reference)
    assert result.text == expected
    assert result.remaining == ()


def test_two_errors_in_one_line_are_both_corrected():
    result = corrected("Small left effusion.", "Large right effusion.")
    assert result.text == "Large right effusion."
    assert result.remaining == ()


def test_answers_of_another_judge_are_applied_too():
    candidate = "Clear lungs. Big heart."
    line = Span(0, 12)
    error = ErrorItem(
        ErrorCategory.OMITTED_FINDING,
        3,
        "effusion",
        Quote("Clear lungs.", line),
        None,
        line,
        "Left effusion.",
        "an effusion is there",
    )
    reference = "Left effusion. Big heart."
    assert apply_corrections(candidate, reference, Judgement((error,))).text == reference


def test_of_two_corrections_that_meet_the_first_is_made():
    line = Span(0, 12)
    wrong = [
        ErrorItem(
            ErrorCategory.FALSE_FINDING, 2, "x", Quote("Clear", Span(0, 5)), None, line, words, "x"
        )
        for words in ("Opaque lungs.", "Hazy lungs.")
    ]
    result = apply_corrections("Clear lungs.", "Opaque lungs.", Judgement(tuple(wrong)))
    assert result == ("Opaque lungs.", ())


def test_what_no_correction_mends_is_listed():
    """A silent candidate of a normal study: no single line would mend it."""
    result = corrected("", "Clear lungs.")
    assert result.text == ""
    assert [e.finding for e in result.remaining] == ["the whole report"]
