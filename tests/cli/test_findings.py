"""`vlscore findings`: labels from the shell."""

import json

from tests.cli.conftest import write_jsonl

ROWS = [
    {"id": "s1", "report": "Small left pleural effusion."},
    {"id": "s2", "report": "No effusion. Possible pneumonia."},
]


def test_labels_are_written_and_counted(command, tmp_path):
    table, out = write_jsonl(tmp_path / "t.jsonl", ROWS), tmp_path / "out"
    done = command("findings", table, "--out", out, "--uncertain", "positive")
    assert done.exit_code == 0, done.output
    assert "Labels of 2 reports" in done.stdout
    assert f"wrote {out}" in done.stdout
    assert (out / "labels.csv").read_text().startswith("study_id,No Finding,")


def test_a_row_without_a_report_is_told_and_costs_no_other(command, tmp_path):
    table = write_jsonl(tmp_path / "t.jsonl", [*ROWS, {"id": "s3", "report": None}])
    done = command("findings", table, "--out", tmp_path / "o", "--format", "jsonl")
    assert done.exit_code == 1
    assert "row 3 (s3)" in done.output
    lines = (tmp_path / "o" / "labels.jsonl").read_text().splitlines()
    assert [json.loads(line)["study_id"] for line in lines] == ["s1", "s2"]
    kept = command("findings", table, "--out", tmp_path / "p", "--keep-going")
    assert kept.exit_code == 0
