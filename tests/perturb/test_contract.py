"""Every kind keeps the contract over written, made-up and arbitrary texts; so does a newcomer."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.perturb.contract import (
    assert_describes_itself,
    assert_is_sound,
    assert_keeps_contract,
    assert_reads_well,
    made,
    read,
    squeezed,
)
from tests.perturb.reports import REPORTS, any_text, reports
from vlscore.errors import BrokenContract
from vlscore.perturb import (
    KINDS,
    Chance,
    Change,
    Edit,
    ErrorCategory,
    Expected,
    Kind,
    ReadReport,
    perturb_report,
    why_nothing,
)

NAMES = sorted(KINDS)
# These change a report in one way or in none.
WITHOUT_CHOICE = {"standard-normal", "unmention-negatives"}
LONG = REPORTS["ten thousand words"]
SHORT = {name: report for name, report in REPORTS.items() if report is not LONG}


class AmericanSpelling(Kind):
    """A newcomer's kind, as small as one can be."""

    name = "american-spelling"
    description = "Spell as in America."
    expected = Expected.INSIGNIFICANT
    nothing = "no word is spelled otherwise in America"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        for word in chance.shuffled(re.finditer("oedema|haemothorax", source.text)):
            spelling = re.sub("oe|ae", "e", word.group())
            yield Change((Edit(*word.span(), spelling),), f"spelling:{word.group()}")


class Careless(AmericanSpelling):
    """A newcomer's kind that forgets about articles."""

    name = "careless"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        place = source.text.index("small")
        yield Change((Edit(place, place + 5, "enormous"),), "size:small")


@pytest.mark.parametrize("name", NAMES)
def test_a_kind_describes_itself(name):
    assert KINDS[name].name == name
    assert_describes_itself(KINDS[name])


def test_no_two_kinds_describe_themselves_alike():
    for attribute in ("name", "description", "nothing"):
        said = Counter(getattr(kind, attribute) for kind in KINDS.values())
        assert max(said.values()) == 1, said


def test_the_error_categories_of_rexval_each_have_a_kind():
    assert {kind.category for kind in KINDS.values()} - {None} == set(ErrorCategory)


def test_the_paper_counts_its_six_kinds():
    counted = [re.search(r"kind (\d) \((\d+) of 979\)", kind.origin) for kind in KINDS.values()]
    kinds = {int(match[1]): int(match[2]) for match in counted if match}
    assert kinds == {1: 238, 2: 119, 3: 187, 4: 95, 5: 133, 6: 207}
    assert sum(kinds.values()) == 979


@pytest.mark.parametrize("report", SHORT.values(), ids=SHORT.keys())
@pytest.mark.parametrize("name", NAMES)
def test_written_reports(name, report):
    assert_keeps_contract(KINDS[name], report)


@pytest.mark.parametrize("name", NAMES)
def test_each_kind_changes_some_of_the_written_reports(name):
    changed = [said for said, report in SHORT.items() if made(KINDS[name], report, per_report=1)]
    assert len(changed) >= 2, changed


def test_ten_thousand_words():
    assert len(LONG.split()) > 10_000
    source = read(LONG)
    yielded = set()
    for name, kind in KINDS.items():
        found = made(kind, source, per_report=2)
        for perturbation in found:
            assert_is_sound(perturbation, kind, LONG)
            assert_reads_well(perturbation)
        yielded |= {name} if found else set()
    assert yielded >= {"replace-uninformative", "shuffle-sentences", "paraphrase"}


@given(report=reports(), seed=st.integers())
@settings(max_examples=80, deadline=None)
def test_made_up_reports(report, seed):
    source = read(report)
    for kind in KINDS.values():
        found = made(kind, source, seed)
        for perturbation in found:
            assert_is_sound(perturbation, kind, report)
            assert_reads_well(perturbation)
        assert len({squeezed(p.perturbed) for p in found}) == len(found)


@given(text=any_text(), seed=st.integers())
@settings(max_examples=100, deadline=None)
def test_any_text(text, seed):
    source = read(text)
    for kind in KINDS.values():
        found = made(kind, source, seed)
        for perturbation in found:
            assert_is_sound(perturbation, kind, text)
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


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_CHOICE])
def test_seed_and_study_decide_the_choice(name):
    kind = KINDS[name]
    sources = [read(report) for report in SHORT.values()]

    def first(seed: int, study_id: str) -> list[list]:
        return [made(kind, source, seed, 1, study_id) for source in sources]

    assert first(0, "s") == first(0, "s")
    texts = {
        str([[p.perturbed for p in found] for found in first(seed, study_id)])
        for seed in range(4)
        for study_id in "st"
    }
    assert len(texts) > 1


@pytest.mark.parametrize(
    "report", ["There is oedema.", "Left haemothorax. No oedema.", "No effusion.", ""]
)
def test_a_newcomers_kind(report):
    assert_describes_itself(AmericanSpelling())
    found = assert_keeps_contract(AmericanSpelling(), report)
    assert len(found) == report.count("oe") + report.count("ae")


def test_a_careless_kind_is_found_out():
    with pytest.raises(BrokenContract, match="'a' before a vowel"):
        assert_keeps_contract(Careless(), "There is a small effusion.")
