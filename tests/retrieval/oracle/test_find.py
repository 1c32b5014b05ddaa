"""The oracle into a folder: its files, what resumes and what is refused."""

import json

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.cli.conftest import read_jsonl, write_jsonl
from tests.doubles import HashEncoder, Sociable
from vlscore.data import open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.errors import FolderInUse, InvalidIndex, InvalidSetting, InvalidTable
from vlscore.metrics import compute
from vlscore.retrieval import OracleRun, OracleSettings, index_add, index_build, oracle
from vlscore.retrieval import index_oracle as run
from vlscore.retrieval.run import RESULTS

STUDIES = 11


def embedder():
    return StudyEmbedder(HashEncoder(), device="cpu")


@pytest.fixture
def index(tmp_path):
    rows = [{"id": f"r{k}", "report": f"finding {k % 30} on the side {k % 4}"} for k in range(60)]
    return index_build(write_jsonl(tmp_path / "reports.jsonl", rows), tmp_path / "i", embedder())


@pytest.fixture
def studies(tmp_path):
    """Eleven studies of four references; the fifth has no image file, the ninth is no study."""
    rows = []
    for k in range(STUDIES):
        pixels = np.random.default_rng(k).integers(0, 256, (8, 8), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{k}.png")
        reference = f"finding {k % 4} on the side 1"
        rows.append({"id": f"s{k}", "image": f"{k}.png", "reference": reference})
    rows[4]["image"] = "absent.png"
    rows[8]["reference"] = ""
    return write_jsonl(tmp_path / "studies.jsonl", rows)


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch):
    monkeypatch.setattr(run, "STUDIES_AT_ONCE", 3)


def files_of(folder):
    return {name: (folder / name).read_bytes() for name in RESULTS if (folder / name).exists()}


def test_the_flat_table_holds_what_the_lines_hold(index, studies, tmp_path):
    settings = OracleSettings(k=3)
    parquet = oracle(studies, tmp_path / "a", index.index, embedder(), settings)
    text = oracle(studies, tmp_path / "b", index.index, embedder(), settings, format="csv")
    assert parquet.answers_file.read_bytes() == text.answers_file.read_bytes()
    lines = read_jsonl(parquet.answers_file)
    assert [line["id"] for line in lines] == [f"s{k}" for k in range(STUDIES)]
    assert [line["id"] for line in lines if line["error"]] == ["s4", "s8"]
    expected = [
        {
            "study_row": line["row"],
            "study_id": line["id"],
            "place": place,
            **hit,
            "ids": ";".join(hit["ids"]),
        }
        for line in lines
        for place, hit in enumerate(line["hits"], start=1)
    ]
    rows = pq.read_table(parquet.hits_file).to_pylist()
    assert rows == expected
    assert len(rows) == 3 * (STUDIES - 2)
    assert pyarrow.csv.read_csv(text.hits_file).to_pylist() == expected
    assert parquet.summary == text.summary
    best = [line["hits"][0]["score"] for line in lines if line["hits"]]
    summary = json.loads(parquet.summary_file.read_text())
    assert summary["mean"]["estimate"] == pytest.approx(np.mean(best), abs=1e-12)
    assert summary["mean"]["low"] < np.mean(best) < summary["mean"]["high"]
    assert (summary["studies"], summary["searched"], summary["failed"]) == (STUDIES, 9, 2)
    assert summary["signature"] == lines[0]["signature"] == str(parquet.summary.signature)
    assert [row for row, _, _ in parquet.first_failures(10)] == [5, 9]
    direct = OracleRun(index.index, embedder(), settings).answers(studies)
    assert [answer.to_dict(summary["signature"]) for answer in direct] == lines


