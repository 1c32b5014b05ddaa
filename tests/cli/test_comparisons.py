"""`--comparisons ignored` of the commands that score reports."""

import json
from pathlib import Path

import pytest

from tests.command import run_command


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    row = {"id": "s", "reference": "New effusion.", "candidate": "Effusion."}
    table = tmp_path / "studies.jsonl"
    table.write_text(json.dumps(row) + "\n" + json.dumps(row | {"id": "t"}) + "\n")
    return table


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_the_signature_says_that_comparisons_are_left_out(command, studies, tmp_path):
    further = ["--text-only"] if command == "compare" else []
    options = ["--metrics", "judge,findings-f1", "--comparisons", "ignored", *further]
    done = run_command(command, studies, *options, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    tables = (tmp_path / "out" / "tables.md").read_text(encoding="utf-8")
    assert "comparisons:ignored" in tables
    result = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    assert "comparisons=ignored" in json.dumps(result)


def test_the_judge_names_no_error_about_comparisons(studies, tmp_path):
    done = run_command("judge", studies, "--comparisons", "ignored", "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    lines = (tmp_path / "out" / "judgements.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["errors"] for line in lines] == [[], []]


def test_a_metric_of_comparisons_is_refused(studies, tmp_path):
    options = ["--metrics", "change-f1", "--comparisons", "ignored", "--out", tmp_path / "out"]
    done = run_command("evaluate", studies, *options)
    assert done.exit_code != 0
    assert "it measures them" in done.output
