"""Results that somebody changed, with digests that fit: an error that names the file."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from vlscore.core import file_digest, from_plain
from vlscore.errors import ChecksumMismatch
from vlscore.evaluation import evaluate, findings
from vlscore.metrics import Scorer
from vlscore.stats import Result


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [
        {"id": f"s{k}", "reference": "Small effusion.", "candidate": "No effusion.",
         "report": "Small effusion.", "sex": "=1+1" if k % 2 else "f", "image": f"{k}.png"}
        for k in range(4)
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    for row in rows:
        pixels = rng.integers(0, 256, (64, 64), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / row["image"])
    path = tmp_path / "studies.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_result_that_was_changed_is_refused(table, tmp_path):
    scorer = Scorer(metrics="bleu-1")
    result = evaluate(table, tmp_path / "out", scorer)
    changed = json.loads((result.folder / "result.json").read_text()) | {"frames": "four"}
    (result.folder / "result.json").write_text(json.dumps(changed))
    with pytest.raises(ChecksumMismatch, match=r"result\.json has been changed"):
        evaluate(table, tmp_path / "out", scorer)
    record = json.loads((result.folder / "run.json").read_text())
    record["results"]["result.json"] = file_digest(result.folder / "result.json")
    (result.folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(
        ChecksumMismatch, match=r"result\.json does not have the form that this version"
    ):
        _ = evaluate(table, tmp_path / "out", scorer).tables


def test_a_result_with_other_frames_is_refused(table, tmp_path):
    """Also one of an earlier version, whose frames lack a column: the message says what to do."""
    result = findings(table, tmp_path / "out")
    path = result.folder / "result.json"
    before = path.read_bytes()
    whole = json.loads(before)
    for frames in ({}, {"counts": "x"}, {"counts": [7]}, [7], "x"):
        path.write_text(json.dumps({**whole, "frames": frames}))
        with pytest.raises(ChecksumMismatch, match=r"result\.json does not have the form"):
            _ = Result(path.parent, result.record).tables
    path.write_bytes(before)
    assert findings(table, tmp_path / "out").unchanged


def test_a_column_of_ones_own_holds_no_formula_and_is_read_back(table, tmp_path):
    scorer = Scorer(metrics="bleu-1")
    result = evaluate(table, tmp_path / "out", scorer, format="csv", by=["sex"])
    with (tmp_path / "out" / "scores.csv").open(newline="") as stream:
        labels = {row["sex"] for row in csv.DictReader(stream)}
    assert labels == {"'=1+1", "f"}
    assert set(result.rows("scores.csv")["sex"]) == {"=1+1", "f"}
    assert set(result.frame("subgroups")["value"]) == {"=1+1", "f"}


def test_plain_data_become_what_they_were():
    assert from_plain(dict[int, list[float]], {"1": [1, 2.5]}) == {1: [1.0, 2.5]}
    assert from_plain(tuple[str, ...] | None, ["a"]) == ("a",)
    assert from_plain(int | None, None) is None
    for kind, data in ((int, True), (int, 1.0), (str, None), (list[str], "ab"), (bool, 1)):
        with pytest.raises(ValueError, match="no "):
            from_plain(kind, data)
