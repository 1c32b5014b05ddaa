"""What docs/perturbations.md says of kinds, files and fields is so; tests/test_docs.py runs it."""

import re
import shlex
import subprocess
import sys

import pytest

from tests.cli.conftest import read_jsonl, write_jsonl
from tests.command import run_command
from tests.conftest import REPOSITORY, run_python
from vlscore.data import sample_studies
from vlscore.perturb import KINDS, perturb_report

PAGE = (REPOSITORY / "docs" / "perturbations.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table of reports in the current folder."""
    studies = [(f"s{k}", study.reference) for k, study in enumerate(sample_studies(4, 12))]
    write_jsonl(tmp_path / "test.jsonl", [{"id": name, "report": text} for name, text in studies])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_fields_are_those_that_are_written(folder):
    done = run_command("perturb", "test.jsonl", "--out", "perturbed")
    assert done.exit_code == 0, done.output
    made = read_jsonl(folder / "perturbed" / "perturbations.jsonl")
    section = PAGE[PAGE.index("A line of `perturbations.jsonl`") :].split("\n\n")[0]
    outside = re.sub(r"\([^)]*\)", "", section)
    assert re.findall(r"`(\w+)`", outside) == list(made[0])


def test_the_kinds_that_the_page_names_exist():
    section = PAGE[PAGE.index("## The kinds") : PAGE.index("## What is written")]
    prose = "".join(line for line in section.splitlines(True) if not line.startswith("    "))
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", prose))
    assert len(named) == 7
    assert named <= set(KINDS)


def test_the_example_runs_as_printed(tmp_path, monkeypatch):
    """As a file: alone, by the command, and where the kinds of ours are."""
    (tmp_path / "my_kinds.py").write_text(EXAMPLE)
    done = run_python("my_kinds.py", cwd=tmp_path)
    assert sorted(done.stdout.splitlines()) == [
        "Left haemothorax. No edema.",
        "Left hemothorax. No oedema.",
        "There is edema.",
    ], done.stderr
    write_jsonl(tmp_path / "test.jsonl", [{"id": "a", "report": "There is oedema."}])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (command,) = re.findall(r"^    PYTHONPATH=\. (vlscore .*)$", PAGE, re.MULTILINE)
    done = run_command(*shlex.split(command)[1:])
    assert done.exit_code == 0, done.output
    (made,) = read_jsonl(tmp_path / "spelled" / "perturbations.jsonl")
    assert made["perturbed"] == "There is edema."


def test_a_kind_may_import_from_the_package_wherever_it_lies():
    """The registry imports no kind before it is asked for, so that no circle arises."""
    program = (
        "import sys, vlscore.perturb\n"
        "assert not [m for m in sys.modules if m.startswith('vlscore.perturb.kinds.')]\n"
        "vlscore.perturb.KINDS['paraphrase']\n"
        "print('vlscore.perturb.kinds.rewordings' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


def test_other_rows_and_kinds_do_not_matter(folder):
    """As the page says, of all kinds but the standard normal report."""
    done = run_command("perturb", "test.jsonl", "--out", "perturbed")
    assert done.exit_code == 0, done.output
    made = read_jsonl(folder / "perturbed" / "perturbations.jsonl")
    for row in read_jsonl(folder / "test.jsonl"):
        table = [p for p in made if p["study_id"] == row["id"] and p["kind"] != "standard-normal"]
        kinds = [name for name in KINDS if name != "standard-normal"]
        alone = [p.to_dict() for p in perturb_report(row["report"], kinds, study_id=row["id"])]
        assert table == alone
