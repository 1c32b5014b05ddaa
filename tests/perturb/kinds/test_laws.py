"""The words of the changed reports are those that each kind promises to change, and no others."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.perturb.contract import BUILT_KINDS, made, read
from tests.perturb.kinds.laws import LAWS, broken
from tests.perturb.reports import REPORTS, plain_reports
from vlscore.data import sample_studies
from vlscore.perturb import KINDS, Perturbation

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


def test_a_side_swapped_twice_is_where_it_was():
    report = "Small left effusion. No edema. Heart size is normal."
    (there,) = made(KINDS["change-location"], report)
    (back,) = made(KINDS["change-location"], there.perturbed)
    assert (there.perturbed, back.perturbed) == (report.replace("left", "right"), report)
