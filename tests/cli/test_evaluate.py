"""The commands as a person uses them."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from vlscore._resources import resource_path

DEMO = resource_path("weights", "phantom", "demo") / "studies.jsonl"


def vlscore(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "vlscore", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Three demo studies, the second with an image that is not there."""
    records = [json.loads(line) for line in DEMO.read_text().splitlines()[:3]]
    for record in records:
        record["image"] = str(DEMO.parent / record["image"])
    records[1]["image"] = "absent.dcm"
    path = tmp_path_factory.mktemp("studies") / "studies.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_evaluate_prints_writes_and_reports_the_bad_row(table, tmp_path):
    done = vlscore("evaluate", table, "--out", tmp_path, "--format", "csv", "--workers", "0")
    assert done.returncode == 1
    assert "row 2 (phantom-2026-00001)" in done.stderr
    assert "absent.dcm: no such file" in done.stderr
    assert "trained on synthetic phantoms" in done.stderr
    assert "2 of 3" in done.stdout
    assert str(tmp_path / "scores.csv") in done.stdout
    with (tmp_path / "scores.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == ["phantom-2026-00000", "phantom-2026-00002"]
    assert json.loads((tmp_path / "summary.json").read_text())["failed"] == 1
    assert (
        "DEMONSTRATION" in json.loads((tmp_path / "run.json").read_text())["signature"]["signature"]
    )

    again = vlscore("evaluate", table, "--out", tmp_path, "--format", "csv", "--workers", "0")
    assert again.returncode == 2
    assert "--overwrite" in again.stderr
    keep = ("--overwrite", "--keep-going", "--show", "2", "--workers", "0", "--format", "csv")
    third = vlscore("evaluate", table, "--out", tmp_path, *keep)
    assert third.returncode == 0
    assert "phantom-2026-00002" in third.stdout


def test_score_prints_one_study(table):
    record = json.loads(table.read_text().splitlines()[0])
    done = vlscore("score", "-i", record["image"], "-g", "Normal.", "-r", "Edema.", "--json")
    assert done.returncode == 0
    result = json.loads(done.stdout)
    assert 0 <= result["score"] <= 1
    assert result["signature"].startswith("vlscore|enc:phantom@")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("evaluate", "absent.csv", "--out", "x"), "absent.csv: no such file"),
        (("evaluate", DEMO, "--out", "x", "--encoder", "no-such"), "no encoder is called"),
        (("score", "-i", "a.png", "-g", "x", "-r", "y", "--similarity", "euclid"), "known:"),
    ],
)
def test_mistakes_are_one_line_and_status_2(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = vlscore(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
