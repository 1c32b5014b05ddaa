"""A run scores every row it can, lists every row it cannot, and survives being stopped."""

import csv
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.doubles import HashEncoder
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import evaluate
from vlscore.scorer import Scorer
from vlscore.studies import ColumnNames

BATCH = 2
CHUNK = 8 * BATCH


def make_table(folder, rows, suffix=".jsonl"):
    """`rows` studies with distinct images and texts; returns the table's path and its records."""
    folder.mkdir(parents=True, exist_ok=True)
    records = []
    for k in range(rows):
        image = folder / f"{k}.png"
        pixels = np.random.default_rng(k).integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(image)
        records.append(
            {
                "id": f"s{k}",
                "image": image.name,
                "reference": f"reference {k % 3}",
                "candidate": f"candidate {k}",
            }
        )
    return write_table(folder / f"studies{suffix}", records), records


def write_table(path, records):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    elif path.suffix == ".csv":
        with path.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(records[0]))
            writer.writeheader()
            writer.writerows(records)
    else:
        pq.write_table(pa.Table.from_pylist(records), path)
    return path


@pytest.fixture
def scorer():
    return Scorer(HashEncoder(), device="cpu", batch_size=BATCH)


def read_scores(result):
    if result.scores.suffix == ".csv":
        with result.scores.open() as stream:
            return list(csv.DictReader(stream))
    return pq.read_table(result.scores).to_pylist()


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_every_format_gives_the_scores_of_the_direct_call(tmp_path, scorer, suffix):
    table, records = make_table(tmp_path, 5, suffix)
    result = evaluate(table, tmp_path / "out", scorer)
    direct = scorer.score(
        [tmp_path / record["image"] for record in records],
        [record["candidate"] for record in records],
        [record["reference"] for record in records],
    )
    rows = read_scores(result)
    assert [row["id"] for row in rows] == [record["id"] for record in records]
    np.testing.assert_allclose([row["score"] for row in rows], direct.scores, rtol=1e-6)
    assert result.summary.mean.estimate == pytest.approx(direct.mean(), rel=1e-6)
    assert result.summary.mean.low <= result.summary.mean.estimate <= result.summary.mean.high


def test_bad_rows_are_listed_with_number_and_reason_and_the_rest_is_scored(tmp_path, scorer):
    table, records = make_table(tmp_path, 6)
    (tmp_path / "2.png").write_bytes(b"not an image")
    del records[4]["candidate"]
    write_table(table, records)
    result = evaluate(table, tmp_path / "out", scorer)
    assert (result.summary.rows, result.summary.scored, result.summary.failed) == (6, 4, 2)
    failed = result.first_failures(10)
    assert [(row, study_id) for row, study_id, _ in failed] == [(3, "s2"), (5, "s4")]
    assert "2.png" in failed[0][2]
    assert "candidate" in failed[1][2]
    assert [row["id"] for row in read_scores(result)] == ["s0", "s1", "s3", "s5"]
    assert len(result.first_failures(1)) == 1


def test_parquet_and_csv_hold_the_same(tmp_path, scorer):
    table, _ = make_table(tmp_path, 4)
    parquet = evaluate(table, tmp_path / "a", scorer, format="parquet")
    text = evaluate(table, tmp_path / "b", scorer, format="csv")
    assert parquet.first_scores(10) == text.first_scores(10)
    assert parquet.first_scores(2) == text.first_scores(10)[:2]
    metadata = pq.read_schema(parquet.scores).metadata
    assert metadata[b"vlscore.signature"].decode() == str(scorer.signature)


def test_workers_do_not_change_the_scores(tmp_path, scorer):
    table, _ = make_table(tmp_path, 4)
    here = evaluate(table, tmp_path / "a", scorer, workers=0)
    workers = evaluate(table, tmp_path / "b", scorer, workers=1)
    assert here.first_scores(10) == workers.first_scores(10)


class Stopped(KeyboardInterrupt):
    pass


def test_a_stopped_run_leaves_whole_files_and_goes_on(tmp_path, scorer):
    rows = 2 * CHUNK + 3
    table, _ = make_table(tmp_path, rows)
    out = tmp_path / "out"

    def stop_after_the_first_chunk(done, failed):
        raise Stopped

    with pytest.raises(Stopped):
        evaluate(table, out, scorer, on_progress=stop_after_the_first_chunk)
    assert [path.name for path in out.iterdir()] == [".parts"]
    assert pq.read_table(out / ".parts" / "00000000.parquet").num_rows == CHUNK

    progress = []
    result = evaluate(table, out, scorer, on_progress=lambda *now: progress.append(now))
    assert result.resumed_from == CHUNK
    assert progress == [(2 * CHUNK, 0), (rows, 0)]
    whole = evaluate(table, tmp_path / "whole", scorer)
    assert result.first_scores(100) == whole.first_scores(100)
    assert not (out / ".parts").exists()


