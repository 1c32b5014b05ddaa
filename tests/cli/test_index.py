"""`vlscore index`: what is printed, with which status, and what the files then hold."""

import csv
import json
import os

import faiss
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.cli.conftest import REPORTS, read_jsonl, write_jsonl
from tests.doubles import DIM, HashEncoder, KeptEncoder
from vlscore.errors import InvalidIndex, InvalidSetting, InvalidTable, UnknownName
from vlscore.retrieval import load_index

pytestmark = pytest.mark.usefixtures("hash_encoder")


def test_build_names_the_bad_rows_and_says_what_it_made(command, corpus, tmp_path):
    done = command("index", "build", corpus, "--out", tmp_path / "index")
    assert done.exit_code == 1
    assert "4 distinct reports added, 1 repeated; the index holds 4" in done.stdout
    assert "index|enc:hash@" in done.stdout
    assert "|txt:all|prec:fp32" in done.stdout
    assert f"2 rows of {corpus} could not be used" in done.stderr
    assert "row 4 (a4): no text in report" in done.stderr
    assert "row 6 (a6): a report cannot be tokenized" in done.stderr
    index = load_index(tmp_path / "index")
    assert index.all_ids() == [["a1", "a3"], ["a2"], ["a5"], ["a7"]]
    bad = read_jsonl(index.file("bad_rows"))
    assert [(row["table"], row["row"], row["id"]) for row in bad] == [
        ("corpus.jsonl", 4, "a4"),
        ("corpus.jsonl", 6, "a6"),
    ]


@pytest.mark.usefixtures("cache_folder")
def test_the_line_of_progress_says_what_came_from_the_cache(command, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("vlscore.embedding.embedder.load_encoder", lambda *_, **__: KeptEncoder())
    monkeypatch.setattr("vlscore.cli.progress._LOG_PAUSE", 0.0)
    first = command("index", "build", corpus, "--out", tmp_path / "one", "--keep-going")
    assert "cache:" not in first.stderr
    again = command("index", "build", corpus, "--out", tmp_path / "two", "--keep-going")
    assert " left, cache: 100% of reports" in again.stderr
    more = write_jsonl(tmp_path / "more.jsonl", [{"id": "b1", "report": "A new report."}])
    added = command("index", "add", more, "--index", tmp_path / "two", "--encoder", "hash")
    assert "embedding: 1 of 1 rows" in added.stderr


def test_bad_rows_with_one_reason_are_one_line(command, tmp_path):
    rows = [{"id": k, "report": "clear" if k == 0 else ""} for k in range(14)]
    table = write_jsonl(tmp_path / "table.jsonl", rows)
    done = command("index", "build", table, "--out", tmp_path / "index", "--keep-going")
    assert done.exit_code == 0
    assert "row 2 (1), row 3 (2), row 4 (3) and 10 more: no text in report\n" in done.stderr
    assert "... and more" not in done.stderr


def test_csv_and_parquet_make_the_same_index(command, corpus, tmp_path):
    with (tmp_path / "corpus.csv").open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, REPORTS[0])
        writer.writeheader()
        writer.writerows(REPORTS)
    pq.write_table(pa.Table.from_pylist(REPORTS), tmp_path / "corpus.parquet")
    made = []
    for format in ("jsonl", "csv", "parquet"):
        table, out = tmp_path / f"corpus.{format}", tmp_path / format
        assert command("index", "build", table, "--out", out).exit_code == 1
        index = load_index(out)
        made.append((index.texts(), index.all_ids(), index.vectors.tobytes()))
        assert [(row.row, row.id) for row in index.bad_rows()] == [(4, "a4"), (6, "a6")]
    assert made[0] == made[1] == made[2]