@pytest.mark.parametrize("stop_at", [3, 6, 9])
def test_a_stopped_run_goes_on_to_the_same_bytes(index, studies, tmp_path, stop_at):
    whole = oracle(studies, tmp_path / "whole", index.index, embedder())
    out = tmp_path / "out"

    def stop(done, failed):
        if done == stop_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        oracle(studies, out, index.index, embedder(), on_progress=stop)
    assert files_of(out) == {}
    again = embedder()
    told = []
    went_on = oracle(studies, out, index.index, again, on_progress=lambda *at: told.append(at))
    assert (went_on.resumed_from, told[0][0], told[-1]) == (stop_at, stop_at, (STUDIES, 2))
    assert again.engine.images_embedded <= STUDIES - stop_at
    assert files_of(out) == files_of(whole.folder)
    unchanged = oracle(studies, out, index.index, embedder())
    assert unchanged.unchanged
    assert unchanged.summary == whole.summary


def test_embeddings_do_not_depend_on_where_a_run_was_stopped(index, studies, tmp_path):
    def sociable():
        return StudyEmbedder(Sociable(), device="cpu")

    def stop(done, failed):
        if done == 3:
            raise KeyboardInterrupt

    whole = oracle(studies, tmp_path / "whole", index.index, sociable())
    with pytest.raises(KeyboardInterrupt):
        oracle(studies, tmp_path / "out", index.index, sociable(), on_progress=stop)
    went_on = oracle(studies, tmp_path / "out", index.index, sociable())
    assert went_on.resumed_from == 3
    assert files_of(went_on.folder) == files_of(whole.folder)


def test_what_differs_is_refused_and_overwritten_at_the_end(index, studies, tmp_path):
    out = tmp_path / "out"
    oracle(studies, out, index.index, embedder())
    before = files_of(out)
    for settings, options in (
        (OracleSettings(k=2), {}),
        (OracleSettings(guard="window"), {}),
        (OracleSettings(ranks=False), {}),
        (OracleSettings(metric="cosine"), {}),
        (OracleSettings(metric="vlscore(C=7)"), {}),
        (OracleSettings(), {"format": "csv"}),
    ):
        with pytest.raises(InvalidSetting, match="--overwrite"):
            oracle(studies, out, index.index, embedder(), settings, **options)
    assert files_of(out) == before
    # The same texts, of whom one belongs to another study as well: other ids are found.
    more = write_jsonl(tmp_path / "m.jsonl", [{"id": "n", "report": "finding 1 on the side 1"}])
    more_ids = index_add(more, index.index.path, embedder()).index
    with pytest.raises(InvalidSetting, match="index table"):
        oracle(studies, out, more_ids, embedder())

    def stop(done, failed):
        if done == 6:
            raise KeyboardInterrupt

    options = {"format": "csv", "overwrite": True}
    with pytest.raises(KeyboardInterrupt):
        oracle(studies, out, more_ids, embedder(), on_progress=stop, **options)
    assert files_of(out) == before
    done = oracle(studies, out, more_ids, embedder(), **options)
    assert done.resumed_from == 6
    assert sorted(files_of(out)) == ["hits.csv", "hits.jsonl", "summary.json"]


def test_what_is_wrong_is_found_before_the_folder_is_made(index, studies, tmp_path):
    out, path = tmp_path / "out", index.index.path
    for error, message, table, options in (
        (InvalidTable, "no such file", tmp_path / "no.jsonl", {}),
        (InvalidTable, "no column own", studies, {"settings": OracleSettings(exclude_ids="own")}),
        (InvalidSetting, "no such folder", studies, {"image_root": tmp_path / "nowhere"}),
        (InvalidSetting, "format is parquet or csv", studies, {"format": "json"}),
        (InvalidIndex, "txt: all against findings", studies, {"text_policy": "findings"}),
        (
            InvalidIndex,
            "txt: all against impression",
            studies,
            {
                "text_policy": "impression",
                "settings": OracleSettings(metric="bleu-1", candidates=0),
            },
        ),
        (
            InvalidSetting,
            "text-to-image searches an index of images",
            studies,
            {"settings": OracleSettings(metric="text-to-image")},
        ),
    ):
        with pytest.raises(error, match=message):
            oracle(table, out, path, embedder(), **options)
    assert not out.exists()


def test_a_second_run_into_the_folder_is_refused(index, studies, tmp_path):
    out = tmp_path / "out"

    def meddle(done, failed):
        with pytest.raises(FolderInUse):
            oracle(studies, out, index.index, embedder())

    assert oracle(studies, out, index.index, embedder(), on_progress=meddle).summary.failed


