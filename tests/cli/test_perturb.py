"""`vlscore perturb`: what is printed, with which status, and what the files then hold."""

import csv
import json
import os
import re
import subprocess
import sys
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.conftest import read_jsonl, write_jsonl
from vlscore.errors import InvalidSetting, InvalidTable, UnknownName
from vlscore.perturb import KINDS, Edit, apply_edits

NORMAL = "The heart is normal in size. The lungs are clear. No effusion or pneumothorax."
ROWS = [
    {"id": "s1", "report": "There is a small left pleural effusion. The heart is mildly enlarged."},
    {"id": "s2", "report": NORMAL},
    {"id": "s3", "report": "PA and lateral views. Stable cardiomegaly. No edema. Left effusion."},
    {"id": "s4", "report": "FINDINGS: Mild edema. No mass. Right base opacity. IMPRESSION: Edema."},
    {"id": "s5", "report": "Lungs are clear – naïvely read."},
]
FILES = ("perturbations.jsonl", "skipped.jsonl", "run.json")


@pytest.fixture
def table(tmp_path):
    return write_jsonl(tmp_path / "table.jsonl", ROWS)


def contents(out):
    return {name: (out / name).read_bytes() for name in FILES}


def test_it_prints_what_it_made_and_where(command, table, tmp_path):
    out = tmp_path / "out"
    done = command("perturb", table, "--out", out)
    assert done.exit_code == 0, done.output
    records = read_jsonl(out / "perturbations.jsonl")
    assert "5 reports" in done.stdout
    for name in KINDS:
        count = sum(record["kind"] == name for record in records)
        assert re.search(rf"{name}\W+{count}\W", done.stdout), name
    assert re.search(rf"\ball\W+{len(records)}\W", done.stdout)
    assert "standard normal report: The heart is normal in size." in done.stdout
    assert f"wrote {out}" in done.stdout
    assert "could not be used" not in done.output
    assert len({record["kind"] for record in records}) > 10
    for record in records:
        edits = [Edit(**edit) for edit in record["edits"]]
        assert apply_edits(record["original"], edits) == record["perturbed"]


def test_the_three_formats_make_the_same_records(command, table, tmp_path):
    with (tmp_path / "table.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, ROWS[0])
        writer.writeheader()
        writer.writerows(ROWS)
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "table.parquet")
    made = []
    for format in ("jsonl", "csv", "parquet"):
        out = tmp_path / format
        assert command("perturb", tmp_path / f"table.{format}", "-o", out).exit_code == 0
        made.append((out / "perturbations.jsonl").read_bytes())
    assert made[0] == made[1] == made[2]


def test_kinds_seed_and_number(command, table, tmp_path):
    chosen = ("--kinds", " paraphrase, change-severity,")
    done = command("perturb", table, "-o", tmp_path / "one", *chosen)
    assert done.exit_code == 0, done.output
    ones = read_jsonl(tmp_path / "one" / "perturbations.jsonl")
    assert {record["kind"] for record in ones} == {"paraphrase", "change-severity"}
    assert "remove-pathology" not in done.stdout
    assert "standard normal report" not in done.stdout

    assert command("perturb", table, "-o", tmp_path / "all").exit_code == 0
    everything = read_jsonl(tmp_path / "all" / "perturbations.jsonl")
    assert ones == [r for r in everything if r["kind"] in ("paraphrase", "change-severity")]

    more = ("--per-report", 3, "--seed", 5)
    assert command("perturb", table, "-o", tmp_path / "three", *chosen, *more).exit_code == 0
    threes = read_jsonl(tmp_path / "three" / "perturbations.jsonl")
    assert len(threes) > len(ones)
    facts = json.loads((tmp_path / "three" / "run.json").read_text())
    assert (facts["seed"], facts["per_report"]) == (5, 3)


