"""A data set whose making is killed goes on, and ends with the same bytes."""

import json
import subprocess
import sys
import time

from typer.testing import CliRunner

from vlscore.cli.command_line import app


def command_of(table, out):
    options = ["--out", str(out), "--kinds", "standard-normal,negate-finding", "--keep-going"]
    return ["perturb", str(table), *options]


def start(table, out):
    command = [sys.executable, "-m", "vlscore", *command_of(table, out)]
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, stdout=quiet, stderr=subprocess.PIPE, text=True)


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != ".lock"}


def test_sigkill_costs_the_chunk_in_work_and_nothing_else(tmp_path):
    said = ("Mild edema.", "No effusion. The heart is normal in size.", "")
    rows = [{"id": k, "report": said[k % 3]} for k in range(450)]
    table = tmp_path / "table.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = start(table, killed)
    while not (killed / ".parts" / "part-00000000").exists():
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.001)
    process.kill()
    assert process.wait() == -9
    assert not (killed / "run.json").exists()
    again, undisturbed = (
        CliRunner().invoke(app, command_of(table, out)) for out in (killed, whole)
    )
    assert (again.exit_code, undisturbed.exit_code) == (0, 0), again.output
    assert "went on after row " in again.stderr
    assert files_of(killed) == files_of(whole)
