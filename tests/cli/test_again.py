"""Repeating a finished run by its run.json."""

import json
import sys

import pytest

from tests.command import run_command
from vlscore.cli import command_line

ROWS = [("1", "Small left effusion.", "Left effusion."), ("2", "No edema.", "Mild edema.")]
# A metric whose value is another one each time, under the same signature.
NOISE = """
import itertools
from vlscore.metrics import text_metric
COUNT = itertools.count()
@text_metric("noise", "a count")
def noise(candidate, reference):
    return float(next(COUNT))
"""


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """Run a command in a folder of its own, as a process would; returns the folder."""
    home = tmp_path / "home"
    home.mkdir()
    lines = [json.dumps({"id": i, "reference": r, "candidate": g}) for i, r, g in ROWS]
    (home / "a.jsonl").write_text("\n".join(lines) + "\n")
    (home / "noisy.py").write_text(NOISE)
    monkeypatch.syspath_prepend(str(home))

    def run(*arguments):
        monkeypatch.chdir(home)
        monkeypatch.setattr(sys, "argv", ["/usr/bin/vlscore", *arguments])
        assert command_line() == 0
        monkeypatch.chdir(tmp_path)
        return home / "out"

    return run


@pytest.mark.parametrize(
    "call",
    [
        ("evaluate", "a.jsonl", "-m", "bleu-4,judge", "--format", "csv", "--out", "out"),
        ("evaluate", "a.jsonl", "-m", "rouge-l", "-o", "out", "--overwrite", "--quiet"),
        ("compare", "x=a.jsonl", "a.jsonl", "-m", "rouge-l", "--baselines", "--out=out"),
        ("judge", "a.jsonl", "--out", "out"),
    ],
)
@pytest.mark.parametrize("form", [("again",), ("--again",)])
def test_the_same_command_makes_the_same_files_elsewhere(ran, tmp_path, call, form):
    folder = ran(*call)
    done = run_command(*form, folder / "run.json", "--out", "second")
    assert done.exit_code == 0, done.output
    assert "byte for byte" in done.stdout
    first, second = (
        {path.name: path.read_bytes() for path in each.iterdir() if path.is_file()}
        for each in (folder, tmp_path / "second")
    )
    assert set(first) == set(second)
    written = json.loads(first["run.json"])["results"]
    assert {name: first[name] for name in written} == {name: second[name] for name in written}
    # The repeated run can be repeated.
    assert run_command("again", tmp_path / "second", "--out", "third").exit_code == 0


def test_a_changed_table_is_refused_and_named_before_anything_is_computed(ran, tmp_path):
    folder = ran("evaluate", "a.jsonl", "-m", "rouge-l", "--out", "out")
    before = (folder / "run.json").read_bytes()
    table = tmp_path / "home" / "a.jsonl"
    table.write_text(table.read_text().replace("Mild", "Severe"))
    for options in ((), ("--out", "second")):
        done = run_command("again", folder, *options)
        assert done.exit_code == 2
        assert "content of the table" in done.stderr
    assert not (tmp_path / "second").exists()
    assert (folder / "run.json").read_bytes() == before


def test_without_a_folder_nothing_is_computed(ran):
    folder = ran("evaluate", "a.jsonl", "-m", "rouge-l", "--out", "out")
    done = run_command("again", folder)
    assert done.exit_code == 0
    assert "are unchanged: evaluate a.jsonl -m rouge-l" in done.stdout


def test_results_that_differ_are_named(ran):
    folder = ran("evaluate", "a.jsonl", "-m", "noisy:noise", "--out", "out")
    done = run_command("again", folder, "--out", "second")
    assert done.exit_code == 1
    assert "results differ" in done.stderr
    assert "scores.parquet" in done.stderr


def test_a_run_of_a_python_program_is_refused(ran, tmp_path):
    folder = ran("evaluate", "a.jsonl", "-m", "rouge-l", "--out", "out")
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**record, "command": ["study.py"]}))
    done = run_command("again", folder)
    assert done.exit_code == 2
    assert "written by study.py" in done.stderr
    done = run_command("again", tmp_path)
    assert done.exit_code == 2
    assert "has no run.json" in done.stderr