def test_sections_come_from_headers_or_from_columns(command, tmp_path):
    whole = [{"id": 1, "report": "FINDINGS: Clear lungs. IMPRESSION: Normal."}]
    columns = [
        {"id": 1, "findings": "Clear lungs.", "impression": "Normal."},
        {"id": 2, "findings": "", "impression": "Stable."},
    ]
    write_jsonl(tmp_path / "whole.jsonl", whole)
    write_jsonl(tmp_path / "columns.jsonl", columns)
    for table, section, expected in (
        ("whole", "impression", ["Normal."]),
        ("columns", "impression", ["Normal.", "Stable."]),
        ("columns", "findings", ["Clear lungs."]),
        ("columns", "auto", ["Clear lungs.", "Stable."]),
        ("columns", "findings+impression", ["Clear lungs. Normal.", "Stable."]),
        ("columns", "all", ["Clear lungs. Normal.", "Stable."]),
    ):
        out = tmp_path / f"{table}-{section}"
        path = tmp_path / f"{table}.jsonl"
        done = command("index", "build", path, "-o", out, "--section", section, "--keep-going")
        assert done.exit_code == 0, done.output
        assert load_index(out).texts() == expected
        assert f"|txt:{section}|" in done.stdout


def test_every_index_has_a_faiss_file_in_the_order_of_its_vectors(command, corpus, tmp_path):
    for options, role, kind in (
        ((), "flat", faiss.IndexFlat),
        (("--approximate", "HNSW4"), "approximate", faiss.IndexHNSW),
        (("--approximate", "IVF2,Flat"), "approximate", faiss.IndexIVFFlat),
    ):
        out = tmp_path / role / kind.__name__
        command("index", "build", corpus, "--out", out, *options)
        index = load_index(out)
        assert list(index.manifest.files) == ["vectors", "table", "bad_rows", role]
        read = faiss.read_index(str(index.file(role)))
        assert isinstance(read, kind)
        assert (read.ntotal, read.d) == (4, DIM)
        if kind is faiss.IndexIVFFlat:
            read.make_direct_map()
        np.testing.assert_array_equal(read.reconstruct_n(0, 4), index.vectors)
        done = command("index", "verify", out)
        assert f"the {role} FAISS file agrees with the vectors" in done.stdout
    command("index", "build", corpus, "--out", tmp_path / "without", "--no-faiss")
    assert list(load_index(tmp_path / "without").manifest.files) == ["vectors", "table", "bad_rows"]
    assert "FAISS" not in command("index", "verify", tmp_path / "without").stdout


def test_add_gives_known_texts_their_new_ids_only(command, corpus, tmp_path):
    command("index", "build", corpus, "--out", tmp_path / "index")
    more = write_jsonl(
        tmp_path / "more.jsonl",
        [{"id": "b1", "report": "Clear lungs."}, {"id": "b2", "report": "Old fracture."}],
    )
    for ids in (["a1", "a3", "b1"], ["a1", "a3", "b1"]):  # a second time changes nothing
        done = command("index", "add", more, "--index", tmp_path / "index")
        assert done.exit_code == 0, done.output
        index = load_index(tmp_path / "index")
        assert index.ids(0) == ids
        assert index.texts()[4:] == ["Old fracture."]
        assert len(index.manifest.sources) == 2
    assert "0 distinct reports added, 2 repeated; the index holds 5" in done.stdout
    expected = HashEncoder().encode_reports(index.texts()).numpy()
    np.testing.assert_array_equal(index.vectors, expected)
    assert command("index", "verify", tmp_path / "index").exit_code == 0


def test_an_index_of_radiographs(command, studies, tmp_path):
    out = tmp_path / "images"
    done = command("index", "build", studies, "--out", out, "--images")
    assert done.exit_code == 1
    assert "row 2 (s2): " in done.stderr
    assert "absent.png" in done.stderr
    assert "2 distinct images added" in done.stdout
    assert "|img:" in done.stdout
    assert "holds       2 images" in command("index", "info", out).stdout
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    table = write_jsonl(moved / "t.jsonl", [{"id": 1, "picture": "y.png"}])
    options = ("--image-root", tmp_path, "--image-column", "picture")
    done = command("index", "add", table, "--index", out, *options)
    assert done.exit_code == 0, done.output
    assert load_index(out).text(2) == str(tmp_path / "y.png")


