"""`vlscore judge`: judgements from the shell."""

import json

from tests.cli.conftest import write_jsonl

ROWS = [
    {"id": "s1", "reference": "Left effusion.", "candidate": "Right effusion."},
    {"id": "s2", "reference": "Clear lungs.", "candidate": "Clear lungs."},
]


def test_judgements_are_written_and_counted(command, tmp_path):
    table, out = write_jsonl(tmp_path / "t.jsonl", ROWS), tmp_path / "out"
    done = command("judge", table, "--out", out)
    assert done.exit_code == 0, done.output
    assert "Scores of 2 reports" in done.stdout
    line = next(x for x in done.stdout.splitlines() if x.startswith("wrong location"))
    assert line.split()[-1] == "1"
    first = json.loads((out / "judgements.jsonl").read_text().splitlines()[0])
    assert first["errors"][0]["category"] == "wrong_location"
    again = command("judge", table, "--out", out)
    assert "nothing was judged" in again.stderr


def test_a_bad_row_is_listed_and_costs_no_other(command, tmp_path):
    rows = [*ROWS, {"id": "s3", "reference": "Clear.", "candidate": "x", "age": "old"}]
    table = write_jsonl(tmp_path / "t.jsonl", rows)
    done = command("judge", table, "--out", tmp_path / "o", "--quiet")
    assert done.exit_code == 1
    assert "row 3 (s3)" in done.stderr
    assert command("judge", table, "--out", tmp_path / "p", "--keep-going").exit_code == 0
