"""Another reading of the changed reports finds what each kind promises, and nothing else."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.perturb.contract import made, read
from tests.perturb.kinds.laws import LAWS, broken
from tests.perturb.reports import REPORTS, plain_reports
from vlscore.perturb import KINDS, Perturbation
from vlscore.phantom.dataset import sample_studies

# The lexicons are English, and may take a word of another language for one of theirs.
ENGLISH = [report for name, report in REPORTS.items() if name not in ("german", "chinese")]


@pytest.fixture(scope="module")
def perturbations() -> list[Perturbation]:
    """Changes of written reports and of phantoms' reports."""
    phantoms = [
        text for study in sample_studies(3, 25) for text in (study.reference, study.candidate)
    ]
    sources = [read(report) for report in [*ENGLISH, *phantoms] if len(report) < 2_000]
    return [p for source in sources for kind in KINDS.values() for p in made(kind, source)]


def test_every_kind_has_a_law():
    assert LAWS.keys() == set(KINDS)


@pytest.mark.parametrize("name", LAWS)
def test_law(name, perturbations):
    own = [p for p in perturbations if p.kind == name]
    assert len(own) >= 4
    assert broken(own) == []


@given(report=plain_reports(), seed=st.integers())
@settings(max_examples=60, deadline=None)
def test_laws_over_assembled_sentences(report, seed):
    source = read(report)
    for kind in KINDS.values():
        assert broken(made(kind, source, seed, per_report=3)) == []


EFFUSION = "Small left effusion. No edema. Heart size is normal."
BROKEN = [
    ("remove-pathology", EFFUSION, "Small right effusion. No edema.", "sentence:pleural_effusion"),
    ("remove-pathology", EFFUSION, "Small left effusion.", "sentence:pleural_effusion"),
    ("remove-insignificant", EFFUSION, "Small left effusion. No edema.", "sentence:technique"),
    ("change-location", EFFUSION, "Large right effusion. No edema. Heart size is normal.", ""),
    ("change-location", EFFUSION, "Small left effusion. No edema. Normal heart size.", ""),
    ("change-severity", EFFUSION, "Large right effusion. No edema. Heart size is normal.", ""),
    ("change-severity", EFFUSION, "Small left effusion. Mild edema. Heart size is normal.", ""),
    ("standard-normal", EFFUSION, "The lungs are clear.", "report:normal"),
    ("negate-finding", EFFUSION, "No effusion or edema.", "denied:pleural_effusion"),
    ("affirm-finding", EFFUSION, "Small left effusion. There is edema.", "stated:edema"),
    ("add-false-finding", EFFUSION, f"{EFFUSION} There is an effusion.", "added:pleural_effusion"),
    ("add-false-finding", EFFUSION, f"{EFFUSION} No nodule.", "added:nodule"),
    ("drop-comparison", "Stable effusion.", "No effusion.", "dropped:stable pleural_effusion"),
    ("drop-comparison", EFFUSION, "Left effusion.", "dropped:stable pleural_effusion"),
    ("invent-comparison", EFFUSION, "Stable left effusion.", "compared:stable pleural_effusion"),
    ("shuffle-sentences", EFFUSION, "No effusion. Small left edema. Heart size is normal.", ""),
    ("shuffle-sentences", EFFUSION, "No edema. Heart size is normal.", ""),
    ("paraphrase", EFFUSION, "Small right effusion. No edema. Heart size is normal.", ""),
    ("unmention-negatives", EFFUSION, "No edema. Heart size is normal.", "unmentioned:1 sentences"),
]


@pytest.mark.parametrize(("name", "original", "perturbed", "rule"), BROKEN)
def test_a_law_finds_out_what_breaks_it(name, original, perturbed, rule):
    kind = KINDS[name]
    claimed = Perturbation(
        "s", name, kind.expected, kind.category, original, perturbed, edits=(), rule=rule
    )
    assert broken([claimed]) == [claimed]