def test_an_image_file_whose_name_is_no_utf8_costs_its_own_row(command, tmp_path):
    folder = tmp_path / "s1"
    folder.mkdir()
    for name in (b"a\xff.png", b"b.png"):
        Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8)).save(
            tmp_path / "one.png", format="png"
        )
        (tmp_path / "one.png").rename(folder / os.fsdecode(name))
    single = tmp_path / "s2"
    single.mkdir()
    (folder / "b.png").rename(single / "b.png")
    rows = [{"id": "s1", "image": "s1"}, {"id": "s2", "image": "s2"}]
    table = write_jsonl(tmp_path / "studies.jsonl", rows)
    done = command("index", "build", table, "--out", tmp_path / "index", "--images")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    index = load_index(tmp_path / "index")
    assert [each.id for each in index.bad_rows()] == ["s1"]
    assert index.all_ids() == [["s2"]]
    assert "rename the file" in done.stderr


def test_the_environment_does_not_choose_another_encoder_than_the_indexs(
    command, corpus, tmp_path, monkeypatch
):
    asked = []

    def load(name, **_):
        asked.append(name)
        return HashEncoder()

    monkeypatch.setattr("vlscore.embedding.embedder.load_encoder", load)
    command("index", "build", corpus, "--out", tmp_path / "index", "--encoder", "hash")
    more = write_jsonl(tmp_path / "more.jsonl", [{"id": "b1", "report": "A new report."}])
    monkeypatch.setenv("VLSCORE_ENCODER", "gloria")
    studies = [{"id": "s1", "reference": "Clear lungs.", "candidate": "x"}]
    table = write_jsonl(tmp_path / "studies.jsonl", studies)
    added = command("index", "add", more, "--index", tmp_path / "index")
    assert added.exit_code == 0, added.output
    found = command("oracle", table, "--index", tmp_path / "index", "--metric", "cosine")
    assert found.exit_code == 0, found.output
    assert asked == ["hash", "hash", "hash"]


def test_info(command, corpus, tmp_path):
    command("index", "build", corpus, "--out", tmp_path / "index")
    done = command("index", "info", tmp_path / "index")
    assert done.exit_code == 0
    for line in (
        f"checksum    {HashEncoder.checksum}",
        "holds       5 reports, 4 distinct",
        "bad rows    2",
        "dimension   8",
        "approximate none (exact search only)",
        "sources     corpus.jsonl@",
        "flat        flat-1.faiss, ",
    ):
        assert line in done.stdout


def test_tables_of_one_name_are_shown_with_their_folders(command, corpus, tmp_path):
    command("index", "build", corpus, "--out", tmp_path / "index")
    (tmp_path / "more").mkdir()
    more = write_jsonl(tmp_path / "more" / corpus.name, [{"id": "b", "report": "Old fracture."}])
    for line in ("1 distinct reports added", "holds this corpus already; nothing was done"):
        done = command("index", "add", more, "--index", tmp_path / "index")
        assert (done.exit_code, line in done.output) == (0, True), done.output
    shown = command("index", "info", tmp_path / "index").stdout
    assert f"sources     {corpus}@" in shown
    assert f", {more}@" in shown
    refused = command("index", "info", corpus)
    assert isinstance(refused.exception, InvalidIndex)
    assert "is a file; an index is a folder" in str(refused.exception)


def test_recall_is_measured_where_there_is_an_approximate_index(command, tmp_path):
    rows = [{"id": k, "report": f"report {k} {k * 7 % 97} {k * 5 % 89}"} for k in range(300)]
    table = write_jsonl(tmp_path / "table.jsonl", rows)
    command("index", "build", table, "--out", tmp_path / "index", "--approximate", "IVF8,Flat")
    done = command("index", "verify", tmp_path / "index", "--recall", "--sample", "30")
    assert done.exit_code == 0, done.output
    shares = [float(line.split()[1]) for line in done.stdout.splitlines()[1:]]
    assert len(shares) == 2
    assert all(0.9 <= share <= 1 for share in shares)
    # One bit a report: what is printed is what is found, not what is hoped for.
    command("index", "build", table, "--out", tmp_path / "crude", "--approximate", "PQ1x1")
    done = command("index", "verify", tmp_path / "crude", "--recall", "--sample", "30")
    shares = [float(line.split()[1]) for line in done.stdout.splitlines()[1:]]
    assert all(0.1 < share < 0.9 for share in shares)
    command("index", "build", table, "--out", tmp_path / "exact")
    refused = command("index", "verify", tmp_path / "exact", "--recall")
    assert isinstance(refused.exception, InvalidSetting)
    assert "--approximate" in str(refused.exception)


