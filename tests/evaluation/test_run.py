"""A run computes every metric for every row it can, and lists every row it cannot."""

import csv
import json
import tracemalloc

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.doubles import HashEncoder
from tests.evaluation.samples import BATCH, make_table, read_scores, results_of, write_table
from tests.metrics import own
from vlscore.core import Signature
from vlscore.data import ColumnNames, open_studies
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation import evaluate, scores_table, summary_table, summary_text
from vlscore.evaluation.scoring.summary import read_summary
from vlscore.metrics import Scorer, compute

METRICS = "vlscore,cosine,bleu-1,findings-f1"


@pytest.fixture
def scorer():
    return Scorer(HashEncoder(), batch_size=BATCH)


@pytest.fixture
def several():
    return Scorer(HashEncoder(), metrics=METRICS, batch_size=BATCH)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_every_format_gives_the_values_of_the_direct_call(tmp_path, several, suffix, format):
    table, records = make_table(tmp_path, 5, suffix)
    result = evaluate(table, tmp_path / "out", several, format=format)
    direct = several.score(
        [tmp_path / record["image"] for record in records],
        [record["candidate"] for record in records],
        [record["reference"] for record in records],
    )
    rows = read_scores(result)
    assert [row["id"] for row in rows] == [record["id"] for record in records]
    assert [row["row"] for row in rows] == [1, 2, 3, 4, 5]
    for name, values in direct.columns.items():
        np.testing.assert_allclose([row[name] for row in rows], values, rtol=1e-6)
    for name, summary in result.summary.metrics.items():
        mean = summary.values[name].mean
        assert mean.estimate == pytest.approx(direct.columns[name].mean(), rel=1e-6)
        assert mean.low <= mean.estimate <= mean.high
        assert summary.values[name].scored == 5
        assert summary.signature == direct.signatures[name]


def test_bad_rows_are_listed_with_number_and_reason_and_the_rest_is_scored(tmp_path, scorer):
    table, records = make_table(tmp_path, 6)
    (tmp_path / "2.png").write_bytes(b"not an image")
    records[4]["reference"] = ""
    write_table(table, records)
    result = evaluate(table, tmp_path / "out", scorer)
    assert (result.summary.rows, result.summary.scored, result.summary.failed) == (6, 4, 2)
    failed = result.first_failures(10)
    assert [(row, study_id) for row, study_id, _ in failed] == [(3, "s2"), (5, "s4")]
    assert "2.png" in failed[0][2]
    assert "reference" in failed[1][2]
    # Every row of the table is there, so that a join shows the holes.
    rows = read_scores(result)
    assert [row["id"] for row in rows] == [f"s{k}" for k in range(6)]
    assert [row["vlscore"] is None for row in rows] == [k in (2, 4) for k in range(6)]
    assert [row["error"] is None for row in rows] == [k not in (2, 4) for k in range(6)]
    assert len(result.first_failures(1)) == 1
    with result.failures.open(newline="") as stream:
        listed = list(csv.DictReader(stream))
    assert [(row["row"], row["metric"]) for row in listed] == [("3", "vlscore"), ("5", "row")]


def test_metrics_of_one_table_tell_their_own_n_and_their_means_over_common_rows(tmp_path, several):
    table, _ = make_table(tmp_path, 6)
    for k in (0, 3):
        (tmp_path / f"{k}.png").unlink()
    result = evaluate(table, tmp_path / "out", several)
    summary = result.summary
    scored = {name: metric.scored for name, metric in summary.metrics.items()}
    assert scored == {"vlscore": 4, "cosine": 6, "bleu-1": 6, "findings-f1": 6}
    assert (summary.scored, summary.failed) == (4, 2)
    rows = read_scores(result)
    for name, mean in summary.common.items():
        common = [row[name] for row in rows if row["vlscore"] is not None]
        assert mean == pytest.approx(np.mean(common), rel=1e-12)
    shown = summary_text(summary)
    assert "4 of 6 have every value" in shown
    assert f"bleu-1 {summary.common['bleu-1']:.4f}" in shown
    cells = {row[0]: row[-1] for row in summary_table(summary).rows}
    assert (cells["vlscore"], cells["cosine"]) == ("4", "6")
    assert all(row["row"] in (1, 4) for row in rows if row["error"])
    # What fails for one metric is listed for that one.
    with result.failures.open(newline="") as stream:
        listed = [(row["row"], row["metric"], row["error"]) for row in csv.DictReader(stream)]
    assert [(row, metric) for row, metric, _ in listed] == [("1", "vlscore"), ("4", "vlscore")]
    assert listed[0][2].startswith(f"{tmp_path / '0.png'}: no such file")


