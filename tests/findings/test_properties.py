"""Laws that hold for any report, checked on random texts and on mixtures of report phrases."""

import time

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from vlscore.findings import Finding, ReportFindings, extract

_PHRASES = [
    "no", "pleural effusion", "small", "left", "right", "bibasilar", "atelectasis", "the heart is",
    "enlarged", "normal", "may represent", "pneumonia", "or", "and", ",", "without", "stable",
    "2.5 cm", "nodule", "in the", "upper lobe", "is", "not seen", "but", "there is", "XXXX",
    "lungs are clear", "calcified", "granuloma", "hilar", "aorta", "tortuous",
    "cannot be excluded", ";", "unchanged",
    "none", ":", "\n-", "\n|", "|", "\t", "[x]", "[ ]", "☐", "?", "\nSide: left", "\nAbsent:\n",
    "this", "consider CT", "views", "discussed with Dr. Smith", "1.", "history of cough",
]  # fmt: skip
sentences = st.lists(st.sampled_from(_PHRASES), min_size=1, max_size=14).map(
    lambda words: "Effusion " + " ".join(words) + "."
)
reports = st.lists(sentences, max_size=5).map(" ".join) | st.text(max_size=300)


def spans_of(finding: Finding) -> list[tuple[int, int]]:
    return [
        finding.span,
        finding.cue,
        *(a.span for a in finding.attributes),
        *(r.span for r in finding.rules),
    ]


@given(reports)
@settings(max_examples=200, deadline=None)
def test_spans_index_the_text(report: str) -> None:
    found = extract(report)
    assert found.text == report
    previous = 0
    for index, sentence in enumerate(found.sentences):
        assert sentence.index == index
        assert previous <= sentence.span.start < sentence.span.end <= len(report)
        previous = sentence.span.end
        for finding in sentence.findings:
            assert finding.sentence == index
            assert sentence.span.covers(finding.span)
            assert finding.span.covers(finding.cue)
            for start, end in spans_of(finding):
                assert 0 <= start < end <= len(report)
            for attribute in finding.attributes:
                assert attribute.inherited or sentence.span.covers(attribute.span)


@given(reports)
@settings(max_examples=100, deadline=None)
def test_same_text_gives_same_findings(report: str) -> None:
    assert extract(report) == extract(report)


def summary(found: ReportFindings, offset: int = 0) -> list[tuple]:
    return [
        (f.observation, f.polarity, f.status, f.side, f.zones, f.severity, f.span.start - offset)
        for f in found
    ]


@given(sentences, sentences)
@settings(max_examples=200, deadline=None)
def test_findings_of_two_reports_add_up(first: str, second: str) -> None:
    # A report may answer the question of the one before it.
    assume("?" not in first + second)
    joined = extract(first + "\n\n" + second)
    offset = len(first) + 2
    alone = summary(extract(first)) + summary(extract(second), -offset)
    assert summary(joined) == alone


def test_findings_are_found_in_any_letter_case() -> None:
    text = "Small left pleural effusion. No pneumothorax. The heart is enlarged."
    expected = summary(extract(text))
    assert summary(extract(text.upper())) == expected
    assert summary(extract(text.lower())) == expected


@pytest.mark.parametrize(
    "clause",
    [
        "no effusion and mild left basilar atelectasis or enlarged heart normal aorta , ",
        "Effusion: none, edema: mild; [ ] nodule ",
        "Effusion: none\n- Edema\n  Side: left\n| Mass | no |\n",
        "Effusion\t",
        "[x] edema ",
        "HISTORY: Cough\n",
        "a " * 30 + ": \n",
        "\t" * 40,
        " " * 40,
        "effusion:" + " " * 40,
        "[" + " " * 40,
        "a" + "\t" * 40 + "\n",
    ],
)
def test_time_is_linear(clause: str) -> None:
    def seconds(repeats: int) -> float:
        text = clause * repeats
        start = time.process_time()
        extract(text)
        return time.process_time() - start

    seconds(20)
    short = min(seconds(100) for _ in range(3))
    long = min(seconds(800) for _ in range(3))
    assert long < 8 * short * 3
