"""A report says the same in whatever form a program or a person hands it on.

What is right is the same reader's result for the plain report, sentences with full stops.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.text.forms import FORMS, Form
from vlscore.data import sample_studies
from vlscore.findings import CHEXPERT_LABELS, chexpert_labels, extract
from vlscore.metrics import RuleJudge

# Written for this: denials beside findings, numbers, abbreviations, contractions, capitals.
WRITTEN = [
    ["No pneumothorax.", "No consolidation.", "Small left effusion.", "Heart enlarged."],
    [
        "Heart isn't enlarged.",
        "There's a 1.2 x 0.9 cm nodule in the right upper lobe.",
        "No edema.",
    ],
    ["No acute bony abnormality.", "PICC tip in the SVC.", "Mild left basilar atelectasis."],
    ["Without effusion.", "Moderate cardiomegaly.", "No left-sided pneumothorax, mass or edema."],
    ["The patient's lungs are clear.", "Acute fracture of the left sixth rib.", "No effusion."],
    ["ET tube 4.5 cm above the carina.", "Right lower lobe pneumonia.", "No pulmonary edema."],
    ["Lungs clear.", "No change of the 9 mm nodule.", "Hiatal hernia.", "No pneumothorax."],
    ["Low volumes.", "No focal consolidation.", "Degenerative changes of the spine.", "No edema."],
]


def sentences_of(text: str) -> list[str]:
    """The sentences by the plainest rule: a full stop, a blank, a capital."""
    found = re.split(r"(?<=[a-z]\.)\s+(?=[A-Z])", " ".join(text.split()))
    return [each.rstrip(".") + "." for each in found if len(each) > 3]


def differing_labels(form: Form, reports: list[list[str]]) -> int:
    """The labels in which a form and the plain report differ, over all reports."""
    differing = 0
    for sentences in reports:
        plain, formed = chexpert_labels(" ".join(sentences)), chexpert_labels(form(sentences))
        differing += sum(plain[label] != formed[label] for label in CHEXPERT_LABELS)
    return differing


@pytest.fixture(scope="module")
def written() -> list[list[str]]:
    phantoms = (sentences_of(study.reference) for study in sample_studies(5, 40))
    return [*WRITTEN, *(sentences for sentences in phantoms if len(sentences) > 1)]


def real_reports(shared: Path) -> Iterator[list[str]]:
    """Reports of Indiana University without numbered lists, which are a form of their own."""
    for line in (shared / "data" / "iu_reports.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        text = f"{row['findings']} {row['impression']}"
        sentences = sentences_of(text)
        if len(sentences) > 1 and not re.search(r"[&<\[]|\b\d\. ", text):
            yield sentences


@pytest.mark.parametrize("form", FORMS)
def test_a_form_has_the_labels_of_the_plain_report(form, written):
    assert differing_labels(FORMS[form], written) == 0


@pytest.mark.parametrize("form", FORMS)
def test_a_copy_in_another_form_has_no_error(form):
    judge = RuleJudge()
    for sentences in WRITTEN:
        plain = " ".join(sentences)
        assert not judge.judge(FORMS[form](sentences), plain).errors, FORMS[form](sentences)
        assert not judge.judge(plain, FORMS[form](sentences)).errors


@pytest.mark.parametrize("form", FORMS)
def test_places_are_those_of_the_report_as_it_was_given(form):
    for sentences in WRITTEN:
        report = FORMS[form](sentences)
        for finding in extract(report):
            words = finding.span.of(report)
            assert words[0].isalnum(), words
            assert words[-1].isalnum(), words


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_real_reports_in_a_form_have_their_labels(form, shared):
    reports = [sentences for sentences, _ in zip(real_reports(shared), range(600), strict=False)]
    assert len(reports) == 600
    assert differing_labels(FORMS[form], reports) <= 0.01 * 14 * len(reports)
