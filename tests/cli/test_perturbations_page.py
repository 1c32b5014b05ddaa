"""What docs/perturbations.md says of kinds, files and fields is so; tests/test_docs.py runs it."""

import re

import pytest
from typer.testing import CliRunner

from tests.cli.conftest import read_jsonl, write_jsonl
from tests.conftest import REPOSITORY
from vlscore.cli import app
from vlscore.perturb import KINDS, Expected, perturb
from vlscore.perturb.chance import Chance
from vlscore.perturb.reading import Source
from vlscore.phantom.dataset import sample_studies

PAGE = (REPOSITORY / "docs" / "perturbations.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A table of reports in the current folder."""
    studies = [(f"s{k}", study.reference) for k, study in enumerate(sample_studies(4, 12))]
    write_jsonl(tmp_path / "test.jsonl", [{"id": name, "report": text} for name, text in studies])
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_fields_are_those_that_are_written(folder):
    done = CliRunner().invoke(app, ["perturb", "test.jsonl", "--out", "perturbed"])
    assert done.exit_code == 0, done.output
    made = read_jsonl(folder / "perturbed" / "perturbations.jsonl")
    section = PAGE[PAGE.index("A line of `perturbations.jsonl`") :]
    shown = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ", section, re.MULTILINE)
    fields = [name for cell in shown for name in re.findall(r"`(\w+)`", cell)]
    assert fields == list(made[0])


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


def test_the_second_example_is_a_kind():
    names: dict = {}
    exec(EXAMPLES[1], names)
    source = Source.read("Oedema? No oedema is seen, nor haemothorax.")
    changes = list(names["AmericanSpelling"]().changes(source, Chance(0, "", "american-spelling")))
    assert {change.rule for change in changes} == {"spelling:oedema", "spelling:haemothorax"}


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
