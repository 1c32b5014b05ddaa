"""Parts of an unfinished build: damaged ones are found, another build's are not mixed in."""

import json

import numpy as np
import pytest

from tests.doubles import HashEncoder
from tests.retrieval.index.test_index import write_table
from vlscore.embedding import StudyEmbedder
from vlscore.errors import ChecksumMismatch, InvalidSetting
from vlscore.retrieval import SourceSettings, index_build
from vlscore.retrieval import index_parts as items
from vlscore.retrieval import index_writing as build


@pytest.fixture
def unfinished(tmp_path, monkeypatch):
    """A table, and a folder with four finished parts of its build and no index."""
    monkeypatch.setattr(items, "_REPORTS_AT_ONCE", 3)
    rows = [{"id": str(k), "text": f"finding {k}"} for k in range(12)]
    table = write_table(tmp_path / "corpus.jsonl", rows)
    with monkeypatch.context() as patch:
        patch.setattr(build, "write_generation", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            index_build(table, tmp_path / "index", StudyEmbedder(HashEncoder(), device="cpu"))
    return table, tmp_path / "index"


def test_whole_parts_are_gone_on_with(unfinished):
    table, out = unfinished
    embedder = StudyEmbedder(HashEncoder(), device="cpu")
    result = index_build(table, out, embedder)
    assert (result.resumed_from, embedder.engine.reports_embedded) == (12, 0)
    expected = HashEncoder().encode_reports(result.index.texts()).numpy()
    np.testing.assert_array_equal(result.index.vectors, expected)


def flip(path):
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.write_bytes(raw)


def absent_part(parts):
    parts.joinpath("part-00000001").rename(parts / "part-away")
    (parts / "part-away").rename(parts.parent / "away")


DAMAGES = {
    "a vector": lambda parts: flip(parts / "part-00000002" / "vectors.npy"),
    "no vectors": lambda parts: (parts / "part-00000002" / "vectors.npy").unlink(),
    "no texts": lambda parts: (parts / "part-00000001" / "items.json").unlink(),
    "half the texts": lambda parts: (parts / "part-00000001" / "items.json").write_text('{"te'),
    "a part": absent_part,
    "the key": lambda parts: (parts / "key.json").write_text("{"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_part_is_refused_and_overwrite_begins_anew(unfinished, damage):
    table, out = unfinished
    DAMAGES[damage](out / ".parts")
    with pytest.raises(ChecksumMismatch, match=r"part-0000000|key\.json"):
        index_build(table, out, StudyEmbedder(HashEncoder(), device="cpu"))
    embedder = StudyEmbedder(HashEncoder(), device="cpu")
    result = index_build(table, out, embedder, overwrite=True)
    assert (len(result.index), embedder.engine.reports_embedded) == (12, 12)


def test_parts_without_a_key_belong_to_nobody(unfinished):
    table, out = unfinished
    (out / ".parts" / "key.json").unlink()
    result = index_build(table, out, StudyEmbedder(HashEncoder(), device="cpu"))
    assert (len(result.index), result.resumed_from) == (12, 0)


def test_another_build_is_named_with_what_differs(unfinished, tmp_path):
    table, out = unfinished
    embedder = StudyEmbedder(HashEncoder(), device="cpu")
    other = write_table(tmp_path / "other.jsonl", [{"id": "a", "text": "clear"}])
    with pytest.raises(
        InvalidSetting, match=r"table: corpus\.jsonl there, other\.jsonl now; sha256: "
    ):
        index_build(other, out, embedder)
    with pytest.raises(InvalidSetting, match=r"signature: .*txt:all.* there, .*txt:auto.* now"):
        index_build(table, out, embedder, SourceSettings(text_policy="auto"))
    table.write_text(table.read_text() + json.dumps({"id": "b", "text": "more"}) + "\n")
    with pytest.raises(InvalidSetting, match=r"differs: sha256: \w{12} there, \w{12} now\. "):
        index_build(table, out, embedder)
    assert len(index_build(table, out, embedder, overwrite=True).index) == 13


def test_the_faiss_file_may_be_chosen_again(unfinished):
    """What FAISS cannot train on costs no embedding: the parts stay."""
    table, out = unfinished
    embedder = StudyEmbedder(HashEncoder(), device="cpu")
    with pytest.raises(InvalidSetting, match="cannot build 'IVF512,Flat' over 12 rows"):
        index_build(table, out, embedder, approximate="IVF512,Flat")
    result = index_build(table, out, embedder, approximate="IVF2,Flat")
    assert (result.resumed_from, embedder.engine.reports_embedded) == (12, 0)
    assert "approximate" in result.index.manifest.files
