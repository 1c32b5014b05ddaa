"""What `index verify` finds when every file still has its recorded digest."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.doubles import HashEncoder
from tests.retrieval.index.test_index import write_table
from tests.retrieval.vector_search.test_exact import clustered
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidIndex, InvalidSetting
from vlscore.retrieval import build_approximate, index_build, load_index, verify_index
from vlscore.retrieval.index_folder import TABLE_SCHEMA, record_file, write_manifest
from vlscore.retrieval.vector_search.approximate import check_factory, check_faiss_file


@pytest.mark.parametrize(
    "factory", ["Flat", "HNSW16", "IVF16,Flat", "IVF16,PQ4x4", "PCA8,IVF4,SQ8"]
)
def test_a_faiss_file_must_hold_the_vectors_in_their_order(tmp_path, factory):
    vectors = clustered(2_000, 16, 6, unit=False)
    path = tmp_path / "index.faiss"
    build_approximate(vectors, factory, path)
    check_faiss_file(path, vectors)
    for others in (vectors[::-1].copy(), np.roll(vectors, 1, axis=0)):
        with pytest.raises(InvalidIndex, match=r"index\.faiss: .* build the index again"):
            check_faiss_file(path, others)
    for others in (vectors[:-1], vectors[:, :-1].copy()):
        with pytest.raises(InvalidIndex, match="holds 2000 rows of 16, the vectors are"):
            check_faiss_file(path, others)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InvalidIndex, match="is no FAISS index"):
        check_faiss_file(path, vectors)


def test_one_flat_row_is_enough(tmp_path):
    vectors = clustered(30_000, 4, 7)
    build_approximate(vectors, "Flat", tmp_path / "index.faiss")
    vectors[25_123, 2] = np.nextafter(vectors[25_123, 2], np.float32(9))
    with pytest.raises(InvalidIndex, match="row 25123 is not the vector of that row"):
        check_faiss_file(tmp_path / "index.faiss", vectors)


def test_factory_strings_are_checked_before_work():
    check_factory("IVF4096,PQ8x8", 16)
    for factory in ("IVF4096,Nonsense", "", "Flat Flat"):
        with pytest.raises(InvalidSetting, match="FAISS has no index"):
            check_factory(factory, 16)


@pytest.fixture
def index(tmp_path):
    rows = [{"id": f"s{k}", "text": f"finding {k % 4}"} for k in range(6)]
    rows.append({"id": "bad", "text": ""})
    table = write_table(tmp_path / "corpus.jsonl", rows)
    return index_build(table, tmp_path / "index", StudyEmbedder(HashEncoder(), device="cpu")).index


def commit(index, **changed):
    """Record the files as they are now."""
    files = {role: record_file(index.file(role)) for role in index.manifest.files}
    write_manifest(index.path, replace(index.manifest, files=files, **changed))
    load_index(index.path)


def write_rows(index, texts, ids):
    with pa.OSFile(str(index.file("table")), "wb") as sink:
        table = pa.Table.from_pydict({"text": texts, "ids": ids}, schema=TABLE_SCHEMA)
        with pa.ipc.new_file(sink, TABLE_SCHEMA) as writer:
            writer.write_table(table)


def test_a_sound_index_is_sound(index):
    commit(index)
    assert len(verify_index(index.path)) == 4


def test_texts_ids_and_counts_must_agree(index):
    texts, ids = index.texts(), index.all_ids()
    write_rows(index, [*texts[:3], texts[0]], ids)
    commit(index)
    with pytest.raises(InvalidIndex, match="rows 0 and 3 hold the same text"):
        verify_index(index.path)
    write_rows(index, texts, [*ids[:3], []])
    commit(index)
    with pytest.raises(InvalidIndex, match="row 3 belongs to no id"):
        verify_index(index.path)
    write_rows(index, texts, [*ids[:3], ["s3", "s9"]])
    commit(index)
    with pytest.raises(InvalidIndex, match="holds 7 ids and 1 bad rows, its manifest says 6 and 1"):
        verify_index(index.path)
    commit(index, items=7)
    verify_index(index.path)
    index.file("bad_rows").write_text(json.dumps({"row": 1}) + "\n")
    commit(index, items=7)
    with pytest.raises(InvalidIndex, match=r"bad-rows-1\.jsonl is damaged"):
        verify_index(index.path)


def test_vectors_must_be_finite_and_those_of_the_faiss_file(index):
    vectors = np.array(index.vectors)
    np.save(index.file("vectors"), vectors[[1, 0, 2, 3]])
    commit(index)
    with pytest.raises(InvalidIndex, match=r"flat-1\.faiss: row 0 is not the vector"):
        verify_index(index.path)
    vectors[2, 0] = np.nan
    np.save(index.file("vectors"), vectors)
    commit(index)
    with pytest.raises(InvalidIndex, match="row 2 is not finite"):
        verify_index(index.path)


def test_a_reader_that_meets_a_new_generation_takes_it(tmp_path, index, monkeypatch):
    """The files of the manifest it read may be gone before they are opened."""
    from vlscore.retrieval import index_add
    from vlscore.retrieval import index_folder as store

    more = write_table(tmp_path / "more.jsonl", [{"id": "n", "text": "new"}])
    check, once = store._check_file, []

    def replaced_meanwhile(path, record, full):
        if not once:
            once.append(index_add)
            with monkeypatch.context() as patch:
                patch.setattr(store, "_check_file", check)
                index_add(more, index.path, StudyEmbedder(HashEncoder(), device="cpu"))
        check(path, record, full)

    monkeypatch.setattr(store, "_check_file", replaced_meanwhile)
    assert len(load_index(index.path)) == 5