def test_no_common_row_at_all(tmp_path, several):
    table, _ = make_table(tmp_path, 2)
    for k in range(2):
        (tmp_path / f"{k}.png").unlink()
    summary = evaluate(table, tmp_path / "out", several).summary
    assert (summary.scored, summary.failed) == (0, 2)
    assert summary.metrics["vlscore"].values["vlscore"].mean is None
    assert summary.common == dict.fromkeys(METRICS.split(","))
    assert "bleu-1 -" in summary_text(summary)


def test_one_row_has_means_and_no_intervals(tmp_path, several):
    table, _ = make_table(tmp_path, 1)
    summary = evaluate(table, tmp_path / "out", several).summary
    mean = summary.metrics["vlscore"].values["vlscore"].mean
    assert np.isfinite(mean.estimate)
    assert np.isnan([mean.low, mean.high]).all()
    assert "nan" not in summary_text(summary)
    content = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert content["metrics"]["vlscore"]["values"]["vlscore"]["mean"]["low"] is None


def test_a_table_without_a_good_row_has_a_summary_without_a_mean(tmp_path, scorer):
    table, records = make_table(tmp_path, 2)
    write_table(table, [record | {"reference": ""} for record in records])
    result = evaluate(table, tmp_path / "out", scorer)
    summary = result.summary
    assert (summary.rows, summary.scored, summary.failed) == (2, 0, 2)
    assert summary.metrics["vlscore"].values["vlscore"].mean is None
    assert [row["vlscore"] for row in read_scores(result)] == [None, None]
    assert "-" in summary_text(summary)


def test_empty_candidates_are_scored_and_counted(tmp_path, scorer):
    table, records = make_table(tmp_path, 4)
    records[1]["candidate"] = ""
    records[2]["candidate"] = None
    write_table(table, records)
    result = evaluate(table, tmp_path / "out", scorer)
    assert (result.summary.scored, result.summary.failed) == (4, 0)
    assert result.summary.empty_candidates == 2
    rows = read_scores(result)
    for k in (1, 2):
        direct = float(scorer.score(tmp_path / f"{k}.png", "", records[k]["reference"]))
        assert rows[k]["vlscore"] == pytest.approx(direct, rel=1e-6)
    mean = result.summary.metrics["vlscore"].values["vlscore"].mean
    assert mean.estimate == pytest.approx(np.mean([row["vlscore"] for row in rows]))
    assert "empty candidates, scored as they are: 2" in summary_text(result.summary)


@pytest.mark.parametrize("word", ["None", "nan", "NA"])
def test_words_for_missing_values_are_counted_and_said(tmp_path, scorer, word):
    table, records = make_table(tmp_path, 4)
    records[0]["candidate"] = records[2]["candidate"] = word
    records[1]["reference"] = word
    write_table(table, records)
    summary = evaluate(table, tmp_path / "out", scorer).summary
    assert (summary.candidates_say_missing, summary.references_say_missing) == (2, 1)
    shown = summary_text(summary)
    assert 'candidates that say "nan", "None" or the like: 2' in shown
    assert 'references that say "nan", "None" or the like: 1' in shown


def test_rows_without_an_id_have_none_and_are_told_apart(tmp_path, scorer):
    table, records = make_table(tmp_path, 3)
    lines = [json.dumps(records[0]), "not json at all", json.dumps(records[2])]
    table.write_text("\n".join(lines) + "\n")
    for format in ("parquet", "csv"):
        result = evaluate(table, tmp_path / format, scorer, format=format)
        rows = read_scores(result)
        assert [row["row"] for row in rows] == [1, 2, 3]
        assert rows[1]["id"] in (None, "")
        assert result.first_scores(3)[1]["id"] is None
        shown = scores_table(result.first_scores(3)).text()
        assert "row 2" in shown
        assert "None" not in shown
        ((row, study_id, _),) = result.first_failures(5)
        assert (row, study_id) == (2, "")


