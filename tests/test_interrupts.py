"""Ctrl-C at any moment of a command: one line, exit status 130, no traceback and no abort."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evaluation.samples import make_table

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends signals")

RUN = "import sys; sys.argv = ['vlscore', *ARGUMENTS]\nfrom vlscore.__main__ import main\nmain()\n"

INTERRUPT_AT_IMPORT = """
import signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == NAME:
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder())
"""


def ran(program, *arguments, **names):
    """A process that runs the program, then the command with these arguments."""
    head = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    head += f"ARGUMENTS = {arguments!r}\n"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", head + program], capture_output=True, text=True, env=environment
    )


@pytest.mark.parametrize("name", ["vlscore.cli.app", "vlscore.cli.weights"])
def test_while_the_command_line_is_imported(name):
    done = ran(INTERRUPT_AT_IMPORT + RUN, "weights", "path", NAME=name)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "\nstopped\n")


def test_who_ignores_ctrl_c_still_does():
    ignored = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    done = ran(ignored + INTERRUPT_AT_IMPORT + RUN, "--version", NAME="vlscore.cli.app")
    assert (done.returncode, done.stderr) == (0, "")


# One process imports everything; each child is interrupted after so many calls of functions.
MOMENTS = """
import os, signal, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from vlscore.__main__ import main
import vlscore.cli, vlscore.evaluation

def evaluate(folder, moment):
    for number, name in (1, "said"), (2, "errors"):
        os.dup2(os.open(folder / name, os.O_CREAT | os.O_WRONLY), number)
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"
        if calls == moment:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    sys.argv = ["vlscore", "evaluate", TABLE, "--out", str(folder / "out"), "--workers", "1"]
    sys.setprofile(count)
    try:
        main()
    finally:
        sys.setprofile(None)
        (folder / "calls").write_text(str(calls))

def status_of(number, moment):
    folder = Path(PLACE) / str(number)
    folder.mkdir()
    child = os.fork()
    if child == 0:
        evaluate(folder, moment)
        sys.exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

statuses = [status_of(0, 0)]
total = int((Path(PLACE) / "0" / "calls").read_text())
for k in range(1, COUNT):
    statuses.append(status_of(k, k * total // COUNT))
print(statuses)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")
def test_at_many_moments_of_an_evaluation(tmp_path):
    count = 4
    table, _ = make_table(tmp_path / "images", 4)
    done = ran(MOMENTS, TABLE=str(table), PLACE=str(tmp_path), COUNT=count)
    assert done.stderr == ""
    assert json.loads(done.stdout) == [0] + [130] * (count - 1)
    for k in range(count):
        said = (tmp_path / str(k) / "errors").read_text()
        assert "Traceback" not in said
        assert "ignored" not in said
        assert not list(Path(tmp_path / str(k)).rglob("*.tmp"))
