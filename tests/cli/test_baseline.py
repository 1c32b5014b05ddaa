"""`vlscore baseline` from the command line."""

import json

import pytest

from tests.cli.conftest import read_jsonl, write_jsonl


@pytest.fixture
def tables(tmp_path):
    train = write_jsonl(
        tmp_path / "train.jsonl",
        [
            {"id": f"t{k}", "report": text}
            for k, text in enumerate(["Clear lungs."] * 3 + ["Edema."])
        ],
    )
    rows = [
        {"id": f"s{k}", "reference": text} for k, text in enumerate(["Edema.", "", "No edema."])
    ]
    return train, write_jsonl(tmp_path / "test.jsonl", rows)


def test_candidates_are_written_and_can_be_evaluated(command, tables, tmp_path):
    train, studies = tables
    out = tmp_path / "o"
    done = command("baseline", "constant", studies, "--train", train, "-o", out)
    assert done.exit_code == 0, done.output
    assert "3 of 4" in done.stderr
    assert "different candidates" in done.stdout
    rows = read_jsonl(out / "candidates.jsonl")
    assert [row["candidate"] for row in rows] == ["Clear lungs."] * 3
    result = json.loads((out / "result.json").read_text())
    assert result["frames"]["facts"][0]["distinct"] == 1
    again = command("baseline", "constant", studies, "--train", train, "-o", out)
    assert "nothing was computed" in again.stderr
    scored = command("evaluate", out / "candidates.jsonl", "-m", "bleu-1", "-o", tmp_path / "e")
    assert "row 2" in scored.stderr


def test_a_row_without_labels_fails_alone(command, tables, tmp_path):
    done = command("baseline", "templates", tables[1], "-o", tmp_path / "o")
    assert done.exit_code == 1
    assert "1 row could not be given a candidate" in done.stderr
    assert "upper bound" in done.stderr
    assert len(read_jsonl(tmp_path / "o" / "candidates.jsonl")) == 2