def test_half_a_surrogate_pair_in_one_row_leaves_the_others(tmp_path, scorer):
    table, records = make_table(tmp_path, 4)
    records[1]["id"] = "a\ud800b"
    records[2]["image"] = "a\udc80b.png"
    write_table(table, records)
    for format in ("parquet", "csv"):
        result = evaluate(table, tmp_path / format, scorer, format=format)
        assert (result.summary.scored, result.summary.failed) == (2, 2)
        assert [row for row, _, _ in result.first_failures(9)] == [2, 3]


def test_duplicate_ids_are_bad_rows(tmp_path, scorer):
    table, records = make_table(tmp_path, 3)
    records[2]["id"] = "s0"
    write_table(table, records)
    result = evaluate(table, tmp_path / "out", scorer)
    assert result.summary.scored == 2
    ((row, study_id, reason),) = result.first_failures(5)
    assert (row, study_id) == (3, "s0")
    assert "row 1" in reason


def test_parquet_and_csv_hold_the_same(tmp_path, several):
    table, records = make_table(tmp_path, 4)
    records[1]["id"] = 'a "quoted", id\nof two lines'
    records[2]["id"] = "NA"
    (tmp_path / "3.png").unlink()
    write_table(table, records)
    parquet = evaluate(table, tmp_path / "a", several, format="parquet")
    text = evaluate(table, tmp_path / "b", several, format="csv")
    assert parquet.first_scores(10) == text.first_scores(10)
    assert parquet.first_scores(2) == text.first_scores(10)[:2]
    assert parquet.first_failures(9) == text.first_failures(9)
    assert parquet.summary == text.summary
    metadata = pq.read_schema(parquet.scores).metadata
    for name, signature in several.signatures.items():
        printed = metadata[f"vlscore.signature.{name}".encode()].decode()
        assert Signature.parse(printed) == signature


def test_workers_do_not_change_the_scores(tmp_path, scorer):
    table, _ = make_table(tmp_path, 4)
    evaluate(table, tmp_path / "a", scorer, workers=0)
    evaluate(table, tmp_path / "b", scorer, workers=1)
    assert results_of(tmp_path / "a") == results_of(tmp_path / "b")


def test_the_same_bytes_whatever_the_batches(tmp_path):
    table, records = make_table(tmp_path, 40)
    records[7]["reference"] = ""
    write_table(table, records)
    for size in (1, 3, 16):
        scorer = Scorer(HashEncoder(), metrics=METRICS, batch_size=size)
        evaluate(table, tmp_path / str(size), scorer)
    assert results_of(tmp_path / "1") == results_of(tmp_path / "3") == results_of(tmp_path / "16")


def test_metrics_of_texts_need_no_images(tmp_path, monkeypatch):
    table, records = make_table(tmp_path, 3)
    write_table(table, [{k: v for k, v in r.items() if k != "image"} for r in records])
    result = evaluate(table, tmp_path / "out", Scorer(metrics="bleu-1,rouge-l"))
    texts = [[record[side] for record in records] for side in ("candidate", "reference")]
    expected = compute("bleu-1,rouge-l", *texts)
    rows = read_scores(result)
    assert [row["bleu-1"] for row in rows] == expected["bleu-1"].tolist()
    assert set(rows[0]) == {"row", "id", "bleu-1", "rouge-l", "error"}
    assert result.summary.candidates_truncated is None
    assert result.summary.foot_far_outside is None
    assert "foot" not in summary_text(result.summary)


def test_metrics_without_references_need_none(tmp_path):
    table, records = make_table(tmp_path, 3)
    write_table(table, [{k: v for k, v in r.items() if k != "reference"} for r in records])
    result = evaluate(table, tmp_path / "out", Scorer(HashEncoder(), metrics="clipscore"))
    assert result.summary.scored == 3
    assert set(read_scores(result)[0]) == {
        "row",
        "id",
        "clipscore",
        "image_candidate",
        "candidate_truncated",
        "error",
    }


