"""Indexes: built once, resumed after a kill, refused when damaged or foreign."""

import json
import os
import shutil

import numpy as np
import pytest

from tests.doubles import HashEncoder
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidIndex, InvalidSetting
from vlscore.retrieval import SourceSettings, index_add, index_build, load_index, measure_recall
from vlscore.retrieval import index_parts as items
from vlscore.retrieval import index_writing as build
from vlscore.retrieval.index_check import check_vectors


def write_table(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def table(tmp_path):
    """Thirty reports: twelve distinct texts, one empty, one that cannot be tokenized."""
    rows = [{"id": f"s{k}", "text": f"finding {k % 12} of the left lung"} for k in range(28)]
    rows.insert(5, {"id": "empty", "text": ""})
    rows.insert(9, {"id": "odd", "text": "untokenizable"})
    return write_table(tmp_path / "corpus.jsonl", rows)


def embedder():
    return StudyEmbedder(HashEncoder(), device="cpu")


def content(index):
    return index.texts(), index.all_ids(), index.vectors.tobytes(), index.manifest.bad_rows


def test_equal_texts_become_one_row_and_bad_rows_are_listed(table, tmp_path):
    result = index_build(table, tmp_path / "index", embedder())
    index = result.index
    assert (len(index), index.manifest.items, result.repeated) == (12, 28, 16)
    assert index.ids(0) == ["s0", "s12", "s24"]
    assert index.texts()[3] == index.text(3) == "finding 3 of the left lung"
    assert [(bad.row, bad.id) for bad in result.bad_rows] == [(6, "empty"), (10, "odd")]
    assert len(index.file("bad_rows").read_text().splitlines()) == 2
    expected = HashEncoder().encode_reports(index.texts()).numpy()
    np.testing.assert_array_equal(index.vectors, expected)
    assert isinstance(index.vectors, np.memmap)
    assert not (tmp_path / "index" / ".parts").exists()


class Killed(BaseException):
    """Stands for SIGKILL: from its first moment on, the process changes no file any more."""


MUTATIONS = ("rename", "replace", "unlink", "rmdir", "mkdir")


def killed_at(monkeypatch, moment, work):
    """Run `work`, killed before its so manieth change of a file's name; whether it was."""
    seen = 0

    def dying(real):
        def call(*arguments, **options):
            nonlocal seen
            seen += 1
            if seen > moment:
                raise Killed
            return real(*arguments, **options)

        return call

    with monkeypatch.context() as patch:
        for name in MUTATIONS:
            patch.setattr(os, name, dying(getattr(os, name)))
        try:
            work()
        except Killed:
            return True
    return False


def moments(monkeypatch, work):
    """Kill `work(k)` at every moment k there is, until it ends by itself."""
    for moment in range(1, 200):
        if not killed_at(monkeypatch, moment, lambda moment=moment: work(moment)):
            return
        yield moment
    pytest.fail("the work never ended")


def folder_content(path):
    return {file.name: file.read_bytes() for file in path.iterdir() if file.name != ".lock"}


def test_a_build_killed_at_any_moment_goes_on_with_nothing_lost_or_doubled(
    table, tmp_path, monkeypatch
):
    monkeypatch.setattr(items, "_REPORTS_AT_ONCE", 12)
    whole = index_build(table, tmp_path / "whole", embedder()).index

    def work(moment):
        index_build(table, tmp_path / str(moment), embedder())

    resumed = set()
    for moment in moments(monkeypatch, work):
        again = embedder()
        result = index_build(table, tmp_path / str(moment), again)
        resumed.add(result.resumed_from)
        assert folder_content(tmp_path / str(moment)) == folder_content(whole.path), moment
        assert [bad.id for bad in result.bad_rows] == ["empty", "odd"]
        if result.resumed_from:
            assert again.engine.reports_embedded < 12
    # After each of the three parts, the last also when all was done but the clearing up.
    assert resumed == {0, 12, 24, 30}


def test_an_add_killed_at_any_moment_goes_on_with_nothing_lost_or_doubled(
    table, tmp_path, monkeypatch
):
    monkeypatch.setattr(items, "_REPORTS_AT_ONCE", 2)
    more = write_table(
        tmp_path / "more.jsonl",
        [
            {"id": "n1", "text": "finding 2 of the left lung"},
            {"id": "n2", "text": "new finding"},
            {"id": "n3", "text": "another finding"},
            {"id": "n4", "text": ""},
        ],
    )
    index_build(table, tmp_path / "base", embedder())
    shutil.copytree(tmp_path / "base", tmp_path / "whole")
    index_add(more, tmp_path / "whole", embedder())

    def work(moment):
        index_add(more, tmp_path / str(moment), embedder())

    for moment in range(1, 200):
        path = tmp_path / str(moment)
        shutil.copytree(tmp_path / "base", path)
        if not killed_at(monkeypatch, moment, lambda moment=moment: work(moment)):
            break
        load_index(path)
        result = index_add(more, path, embedder())
        assert content(result.index) == content(load_index(tmp_path / "whole")), moment
        assert len(result.index.manifest.sources) == 2
        assert len([*path.iterdir()]) == len([*(tmp_path / "whole").iterdir()]), moment
    assert 10 < moment < 199


def test_an_unfinished_build_of_something_else_is_not_mixed_in(table, tmp_path, monkeypatch):
    out = tmp_path / "index"
    monkeypatch.setattr(build, "write_generation", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        index_build(table, out, embedder())
    other = write_table(tmp_path / "other.jsonl", [{"id": "a", "text": "clear"}])
    with pytest.raises(InvalidSetting, match="unfinished run"):
        index_build(other, out, embedder())


def test_add_extends_and_keeps_the_order(table, tmp_path):
    index_build(table, tmp_path / "index", embedder())
    more = write_table(
        tmp_path / "more.jsonl",
        [{"id": "n1", "text": "finding 2 of the left lung"}, {"id": "n2", "text": "new finding"}],
    )
    result = index_add(more, tmp_path / "index", embedder())
    assert (result.added_rows, result.repeated, len(result.index)) == (1, 1, 13)
    assert result.index.ids(2)[-1] == "n1"
    assert result.index.text(12) == "new finding"
    assert [source["name"] for source in result.index.manifest.sources] == [
        "corpus.jsonl",
        "more.jsonl",
    ]
    load_index(tmp_path / "index")
    assert len(list((tmp_path / "index").glob("vectors-*.npy"))) == 1
    with pytest.raises(InvalidIndex, match=r"txt: all against findings.*--section"):
        index_add(more, tmp_path / "index", embedder(), SourceSettings(text_policy="findings"))


def test_a_damaged_or_foreign_index_is_refused(table, tmp_path):
    path = tmp_path / "index"
    index_build(table, path, embedder())
    other = write_table(tmp_path / "other.jsonl", [{"id": "a", "text": "clear"}])
    with pytest.raises(InvalidSetting, match="--overwrite"):
        index_build(other, path, embedder())
    with pytest.raises(InvalidIndex, match="was made with hash"):
        load_index(path).check_made_with("gloria", "0" * 64)
    for name in ("vectors-1.npy", "table-1.arrow"):
        for damage in ("flip", "cut", "absent"):
            copy = tmp_path / f"{damage}-{name}"
            shutil.copytree(path, copy)
            raw = bytearray((copy / name).read_bytes())
            raw[len(raw) // 2] ^= 1
            if damage == "absent":
                (copy / name).unlink()
            else:
                (copy / name).write_bytes(raw if damage == "flip" else raw[:-8])
            with pytest.raises(InvalidIndex, match=name):
                load_index(copy)
    manifest = json.loads((path / "index.json").read_text())
    escaping = {**manifest["files"], "table": {"name": "..", "size": 0, "sha256": ""}}
    for change in (
        {"format": 99},
        {"rows": "many"},
        {"rows": True},
        {"dim": 0},
        {"files": {}},
        {"files": escaping},
        {"sources": [{}]},
        {"sources": 3},
        {"encoder": ["hash"]},
        {"signature": "\x1b[2J"},
        {"surprise": 1},
    ):
        (path / "index.json").write_text(json.dumps({**manifest, **change}))
        with pytest.raises(InvalidIndex, match=r"index\.json"):
            load_index(path)
    for text in ("{", "[" * 100_000, "\x00"):
        (path / "index.json").write_text(text)
        with pytest.raises(InvalidIndex, match="cannot be read"):
            load_index(path)
    with pytest.raises(InvalidIndex, match=r"other\.jsonl is a file; an index is a folder"):
        load_index(other)


@pytest.mark.timeout(20)
def test_a_pipe_in_an_index_is_not_waited_for(table, tmp_path):
    index = index_build(table, tmp_path / "index", embedder()).index
    file = index.file("bad_rows")
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(InvalidIndex, match="is no ordinary file"):
        load_index(index.path)


def test_an_approximate_part_is_measured_against_exact_search(tmp_path):
    rows = [{"id": str(k), "text": f"report {k} {k * 7 % 97} {k * 5 % 89}"} for k in range(400)]
    table = write_table(tmp_path / "corpus.jsonl", rows)
    index = index_build(table, tmp_path / "index", embedder(), approximate="HNSW16").index
    check_vectors(index)
    found = measure_recall(index, 40, seed=0)
    assert found[1] >= 0.95
    with pytest.raises(InvalidSetting, match="FAISS cannot build"):
        index_build(table, tmp_path / "other", embedder(), approximate="IVF4096,Flat")


def test_images_are_read_by_the_embedders_policy_in_any_number_of_workers(tmp_path):
    from PIL import Image

    rows = []
    for k in range(3):
        pixels = np.random.default_rng(k).integers(90, 120, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{k}.png")
        rows.append({"id": str(k), "image": f"{k}.png"})
    table = write_table(tmp_path / "images.jsonl", rows)
    settings = SourceSettings(kind="image")
    made = {}
    for policy, workers in (("auto", 0), ("auto", 1), ("minmax", 0)):
        reader = StudyEmbedder(HashEncoder(), device="cpu", image_policy=policy)
        out = tmp_path / f"{policy}-{workers}"
        index = index_build(table, out, reader, settings, workers=workers).index
        assert index.manifest.facts.get("img") == policy
        made[policy, workers] = np.array(index.vectors)
    np.testing.assert_array_equal(made["auto", 0], made["auto", 1])
    assert (made["auto", 0] != made["minmax", 0]).all(1).any()


def test_an_index_of_before_signatures_had_a_subject_still_fits(table, tmp_path):
    path = index_build(table, tmp_path / "index", embedder()).index.path
    manifest = json.loads((path / "index.json").read_text())
    assert manifest["signature"].startswith("index|enc:hash@")
    manifest["signature"] = manifest["signature"].removeprefix("index|")
    (path / "index.json").write_text(json.dumps(manifest))
    assert index_add(table, path, embedder()).added_rows == 0
    with pytest.raises(InvalidIndex, match="txt: all against auto"):
        index_add(table, path, embedder(), SourceSettings(text_policy="auto"))
