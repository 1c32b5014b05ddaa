"""A finding, a device and an abbreviation are each one entry of one file: the examples of
CONTRIBUTING.md."""

import re
import shutil

import pytest

from tests.conftest import REPOSITORY
from vlscore.core import resource_path
from vlscore.errors import InvalidLexicon
from vlscore.findings import extract, lexicon, lexicon_files, load_lexicon, tokens
from vlscore.metrics import RuleJudge, load_tables
from vlscore.metrics.judge import judge_tables

_CACHES = (
    *(lexicon.load_lexicon, lexicon_files.read_tables, lexicon_files.extraction_name),
    *(tokens.spellings, judge_tables.load_tables),
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A writable copy of the lexicons, which vlscore reads instead of its own."""
    target = tmp_path / "lexicons"
    shutil.copytree(resource_path("perturbations", "lexicons"), target)
    for module in (lexicon, lexicon_files):
        monkeypatch.setattr(module, "our_lexicon", lambda: target)
    _clear()
    yield target
    monkeypatch.undo()
    _clear()


def _clear():
    for each in _CACHES:
        each.cache_clear()


def examples():
    """Return the blocks of TOML in CONTRIBUTING.md, each by the file that it is for."""
    text = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.findall(r"  ```toml\n  # (\w+)\.toml\n(.*?)  ```", text, re.DOTALL)
    return [(name, block.replace("\n  ", "\n").removeprefix("  ")) for name, block in found]


@pytest.fixture
def extended(folder):
    for name, block in examples():
        path = folder / f"{name}.toml"
        content = path.read_text(encoding="utf-8")
        if block.startswith("["):
            table, _, rest = block.partition("\n")
            if table.startswith("[["):
                content = f"{content}\n{block}"
            else:
                content = content.replace(f"\n{table}\n", f"\n{table}\n{rest}", 1)
        path.write_text(content, encoding="utf-8")
    _clear()


def test_there_is_an_example_of_each():
    assert [name for name, _ in examples()] == ["observations", "observations", "spellings"]


def test_a_finding_with_three_names_is_one_entry(extended):
    for name in ("scimitar vein", "anomalous pulmonary venous return", "papvr"):
        (finding,) = extract(f"Right {name}.").findings
        assert (finding.observation, finding.side.value) == ("anomalous_vein", "right")
    assert "anomalous_vein" in load_lexicon().coverage.any["vessels"]
    judge = RuleJudge()
    (error,) = judge.judge("Clear lungs.", "Right scimitar vein.").errors
    assert (error.category.value, error.severity) == ("omitted_finding", 3)
    assert not judge.judge("Right papvr.", "Right scimitar vein.").errors


def test_a_device_with_a_right_distance_is_one_entry(extended):
    judge = RuleJudge()
    good = "Transpyloric probe tip 3 cm beyond the pylorus."
    far = "Transpyloric probe tip 12 cm beyond the pylorus."
    assert not judge.judge(good.replace("3 cm", "45 mm"), good).errors
    (error,) = judge.judge(far, good).errors
    (finding,) = extract("Transpyloric probe in 2009.").findings
    assert finding.status.value == "current"
    assert error.category.value == "wrong_location"


def test_an_abbreviation_is_one_line(extended):
    (finding,) = extract("Small peff.").findings
    assert finding.observation == "pleural_effusion"


@pytest.mark.parametrize(
    ("without", "message"),
    [
        ('region = "vessels"\n', "anomalous_vein; give the entry of each a region: lungs"),
        ("severity = [2, 3, 3]\n", "anomalous_vein; give the entry of each a severity, or the con"),
    ],
)
def test_a_check_names_what_an_entry_lacks(folder, without, message):
    block = examples()[0][1]
    assert without in block
    path = folder / "observations.toml"
    path.write_text(path.read_text(encoding="utf-8") + "\n" + block.replace(without, ""))
    _clear()
    with pytest.raises(InvalidLexicon, match=message):
        load_tables()
