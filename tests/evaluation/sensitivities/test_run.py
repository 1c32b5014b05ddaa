"""The benchmark over files: stopped anywhere it goes on, and its files hold what it prints."""

import csv
import json
import sys

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.doubles import HashEncoder
from tests.evaluation.samples import results_of
from tests.evaluation.sensitivities.samples import make_pairs, write_pairs, write_studies
from vlscore.core import sole_writer
from vlscore.data import open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.errors import FolderInUse, InvalidSetting, InvalidTable, MissingDependency
from vlscore.evaluation import sensitivity
from vlscore.evaluation.sensitivities import run
from vlscore.metrics import named_as_in_papers

METRICS = "vlscore,cosine,bleu-1"
OPTIONS = {"metrics": METRICS, "resamples": 20, "swap_images": True}


@pytest.fixture
def pairs(tmp_path):
    return write_pairs(tmp_path / "pairs", make_pairs())


@pytest.fixture
def table(tmp_path):
    return write_studies(tmp_path)


def run_into(out, pairs, table, **options):
    studies = open_studies(table, needs={"image"})
    embedder = StudyEmbedder(HashEncoder(), batch_size=2)
    return sensitivity(pairs, out, embedder=embedder, studies=studies, **{**OPTIONS, **options})


class Stopped(KeyboardInterrupt):
    pass


def stop_at(rows):
    def on_progress(done, failed):
        if done >= rows:
            raise Stopped

    return on_progress


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(run, "_PAIRS_AT_ONCE", 10)
    monkeypatch.setattr("vlscore.evaluation.study_vectors.STUDIES_AT_ONCE", 3)


@pytest.mark.usefixtures("small_chunks")
def test_stopped_after_any_chunk_it_goes_on_and_writes_the_same_bytes(tmp_path, pairs, table):
    (tmp_path / "3.png").unlink()
    whole = run_into(tmp_path / "whole", pairs, table)
    counts = []
    run_into(tmp_path / "counted", pairs, table, on_progress=lambda *now: counts.append(now))
    assert counts == [
        *[(0, 0), (3, 0), (6, 1), (8, 1)],
        # Ten pairs at once; study 3 has six of them without an image.
        *[(18, 1), (28, 3), (38, 7), (48, 7), (56, 7)],
    ]
    for rows, _ in counts[1:]:
        out = tmp_path / str(rows)
        with pytest.raises(Stopped):
            run_into(out, pairs, table, on_progress=stop_at(rows))
        assert not (out / "run.json").exists()
        result = run_into(out, pairs, table)
        assert results_of(out) == results_of(tmp_path / "whole")
        assert result.content == whole.content
        record = json.loads((out / "run.json").read_text())
        figures = {"drops.png", "normal_reports.png"}
        assert record["results"].keys() == results_of(out).keys() - figures


@pytest.mark.usefixtures("small_chunks")
def test_chunks_do_not_show_in_the_results(tmp_path, pairs, table, monkeypatch):
    # CIDEr-D weighs words by how many of all originals have them.
    metrics = f"{METRICS},cider-d"
    run_into(tmp_path / "small", pairs, table, metrics=metrics)
    monkeypatch.undo()
    run_into(tmp_path / "large", pairs, table, metrics=metrics)
    assert results_of(tmp_path / "small") == results_of(tmp_path / "large")


def test_a_finished_run_is_read_not_computed(tmp_path, pairs, table):
    first = run_into(tmp_path / "out", pairs, table)
    encoder = HashEncoder()
    again = sensitivity(
        pairs,
        tmp_path / "out",
        embedder=StudyEmbedder(encoder, batch_size=2),
        studies=open_studies(table, needs={"image"}),
        **OPTIONS,
    )
    assert again.unchanged
    assert not first.unchanged
    assert (encoder.image_calls, encoder.report_rows) == (0, 0)
    assert again.content == first.content
    assert again.tables == first.tables
    assert again.signatures == first.signatures


