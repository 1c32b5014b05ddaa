"""Every kind keeps the contract over written, made-up and arbitrary texts; so does a newcomer."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.perturb.contract import (
    check_description,
    check_perturbation,
    check_report,
    check_slips,
    made,
    read,
    squeezed,
)
from tests.perturb.reports import REPORTS, any_text, reports
from vlscore.perturb import (
    KINDS,
    Chance,
    Change,
    Edit,
    Expected,
    Kind,
    ParsedReport,
    perturb_report,
    why_nothing,
)

NAMES = sorted(KINDS)
LONG = REPORTS["ten thousand words"]
SHORT = {name: report for name, report in REPORTS.items() if report is not LONG}


class AmericanSpelling(Kind):
    """A newcomer's kind, as small as one can be."""

    name = "american-spelling"
    description = "Spell as in America."
    expected = Expected.INSIGNIFICANT
    nothing = "no word is spelled otherwise in America"

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        for word in chance.shuffled(re.finditer("oedema|haemothorax", source.text)):
            spelling = re.sub("oe|ae", "e", word.group())
            yield Change((Edit(*word.span(), spelling),), f"spelling:{word.group()}")


@pytest.mark.parametrize("name", NAMES)
def test_a_kind_describes_itself(name):
    assert KINDS[name].name == name
    check_description(KINDS[name])


@pytest.mark.parametrize("report", SHORT.values(), ids=SHORT.keys())
@pytest.mark.parametrize("name", NAMES)
def test_written_reports(name, report):
    check_report(KINDS[name], report)


@pytest.mark.parametrize("name", NAMES)
def test_each_kind_changes_some_of_the_written_reports(name):
    changed = [said for said, report in SHORT.items() if made(KINDS[name], report, per_report=1)]
    assert len(changed) >= 2, changed


@given(report=reports(), seed=st.integers())
@settings(max_examples=80, deadline=None)
def test_made_up_reports(report, seed):
    source = read(report)
    for kind in KINDS.values():
        found = made(kind, source, seed)
        for perturbation in found:
            check_perturbation(perturbation, kind, report)
            check_slips(perturbation)
        assert len({squeezed(p.perturbed) for p in found}) == len(found)


@given(text=any_text(), seed=st.integers())
@settings(max_examples=100, deadline=None)
def test_any_text(text, seed):
    source = read(text)
    for kind in KINDS.values():
        found = made(kind, source, seed)
        for perturbation in found:
            check_perturbation(perturbation, kind, text)
        if not found:
            assert why_nothing(source, kind)


@given(report=reports(), seed=st.integers(), order=st.permutations(NAMES))
@settings(max_examples=40, deadline=None)
def test_kinds_do_not_depend_on_each_other(report, seed, order):
    together = list(perturb_report(report, order, seed, per_report=3, study_id="s"))
    assert together == list(perturb_report(report, seed=seed, per_report=3, study_id="s"))
    alone = [
        p
        for name in KINDS
        for p in perturb_report(report, [name], seed, per_report=3, study_id="s")
    ]
    assert together == alone


@pytest.mark.parametrize(
    "report", ["There is oedema.", "Left haemothorax. No oedema.", "No effusion.", ""]
)
def test_a_newcomers_kind(report):
    check_description(AmericanSpelling())
    found = check_report(AmericanSpelling(), report)
    assert len(found) == report.count("oe") + report.count("ae")