def test_corpus_values_stand_beside_the_means(tmp_path):
    from sacrebleu.metrics.bleu import BLEU

    table, records = make_table(tmp_path, 6)
    for k, record in enumerate(records):
        record["candidate"] = f"there is no effusion {k}"
        record["reference"] = f"there is no left effusion {k % 2}"
    write_table(table, records)
    result = evaluate(table, tmp_path / "out", Scorer(metrics="bleu-2"))
    candidates, references = ([r[side] for r in records] for side in ("candidate", "reference"))
    bleu = BLEU(lowercase=True, max_ngram_order=2, smooth_method="none")
    expected = bleu.corpus_score(candidates, [references]).score / 100
    found = result.summary.metrics["bleu-2"].corpus["corpus"]
    assert found.estimate == pytest.approx(expected, rel=1e-12)
    assert found.low <= found.estimate <= found.high
    assert "bleu-2 corpus" in summary_text(result.summary)


def test_directions_are_said(tmp_path):
    table, _ = make_table(tmp_path, 3)
    summary = evaluate(
        table, tmp_path / "out", Scorer(HashEncoder(), metrics="bounding-sphere")
    ).summary
    assert "bounding-sphere (lower is better)" in summary_text(summary)
    content = json.loads((tmp_path / "out" / "summary.json").read_text())
    value = content["metrics"]["bounding-sphere"]["values"]["bounding-sphere"]
    assert value["higher_is_better"] is False


def test_feet_far_from_the_reference_are_counted(tmp_path, scorer):
    table, _ = make_table(tmp_path, 20)
    result = evaluate(table, tmp_path / "out", scorer)
    feet = [row["foot"] for row in read_scores(result)]
    assert result.summary.foot_far_outside == sum(foot < -0.5 or foot > 1.5 for foot in feet)
    alone = evaluate(table, tmp_path / "cosine", Scorer(HashEncoder(), metrics="cosine"))
    assert alone.summary.foot_far_outside is None


def test_truncated_texts_are_counted(tmp_path, scorer):
    table, records = make_table(tmp_path, 3)
    records[1]["candidate"] = "word " * 100
    write_table(table, records)
    result = evaluate(table, tmp_path / "out", scorer)
    summary = result.summary
    assert (summary.candidates_truncated, summary.references_truncated) == (1, 0)
    assert "truncated: candidate" in scores_table(result.first_scores(3)).text()


def test_guessed_views_are_counted(tmp_path, scorer):
    table, records = make_table(tmp_path, 3)
    records[0]["image"] = ["0.png", "1.png"]
    records[1] |= {"image": ["0.png", "1.png"], "view": ["LL", "PA"]}
    write_table(table, records)
    result = evaluate(table, tmp_path / "out", scorer)
    assert result.summary.views_guessed == 1
    assert result.first_guessed(5) == [records[0]["id"]]
    rows = read_scores(result)
    direct = [
        float(scorer.score(tmp_path / image, record["candidate"], record["reference"]))
        for image, record in zip(("0.png", "1.png"), records, strict=False)
    ]
    assert [row["vlscore"] for row in rows[:2]] == pytest.approx(direct, rel=1e-6)


def test_metrics_of_ones_own_go_where_others_go(tmp_path):
    table, records = make_table(tmp_path, 4)
    records[2]["reference"] = " . "
    records[2]["candidate"] = "a b"
    write_table(table, records)

    def fragile(candidate, reference):
        return 1 / reference.count("reference")

    from vlscore.metrics import text_metric

    metric = text_metric("fragile", "fails without the word")(fragile)
    scorer = Scorer(HashEncoder(), metrics=[own.COMPOSITE, metric, "vlscore"])
    result = evaluate(table, tmp_path / "out", scorer)
    rows = read_scores(result)
    texts = [[record[side] for record in records] for side in ("candidate", "reference")]
    expected = compute([own.COMPOSITE], *texts)["sum-of-two"]
    assert [row["sum-of-two"] for row in rows] == expected.tolist()
    # A metric that fails for a row leaves the others of that row.
    assert [row["fragile"] for row in rows] == [1.0, 1.0, None, 1.0]
    assert all(row["vlscore"] is not None for row in rows)
    assert result.first_failures(5) == [(3, "s2", "fragile: ZeroDivisionError: division by zero")]
    signature = result.summary.metrics["sum-of-two"].signature
    assert "length-ratio,own:7" in signature.get("of")


