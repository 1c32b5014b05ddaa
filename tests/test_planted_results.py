"""Results that somebody changed, with digests that fit: one line that names the file, or no harm.

Every number, text, list and entry of a file that a command reads again is replaced by something of
another type, one at a time. Reading then ends in ChecksumMismatch, or what was read can be printed.
"""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vlscore.core import file_digest, from_plain
from vlscore.errors import ChecksumMismatch
from vlscore.evaluation import evaluate, findings
from vlscore.metrics import Scorer

OTHERS: tuple[Any, ...] = (None, "x", 7, -1.5, True, [], {}, ["x"], {"x": "x"}, 10**400)


def _changed(content: Any) -> Iterator[Any]:
    """Yield json texts with one part replaced, or one entry left out."""
    paths = list(_paths(content, ()))
    for path in paths:
        for other in OTHERS:
            copy = json.loads(json.dumps(content))
            place = copy
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = other
            yield json.dumps(copy)
        copy = json.loads(json.dumps(content))
        place = copy
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]
        yield json.dumps(copy)
    yield from ("", "{", "[" * 5000, "[]", "7", "null")


def _paths(content: Any, before: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    entries = content.items() if isinstance(content, dict) else enumerate(content)
    for step, value in entries:
        yield (*before, step)
        if isinstance(value, dict | list):
            yield from _paths(value, (*before, step))


def _try_all(path: Path, use: Callable[[], object]) -> int:
    """Put each changed content into a file and use it; return how many were refused."""
    content = path.read_text(encoding="utf-8")
    use()
    refused = 0
    for text in _changed(json.loads(content)):
        path.write_text(text, encoding="utf-8")
        try:
            use()
        except ChecksumMismatch as error:
            refused += str(path) in str(error)
    path.write_text(content, encoding="utf-8")
    assert refused > 20
    return refused


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
    changed = json.loads((result.folder / "result.json").read_text()) | {"tables": "four"}
    (result.folder / "result.json").write_text(json.dumps(changed))
    with pytest.raises(ChecksumMismatch, match=r"result\.json has been changed"):
        evaluate(table, tmp_path / "out", scorer)
    record = json.loads((result.folder / "run.json").read_text())
    record["results"]["result.json"] = file_digest(result.folder / "result.json")
    (result.folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(ChecksumMismatch, match=r"result\.json does not hold what this version"):
        _ = evaluate(table, tmp_path / "out", scorer).tables


def test_a_record_with_other_tables_is_refused(table, tmp_path):
    labelled = findings(table, tmp_path / "out")
    record = tmp_path / "out" / "run.json"
    whole = json.loads(record.read_text())
    cells = {"title": "T", "columns": ["a", "b"], "rows": [["1"]], "caption": ""}
    for tables in ([7], [{"title": "T"}], [{**cells, "title": 7}], [cells], "x"):
        record.write_text(json.dumps({**whole, "tables": tables}))
        with pytest.raises(ChecksumMismatch, match=r"run\.json does not hold"):
            findings(table, tmp_path / "out")
    record.write_text(json.dumps(whole))
    assert findings(table, tmp_path / "out").unchanged
    assert labelled.content == whole


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
