"""The words of the changed reports are those that each kind promises to change, and no others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.perturb.contract import BUILT_KINDS, made, read
from tests.perturb.kinds.laws import LAWS, broken
from tests.perturb.reports import REPORTS, plain_reports
from vlscore.data import sample_studies
from vlscore.perturb import KINDS, Edit, Perturbation

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


def test_every_kind_of_the_bundled_data_set_has_a_law():
    assert set(BUILT_KINDS) <= LAWS.keys() <= set(KINDS)


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
    # More went than a sentence, a denial alone, or something came.
    ("remove-pathology", EFFUSION, "Small right effusion. No edema.", "sentence:pleural_effusion"),
    ("remove-pathology", EFFUSION, "Small left effusion. Heart size is normal.", "sentence:edema"),
    ("remove-pathology", EFFUSION, "No edema. Heart is normal.", "sentence:pleural_effusion"),
    ("remove-insignificant", EFFUSION, "Small left effusion. Edema.", "sentence:technique"),
    ("unmention-negatives", EFFUSION, "No edema. Heart size is normal.", "unmentioned:1 sentences"),
    # Other words than places or grades.
    ("change-location", EFFUSION, "Large right effusion. No edema. Heart size is normal.", ""),
    ("change-location", EFFUSION, "Small left effusion. No edema. Normal heart size.", ""),
    ("change-severity", EFFUSION, "Large right effusion. No edema. Heart size is normal.", ""),
    ("change-severity", EFFUSION, "Small left effusion. Mild edema. Heart size is normal.", ""),
    ("standard-normal", EFFUSION, "The lungs are clear.", "report:normal"),
    ("negate-finding", EFFUSION, "No effusion. No edema. No heart.", "denied:pleural_effusion"),
    ("affirm-finding", EFFUSION, "There is effusion. Edema. Heart size is normal.", "stated:edema"),
    ("add-false-finding", EFFUSION, f"{EFFUSION} There is an effusion.", "added:pleural_effusion"),
    ("drop-comparison", "Stable effusion.", "No effusion.", "dropped:stable pleural_effusion"),
    ("drop-comparison", EFFUSION, "Left effusion.", "dropped:stable pleural_effusion"),
    ("invent-comparison", EFFUSION, "Stable left effusion.", "compared:stable pleural_effusion"),
    ("shuffle-sentences", EFFUSION, "No effusion. Small left edema. Heart size is normal.", ""),
    ("shuffle-sentences", EFFUSION, "No edema. Heart size is normal.", ""),
    ("paraphrase", EFFUSION, "Small right effusion. No edema. Heart size is normal.", ""),
    ("replace-uninformative", EFFUSION, "[UNK] left effusion. No edema. Heart size is normal.", ""),
]


@pytest.mark.parametrize(("name", "original", "perturbed", "rule"), BROKEN)
def test_a_law_finds_out_what_breaks_it(name, original, perturbed, rule):
    kind = KINDS[name]
    edits = (Edit(0, len(original), perturbed),)
    claimed = Perturbation(
        "s", name, kind.expected, kind.category, original, perturbed, edits, rule=rule
    )
    assert broken([claimed]) == [claimed]


def test_a_side_swapped_twice_is_where_it_was():
    report = "Small left effusion. No edema. Heart size is normal."
    (there,) = made(KINDS["change-location"], report)
    (back,) = made(KINDS["change-location"], there.perturbed)
    assert (there.perturbed, back.perturbed) == (report.replace("left", "right"), report)
