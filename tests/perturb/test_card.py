"""The data set card shows the recorded readings, which are of the rules of today."""

import importlib.util
import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.perturb.contract import BUILT_KINDS

CARD = (REPOSITORY / "perturbations" / "README.md").read_text(encoding="utf-8")
# A kind with more wrong changes than this is not as right as the card claims.
MOST_WRONG, MOST_WRONG_OF_ALL = 0.03, 0.015
# A reading says little of rules that make many of its changes otherwise.
LEAST_STILL_MADE = 0.97


@pytest.fixture(scope="module")
def reading():
    """The benchmark, which is no part of the package."""
    path = REPOSITORY / "benchmarks" / "perturbation_reading.py"
    spec = importlib.util.spec_from_file_location("perturbation_reading", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tables_in(text: str) -> list[str]:
    """The tables of a text with a column "wrong"."""
    found = re.findall(r"(?:^\|.*\|$\n?)+", text, re.MULTILINE)
    return [table.strip() for table in found if "wrong" in table.partition("\n")[0]]


def test_the_card_shows_the_recorded_readings_and_no_other(reading):
    whole = reading.table(reading.read_changes())
    assert tables_in(CARD) == [whole]
    result = REPOSITORY / "benchmarks" / "results" / "perturbation_reading.md"
    drawings = [reading.table(records) for _, *records in reading.readings()]
    assert tables_in(result.read_text(encoding="utf-8")) == [whole, *drawings]


def test_the_readings_bear_out_the_claim(reading):
    records = reading.read_changes()
    for kind in BUILT_KINDS:
        own = [r["verdict"] for r in records if r["kind"] == kind]
        assert len(own) >= 50
        assert own.count("wrong") <= MOST_WRONG * len(own), kind
    wrong = [r["verdict"] for r in records].count("wrong")
    assert wrong <= MOST_WRONG_OF_ALL * len(records)


def test_the_rules_of_today_still_make_what_was_read(reading, shared: Path):
    generated = sorted((shared / "data" / "generated").glob("*.jsonl"))
    reports = list(reading.reports_of([shared / "data" / "iu_reports.jsonl"], generated, 200))
    for _, *records in reading.readings():
        assert len(reading.still_made(records, reports)) >= LEAST_STILL_MADE * len(records)


def test_the_halves_share_no_study(reading):
    names = [f"iu-{k}" for k in range(400)]
    halves = [{n for n in names if reading.half_of(n) == half} for half in reading.HALVES]
    assert not halves[0] & halves[1]
    assert all(150 < len(half) < 250 for half in halves)
    assert all(reading.half_of(f"{n}:vlm") == reading.half_of(n) for n in names)
