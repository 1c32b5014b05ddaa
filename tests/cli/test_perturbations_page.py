"""Every command and example of docs/perturbations.md is run; its table is the registry's."""

import contextlib
import csv
import io
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from tests.cli.conftest import read_jsonl, write_jsonl
from tests.conftest import REPOSITORY
from vlscore.cli import app
from vlscore.perturb import KINDS, Expected, perturb
from vlscore.phantom.dataset import sample_studies

PAGE = (REPOSITORY / "docs" / "perturbations.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (vlscore .*)$", PAGE, re.MULTILINE)
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The tables that the page speaks of, in the current folder."""
    studies = [(f"s{k}", study.reference) for k, study in enumerate(sample_studies(4, 12))]
    write_jsonl(tmp_path / "test.jsonl", [{"id": name, "report": text} for name, text in studies])
    rng = np.random.default_rng(0)
    with (
        (tmp_path / "studies.csv").open("w", newline="", encoding="utf-8") as with_images,
        (tmp_path / "reports.csv").open("w", newline="", encoding="utf-8") as with_findings,
    ):
        images, findings = csv.writer(with_images), csv.writer(with_findings)
        images.writerow(["id", "image"])
        findings.writerow(["id", "findings"])
        for name, text in studies:
            pixels = rng.integers(0, 256, (48, 48), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / f"{name}.png")
            images.writerow([name, f"{name}.png"])
            findings.writerow([name, text])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_run(folder):
    assert len(COMMANDS) >= 6
    for command in COMMANDS:
        done = CliRunner().invoke(app, shlex.split(command)[1:])
        assert done.exit_code == 0, (command, done.output)
    made = read_jsonl(folder / "perturbed" / "perturbations.jsonl")
    section = PAGE[PAGE.index("A line of `perturbations.jsonl`") :]
    shown = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ", section, re.MULTILINE)
    fields = [name for cell in shown for name in re.findall(r"`(\w+)`", cell)]
    assert fields == list(made[0])
    sides = read_jsonl(folder / "sides" / "perturbations.jsonl")
    assert {record["kind"] for record in sides} <= {"change-location", "replace-uninformative"}
    results = {path.name for path in (folder / "results").iterdir()}
    assert results >= {"sensitivity.json", "values.csv", "tables.md"}


def test_the_table_is_the_registry():
    rows = re.findall(r"^\| `([a-z-]+)`.*? \| (.*?) \| (.*?) ?\| (.*?) \|$", PAGE, re.MULTILINE)
    assert rows == [
        (
            kind.name,
            "notice" if kind.expected is Expected.SIGNIFICANT else "not notice",
            (kind.category or "").replace("_", " "),
            kind.description,
        )
        for kind in KINDS.values()
    ]


def test_the_first_example_prints_what_it_says():
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(EXAMPLES[0], {})
    said = [line.removeprefix("# ") for line in EXAMPLES[0].splitlines() if line.startswith("# ")]
    assert printed.getvalue().splitlines() == said


def test_the_second_example_runs_as_printed(tmp_path, monkeypatch):
    """As a file: alone, by the command, and where the kinds of ours are."""
    (tmp_path / "my_kinds.py").write_text(EXAMPLES[1])
    done = subprocess.run(
        [sys.executable, "my_kinds.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "There is edema.\n"
    write_jsonl(tmp_path / "test.jsonl", [{"id": "a", "report": "There is oedema."}])
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (command,) = re.findall(r"^    PYTHONPATH=\. (vlscore .*)$", PAGE, re.MULTILINE)
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0, done.output
    (made,) = read_jsonl(tmp_path / "spelled" / "perturbations.jsonl")
    assert made["perturbed"] == "There is edema."


def test_a_kind_may_import_from_the_package_wherever_it_lies():
    """The registry imports no kind before it is asked for, so that no circle arises."""
    program = (
        "import sys, vlscore.perturb\n"
        "assert not [m for m in sys.modules if m.startswith('vlscore.perturb.kinds.')]\n"
        "vlscore.perturb.KINDS['paraphrase']\n"
        "print('vlscore.perturb.kinds.paraphrase' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"


def test_other_rows_and_kinds_do_not_matter(folder):
    """As the page says, of all kinds but the standard normal report."""
    done = CliRunner().invoke(app, ["perturb", "test.jsonl", "--out", "perturbed"])
    assert done.exit_code == 0, done.output
    made = read_jsonl(folder / "perturbed" / "perturbations.jsonl")
    for row in read_jsonl(folder / "test.jsonl"):
        table = [p for p in made if p["study_id"] == row["id"] and p["kind"] != "standard-normal"]
        kinds = [name for name in KINDS if name != "standard-normal"]
        alone = [p.to_dict() for p in perturb(row["report"], kinds, study_id=row["id"])]
        assert table == alone
