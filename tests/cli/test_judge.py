"""`vlscore judge`: judgements from the shell."""

import json

from tests.cli.conftest import write_jsonl
from tests.metrics.judge.endpoint_server import EMPTY, Answer, running

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
    assert "nothing was computed" in again.stderr


def test_a_bad_row_is_listed_and_costs_no_other(command, tmp_path):
    rows = [*ROWS, {"id": "s3", "reference": "Clear.", "candidate": "x", "age": "old"}]
    table = write_jsonl(tmp_path / "t.jsonl", rows)
    done = command("judge", table, "--out", tmp_path / "o", "--quiet")
    assert done.exit_code == 1
    assert "row 3 (s3)" in done.stderr
    assert command("judge", table, "--out", tmp_path / "p", "--keep-going").exit_code == 0


def test_a_language_model_judges_and_its_cost_is_printed(command, tmp_path):
    table = write_jsonl(tmp_path / "t.jsonl", ROWS)
    with running(lambda number, body: Answer(EMPTY)) as endpoint:
        model = ("--model", "fake", "--endpoint", endpoint.url, "--prices", "1,2")
        done = command("judge", table, "--out", tmp_path / "o", *model)
    assert done.exit_code == 0, done.output
    assert f"reports go to {endpoint.url} (on this machine)" in done.stderr
    assert "asked the model for 2 answers" in done.stderr
    cost = next(line for line in done.stdout.splitlines() if line.startswith("cost"))
    assert cost.split()[-1] == "0.0002"
    result = json.loads((tmp_path / "o" / "result.json").read_text())
    assert result["frames"]["answers"][0]["tokens_in"] == 200
    assert "few-shot@1" in result["signatures"]["judge"]


def test_wrong_settings_of_a_model_are_explained(command, tmp_path):
    table = write_jsonl(tmp_path / "t.jsonl", ROWS)
    start = ("judge", table, "--out", tmp_path / "o", "--model", "m")
    for more, reason in (
        ((), "--endpoint http://localhost"),
        (("--endpoint", "https://example.org/v1"), "--send-to example.org"),
        (("--endpoint", "http://localhost:1/v1", "--prices", "cheap"), "two numbers"),
        (("--endpoint", "http://localhost:1/v1", "--prompt", "x"), "there is no prompt"),
    ):
        done = command(*start, *more)
        assert done.exit_code != 0
        assert reason in done.stderr
    assert not (tmp_path / "o").exists()