def test_the_same_build_again_changes_nothing_and_another_is_refused(command, corpus, tmp_path):
    out = tmp_path / "index"
    command("index", "build", corpus, "--out", out)
    before = (out / "index.json").read_bytes()
    again = command("index", "build", corpus, "--out", out)
    assert again.exit_code == 1  # the two bad rows are still bad
    assert "holds this corpus already" in again.stderr
    assert (out / "index.json").read_bytes() == before
    for options in (("--section", "auto"), ("--no-faiss",), ("--text-column", "patient")):
        refused = command("index", "build", corpus, "--out", out, *options)
        assert isinstance(refused.exception, InvalidSetting)
        assert "--overwrite" in str(refused.exception)
    done = command("index", "build", corpus, "--out", out, "--no-faiss", "--overwrite")
    assert "4 distinct reports added" in done.stdout
    assert load_index(out).manifest.generation == 2
    assert not list(out.glob("*-1.*"))


def test_mistakes_are_told_before_anything_is_embedded(command, corpus, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    empty = write_jsonl(tmp_path / "empty.jsonl", [])
    blank = write_jsonl(tmp_path / "blank.jsonl", [{"id": 7, "report": ""}])
    for arguments, kind, said in (
        (("build", tmp_path / "no.jsonl", "-o", tmp_path / "x"), InvalidTable, "no such file"),
        (("build", corpus, "-o", file), InvalidSetting, "is a file"),
        (("build", corpus, "-o", tmp_path / "x", "--approximate", "IVFF"), InvalidSetting, "IVFF"),
        (("build", corpus, "-o", tmp_path / "x", "--section", "x"), InvalidSetting, "section is"),
        (("build", empty, "-o", tmp_path / "x"), InvalidTable, "no rows"),
        (("build", blank, "-o", tmp_path / "x"), InvalidTable, r"none of its 1 rows.*row 1 \(7\)"),
        (("add", corpus, "-i", tmp_path / "x"), InvalidIndex, "is no index"),
        (("info", tmp_path / "x"), InvalidIndex, "is no index"),
        (("verify", tmp_path / "x"), InvalidIndex, "is no index"),
    ):
        done = command("index", *arguments)
        with pytest.raises(kind, match=said):
            raise done.exception
    assert {path.name for path in tmp_path.glob("x/*")} <= {".lock"}


def test_an_unknown_encoder_is_named(command, corpus, tmp_path, monkeypatch):
    monkeypatch.undo()
    done = command("index", "build", corpus, "-o", tmp_path / "x", "--encoder", "no-such")
    assert isinstance(done.exception, UnknownName)


def test_a_damaged_index_is_refused_and_overwritten(command, corpus, tmp_path):
    out = tmp_path / "index"
    command("index", "build", corpus, "--out", out)
    manifest = json.loads((out / "index.json").read_text())
    for record in manifest["files"].values():
        file = out / record["name"]
        whole = file.read_bytes()
        for damaged in (whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), b""):
            file.write_bytes(damaged)
            refused = command("index", "verify", out)
            assert isinstance(refused.exception, InvalidIndex)
            assert record["name"] in str(refused.exception)
            added = command("index", "add", corpus, "--index", out)
            assert isinstance(added.exception, InvalidIndex)
        file.write_bytes(whole)
    assert command("index", "verify", out).exit_code == 0
    (out / "index.json").write_text("{}")
    assert isinstance(command("index", "build", corpus, "--out", out).exception, InvalidIndex)
    done = command("index", "build", corpus, "--out", out, "--overwrite")
    assert "4 distinct reports added" in done.stdout
