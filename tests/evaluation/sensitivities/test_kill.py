"""A benchmark of sensitivity that is really killed goes on, and ends with the same bytes."""

import json

from typer.testing import CliRunner

from tests.killed_process import files_of, kill_at_first_part
from vlscore.cli.command_line import app


def command_of(pairs, out):
    options = ["--out", str(out), "--metrics", "bleu-1,bleu-4", "--resamples", "10"]
    return ["sensitivity", "-p", str(pairs), *options]


def test_sigkill_costs_the_chunk_in_work_and_nothing_else(tmp_path):
    pairs = tmp_path / "perturbations.jsonl"
    rows = [
        {
            "study_id": str(k),
            "kind": "change-location",
            "expected": "significant",
            "original": f"Small left effusion {k}.",
            "perturbed": f"Small right effusion {k}.",
        }
        for k in range(4000)
    ]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    kill_at_first_part(command_of(pairs, killed), killed)
    assert not (killed / "run.json").exists()
    for out in (killed, whole):
        done = CliRunner().invoke(app, command_of(pairs, out))
        assert done.exit_code == 0, done.output
    assert json.loads((killed / "run.json").read_text())["resumed_from"] > 0
    assert files_of(killed, "run.json") == files_of(whole, "run.json")
