"""Forms, tables, boxes and lists stay whole; what is changed is there, by labels given by hand."""

import json
import re

import pytest

from tests.conftest import REPOSITORY
from tests.perturb.contract import made, read
from vlscore.findings import load_lexicon
from vlscore.perturb import KINDS, Edit, Perturbation
from vlscore.perturb.report_forms import harm

FILE = REPOSITORY / "tests" / "findings" / "data" / "structured_reports.jsonl"
FORMS = re.compile(r"label|dash|table|columns|checkbox|heading|bullet|mixed")
ANSWER = re.compile(
    r"\b(?:none|no|nil|absent|negative|not (?:seen|identified|present)|normal|clear|yes|present)\b",
    re.IGNORECASE,
)


@pytest.fixture(scope="module")
def structured() -> list[dict]:
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def changes(structured) -> list[tuple[dict, Perturbation]]:
    return [
        (row, p)
        for row in structured
        for source in [read(row["report"])]
        for kind in KINDS.values()
        for p in made(kind, source, per_report=3)
    ]


def rows_of(text: str) -> list[tuple[str, str]]:
    """(label, value) of the lines that read "label: value", cut in the simplest way there is."""
    cut = (line.partition(":") for line in text.split("\n"))
    return [(label.strip(), value.strip()) for label, colon, value in cut if colon]


def test_labels_stay_and_denying_answers_stay_what_they_are(changes):
    """Line by line, by the colon alone."""
    seen = 0
    for row, p in changes:
        if not FORMS.search(row["layout"]):
            continue
        before, after = rows_of(p.original), rows_of(p.perturbed)
        if not before:
            continue
        seen += 1
        assert [label for label, _ in after] == [label for label, _ in before], (
            p.kind,
            p.perturbed,
        )
        for (label, old), (_, new) in zip(before, after, strict=True):
            is_answer = len(old.split()) <= 4 and ANSWER.search(old) and "." not in old[:-1]
            if is_answer and p.kind not in ("paraphrase", "replace-uninformative"):
                assert new == old, (p.kind, label, old, new)
    assert seen > 50


def test_boxes_cells_and_lines_stay(changes):
    seen = 0
    for _, p in changes:
        marks = re.findall(r"\[[ xX]?\]|[☐☑☒]|\||\t", p.original)
        if marks:
            seen += 1
            assert re.findall(r"\[[ xX]?\]|[☐☑☒]|\||\t", p.perturbed) == marks, (
                p.kind,
                p.perturbed,
            )
            assert p.perturbed.count("\n") == p.original.count("\n")
    assert seen > 15


def test_what_is_changed_is_there_by_the_labels_given_by_hand(changes):
    """No kind that needs a finding takes one that a reader of the report called absent."""
    of_present = {
        "remove-pathology",
        "change-location",
        "change-severity",
        "negate-finding",
        "invent-comparison",
        "drop-comparison",
    }
    observations = load_lexicon().observations
    checked = 0
    for row, p in changes:
        if p.kind not in of_present or p.rule == "sentence:comparison":
            continue
        first = p.rule.split()[-1].split(":")[-1].split("+")[0]
        label = observations[first].chexpert
        if label in row["labels"]:
            checked += 1
            assert row["labels"][label] != 0, (p.kind, p.rule, p.original)
    assert checked > 40


def test_what_is_affirmed_was_absent_by_the_labels_given_by_hand(changes):
    observations = load_lexicon().observations
    checked = 0
    for row, p in changes:
        if p.kind in ("affirm-finding", "add-false-finding"):
            label = observations[p.rule.split(":")[1]].chexpert
            if label in row["labels"]:
                checked += 1
                assert row["labels"][label] != 1 or label in ("Lung Opacity", "Support Devices")
    assert checked > 20


NEVER = [
    ("negate-finding", "Pneumothorax: None.", "No pneumothorax"),
    ("invent-comparison", "Effusion: None.", "since the prior"),
    ("negate-finding", "Heart: Normal.\nEffusion: Small left.", "No effusion"),
    ("invent-comparison", "Heart: Normal.\nEffusion: Small left.", "since the prior"),
    ("remove-pathology", "Effusion: Small left.\nHeart: Normal.", "\n"),
    ("add-false-finding", "Lungs: Clear.\nHeart: Normal.", "There"),
    ("standard-normal", "Lungs: Clear.\nHeart: Normal.\nPleura: Normal.", "The"),
    ("shuffle-sentences", "Lungs: Clear. Heart: Normal. Pleura: Normal.", "Heart: Normal. L"),
    ("negate-finding", "Effusion? Yes, left. Cardiomegaly? Yes.", "No "),
    ("invent-comparison", "[x] Effusion\n[ ] Pneumothorax", "since"),
    ("invent-comparison", "| Effusion | small |\n| Edema | none |", "since"),
    ("negate-finding", "Present:\n- Left effusion\nAbsent:\n- Edema", "- No left"),
    ("affirm-finding", "+ Left atelectasis\n- No effusion", "There is"),
    ("invent-comparison", "a. Pneumonia\nb. Small effusion\nc. Clear", "c, "),
    ("negate-finding", "Effusion\n  Present: yes\n  Side: left", "No effusion"),
]


@pytest.mark.parametrize(("kind", "report", "never"), NEVER)
def test_a_form_is_not_torn(kind, report, never):
    found = [p for seed in range(6) for p in made(KINDS[kind], report, seed)]
    if never == "\n":
        assert all(p.perturbed.count("\n") == report.count("\n") for p in found)
    else:
        assert not [p.perturbed for p in found if never in p.perturbed]


MAY = [
    ("change-location", "| Effusion | small left |\n| Edema | none |", "| small right |"),
    ("change-location", "[x] Left effusion\n[ ] Edema", "[x] Right effusion"),
    ("affirm-finding", "HEART: Normal.\nPLEURA: No effusion. No pneumothorax.", "There is a pneu"),
]


@pytest.mark.parametrize(("kind", "report", "within"), MAY)
def test_an_answer_may_change_word_for_word(kind, report, within):
    found = [p for seed in range(6) for p in made(KINDS[kind], report, seed)]
    assert [p for p in found if within in p.perturbed]


def test_a_gap_in_a_list_is_harm():
    report = "1. Edema.\n2. Clear.\n3. No mass."
    gone = Edit(0, 10, "")
    assert "gap" in (harm(read(report), report[10:], [gone]) or "")
    whole = "1. Clear.\n2. No mass."
    assert harm(read(report), whole, [Edit(3, 13, ""), Edit(20, 21, "2")]) is None
