"""Indexes: built of a table, read again, refused when damaged or foreign."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.doubles import HashEncoder
from vlscore.data import TextPolicy, open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.errors import ChecksumMismatch, InvalidIndex, InvalidSetting, InvalidTable
from vlscore.retrieval import index as module
from vlscore.retrieval import index_build, load_index


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


def embedder(**settings):
    return StudyEmbedder(HashEncoder(), device="cpu", **settings)


@pytest.mark.parametrize("at_once", [4, 500])
def test_equal_texts_become_one_row_and_bad_rows_are_listed(table, tmp_path, monkeypatch, at_once):
    monkeypatch.setattr(module, "_REPORTS_AT_ONCE", at_once)
    told = []
    index = index_build(
        table, tmp_path / "index", embedder(), on_progress=lambda *at: told.append(at)
    )
    assert (len(index), index.facts.items, index.facts.kind) == (12, 28, "report")
    assert index.ids(0) == index.all_ids()[0] == ["s0", "s12", "s24"]
    assert index.texts()[3] == index.text(3) == "finding 3 of the left lung"
    assert [(bad.row, bad.id) for bad in index.failures] == [(6, "empty"), (10, "odd")]
    assert told[-1] == (30, 2)
    expected = HashEncoder().encode_reports(index.texts()).numpy()
    np.testing.assert_array_equal(index.vectors, expected)
    assert isinstance(index.vectors, np.memmap)
    opened = load_index(tmp_path / "index")
    assert (opened.texts(), opened.all_ids(), opened.facts) == (
        index.texts(),
        index.all_ids(),
        index.facts,
    )
    assert opened.failures == index.failures
    assert str(opened.signature).startswith("index|enc:hash@")


def test_what_is_wrong_is_said(table, tmp_path):
    blank = write_table(tmp_path / "blank.jsonl", [{"id": 7, "report": ""}])
    empty = write_table(tmp_path / "empty.jsonl", [])
    for source, kind, said, options in (
        (tmp_path / "no.jsonl", InvalidTable, "no such file", {}),
        (empty, InvalidTable, "no rows", {}),
        (blank, InvalidTable, r"none of its 1 rows.*row 1 \(7\)", {}),
        (table, InvalidSetting, "IVFF", {"approximate": "IVFF"}),
        (table, InvalidSetting, "FAISS cannot build", {"approximate": "IVF4096,Flat"}),
    ):
        with pytest.raises(kind, match=said):
            index_build(source, tmp_path / "x", embedder(), **options)
    assert {path.name for path in tmp_path.glob("x/*")} <= {".lock"}
    with pytest.raises(InvalidIndex, match=r"holds no index; `vlscore index build`"):
        load_index(tmp_path / "x")
    with pytest.raises(InvalidIndex, match="is a file"):
        load_index(blank)


def test_a_damaged_or_foreign_index_is_refused(table, tmp_path):
    path = tmp_path / "index"
    index = index_build(table, path, embedder())
    for name in ("vectors.npy", "reports.parquet"):
        for damage in ("flip", "cut", "absent"):
            copy = tmp_path / f"{damage}-{name}"
            shutil.copytree(path, copy)
            raw = bytearray((copy / name).read_bytes())
            raw[len(raw) // 2] ^= 1
            (copy / name).unlink()
            if damage != "absent":
                (copy / name).write_bytes(raw if damage == "flip" else raw[:-8])
            with pytest.raises(ChecksumMismatch, match=name):
                load_index(copy)
    record = json.loads((path / "run.json").read_text())
    for change in (
        {"rows": "many"},
        {"rows": True},
        {"dim": 0},
        {"encoder": ["hash"]},
        {"signature": "\x1b[2J"},
        {"kind": "text"},
    ):
        changed = {**record, "index": {**record["index"], **change}}
        (path / "run.json").write_text(json.dumps(changed))
        with pytest.raises(InvalidIndex, match="no index made this record"):
            load_index(path, check=False)
    for text in ("{", "[" * 100_000, "\x00"):
        (path / "run.json").write_text(text)
        with pytest.raises(ChecksumMismatch, match="is damaged"):
            load_index(path)
    assert len(index) == 12


def test_files_of_other_content_are_refused_even_with_right_digests(table, tmp_path):
    """An index may come from anyone: what is read is checked besides its digest."""
    index = index_build(table, tmp_path / "index", embedder())
    path = index.folder / "vectors.npy"
    for vectors in (index.vectors[1:], index.vectors.astype(np.float64), np.array([object()])):
        np.save(path, vectors, allow_pickle=True)
        with pytest.raises(InvalidIndex, match=r"vectors\.npy"):
            _ = load_index(index.folder, check=False).vectors
    path = index.folder / "reports.parquet"
    texts, ids = index.texts(), index.all_ids()
    for columns in (
        {"text": texts[1:], "ids": ids[1:]},
        {"text": [None, *texts[1:]], "ids": ids},
        {"text": texts, "ids": [[None], *ids[1:]]},
        {"text": texts},
    ):
        pq.write_table(pa.table(columns), path)
        with pytest.raises(InvalidIndex, match=r"reports\.parquet"):
            load_index(index.folder, check=False).text(0)
    path.write_bytes(b"PAR1" * 40)
    with pytest.raises(InvalidIndex, match="is damaged"):
        load_index(index.folder, check=False).texts()


def test_an_index_fits_only_what_made_it(table, tmp_path, monkeypatch):
    index = index_build(table, tmp_path / "index", embedder())
    whole, findings = map(TextPolicy.named, ("all", "findings"))
    index.check_made_with(embedder(), whole)
    index.check_text_policy(whole)
    with pytest.raises(InvalidIndex, match=r"txt: all against findings.*--section"):
        index.check_made_with(embedder(), findings)
    with pytest.raises(InvalidIndex, match="txt: all against findings"):
        index.check_text_policy(findings)
    # Another encoder of the same name, as after a new training.
    monkeypatch.setattr(HashEncoder, "checksum", "0" * 64)
    with pytest.raises(InvalidIndex, match=r"was made with hash .* not with hash \(000000000000\)"):
        index.check_made_with(embedder(), whole)


def test_images_are_read_by_the_embedders_policy_in_any_number_of_workers(tmp_path):
    from PIL import Image

    rows = []
    for k in range(3):
        pixels = np.random.default_rng(k).integers(90, 120, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{k}.png")
        rows.append({"id": str(k), "image": f"{k}.png"})
    rows.append({"id": "none", "image": "absent.png"})
    table = open_studies(write_table(tmp_path / "images.jsonl", rows), needs={"image"})
    made = {}
    for policy, workers in (("auto", 0), ("auto", 1), ("minmax", 0)):
        reader = embedder(image_policy=policy)
        out = tmp_path / f"{policy}-{workers}"
        index = index_build(table, out, reader, workers=workers)
        assert index.signature.get("img") == policy
        assert index.texts() == [str(tmp_path / f"{k}.png") for k in range(3)]
        assert [failure.id for failure in index.failures] == ["none"]
        made[policy, workers] = np.array(index.vectors)
    np.testing.assert_array_equal(made["auto", 0], made["auto", 1])
    assert (made["auto", 0] != made["minmax", 0]).all(1).any()
    Image.fromarray(np.zeros((9, 9), np.uint8)).save(tmp_path / "0.png")
    with pytest.raises(InvalidSetting, match="has been replaced since"):
        index_build(table, out, reader)
