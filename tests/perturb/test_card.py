"""The data set card shows the one reading that is recorded, which is of the rules of today."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.perturb.contract import BUILT_KINDS
from vlscore.perturb import KINDS

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


def test_the_card_shows_the_recorded_reading_and_no_other(reading):
    lines = reading.recorded()
    if not lines:
        assert not tables_in(CARD)
        assert "no reading" in CARD
        return
    assert tables_in(CARD) == [reading.table(lines[1:])]
    for fact in (f"vlscore {lines[0]['vlscore']}", f"rules {lines[0]['rules']}"):
        assert fact in CARD
    result = REPOSITORY / "benchmarks" / "results" / "perturbation_reading.md"
    assert reading.table(lines[1:]) in result.read_text(encoding="utf-8")


def test_the_reading_bears_out_the_claim(reading):
    records = reading.recorded()[1:]
    if not records:
        pytest.skip("no reading of these rules is recorded")
    for kind in BUILT_KINDS:
        own = [r["verdict"] for r in records if r["kind"] == kind]
        assert len(own) >= 50
        assert own.count("wrong") <= MOST_WRONG * len(own), kind
    wrong = [r["verdict"] for r in records].count("wrong")
    assert wrong <= MOST_WRONG_OF_ALL * len(records)


def test_the_rules_of_today_still_make_what_was_read(reading, shared: Path):
    records = reading.recorded()[1:]
    if not records:
        pytest.skip("no reading of these rules is recorded")
    generated = sorted((shared / "data" / "generated").glob("*.jsonl"))
    reports = reading.reports_of([shared / "data" / "iu_reports.jsonl"], generated, 200)
    assert reading.still_made(records, reports) >= LEAST_STILL_MADE * len(records)


@pytest.fixture
def drawing(reading, tmp_path, monkeypatch):
    """A small drawing of phantom reports, and a place of its own for its verdicts."""
    monkeypatch.setattr(reading, "READING", tmp_path / "reading.jsonl")
    folder = tmp_path / "drawing"
    options = ["draw", "--phantoms", "24", "--each", "3", "--part", "9", "--out", str(folder)]
    monkeypatch.setattr("sys.argv", ["perturbation_reading", *options])
    reading.main()
    return folder


def _lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_drawing_is_numbered_of_one_half_and_repeats(reading, drawing, tmp_path, monkeypatch):
    items = _lines(drawing / "items.jsonl")
    assert [item["item"] for item in items] == list(range(1, len(items) + 1))
    parts = [line for path in sorted(drawing.glob("part-*")) for line in _lines(path)]
    assert parts == items
    key = _lines(drawing / "key.jsonl")
    assert {reading.half_of(entry["study_id"]) for entry in key} == {"final"}
    assert max(sum(e["kind"] == kind for e in key) for kind in KINDS) == 3
    monkeypatch.setattr(
        "sys.argv",
        [
            "x",
            "draw",
            "--phantoms",
            "24",
            "--each",
            "3",
            "--part",
            "9",
            "--out",
            str(tmp_path / "again"),
        ],
    )
    reading.main()
    for path in drawing.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_the_halves_share_no_study(reading):
    names = [f"iu-{k}" for k in range(400)]
    halves = [{n for n in names if reading.half_of(n) == half} for half in reading.HALVES]
    assert not halves[0] & halves[1]
    assert all(150 < len(half) < 250 for half in halves)
    assert all(reading.half_of(f"{n}:vlm") == reading.half_of(n) for n in names)


def _record(reading, drawing, monkeypatch, *files):
    monkeypatch.setattr("sys.argv", ["x", "record", str(drawing), *map(str, files)])
    reading.main()


def test_verdicts_are_recorded_and_told(reading, drawing, tmp_path, monkeypatch):
    """The worse of two verdicts counts; the table counts by kind, and nothing of a report stays."""
    items = _lines(drawing / "items.jsonl")
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    one.write_text(
        "".join(json.dumps({"item": i["item"], "verdict": "right"}) + "\n" for i in items)
    )
    worse = {"item": 2, "verdict": "wrong", "reason": "the side stays elsewhere"}
    two.write_text(json.dumps(worse) + "\n")
    _record(reading, drawing, monkeypatch, one, two)
    facts, *records = reading.recorded()
    assert facts["readers"] == 2
    assert [r["verdict"] for r in records].count("wrong") == 1
    kind = items[1]["kind"]
    shown = reading.report_of(reading.recorded())
    (row,) = re.findall(rf"^\| {kind} \| 3 \| 1 \| (.*) \| 0 \|$", shown, re.MULTILINE)
    assert row == "33.3 (0.8 to 90.6)"
    assert "the side stays elsewhere" in shown
    assert items[1]["original"] not in (tmp_path / "reading.jsonl").read_text()
    reports = reading.reports_of([], [], 24)
    assert reading.still_made(records, reports) == len(records)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"item": 1, "verdict": "right"}, "items without a verdict"),
        ({"item": 1, "verdict": "good"}, "needs an item's number and one of"),
        ({"item": 1, "verdict": "wrong"}, "needs a reason"),
    ],
)
def test_verdicts_that_cannot_be_counted_are_refused(
    reading, drawing, tmp_path, monkeypatch, line, message
):
    file = tmp_path / "verdicts.jsonl"
    file.write_text(json.dumps(line) + "\n")
    with pytest.raises(SystemExit, match=message):
        _record(reading, drawing, monkeypatch, file)
