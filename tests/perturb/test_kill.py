"""A data set whose making is killed goes on, and ends with the same bytes."""

import json
import subprocess
import sys
import time


def start(table, out):
    options = ["--out", str(out), "--kinds", "standard-normal,negate-finding", "--keep-going"]
    command = [sys.executable, "-m", "vlscore", "perturb", str(table), *options]
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
    again, undisturbed = start(table, killed), start(table, whole)
    assert again.wait() == 0
    assert "went on after row " in again.stderr.read()
    assert undisturbed.wait() == 0
    assert files_of(killed) == files_of(whole)