@pytest.mark.parametrize("name", ["area", "id", "error", "row", "reasons", "view_guessed"])
def test_a_metric_with_a_name_of_ours_is_refused(tmp_path, name):
    from vlscore.metrics import text_metric

    table, _ = make_table(tmp_path, 1)
    metric = text_metric(name, "an unlucky name")(lambda g, r: 1.0)
    with pytest.raises(InvalidSetting, match="give the metric another name"):
        evaluate(table, tmp_path / "out", Scorer(metrics=[metric]))
    assert not (tmp_path / "out").exists()


def test_the_record_says_how_to_repeat_the_run(tmp_path, scorer, monkeypatch):
    table, _ = make_table(tmp_path / "here", 2)
    monkeypatch.chdir(tmp_path)
    names = ColumnNames(candidate="candidate")
    result = evaluate("here/studies.jsonl", "out", scorer, columns=names)
    record = json.loads(result.record.read_text())
    assert record["signatures"]["vlscore"]["signature"] == str(scorer.signature)
    assert record["encoder"]["name"] == "hash"
    assert record["libraries"]["torch"]
    assert record["command"]
    assert record["batch_size"] == BATCH
    assert len(record["key"]["table_sha256"]) == 64
    # Nothing of it depends on where the command was given.
    assert record["table"] == str(table)
    assert record["image_root"] == str(tmp_path / "here")
    assert record["key"]["columns"]["candidate"] == "candidate"
    summary = json.loads(result.summary_file.read_text())
    assert summary["scored"] == 2
    assert set(summary["metrics"]["vlscore"]["values"]["vlscore"]["mean"]) == {
        "estimate",
        "low",
        "high",
    }


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


def test_a_table_that_is_open_already(tmp_path, scorer):
    table, _ = make_table(tmp_path, 3)
    plain = evaluate(table, tmp_path / "a", scorer)
    opened = evaluate(open_studies(table), tmp_path / "b", scorer)
    assert results_of(plain.folder) == results_of(opened.folder)
    with pytest.raises(InvalidSetting, match="belong to open_studies"):
        evaluate(open_studies(table), tmp_path / "c", scorer, image_root=tmp_path)
    with pytest.raises(InvalidSetting, match="look at image, which the table was opened without"):
        evaluate(open_studies(table, needs={"candidate", "reference"}), tmp_path / "c", scorer)


def test_findings_and_impression_columns_make_the_reference(tmp_path):
    table, records = make_table(tmp_path, 2)
    parts = [{"findings": "left effusion", "impression": "effusion"}, {"impression": "clear"}]
    without = [{k: v for k, v in r.items() if k != "reference"} for r in records]
    write_table(table, [r | p for r, p in zip(without, parts, strict=True)])
    scorer = Scorer(HashEncoder(), metrics="vlscore,bleu-1", text_policy="auto")
    rows = read_scores(evaluate(table, tmp_path / "out", scorer))
    expected = compute("bleu-1", ["candidate 0", "candidate 1"], ["left effusion", "clear"])
    assert [row["bleu-1"] for row in rows] == expected["bleu-1"].tolist()


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_table_is_refused(tmp_path, scorer, content):
    table = tmp_path / "empty.jsonl"
    table.write_text(content)
    with pytest.raises(InvalidTable, match="holds no rows"):
        evaluate(table, tmp_path / "out", scorer)
    assert not (tmp_path / "out").exists()


def test_a_missing_table_is_an_error_of_ours(tmp_path, scorer):
    with pytest.raises(InvalidTable, match="no such file"):
        evaluate(tmp_path / "absent.jsonl", tmp_path / "out", scorer)


@pytest.mark.parametrize("format", ["xlsx", "", None])
def test_an_unknown_format_is_refused(tmp_path, scorer, format):
    table, _ = make_table(tmp_path, 1)
    with pytest.raises(InvalidSetting, match="parquet or csv"):
        evaluate(table, tmp_path / "out", scorer, format=format)


# --- a setting is wrong, not the rows ---------------------------------------------------------