def test_a_metric_that_does_not_look_at_the_image_needs_none(index, studies, tmp_path):
    """What is there describes the hits; what is not there, or not readable, fails no study."""
    cosine = OracleSettings(metric="cosine", k=2)
    described = oracle(studies, tmp_path / "a", index.index, embedder(), cosine)
    answers = {answer.id: answer for answer in described.answers()}
    assert [id for id, answer in answers.items() if answer.error] == ["s8"]
    assert np.isnan([hit.found.area for hit in answers["s4"].hits]).all()
    assert np.isfinite([hit.found.area for hit in answers["s3"].hits]).all()
    assert [hit.found.distance_rank for hit in answers["s4"].hits] == [
        hit.found.distance_rank for hit in answers["s0"].hits
    ]
    bare = embedder()
    settings = OracleSettings(metric="cosine", k=2, describe=False)
    plain = oracle(studies, tmp_path / "b", index.index, bare, settings)
    assert bare.engine.images_embedded == 0
    rows = [[hit.found.row for hit in answer.hits] for answer in plain.answers()]
    assert rows == [[hit.found.row for hit in answer.hits] for answer in described.answers()]
    clipscore = OracleSettings(metric="clipscore", k=2)
    images = oracle(studies, tmp_path / "c", index.index, embedder(), clipscore)
    answers = {answer.id: answer for answer in images.answers()}
    assert [id for id, answer in answers.items() if answer.error] == ["s4"]
    first = answers["s8"].hits[0]
    assert (first.found.distance_rank, first.verbatim) == (None, None)
    assert np.isnan([first.found.distance, first.found.area]).all()


def test_wanted_columns_are_read_where_a_row_has_them(studies):
    rows = list(open_studies(studies, needs={"image"}, wants={"reference", "candidate"}))
    assert [row.reference for row in rows[7:10]] == [
        "finding 3 on the side 1",
        None,
        "finding 1 on the side 1",
    ]
    assert all(row.candidate is None for row in rows)


def test_recall_is_measured_once_and_survives_a_stop(index, studies, tmp_path, monkeypatch):
    table = tmp_path / "reports.jsonl"
    approximate = index_build(table, tmp_path / "j", embedder(), approximate="HNSW4").index
    settings = OracleSettings(mode="approximate", effort=2, sample=2, k=4)
    measured = []
    exactly = run.recall

    def recall(oracle, images, references, *, k):
        measured.append((len(images), len(references), k))
        return exactly(oracle, images, references, k=k) / 2

    monkeypatch.setattr(run, "recall", recall)
    whole = oracle(studies, tmp_path / "a", approximate, embedder(), settings)
    assert measured == [(2, 2, 1), (2, 2, 4)]
    assert whole.summary.recall == {1: 0.5, 4: 0.5}

    def stop(done, failed):
        if done == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        oracle(studies, tmp_path / "b", approximate, embedder(), settings, on_progress=stop)
    went_on = oracle(studies, tmp_path / "b", approximate, embedder(), settings)
    assert len(measured) == 4
    assert went_on.summary.recall == whole.summary.recall
    assert files_of(went_on.folder) == files_of(whole.folder)


def test_a_metric_of_texts_over_the_whole_corpus_loads_no_encoder(index, studies, tmp_path):
    settings = OracleSettings(metric="bleu-2", k=1, candidates=0)
    result = oracle(studies, tmp_path / "a", index.index.path, None, settings)
    for answer, study in zip(result.answers(), read_jsonl(studies), strict=True):
        if answer.error is None:
            references = [study["reference"]] * len(index.index)
            scores = compute(["bleu-2"], index.index.texts(), references)["bleu-2"]
            (hit,) = answer.hits
            assert (hit.found.row, hit.found.score) == (scores.argmax(), scores.max())
            assert hit.verbatim == (hit.found.score == 1)
    record = json.loads(result.record.read_text())
    assert record["encoder"] is None
    assert str(result.summary.signature).endswith("|candidates:all")