def test_a_stopped_run_is_not_continued_with_another_scorer_or_table(tmp_path, scorer):
    table, records = make_table(tmp_path, CHUNK + 1)

    def stop(done, failed):
        raise Stopped

    with pytest.raises(Stopped):
        evaluate(table, tmp_path / "out", scorer, on_progress=stop)
    other = Scorer(HashEncoder(), device="cpu", batch_size=BATCH, C=3.0)
    with pytest.raises(InvalidSetting, match=r"differs in signature.*--overwrite"):
        evaluate(table, tmp_path / "out", other)
    write_table(table, records[:-1])
    with pytest.raises(InvalidSetting, match="differs in table_sha256"):
        evaluate(table, tmp_path / "out", scorer)
    assert evaluate(table, tmp_path / "out", other, overwrite=True).summary.rows == CHUNK


def test_finished_results_are_not_overwritten_unasked(tmp_path, scorer):
    table, _ = make_table(tmp_path, 2)
    evaluate(table, tmp_path / "out", scorer)
    with pytest.raises(InvalidSetting, match="exists"):
        evaluate(table, tmp_path / "out", scorer)
    assert evaluate(table, tmp_path / "out", scorer, overwrite=True).summary.rows == 2


def test_the_record_says_how_to_repeat_the_run(tmp_path, scorer):
    table, _ = make_table(tmp_path, 2)
    result = evaluate(table, tmp_path / "out", scorer)
    record = json.loads(result.record.read_text())
    assert record["signature"]["signature"] == str(scorer.signature)
    assert record["encoder"]["name"] == "hash"
    assert record["libraries"]["torch"]
    assert record["command"]
    assert len(record["table_sha256"]) == 64
    summary = json.loads(result.summary_file.read_text())
    assert summary["scored"] == 2
    assert set(summary["mean"]) >= {"estimate", "low", "high"}


def test_truncated_texts_are_counted(tmp_path, scorer):
    table, records = make_table(tmp_path, 3)
    records[1]["candidate"] = "word " * 100
    write_table(table, records)
    summary = evaluate(table, tmp_path / "out", scorer).summary
    assert (summary.candidates_truncated, summary.references_truncated) == (1, 0)


def test_other_column_names_and_an_image_root(tmp_path, scorer):
    table, records = make_table(tmp_path / "images", 2)
    renamed = [
        {"study": r["id"], "file": r["image"], "truth": r["reference"], "output": r["candidate"]}
        for r in records
    ]
    other = write_table(tmp_path / "other.jsonl", renamed)
    names = ColumnNames(id="study", image="file", reference="truth", candidate="output")
    result = evaluate(other, tmp_path / "a", scorer, image_root=tmp_path / "images", columns=names)
    plain = evaluate(table, tmp_path / "b", scorer)
    assert result.first_scores(9) == plain.first_scores(9)


def test_an_empty_table_is_refused(tmp_path, scorer):
    table = tmp_path / "empty.jsonl"
    table.write_text("")
    with pytest.raises(InvalidTable, match="holds no rows"):
        evaluate(table, tmp_path / "out", scorer)


def test_a_table_without_a_good_row_has_a_summary_without_a_mean(tmp_path, scorer):
    table, records = make_table(tmp_path, 1)
    write_table(table, [records[0] | {"reference": ""}])
    summary = evaluate(table, tmp_path / "out", scorer).summary
    assert (summary.rows, summary.scored, summary.mean) == (1, 0, None)


def test_a_slip_in_the_table_costs_no_earlier_result(tmp_path, scorer):
    table, _ = make_table(tmp_path, 2)
    before = evaluate(table, tmp_path / "out", scorer)
    written = before.scores.read_bytes()
    for slip, names in (("absent.jsonl", None), (table.name, ColumnNames(image="picture"))):
        with pytest.raises(InvalidTable):
            evaluate(tmp_path / slip, tmp_path / "out", scorer, columns=names, overwrite=True)
    assert before.scores.read_bytes() == written


def test_empty_candidates_count(tmp_path, scorer):
    table, records = make_table(tmp_path, 4)
    write_table(table, [records[0] | {"candidate": ""}, records[1] | {"candidate": None}])
    summary = evaluate(table, tmp_path / "out", scorer).summary
    assert (summary.scored, summary.failed) == (2, 0)