def test_other_settings_are_another_run(tmp_path, pairs, table):
    run_into(tmp_path / "out", pairs, table)
    before = results_of(tmp_path / "out")
    for change in (
        {"seed": 1},
        {"resamples": 30},
        {"C": 30.0},
        {"text_policy": "auto"},
        {"metrics": "vlscore"},
        {"swap_images": False},
    ):
        with pytest.raises(InvalidSetting, match="--overwrite"):
            run_into(tmp_path / "out", pairs, table, **change)
    assert results_of(tmp_path / "out") == before
    run_into(tmp_path / "out", pairs, table, overwrite=True, figure="svg")
    run_into(tmp_path / "fresh", pairs, table, figure="svg")
    assert results_of(tmp_path / "out") == results_of(tmp_path / "fresh")
    assert not (tmp_path / "out" / "normal_reports.png").exists()


def test_another_image_folder_is_another_run(tmp_path, pairs, table):
    run_into(tmp_path / "out", pairs, table)
    other = write_studies(tmp_path).parent / "elsewhere"
    other.mkdir()
    elsewhere = write_studies(other)
    with pytest.raises(InvalidSetting, match="image_root"):
        run_into(tmp_path / "out", pairs, elsewhere)


def test_a_second_run_into_a_folder_is_refused(tmp_path, pairs, table):
    with sole_writer(tmp_path / "out"), pytest.raises(FolderInUse):
        run_into(tmp_path / "out", pairs, table)


def test_the_files_hold_what_is_printed(tmp_path, pairs, table):
    result = run_into(tmp_path / "out", pairs, table)
    markdown = (tmp_path / "out" / "tables.md").read_text(encoding="utf-8")
    for each in map(named_as_in_papers, result.tables):
        assert all(heading in markdown for heading in each.columns)
        for row in each.rows:
            assert all(cell in markdown for cell in row)
    assert "VLScore" in markdown
    assert "| vlscore |" not in markdown
    # What is pasted carries what the numbers depend on.
    assert all(signature in markdown for signature in result.signatures)
    assert (tmp_path / "out" / "normal_reports.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "out" / "drops.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "out" / "values.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(make_pairs())
    for row in rows:
        for name in METRICS.split(","):
            drop = float(row[f"{name}.original"]) - float(row[f"{name}.perturbed"])
            assert float(row[f"{name}.drop"]) == pytest.approx(drop)
    content = json.loads((tmp_path / "out" / "sensitivity.json").read_text(encoding="utf-8"))
    assert content == result.content
    assert [(swap["metric"], swap["image"]) for swap in content["swaps"]] == [
        ("vlscore", "other study"),
        ("vlscore", "black"),
        ("cosine", "other study"),
        ("cosine", "black"),
    ]


def test_the_demonstration_is_marked_in_every_file(tmp_path, pairs, table):
    sensitivity(
        pairs,
        tmp_path / "out",
        metrics="vlscore",
        embedder=StudyEmbedder("phantom", device="cpu"),
        studies=open_studies(table, needs={"image"}),
        resamples=10,
        figure="svg",
    )
    for name in ("tables.md", "sensitivity.json", "run.json"):
        assert "DEMONSTRATION-ENCODER" in (tmp_path / "out" / name).read_text(encoding="utf-8")
    figure = (tmp_path / "out" / "normal_reports.svg").read_text(encoding="utf-8")
    assert "demonstration encoder" in figure
    # Every table has its caption, and every caption the mark.
    markdown = (tmp_path / "out" / "tables.md").read_text(encoding="utf-8")
    assert markdown.count("no statement about real radiographs") == markdown.count("**") // 2 > 0


def test_an_unreadable_image_is_named_and_the_rest_compared(tmp_path, pairs, table):
    (tmp_path / "3.png").write_bytes(b"no image")
    result = run_into(tmp_path / "out", pairs, table)
    assert list(result.content["failures"]) == ["3"]
    assert "3.png" in result.content["failures"]["3"]
    counts = {kind["studies"] for m in result.content["metrics"] for kind in m["kinds"]}
    assert counts == {7}
    assert {swap["pairs"] for swap in result.content["swaps"]} == {42}


def test_pairs_without_the_section_are_left_out_of_the_swap_as_well(tmp_path, table):
    pairs = [
        pair.__class__(
            **{
                **vars(pair),
                "original": pair.original if pair.study_id == "2" else f"FINDINGS: {pair.original}",
                "perturbed": f"FINDINGS: {pair.perturbed}",
            }
        )
        for pair in make_pairs()
    ]
    folder = write_pairs(tmp_path / "headed", pairs)
    result = run_into(tmp_path / "out", folder, table, text_policy="findings")
    assert list(result.content["failures"]) == ["2"]
    assert {swap["pairs"] for swap in result.content["swaps"]} == {42}


def test_texts_alone_need_no_encoder(tmp_path, pairs, monkeypatch):
    from vlscore.embedding import embedder as studies

    monkeypatch.setattr(studies, "load_encoder", None)
    phases = {}

    def begin(what, total):
        phases[what] = [total]
        return lambda done, failed: phases[what].append(done)

    options = {"metrics": "rouge-l", "resamples": 10, "on_phase": begin}
    result = sensitivity(pairs, tmp_path / "out", **options)
    assert [metric["name"] for metric in result.content["metrics"]] == ["rouge-l"]
    count = result.content["pairs"]
    assert phases == {"pairs": [count, count], "resampling metrics": [1, 1]}
    assert result.content["swaps"] == []


def test_without_matplotlib_everything_but_the_figure_is_there(tmp_path, pairs, monkeypatch):
    def absent(*_):
        raise MissingDependency("figures need matplotlib: pip install 'vlscore[plots]'")

    monkeypatch.setattr(run, "draw_sensitivity", absent)
    result = sensitivity(pairs, tmp_path / "out", metrics="rouge-l", resamples=10)
    assert result.notes == ("no figure: figures need matplotlib: pip install 'vlscore[plots]'",)
    assert set(results_of(tmp_path / "out")) == {"sensitivity.json", "values.csv", "tables.md"}
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "matplotlib.figure", None)
        with pytest.raises(MissingDependency, match="matplotlib"):
            sensitivity(pairs, tmp_path / "x", metrics="rouge-l", resamples=10, figure="png")
    again = sensitivity(pairs, tmp_path / "out", metrics="rouge-l", resamples=10)
    assert again.notes == result.notes