def test_another_process_writes_the_same_bytes(command, table, tmp_path):
    arguments = ("--seed", "7", "--per-report", "2")
    assert command("perturb", table, "-o", tmp_path / "here", *arguments).exit_code == 0
    before = contents(tmp_path / "here")
    assert command("perturb", table, "-o", tmp_path / "here", *arguments).exit_code == 0
    assert contents(tmp_path / "here") == before
    done = subprocess.run(
        [sys.executable, "-m", "vlscore", "perturb", table, "-o", tmp_path / "there", *arguments],
        env={**os.environ, "PYTHONHASHSEED": "3", "LC_ALL": "C"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "there") == before


def test_a_bad_row_is_named_and_the_status_tells(command, tmp_path):
    rows = [*ROWS, {"id": "s6", "report": " "}, {"id": "s1", "report": "Mild edema."}]
    table, out = write_jsonl(tmp_path / "table.jsonl", rows), tmp_path / "out"
    done = command("perturb", table, "-o", out)
    assert done.exit_code == 1
    assert "5 reports" in done.stdout
    assert "2 rows could not be used:" in done.stderr
    assert "row 6 (s6): no text in report" in done.stderr
    assert "row 7 (s1): id 's1' is already in row 1" in done.stderr
    assert str(out / "skipped.jsonl") in done.stderr
    bad = [record for record in read_jsonl(out / "skipped.jsonl") if "reason" in record]
    assert [record["row"] for record in bad] == [6, 7]
    assert command("perturb", table, "-o", out, "--keep-going").exit_code == 0


def test_bad_rows_with_one_reason_are_one_line(command, tmp_path):
    rows = [ROWS[0], *({"id": f"x{k}", "report": ""} for k in range(14))]
    table = write_jsonl(tmp_path / "table.jsonl", rows)
    done = command("perturb", table, "-o", tmp_path / "out")
    assert "14 rows could not be used" in done.stderr
    assert "row 2 (x0), row 3 (x1), row 4 (x2) and 11 more: no text in report" in done.stderr
    assert "row 5" not in done.stderr


def test_a_report_that_allows_no_change_is_explained(command, table, tmp_path):
    out = tmp_path / "out"
    assert command("perturb", table, "-o", out, "--kinds", "change-location").exit_code == 0
    explained = {record["study_id"]: record for record in read_jsonl(out / "skipped.jsonl")}
    assert explained["s5"] == {
        "row": 5,
        "study_id": "s5",
        "reasons": {"change-location": KINDS["change-location"].nothing},
    }


def test_columns_and_standard_normal_report_may_be_given(command, tmp_path):
    table = write_jsonl(tmp_path / "t.jsonl", [{"acc": 9, "body": NORMAL, "report": "x"}])
    (tmp_path / "normal.txt").write_text("  Nothing is wrong.\n", encoding="utf-8")
    done = command(
        *("perturb", table, "-o", tmp_path / "out", "--kinds", "standard-normal"),
        *("--rename", "id=acc", "--rename", "report=body"),
        *("--standard-normal", tmp_path / "normal.txt"),
    )
    assert done.exit_code == 0, done.output
    assert "standard normal report: Nothing is wrong." in done.stdout
    (record,) = read_jsonl(tmp_path / "out" / "perturbations.jsonl")
    assert (record["study_id"], record["perturbed"]) == ("9", "Nothing is wrong.")


def test_list_kinds_needs_nothing_else(command):
    done = command("perturb", "--list-kinds")
    assert done.exit_code == 0
    for name, kind in KINDS.items():
        ((head, line),) = [
            pair for pair in pairwise(done.stdout.splitlines()) if pair[0].startswith(f"{name}: ")
        ]
        assert kind.description == line.strip()
        assert (kind.category or "") in head
        assert ("not notice" in head) is (kind.expected == "insignificant")


def test_help_says_what_is_written_and_how_to_choose(command):
    done = command("perturb", "--help")
    assert done.exit_code == 0
    # Lines may end at a hyphen.
    told = " ".join(done.stdout.split()).replace("- ", "-")
    for said in (
        "perturbations.jsonl",
        "skipped.jsonl",
        "run.json",
        "same bytes",
        ".jsonl, .json, .csv, .tsv or .parquet",
        "--overwrite",
        "--list-kinds",
        "--per-report",
        "remove-pathology,change-location",
        "Example: vlscore perturb",
    ):
        assert said in told, said


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            ("--kinds", "paraphrase,edema"),
            UnknownName,
            "called 'edema'; `vlscore perturb --list-kinds` lists all",
        ),
        (("--rename", "report=body"), InvalidTable, "no column body; found: id, report"),
        (("--standard-normal", "absent.txt"), InvalidSetting, "absent.txt: cannot be read"),
        (("--standard-normal", "empty.txt"), InvalidSetting, "empty.txt: holds no report"),
        (("--standard-normal", "latin.txt"), InvalidSetting, "latin.txt: cannot be read"),
    ],
)
def test_mistakes_are_refused(command, table, tmp_path, monkeypatch, arguments, error, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "latin.txt").write_bytes(b"\xfcbrig")
    done = command("perturb", table, "-o", tmp_path / "out", *arguments)
    assert done.exit_code != 0
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [("--per-report", "0"), ("--seed", "x"), (), ("--no-such-option",)],
)
def test_options_that_cannot_be_are_usage_errors(command, table, tmp_path, arguments):
    out = () if not arguments else ("-o", tmp_path / "out")
    done = command("perturb", table, *out, *arguments)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")


def test_a_mistake_is_one_line_and_status_2(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "vlscore", "perturb", tmp_path / "absent.csv", "-o", tmp_path],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2
    assert "absent.csv: no such file" in done.stderr
    assert "Traceback" not in done.stderr


def test_sensitivity_reads_what_perturb_writes(command, table, tmp_path):
    out = tmp_path / "perturbed"
    assert command("perturb", table, "-o", out, "--per-report", 2).exit_code == 0
    done = command(
        *("sensitivity", "-p", out, "-o", tmp_path / "sensitivity"),
        *("--metrics", "bleu-1,rouge-l", "--resamples", 20),
    )
    assert done.exit_code == 0, done.output
    records = read_jsonl(out / "perturbations.jsonl")
    with (tmp_path / "sensitivity" / "values.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["study_id"], row["kind"]) for row in rows] == [
        (record["study_id"], record["kind"]) for record in records
    ]
    assert {float(row["rouge-l.original"]) for row in rows} == {1.0}
    for row in rows:
        assert float(row["rouge-l.perturbed"]) < 1 or row["kind"] == "shuffle-sentences"
