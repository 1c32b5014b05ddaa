"""An evaluation computes every metric for every row it can, and lists every row it cannot."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests.doubles import HashEncoder, KeptEncoder
from tests.evaluation.samples import (
    BATCH,
    counts_of,
    make_table,
    numbers_of,
    read_scores,
    results_of,
    write_table,
)
from tests.killed_process import Killed
from tests.metrics import own
from vlscore.data import ColumnNames, open_studies
from vlscore.errors import Failure, InvalidSetting, InvalidTable
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer, compute, text_metric

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
    summary = numbers_of(result)
    for name, values in direct.columns.items():
        np.testing.assert_allclose([row[name] for row in rows], values, rtol=1e-6)
    for name in direct.signatures:
        each = summary[name]
        assert each["mean"] == pytest.approx(direct.columns[name].mean(), rel=1e-6)
        assert np.isnan(each["mean.low"]) == (np.ptp(direct.columns[name]) == 0)
        assert not each["mean.low"] > each["mean"]
        assert not each["mean.high"] < each["mean"]
        assert each["n"] == 5
        assert result.signatures[name] == str(direct.signatures[name])


def test_bad_rows_are_listed_with_number_and_reason_and_the_rest_is_scored(tmp_path, scorer):
    table, records = make_table(tmp_path, 6)
    (tmp_path / "2.png").write_bytes(b"not an image")
    records[4]["reference"] = ""
    write_table(table, records)
    result = evaluate(table, tmp_path / "out", scorer)
    assert counts_of(result)["rows with every value"] == 4
    first, second = result.failures
    assert (first.row, first.id) == (3, "s2")
    assert "2.png" in first.reason
    assert second == Failure(5, "s4", 'column "reference" is empty')
    # Every row of the table is there, so that a join shows the holes.
    rows = read_scores(result)
    assert [row["vlscore"] is None for row in rows] == [k in (2, 4) for k in range(6)]
    assert [row["error"] is None for row in rows] == [k not in (2, 4) for k in range(6)]


def test_metrics_of_one_table_have_their_own_n_and_means_over_common_rows(tmp_path, several):
    table, _ = make_table(tmp_path, 6)
    for k in (0, 3):
        (tmp_path / f"{k}.png").unlink()
    result = evaluate(table, tmp_path / "out", several)
    summary = numbers_of(result)
    means = dict(result.frame("common").itertuples(index=False))
    assert [summary[name]["n"] for name in METRICS.split(",")] == [4, 6, 6, 6]
    rows = read_scores(result)
    for name in METRICS.split(","):
        common = [row[name] for row in rows if row["vlscore"] is not None]
        assert means[name] == pytest.approx(np.mean(common), rel=1e-12)
    assert [each.row for each in result.failures] == [1, 4]
    assert result.failures[0].reason.startswith(f"{tmp_path / '0.png'}: no such file")


def test_a_table_without_a_value_has_a_summary_without_a_mean(tmp_path, several):
    table, _ = make_table(tmp_path, 2)
    for k in range(2):
        (tmp_path / f"{k}.png").unlink()
    result = evaluate(table, tmp_path / "out", several)
    assert np.isnan(numbers_of(result)["vlscore"]["mean"])
    assert result.tables[0].rows[0][:2] == ("vlscore", "-")
    table, _ = make_table(tmp_path / "one", 1)
    result = evaluate(table, tmp_path / "single", several)
    assert np.isfinite(numbers_of(result)["vlscore"]["mean"])
    assert np.isnan(numbers_of(result)["vlscore"]["mean.low"])
    assert "nan" not in result.tables[0].text()


def test_special_cases_are_counted(tmp_path, scorer):
    table, records = make_table(tmp_path, 9)
    records[1]["candidate"] = ""
    records[2]["candidate"] = None
    records[3]["candidate"] = "word " * 100
    records[4] |= {"candidate": "nan", "reference": "None"}
    records[5]["image"] = ["0.png", "1.png"]
    records[6] |= {"image": ["0.png", "1.png"], "view": ["LL", "PA"]}
    write_table(table, records)
    result = evaluate(table, tmp_path / "out", scorer)
    counts, rows = counts_of(result), read_scores(result)
    feet = [row["foot"] for row in rows]
    assert counts == {
        "rows": 9,
        "rows with every value": 9,
        "candidates truncated": 1,
        "references truncated": 0,
        "foot far from the reference": sum(foot < -0.5 or foot > 1.5 for foot in feet),
        "empty candidates, scored as they are": 2,
        'candidates that say "nan", "None", "[\'...\']" or the like': 1,
        'references that say "nan", "None", "[\'...\']" or the like': 1,
        "studies whose frontal view is a guess": 1,
    }
    assert [row["view_guessed"] for row in rows] == [k == 5 for k in range(9)]
    assert [row["candidate_truncated"] for row in rows] == [k == 3 for k in range(9)]
    assert "(s5): the first image was used as the frontal one" in " ".join(result.notes)
    for k, image in ((1, "1.png"), (5, "0.png"), (6, "1.png")):
        record = records[k]
        direct = scorer.score(tmp_path / image, record["candidate"], record["reference"])
        assert rows[k]["vlscore"] == pytest.approx(float(direct), rel=1e-6)


def test_rows_without_a_readable_id_fail_alone(tmp_path, scorer):
    table, records = make_table(tmp_path, 5)
    records[1]["id"] = "a\ud800b"
    records[2]["image"] = "a\udc80b.png"
    records[4]["id"] = "s0"
    lines = [json.dumps(record) for record in records]
    lines[3] = "not json at all"
    table.write_text("\n".join(lines) + "\n")
    for format in ("parquet", "csv"):
        result = evaluate(table, tmp_path / format, scorer, format=format)
        assert [row["row"] for row in read_scores(result)] == [1, 2, 3, 4, 5]
        assert read_scores(result)[3]["id"] is None
        assert [each.row for each in result.failures] == [2, 3, 4, 5]
        assert "already in row 1" in result.failures[-1].reason


def test_parquet_and_csv_hold_the_same(tmp_path, several):
    table, records = make_table(tmp_path, 4)
    records[1]["id"] = 'a "quoted", id\nof two lines'
    records[2]["id"] = "NA"
    (tmp_path / "3.png").unlink()
    write_table(table, records)
    parquet = evaluate(table, tmp_path / "a", several, format="parquet")
    text = evaluate(table, tmp_path / "b", several, format="csv")
    assert read_scores(parquet) == read_scores(text)
    assert parquet.content == text.content
    # The file itself names what its numbers depend on.
    attrs = pd.read_parquet(tmp_path / "a" / "scores.parquet").attrs
    assert attrs["signatures"] == {n: str(s) for n, s in several.signatures.items()}


def test_workers_and_batches_do_not_change_the_bytes(tmp_path):
    table, records = make_table(tmp_path, 40)
    records[7]["reference"] = ""
    (tmp_path / "17.png").unlink()
    write_table(table, records)
    for size, workers in ((1, 0), (3, 0), (16, 1)):
        scorer = Scorer(HashEncoder(), metrics=METRICS, batch_size=size)
        evaluate(table, tmp_path / str(size), scorer, workers=workers)
    first = results_of(tmp_path / "1")
    assert first == results_of(tmp_path / "3") == results_of(tmp_path / "16")
    rows = read_scores(evaluate(table, tmp_path / "1", scorer))
    for k in (0, 16, 18, 39):
        record = records[k]
        direct = scorer.score(tmp_path / f"{k}.png", record["candidate"], record["reference"])
        assert rows[k]["vlscore"] == pytest.approx(float(direct), rel=1e-6)


def test_metrics_need_only_the_columns_that_they_look_at(tmp_path):
    table, records = make_table(tmp_path, 3)
    write_table(table, [{k: v for k, v in r.items() if k != "image"} for r in records])
    result = evaluate(table, tmp_path / "texts", Scorer(metrics="bleu-1,rouge-l"))
    texts = [[record[side] for record in records] for side in ("candidate", "reference")]
    rows = read_scores(result)
    assert [row["bleu-1"] for row in rows] == compute("bleu-1", *texts)["bleu-1"].tolist()
    assert set(rows[0]) == {"row", "id", "bleu-1", "rouge-l", "error"}
    assert list(counts_of(result)) == ["rows", "rows with every value"]
    write_table(table, [{k: v for k, v in r.items() if k != "reference"} for r in records])
    result = evaluate(table, tmp_path / "out", Scorer(HashEncoder(), metrics="clipscore"))
    named = {"row", "id", "clipscore", "image_candidate", "candidate_truncated", "error"}
    named.add("clipscore.percentile")
    assert set(read_scores(result)[0]) == named


def test_corpus_values_are_those_of_sacrebleu(tmp_path):
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
    found = numbers_of(result)["bleu-2 corpus"]
    assert found["mean"] == pytest.approx(expected, rel=1e-12)
    assert found["mean.low"] <= found["mean"] <= found["mean.high"]


def test_metrics_of_ones_own_go_where_others_go(tmp_path):
    table, records = make_table(tmp_path, 4)
    records[2] |= {"reference": " . ", "candidate": "a b"}
    write_table(table, records)

    def fragile(candidate, reference):
        return 1 / reference.count("reference")

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
    assert result.failures == [Failure(3, "s2", "fragile: ZeroDivisionError: division by zero")]


def test_other_column_names_an_image_root_and_an_open_table(tmp_path, scorer):
    table, records = make_table(tmp_path / "images", 2)
    renamed = [
        {"study": r["id"], "file": r["image"], "truth": r["reference"], "output": r["candidate"]}
        for r in records
    ]
    other = write_table(tmp_path / "other.jsonl", renamed)
    names = ColumnNames(id="study", image="file", reference="truth", candidate="output")
    there = open_studies(other, image_root=tmp_path / "images", columns=names)
    result = evaluate(there, tmp_path / "a", scorer)
    plain = evaluate(table, tmp_path / "b", scorer)
    assert read_scores(result) == read_scores(plain)
    opened = evaluate(open_studies(table), tmp_path / "c", scorer)
    assert results_of(plain.folder) == results_of(opened.folder)
    # It is read for what the metrics look at, whatever it was opened for.
    opened = evaluate(open_studies(table, needs={"candidate"}), tmp_path / "d", scorer)
    assert results_of(plain.folder) == results_of(opened.folder)


def test_findings_and_impression_columns_make_the_reference(tmp_path):
    table, records = make_table(tmp_path, 2)
    parts = [{"findings": "left effusion", "impression": "effusion"}, {"impression": "clear"}]
    without = [{k: v for k, v in r.items() if k != "reference"} for r in records]
    write_table(table, [r | p for r, p in zip(without, parts, strict=True)])
    scorer = Scorer(HashEncoder(), metrics="vlscore,bleu-1", text_policy="auto")
    rows = read_scores(evaluate(table, tmp_path / "out", scorer))
    expected = compute("bleu-1", ["candidate 0", "candidate 1"], ["left effusion", "clear"])
    assert [row["bleu-1"] for row in rows] == expected["bleu-1"].tolist()


def test_tables_and_formats_that_cannot_be_used_are_refused(tmp_path, scorer):
    (tmp_path / "empty.jsonl").write_text("\n\n")
    with pytest.raises(InvalidTable, match="holds no rows"):
        evaluate(tmp_path / "empty.jsonl", tmp_path / "out", scorer)
    with pytest.raises(InvalidTable, match="no such file"):
        evaluate(tmp_path / "absent.jsonl", tmp_path / "out", scorer)
    table, _ = make_table(tmp_path, 1)
    with pytest.raises(InvalidSetting, match="parquet or csv"):
        evaluate(table, tmp_path / "out", scorer, format="xlsx")
    assert not (tmp_path / "out").exists()


def test_a_run_whose_first_hundred_rows_fail_alike_ends_before_it_writes(tmp_path, scorer):
    table, records = make_table(tmp_path / "images", 1)
    many = [records[0] | {"id": f"s{k}", "image": f"{k}.png"} for k in range(150)]
    table = write_table(tmp_path / "studies.jsonl", many)
    with pytest.raises(InvalidSetting, match=r"first 112 rows all fail.*row 1 \(s0\).*no such"):
        evaluate(table, tmp_path / "out", scorer)
    # Nothing stands in the way of the corrected command.
    for k in range(1, 150):
        (tmp_path / "images" / f"{k}.png").write_bytes((tmp_path / "images" / "0.png").read_bytes())
    result = evaluate(open_studies(table, image_root=tmp_path / "images"), tmp_path / "out", scorer)
    assert not result.failures


# --- the table's own columns ----------------------------------------------------------------------


OWN = {"keep": ["view"], "by": ["view"], "patient": "patient"}


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_own_columns_are_in_the_scores(tmp_path, format):
    table, records = make_table(tmp_path, 6)
    own_cells = [{"view": "AP" if k % 3 else "", "patient": f"00{k // 2}"} for k in range(6)]
    write_table(table, [r | o for r, o in zip(records, own_cells, strict=True)])
    result = evaluate(table, tmp_path / "out", Scorer(metrics="bleu-1"), format=format, **OWN)
    rows = read_scores(result)
    assert list(rows[0])[:4] == ["row", "id", "view", "patient"]
    assert [row["view"] for row in rows] == [None, "AP", "AP", None, "AP", "AP"]
    texts = result.rows(f"scores.{format}", texts=["patient"])
    assert texts["patient"].tolist() == ["000", "000", "001", "001", "002", "002"]
    groups = result.frame("subgroups")
    assert groups["value"].unique().tolist() == ["(none)", "AP"]
    assert "intervals resample the 3 patients of the column patient" in " ".join(result.notes)
    assert "bleu-1 by view" in [each.title for each in result.tables]


def test_rows_without_a_patient_are_no_patients(tmp_path):
    table, records = make_table(tmp_path, 6)
    write_table(
        table, [{**each, "patient": "ab"[k] if k < 2 else None} for k, each in enumerate(records)]
    )
    scorer = Scorer(metrics="bleu-1")
    notes = " ".join(evaluate(table, tmp_path / "out", scorer, patient="patient").notes)
    assert "the 2 patients of the column patient, not the studies; 4 rows without one" in notes


def test_subgroups_of_a_long_table_are_those_of_their_rows_alone(tmp_path):
    """A group that only the first batch of rows has, with values of the corpus."""
    texts = ["Small left effusion.", "No edema is seen.", "The heart is big.", "Clear lungs now."]
    records = [
        {
            "id": f"s{k}",
            "reference": f"{texts[k % 4]} {texts[(k // 7) % 4]}",
            "candidate": f"{texts[k % 4]} {texts[(k // 3) % 4]}",
            "site": "a" if k < 50 else "b",
        }
        for k in range(2100)
    ]
    scorer = Scorer(metrics="bleu-4,findings-f1")
    table = write_table(tmp_path / "long.jsonl", records)
    run = evaluate(table, tmp_path / "out", scorer, by=["site"])
    groups = run.frame("subgroups").set_index(["value", "metric"])
    for site, rows in (("a", records[:50]), ("b", records[50:])):
        alone = evaluate(write_table(tmp_path / f"{site}.jsonl", rows), tmp_path / site, scorer)
        for name, each in numbers_of(alone).items():
            found = groups.loc[(site, name)]
            assert found["n"] == each["n"] == len(rows)
            assert found["mean"] == pytest.approx(each["mean"], nan_ok=True)


# --- a folder that holds results ------------------------------------------------------------------


def test_a_finished_run_is_not_computed_again_and_another_is_refused(tmp_path):
    table, records = make_table(tmp_path, 5)
    scorer = Scorer(KeptEncoder(), metrics="vlscore", batch_size=BATCH)
    evaluate(table, tmp_path / "out", scorer)
    before = results_of(tmp_path / "out")
    assert evaluate(table, tmp_path / "out", scorer).unchanged
    more = Scorer(scorer.embedder, metrics="vlscore,cosine")
    with pytest.raises(InvalidSetting, match=r"differs: metrics cosine: nothing there, cosine\|"):
        evaluate(table, tmp_path / "out", more)
    with pytest.raises(InvalidSetting, match="format: parquet there, csv now"):
        evaluate(table, tmp_path / "out", scorer, format="csv")
    records[0]["candidate"] = "another"
    write_table(table, records)
    with pytest.raises(InvalidSetting, match="content of the table"):
        evaluate(table, tmp_path / "out", scorer)
    assert results_of(tmp_path / "out") == before
    assert not evaluate(table, tmp_path / "out", more, overwrite=True).unchanged


def test_an_image_that_was_replaced_is_named(tmp_path, scorer):
    table, _ = make_table(tmp_path, 5)
    evaluate(table, tmp_path / "out", scorer)
    os.utime(tmp_path / "1.png", (1, 1))
    (tmp_path / "3.png").unlink()
    assert evaluate(table, tmp_path / "out", scorer).unchanged
    pixels = np.random.default_rng(5).integers(0, 256, (32, 32), np.uint8)
    Image.fromarray(pixels).save(tmp_path / "2.png")
    with pytest.raises(InvalidSetting, match=r"2\.png has been replaced.*--overwrite"):
        evaluate(table, tmp_path / "out", scorer)
    anew = evaluate(table, tmp_path / "out", scorer, overwrite=True)
    assert read_scores(anew) == read_scores(evaluate(table, tmp_path / "fresh", scorer))


class Mortal(KeptEncoder):
    """Dies after so many passes."""

    def __init__(self, passes):
        super().__init__()
        self.left = passes

    def _pass(self):
        self.left -= 1
        if self.left < 0:
            raise Killed

    def embed_images(self, pixels):
        self._pass()
        return super().embed_images(pixels)

    def embed_reports(self, tokens):
        self._pass()
        return super().embed_reports(tokens)


@pytest.mark.parametrize("cached", [True, False])
def test_killed_at_any_pass_the_next_call_ends_with_the_same_bytes(tmp_path, monkeypatch, cached):
    """The encoder's numbers depend on what is computed together, so that any other batch shows."""
    table, records = make_table(tmp_path / "in", 35)
    # Failures and repeated texts must not move the batches either.
    (tmp_path / "in" / "3.png").write_bytes(b"no image")
    (tmp_path / "in" / "20.png").unlink()
    records[5]["candidate"] = "untokenizable"
    records[9]["candidate"] = records[30]["candidate"]
    for k, record in enumerate(records):
        record["reference"] += " normal" * (k % 9) + f" {k % 7}"
    write_table(table, records)

    def run(out, encoder):
        scorer = Scorer(encoder, device="cpu", batch_size=BATCH, cache=cached)
        return evaluate(table, tmp_path / out, scorer)

    monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / "cache whole"))
    encoder = Mortal(10_000)
    run("whole", encoder)
    whole, passes = results_of(tmp_path / "whole"), 10_000 - encoder.left
    assert passes > 20
    for count in range(1, passes, 11):
        monkeypatch.setenv("VLSCORE_CACHE", str(tmp_path / f"cache {count}"))
        with pytest.raises(Killed):
            run(f"out{count}", Mortal(count))
        assert not (tmp_path / f"out{count}" / "run.json").exists()
        again = Mortal(10_000)
        run(f"out{count}", again)
        assert results_of(tmp_path / f"out{count}") == whole, count
        if cached:
            assert 10_000 - again.left == passes - count
