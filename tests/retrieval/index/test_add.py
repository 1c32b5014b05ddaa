"""What `add` keeps of earlier tables, and that adding what is there changes nothing."""

import numpy as np
import pytest
from PIL import Image

from tests.doubles import HashEncoder
from tests.retrieval.index.test_index import folder_content, write_table
from vlscore.embedding import StudyEmbedder
from vlscore.errors import ChecksumMismatch
from vlscore.retrieval import SourceSettings, index_add, index_build, load_index
from vlscore.retrieval import index_parts as items
from vlscore.retrieval import index_writing as build


def embedder():
    return StudyEmbedder(HashEncoder(), device="cpu")


def table_in(folder, name, texts):
    folder.mkdir(exist_ok=True)
    return write_table(
        folder / "reports.jsonl",
        [{"id": f"{name}{k}", "text": text} for k, text in enumerate(texts)],
    )


@pytest.fixture
def tables(tmp_path):
    """Two tables of one name, in two folders, each with rows that cannot be used."""
    first = table_in(tmp_path / "a", "a", ["clear", "", "small effusion", "untokenizable"])
    second = table_in(tmp_path / "b", "b", ["clear", "", "fracture"])
    return first, second


def bad_rows(index):
    return [(record["source"], record["row"]) for record in index.bad_row_records()]


def test_bad_rows_of_earlier_tables_are_kept_whatever_is_added(tables, tmp_path):
    first, second = tables
    out = tmp_path / "index"
    index_build(first, out, embedder())
    index_add(second, out, embedder())
    assert bad_rows(load_index(out)) == [(0, 2), (0, 4), (1, 2)]
    # A change of the second table is a third one; the first table stays as it was.
    table_in(tmp_path / "b", "b", ["clear", "", "fracture", ""])
    result = index_add(second, out, embedder())
    assert bad_rows(result.index) == [(0, 2), (0, 4), (1, 2), (2, 2), (2, 4)]
    assert result.index.manifest.bad_rows == 5
    sources = result.index.manifest.sources
    assert [source["path"] for source in sources] == [str(first), str(second), str(second)]


def test_adding_a_table_again_changes_no_file(tables, tmp_path):
    first, second = tables
    out = tmp_path / "index"
    index_build(first, out, embedder())
    index_add(second, out, embedder())
    before = {path: path.stat().st_mtime_ns for path in out.iterdir()}
    for table, repeated, bad in ((first, 2, [2, 4]), (second, 2, [2])):
        again = embedder()
        result = index_add(table, out, again)
        assert result.unchanged
        assert (result.added_rows, result.repeated) == (0, repeated)
        assert [row.row for row in result.bad_rows] == bad
        assert {path: path.stat().st_mtime_ns for path in out.iterdir()} == before


@pytest.fixture
def images(tmp_path):
    """A table of six images, the fourth of which is not there."""
    for k in range(6):
        pixels = np.random.default_rng(k).integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{k}.png")
    (tmp_path / "3.png").rename(tmp_path / "elsewhere.png")
    rows = [{"id": f"s{k}", "image": f"{k}.png"} for k in range(6)]
    return write_table(tmp_path / "studies.jsonl", rows)


def test_rows_that_failed_are_embedded_when_the_table_is_added_again(images, tmp_path):
    out = tmp_path / "index"
    index_build(images, out, embedder(), SourceSettings(kind="image"))
    (tmp_path / "elsewhere.png").rename(tmp_path / "3.png")
    again = embedder()
    result = index_add(images, out, again)
    assert (result.added_rows, result.bad_rows, again.engine.images_embedded) == (1, [], 1)
    assert result.index.ids(5) == ["s3"]
    assert result.index.manifest.bad_rows == 0
    assert len(result.index.manifest.sources) == 1


def test_images_replaced_before_a_build_goes_on_are_noticed(images, tmp_path, monkeypatch):
    monkeypatch.setattr(items, "_IMAGES_AT_ONCE", 2)
    out = tmp_path / "index"
    with monkeypatch.context() as patch:
        patch.setattr(build, "write_generation", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            index_build(images, out, embedder(), SourceSettings(kind="image"))
    (tmp_path / "1.png").write_bytes((tmp_path / "5.png").read_bytes())
    with pytest.raises(ChecksumMismatch, match=r"1\.png has been replaced"):
        index_build(images, out, embedder(), SourceSettings(kind="image"))
    index_build(images, out, embedder(), SourceSettings(kind="image"), overwrite=True)


def test_a_stopped_overwriting_is_gone_on_with(tables, tmp_path, monkeypatch):
    """The index that is there was made by the same request, but not by the parts that wait."""
    monkeypatch.setattr(items, "_REPORTS_AT_ONCE", 1)
    first, _ = tables
    out = tmp_path / "index"
    index_build(first, out, embedder())

    def stop(done, failed):
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index_build(first, out, embedder(), overwrite=True, on_progress=stop)
    assert load_index(out).manifest.generation == 1
    result = index_build(first, out, embedder(), overwrite=True)
    assert (result.resumed_from, result.added_rows) == (1, 2)
    assert result.index.manifest.generation == 2
    index_build(first, tmp_path / "whole", embedder())
    made, whole = folder_content(out), folder_content(tmp_path / "whole")
    assert made["vectors-2.npy"] == whole["vectors-1.npy"]
    assert made["table-2.arrow"] == whole["table-1.arrow"]
