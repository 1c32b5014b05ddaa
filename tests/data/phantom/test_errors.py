"""Errors between findings: the algebra that every benchmark rests on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlscore.data import PhantomFinding, corrupt, count_errors, sample_scene

seeds = st.integers(0, 2**32 - 1)
laws = settings(deadline=None, max_examples=60)


def findings_of(seed):
    return sample_scene(np.random.default_rng(seed)).findings


@laws
@given(seeds)
def test_a_report_has_no_errors_against_itself(seed):
    assert count_errors(findings_of(seed), findings_of(seed)).total == 0


@laws
@given(seeds, seeds)
def test_swapping_candidate_and_reference_swaps_false_and_omitted(a, b):
    there, back = (
        count_errors(findings_of(a), findings_of(b)),
        count_errors(findings_of(b), findings_of(a)),
    )
    assert there.false_finding == back.omitted_finding
    assert there.omitted_finding == back.false_finding
    assert there.wrong_location == back.wrong_location
    assert there.wrong_severity == back.wrong_severity
    assert there.total == back.total


@laws
@given(seeds, st.integers(0, 6))
def test_corruption_makes_exactly_the_errors_asked_for(seed, errors):
    true = findings_of(seed)
    candidate = corrupt(np.random.default_rng(seed), true, errors)
    assert count_errors(candidate, true).total == errors
    assert len({finding.kind for finding in candidate}) == len(candidate)


@pytest.mark.parametrize(
    ("candidate", "reference", "category"),
    [
        ([PhantomFinding("edema", severity=1)], [], "false_finding"),
        ([], [PhantomFinding("edema", severity=1)], "omitted_finding"),
        (
            [PhantomFinding("chest_tube", "left")],
            [PhantomFinding("chest_tube", "right")],
            "wrong_location",
        ),
        (
            [PhantomFinding("nodule", "left", "upper", 1)],
            [PhantomFinding("nodule", "right", "lower", 1)],
            "wrong_location",
        ),
        (
            [PhantomFinding("edema", severity=1)],
            [PhantomFinding("edema", severity=3)],
            "wrong_severity",
        ),
        (
            [PhantomFinding("edema", severity=1, change="new")],
            [PhantomFinding("edema", severity=1)],
            "false_comparison",
        ),
        (
            [PhantomFinding("edema", severity=1, change="new")],
            [PhantomFinding("edema", severity=1, change="unchanged")],
            "false_comparison",
        ),
        (
            [PhantomFinding("edema", severity=1)],
            [PhantomFinding("edema", severity=1, change="new")],
            "omitted_comparison",
        ),
    ],
)
def test_each_category_counts_what_it_says(candidate, reference, category):
    counts = count_errors(candidate, reference).to_dict()
    assert counts.pop(category) == 1
    assert set(counts.values()) == {0}
