"""Every command and example of docs/oracle.md is run, in the order of the page."""

import re
import shlex

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from tests.cli.conftest import read_jsonl, write_jsonl
from tests.conftest import REPOSITORY
from vlscore.cli import app

PAGE = (REPOSITORY / "docs" / "oracle.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (?:torchrun --nproc-per-node 2 -m )?(vlscore .*)$", PAGE, re.MULTILINE)
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The tables that the page speaks of, in the current folder."""
    rows = [
        {
            "id": f"t{k}",
            "report": f"FINDINGS: Finding {k % 40} of the {'left' if k % 3 else 'right'} lung. "
            f"IMPRESSION: Impression {k % 7}.",
        }
        for k in range(80)
    ]
    write_jsonl(tmp_path / "train.jsonl", rows)
    write_jsonl(tmp_path / "more.jsonl", [{"id": "m", "report": "FINDINGS: Old fracture."}])
    rng = np.random.default_rng(0)
    studies = []
    for k in range(3):
        pixels = rng.integers(0, 256, (48, 48), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{k}.png")
        record = {"id": k, "image": f"{k}.png", "reference": rows[k]["report"]}
        studies.append({**record, "patient_reports": f"t{k};t{k + 40}"})
    write_jsonl(tmp_path / "studies.jsonl", studies)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_runs(folder):
    assert len(COMMANDS) >= 15
    for command in COMMANDS:
        done = CliRunner().invoke(app, shlex.split(command)[1:])
        assert done.exit_code == 0, (command, done.output)
    plain, sharded = (read_jsonl(folder / f"{name}.jsonl") for name in ("oracle", "sharded"))
    assert len(plain) == len(sharded) == 3
    assert all(answer["hits"][0]["verbatim"] for answer in plain)
    rng = np.random.default_rng(1)
    vectors, images, references = rng.standard_normal((3, 20, 4), dtype=np.float32)
    names = {"vectors": vectors, "images": images, "references": references}
    first, second = EXAMPLES
    exec(first, names)
    assert [len(hits) for hits in names["hits"]] == [10] * 20
    exec(second, names)
    assert "|oracle:exact|" in names["run"].signature
