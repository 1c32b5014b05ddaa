"""`vlscore perturb`: what is printed, with which status, and what the files then hold."""

import csv
import re
from itertools import pairwise

import pytest

from tests.cli.conftest import read_jsonl, write_jsonl
from vlscore.perturb import KINDS

NORMAL = "The heart is normal in size. The lungs are clear. No effusion or pneumothorax."
ROWS = [
    {"id": "s1", "report": "There is a small left pleural effusion. The heart is mildly enlarged."},
    {"id": "s2", "report": NORMAL},
    {"id": "s3", "report": "PA and lateral views. Stable cardiomegaly. No edema. Left effusion."},
]


@pytest.fixture
def table(tmp_path):
    return write_jsonl(tmp_path / "table.jsonl", ROWS)


def test_it_prints_what_it_made_and_where(command, table, tmp_path):
    out = tmp_path / "out"
    done = command("perturb", table, "--out", out)
    assert done.exit_code == 0, done.output
    records = read_jsonl(out / "perturbations.jsonl")
    for name in KINDS:
        count = sum(record["kind"] == name for record in records)
        assert re.search(rf"{name}\W+{count}\W", done.stdout), name
    assert re.search(rf"\ball\W+{len(records)}\W", done.stdout)
    for said in ("3 reports", "standard normal report: The heart is normal", f"wrote {out}"):
        assert said in done.stdout
    assert "nothing was made" in command("perturb", table, "--out", out).stderr


def test_kinds_seed_and_number(command, table, tmp_path):
    options = ("--kinds", " paraphrase, change-severity,", "--per-report", 3, "--seed", 5)
    done = command("perturb", table, "-o", tmp_path / "out", *options)
    assert done.exit_code == 0, done.output
    assert {r["kind"] for r in read_jsonl(tmp_path / "out" / "perturbations.jsonl")} == {
        "paraphrase", "change-severity",
    }  # fmt: skip
    assert "remove-pathology" not in done.stdout
    assert "standard normal report" not in done.stdout


def test_bad_rows_are_named_with_one_line_a_reason_and_the_status_tells(command, tmp_path):
    rows = [*ROWS, *({"id": f"x{k}", "report": ""} for k in range(14)), ROWS[0]]
    table, out = write_jsonl(tmp_path / "table.jsonl", rows), tmp_path / "out"
    done = command("perturb", table, "-o", out)
    assert done.exit_code == 1
    assert "15 rows could not be used:" in done.stderr
    assert "row 4 (x0), row 5 (x1), row 6 (x2) and 11 more: no text in report" in done.stderr
    assert "row 18 (s1): id 's1' is already in row 1" in done.stderr
    assert str(out / "skipped.jsonl") in done.stderr
    assert command("perturb", table, "-o", out, "--keep-going").exit_code == 0


def test_columns_and_standard_normal_report_may_be_given(command, tmp_path):
    table = write_jsonl(tmp_path / "t.jsonl", [{"acc": 9, "body": NORMAL, "report": "x"}])
    (tmp_path / "normal.txt").write_text("  Nothing is wrong.\n", encoding="utf-8")
    done = command(
        *("perturb", table, "-o", tmp_path / "out", "--kinds", "standard-normal"),
        *("--rename", "id=acc", "--rename", "report=body"),
        *("--standard-normal", tmp_path / "normal.txt"),
    )
    assert done.exit_code == 0, done.output
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kinds", "paraphrase,edema"), "called 'edema'; `vlscore perturb --list-kinds` lists"),
        (("--rename", "report=body"), "no column body; found: id, report"),
        (("--standard-normal", "absent.txt"), "absent.txt: cannot be read"),
        (("--standard-normal", "empty.txt"), "empty.txt: holds no report"),
        (("--standard-normal", "latin.txt"), "latin.txt: cannot be read"),
        (("--per-report", "0"), "error: "),
        (("--seed", "x"), "error: "),
    ],
)
def test_mistakes_are_refused(command, table, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "latin.txt").write_bytes(b"\xfcbrig")
    done = command("perturb", table, "-o", tmp_path / "out", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


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
    for row in rows:
        assert float(row["rouge-l.perturbed"]) < 1 or row["kind"] == "shuffle-sentences"