def test_a_run_whose_first_hundred_rows_fail_alike_ends_before_it_writes(tmp_path, scorer):
    table, records = make_table(tmp_path / "images", 1)
    many = [records[0] | {"id": f"s{k}", "image": f"{k}.png"} for k in range(150)]
    table = write_table(tmp_path / "studies.jsonl", many)
    done = []
    with pytest.raises(InvalidSetting, match=r"first 112 rows all fail.*row 1 \(s0\).*no such"):
        evaluate(table, tmp_path / "out", scorer, on_progress=lambda *now: done.append(now))
    assert done == [(0, 0)]
    # Nothing stands in the way of the corrected command.
    for k in range(1, 150):
        (tmp_path / "images" / f"{k}.png").write_bytes((tmp_path / "images" / "0.png").read_bytes())
    result = evaluate(table, tmp_path / "out", scorer, image_root=tmp_path / "images")
    assert result.summary.scored == 150


def test_rows_that_fail_alike_are_tried_where_one_says_so(tmp_path, scorer):
    table, records = make_table(tmp_path, 1)
    many = [records[0] | {"id": f"s{k}", "image": "absent.png"} for k in range(120)]
    write_table(table, [*many, records[0] | {"id": "last"}])
    summary = evaluate(table, tmp_path / "out", scorer, keep_going=True).summary
    assert (summary.rows, summary.scored) == (121, 1)


@pytest.mark.parametrize("good", [0, 99])
def test_one_good_row_among_the_first_hundred_is_enough(tmp_path, scorer, good):
    table, records = make_table(tmp_path, 1)
    many = [records[0] | {"id": f"s{k}", "image": f"absent{k}.png"} for k in range(130)]
    many[good] = records[0] | {"id": f"s{good}"}
    write_table(table, many)
    assert evaluate(table, tmp_path / "out", scorer).summary.scored == 1


def test_rows_that_fail_for_several_reasons_go_on(tmp_path, scorer):
    table, records = make_table(tmp_path, 1)
    many = [records[0] | {"id": f"s{k}", "image": f"absent{k}.png"} for k in range(130)]
    many[5]["reference"] = ""
    write_table(table, many)
    assert evaluate(table, tmp_path / "out", scorer).summary.failed == 130


def test_a_small_table_that_fails_whole_is_told_row_by_row(tmp_path, scorer):
    table, records = make_table(tmp_path, 1)
    many = [records[0] | {"id": f"s{k}", "image": f"absent{k}.png"} for k in range(90)]
    write_table(table, many)
    assert evaluate(table, tmp_path / "out", scorer).summary.failed == 90


def test_memory_does_not_grow_with_the_rows(tmp_path):
    """Of a row, only its numbers are kept for the intervals."""
    peaks = []
    for rows in (2_000, 8_000):
        table = tmp_path / f"{rows}.jsonl"
        with table.open("w") as stream:
            for k in range(rows):
                text = f"candidate {k} " * 8
                record = {"id": f"s{k}", "reference": f"reference {k % 7}", "candidate": text}
                stream.write(json.dumps(record) + "\n")
        scorer = Scorer(metrics="tests.metrics.own:length_ratio")
        tracemalloc.start()
        evaluate(table, tmp_path / f"out{rows}", scorer)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # 6,000 rows of text and dicts would be 5 MB more.
    assert peaks[1] - peaks[0] < 1_500_000


def test_images_are_those_of_the_table(tmp_path, scorer):
    """Nothing of the decoding ahead mixes rows up."""
    table, records = make_table(tmp_path, 50)
    Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "17.png")
    result = evaluate(table, tmp_path / "out", scorer)
    rows = read_scores(result)
    assert rows[17]["vlscore"] is None
    for k in (0, 16, 18, 49):
        direct = scorer.score(
            tmp_path / f"{k}.png", records[k]["candidate"], records[k]["reference"]
        )
        assert rows[k]["vlscore"] == pytest.approx(float(direct), rel=1e-6)


def test_the_summary_leads_with_the_first_metric(tmp_path):
    table, _ = make_table(tmp_path / "in", 5)
    result = evaluate(table, tmp_path / "out", Scorer(metrics="bleu-2,rouge-l"))
    content = json.loads((tmp_path / "out" / "summary.json").read_text())
    first = content["metrics"]["bleu-2"]
    assert content["signature"] == first["signature"] == str(result.summary.signature)
    assert content["mean"] == first["values"]["bleu-2"]["mean"]
    assert content["median"] == first["values"]["bleu-2"]["median"]
    assert read_summary(tmp_path / "out" / "summary.json") == result.summary
