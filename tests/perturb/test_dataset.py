"""From a table of reports to the files of a data set."""

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.perturb.reports import REPORTS
from vlscore.core import RECORD
from vlscore.errors import InvalidTable
from vlscore.perturb import (
    KINDS,
    PerturbationSettings,
    PerturbedTable,
    perturb,
    perturb_report,
)
from vlscore.perturb.perturbed_table import PERTURBATIONS_FILE, SKIPPED_FILE

FILES = (PERTURBATIONS_FILE, SKIPPED_FILE, RECORD)
NORMAL = REPORTS["normal"]
TABLE = [
    {"id": "a", "report": REPORTS["several findings"]},
    {"id": "b", "report": NORMAL},
    {"id": "c", "report": REPORTS["sections"]},
    {"id": "d", "report": REPORTS["comparison"]},
    {"id": "e", "report": REPORTS["emoji and accents"]},
    {"id": "f", "report": REPORTS["german"]},
    {"id": "g", "report": REPORTS["one word"]},
    {"id": "h", "report": f"{NORMAL} Heart size is normal."},
]


def write(path: Path, rows: list[dict[str, Any]] = TABLE) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    return path


def records(out: Path, name: str = PERTURBATIONS_FILE) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / name).read_text("utf-8").splitlines()]


def contents(out: Path) -> dict[str, bytes]:
    files = sorted(file for file in out.iterdir() if file.is_file() and file.name != ".lock")
    return {file.name: file.read_bytes() for file in files}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> PerturbedTable:
    folder = tmp_path_factory.mktemp("made")
    return perturb(
        write(folder / "table.jsonl"), folder / "out", PerturbationSettings(seed=3, per_report=2)
    )


def test_the_files_hold_what_perturb_yields(made):
    assert sorted(contents(made.folder)) == sorted(FILES)
    expected = [
        perturbation.to_dict()
        for row in TABLE
        for perturbation in perturb_report(
            row["report"],
            seed=3,
            per_report=2,
            study_id=row["id"],
            standard_normal=made.record["standard_normal"],
        )
    ]
    assert records(made.folder) == expected
    assert sum(made.counts.values()) == len(expected) > 60
    assert made.record["reports"] == len(TABLE)
    assert made.failures == []


def test_every_report_and_kind_is_either_changed_or_explained(made):
    changed = {(record["study_id"], record["kind"]) for record in records(made.folder)}
    explained = {
        (skipped["study_id"], name)
        for skipped in records(made.folder, SKIPPED_FILE)
        for name in skipped["reasons"]
    }
    assert changed.isdisjoint(explained)
    assert changed | explained == {(row["id"], name) for row in TABLE for name in KINDS}
    one_word = next(s for s in records(made.folder, SKIPPED_FILE) if s["study_id"] == "g")
    assert one_word["row"] == 7
    assert one_word["reasons"]["change-location"] == KINDS["change-location"].nothing


def test_same_seed_same_bytes_another_seed_others(made, tmp_path):
    table = made.folder.parent / "table.jsonl"
    again = perturb(table, tmp_path / "again", PerturbationSettings(seed=3, per_report=2))
    other = perturb(table, tmp_path / "other", PerturbationSettings(seed=4, per_report=2))
    assert contents(again.folder) == contents(made.folder)
    assert contents(other.folder)[PERTURBATIONS_FILE] != contents(made.folder)[PERTURBATIONS_FILE]


def test_order_of_rows_does_not_change_what_a_study_gets(made, tmp_path):
    table = write(tmp_path / "table.jsonl", TABLE[::-1])
    other = perturb(table, tmp_path / "out", PerturbationSettings(seed=3, per_report=2))
    assert other.record["standard_normal"] == made.record["standard_normal"]
    for row in TABLE:
        own = [[r for r in records(t.folder) if r["study_id"] == row["id"]] for t in (made, other)]
        assert own[0] == own[1]


# ------------------------------------------------------------------ the standard normal report


# ------------------------------------------------------------------ bad input


def test_bad_rows_are_named_and_spoil_no_other(tmp_path):
    lines = [
        '{"id": "a", "report": "Mild edema. No effusion."}',
        '{"id": "b", "report": "  "}',
        "{broken",
        '{"id": "a", "report": "Left effusion. No edema."}',
        '{"id": "i", "report": "Left effusion. No edema."}',
    ]
    table = tmp_path / "t.jsonl"
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    made = perturb(table, tmp_path / "out")
    assert made.record["reports"] == 2
    assert {record["study_id"] for record in records(made.folder)} == {"a", "i"}
    assert [(bad.row, bad.id) for bad in made.failures] == [(2, "b"), (3, ""), (4, "a")]
    written = [skipped for skipped in records(made.folder, SKIPPED_FILE) if "reason" in skipped]
    assert [w["reason"] for w in written] == [bad.reason for bad in made.failures]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"id": "a", "report": ""}], "holds no report; row 1: no text in report"),
        ([], "holds no rows"),
        ([{"id": "a", "comment": "x"}], "no column report or text or reference"),
    ],
)
def test_a_table_without_reports_is_refused_and_nothing_is_written(tmp_path, rows, message):
    table = write(tmp_path / "t.jsonl", rows)
    with pytest.raises(InvalidTable, match=message):
        perturb(table, tmp_path / "out")
    assert not (tmp_path / "out").exists() or contents(tmp_path / "out") == {}
