"""A data set whose making is killed goes on, and ends with the same bytes."""

import json

from typer.testing import CliRunner

from tests.killed_process import files_of, kill_at_first_part
from vlscore.cli.command_line import app


def command_of(table, out):
    options = ["--out", str(out), "--kinds", "standard-normal,negate-finding", "--keep-going"]
    return ["perturb", str(table), *options]


def test_sigkill_costs_the_chunk_in_work_and_nothing_else(tmp_path):
    said = ("Mild edema.", "No effusion. The heart is normal in size.", "")
    rows = [{"id": k, "report": said[k % 3]} for k in range(450)]
    table = tmp_path / "table.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    kill_at_first_part(command_of(table, killed), killed)
    assert not (killed / "run.json").exists()
    again, undisturbed = (
        CliRunner().invoke(app, command_of(table, out)) for out in (killed, whole)
    )
    assert (again.exit_code, undisturbed.exit_code) == (0, 0), again.output
    assert "resumed after row " in again.stderr
    assert files_of(killed) == files_of(whole)
