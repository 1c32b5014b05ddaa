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

from vlscore.core import Entry, Signature, file_digest, from_plain, reading_result
from vlscore.data import ImagePolicy
from vlscore.embedding import StudyEmbedder
from vlscore.embedding.cached import pixels_of, stored_shape
from vlscore.encoders import load_encoder
from vlscore.errors import ChecksumMismatch
from vlscore.evaluation import OwnColumns, evaluate, findings, retrieval, summary_text
from vlscore.evaluation.scoring.summary import read_summary
from vlscore.metrics import Scorer
from vlscore.retrieval.queries import Answer, Hit, Tally, read_answers, write_answers
from vlscore.retrieval.queries import read_summary as read_search
from vlscore.retrieval.vector_search.array_oracle import Found

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


def test_a_summary_is_believed_where_every_field_has_its_type(table, tmp_path):
    scorer = Scorer(metrics="bleu-1,findings-f1")
    result = evaluate(table, tmp_path / "out", scorer)
    _try_all(result.summary_file, lambda: summary_text(read_summary(result.summary_file)))


def test_the_command_says_it_too(table, tmp_path):
    scorer = Scorer(metrics="bleu-1")
    result = evaluate(table, tmp_path / "out", scorer)
    changed = json.loads(result.summary_file.read_text()) | {"rows": "four"}
    result.summary_file.write_text(json.dumps(changed))
    record = json.loads(result.record.read_text())
    record["results"]["summary.json"] = file_digest(result.summary_file)
    result.record.write_text(json.dumps(record))
    with pytest.raises(ChecksumMismatch, match=r"summary\.json does not hold what this version"):
        evaluate(table, tmp_path / "out", scorer)


def test_hits_and_their_summary(tmp_path):
    hit = Hit(Found(3, 0.5, distance_rank=2), ["a"], "No effusion.", verbatim=False)
    answers = [Answer(1, "s1", [hit]), Answer(2, None, error="no reference")]
    hits, summary = tmp_path / "hits.jsonl", tmp_path / "summary.json"
    write_answers(hits, answers[:1], "s")
    (read,) = read_answers(hits)
    assert (read.row, read.id, read.hits[0].text) == (1, "s1", "No effusion.")
    assert read.hits[0].found.distance_rank == 2
    assert np.isnan(read.hits[0].found.area)
    _try_all(hits, lambda: [each.to_dict("s") for each in read_answers(hits)])
    tally = Tally()
    tally.add(answers)
    made = tally.summary(Signature("s"), {1: 0.5})
    summary.write_text(json.dumps(made.to_dict()))
    assert read_search(summary).to_dict() == made.to_dict()
    _try_all(summary, lambda: read_search(summary).to_dict())


def test_numbers_of_retrieval(table, tmp_path):
    found = retrieval(table, tmp_path / "found", StudyEmbedder("phantom", device="cpu"))
    path = tmp_path / "found" / found.content_file

    def shown() -> object:
        with reading_result(path):
            content = from_plain(dict[str, Any], json.loads(path.read_text(encoding="utf-8")))
        return type(found)(found.folder, {}, content).tables[0].text()

    _try_all(path, shown)


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


def test_subgroups_hold_no_formula_and_are_read_back(table, tmp_path):
    own = OwnColumns(by=("sex",))
    result = evaluate(table, tmp_path / "out", Scorer(metrics="bleu-1"), own=own)
    with (tmp_path / "out" / "subgroups.csv").open(newline="") as stream:
        labels = {row["value"] for row in csv.DictReader(stream)}
    assert labels == {"'=1+1", "f"}
    assert {row[0] for group in result.subgroups for row in group.rows} == {"=1+1", "f"}


def test_pixels_of_another_shape_are_not_believed():
    pipeline = load_encoder("phantom").image_pipeline
    shape = stored_shape(pipeline, ImagePolicy())
    _, height, width = shape
    kind = np.dtype(pipeline.stored_type)
    right = Entry(bytes(kind.itemsize * height * width), (1, height, width))
    assert pixels_of(right, pipeline, shape).shape == (1, height, width)
    for other in ((1, width * height, 1), (1, height // 2, width * 2), (2, height // 2, width)):
        assert pixels_of(Entry(right.value, other), pipeline, shape) is None
    three = Entry(3 * right.value, (3, height, width))
    assert pixels_of(three, pipeline, shape) is None
    # A policy that reads files alone: the number of channels is the file's.
    by_file = stored_shape(pipeline, ImagePolicy(as_authors=True))
    assert by_file == (height, width)
    assert pixels_of(three, pipeline, by_file).shape == (3, height, width)


def test_plain_data_become_what_they_were():
    assert from_plain(dict[int, list[float]], {"1": [1, 2.5]}) == {1: [1.0, 2.5]}
    assert from_plain(tuple[str, ...] | None, ["a"]) == ("a",)
    assert from_plain(int | None, None) is None
    for kind, data in ((int, True), (int, 1.0), (str, None), (list[str], "ab"), (bool, 1)):
        with pytest.raises(ValueError, match="no "):
            from_plain(kind, data)
