"""How a report is laid out and written, and which of its sentences lean on each other."""

import pytest

from tests.perturb.contract import read

LAID_OUT = "FINDINGS: Mild edema. It is new. Also, no effusion.\nIMPRESSION: 1. Edema. 2. No mass."


def test_layout():
    source = read(LAID_OUT)
    indices = range(len(source.sentences))
    assert [k in source.section_openings for k in indices] == [True, False, False, True, False]
    assert [source.opens_paragraph(k) for k in indices] == [True, False, False, True, True]
    assert [source.number_start(k) is not None for k in indices] == [False] * 3 + [True] * 2
    assert source.text[source.number_start(4) :] == "2. No mass."
    assert source.texts_before[3] == "\nIMPRESSION: 1. "


def test_sentences_that_lean():
    source = read(LAID_OUT)
    assert [source.follows_previous(k) for k in range(5)] == [False, True, True, False, False]
    assert [source.followers(k) for k in range(5)] == [[1], [], [], [], []]


@pytest.mark.parametrize(
    ("report", "lower", "upper", "tokenised"),
    [
        ("Mild edema. No mass.", False, False, False),
        ("mild edema. no mass.", True, False, False),
        ("mild edema . no mass .", True, False, True),
        ("MILD EDEMA. NO MASS.", False, True, False),
        ("Mild edema . No mass .", False, False, True),
        ("Mild edema . No mass. Clear.", False, False, False),
    ],
)
def test_manner_of_writing(report, lower, upper, tokenised):
    source = read(report)
    told = (source.is_lower_case, source.text.isupper(), source.is_tokenised)
    assert told == (lower, upper, tokenised)


@pytest.mark.parametrize(
    ("report", "labelled"),
    [
        ("Left knee: normal. No edema.", True),
        ("Left knee. No fracture.", True),
        ("No edema. The lungs are clear.", False),
        ("FINDINGS: No edema.", False),
    ],
)
def test_labels(report, labelled):
    assert read(report).has_labels is labelled


@pytest.mark.parametrize(
    ("report", "sentences"),
    [
        ("Left effusion. No edema. Left effusion.", {0, 2}),
        ("Left effusion. Right effusion.", {0}),
        ("Left effusion. Bilateral effusions. Possible effusion.", {0, 1, 2}),
        ("Left effusion. No effusion on the right.", {0}),
        ("Right base opacity. Right lower lobe pneumonia.", {0, 1}),
        ("Right base opacity. Right upper lobe pneumonia.", {0}),
        ("Left effusion. History of effusion.", {0}),
    ],
)
def test_mentions_that_may_be_of_one_thing(report, sentences):
    source = read(report)
    finding = source.findings.findings[0]
    assert source.sentences_stating(finding) == sentences
    assert {other.sentence for other in source.restatements(finding)} == sentences - {0}


def test_what_a_reader_would_miss():
    source = read("Mild edema. PICC line. No mass. Possible effusion. Low lung volumes.")
    told = [[f.observation for f in source.pathologies(s)] for s in source.sentences]
    assert told == [["edema"], [], [], [], []]