def test_slips_are_found_before_anything_is_written(tmp_path, pairs, table):
    studies = open_studies(table, needs={"image"})
    embedder = StudyEmbedder(HashEncoder())
    other = tmp_path / "other.csv"
    other.write_text("id,image\nx,0.png\n")
    for options, error, message in (
        ({"figure": "bmp"}, InvalidSetting, "png, svg, pdf"),
        ({"swap_images": True}, InvalidSetting, "--studies"),
        ({"studies": studies}, InvalidSetting, "encoder"),
        ({"metrics": "vlscore"}, InvalidSetting, "--encoder"),
        ({"C": 0.0, "embedder": embedder, "studies": studies}, InvalidSetting, "positive"),
        (
            {"embedder": embedder, "studies": open_studies(other, needs={"image"})},
            InvalidSetting,
            "none of its studies",
        ),
    ):
        with pytest.raises(error, match=message):
            sensitivity(pairs, tmp_path / "out", **options)
    with pytest.raises(InvalidTable, match="vlscore perturb"):
        sensitivity(tmp_path / "absent", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_values_in_files_are_those_computed_in_memory(tmp_path, pairs, table):
    from vlscore.data import StudyImages
    from vlscore.evaluation import embed_pairs, read_pairs, sensitivity_of_pairs

    result = run_into(tmp_path / "out", pairs, table)
    images = {
        study.id: StudyImages(study.id, study.images)
        for study in open_studies(table, needs={"image"})
    }
    found = read_pairs(pairs)
    embedded = embed_pairs(found, StudyEmbedder(HashEncoder()), images)
    direct = sensitivity_of_pairs(found, METRICS, embedded, resamples=20)
    for one, other in zip(result.result.values, direct.values, strict=True):
        np.testing.assert_array_equal(one.perturbed, other.perturbed)
    assert result.content["metrics"] == direct.to_dict()["metrics"]


def test_values_are_the_same_in_either_format(tmp_path, pairs, table):
    text = run_into(tmp_path / "csv", pairs, table)
    binary = run_into(tmp_path / "parquet", pairs, table, format="parquet")
    read = pyarrow.csv.read_csv(text.folder / "values.csv")
    kept = pq.read_table(binary.folder / "values.parquet")
    assert read.column_names == kept.column_names
    for name in kept.column_names[4:]:
        assert read[name].to_pylist() == kept[name].to_pylist()
    assert not (binary.folder / "values.csv").exists()
    with pytest.raises(InvalidSetting, match="csv or parquet"):
        run_into(tmp_path / "other", pairs, table, format="xls")
