"""A real build process that is really killed, and two writers at once."""

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tests.doubles import HashEncoder
from tests.killed_process import files_of, kill_at_first_part
from vlscore.cli.command_line import app
from vlscore.core import sole_writer
from vlscore.embedding import StudyEmbedder
from vlscore.errors import FolderInUse, InvalidIndex
from vlscore.retrieval import index_add, index_build, load_index

HOLDER = """
import sys, time
from pathlib import Path
from vlscore.core import sole_writer
with sole_writer(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def write_reports(path, count):
    rows = [{"id": str(k), "report": f"Finding {k % 900} of the left lung."} for k in range(count)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def command_of(table, out):
    return ["index", "build", str(table), "--out", str(out)]


def test_sigkill_costs_the_part_in_work_and_nothing_else(tmp_path):
    table = write_reports(tmp_path / "reports.jsonl", 700)
    killed = tmp_path / "killed"
    kill_at_first_part(command_of(table, killed), killed)
    with pytest.raises(InvalidIndex, match="unfinished build"):
        load_index(killed)
    again, whole = (
        CliRunner().invoke(app, command_of(table, out)) for out in (killed, tmp_path / "whole")
    )
    assert (again.exit_code, whole.exit_code) == (0, 0), again.output + whole.output
    assert "resumed after row " in again.stderr
    assert files_of(killed) == files_of(tmp_path / "whole")


def test_two_writers_are_kept_apart_and_a_dead_one_blocks_nobody(tmp_path):
    table = write_reports(tmp_path / "reports.jsonl", 10)
    out = tmp_path / "index"
    embedder = StudyEmbedder(HashEncoder(), device="cpu")
    index_build(table, out, embedder)
    more = write_reports(tmp_path / "more.jsonl", 20)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(out)], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout.readline() == "held\n"
    for work in (
        lambda: index_build(more, out, embedder, overwrite=True),
        lambda: index_add(more, out, embedder),
    ):
        with pytest.raises(FolderInUse, match="another run is writing this folder"):
            work()
    assert len(load_index(out)) == 10  # readers are not kept out
    holder.kill()
    holder.wait()
    assert len(index_add(more, out, embedder).index) == 20
    with sole_writer(out), pytest.raises(FolderInUse):
        index_add(more, out, embedder)
