"""Data sets as tables: what stands in them, beside them, and that other commands read them."""

import csv
import json
import os
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image

from tests.data.datasets.samples import (
    SAMPLES,
    chexpert_plus,
    iu_kaggle,
    mimic_cxr_jpg,
    r2gen,
    squared_films,
)
from vlscore.data import BadRow, TextPolicy, dataset, open_studies, read_rows
from vlscore.data.datasets.dataset_writing import restored_size
from vlscore.errors import InvalidSetting, InvalidTable, OutputFailed


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "csv"])
@pytest.mark.parametrize("name", SAMPLES)
def test_every_data_set_becomes_a_table_that_commands_read(name, suffix, tmp_path):
    sample = SAMPLES[name](tmp_path / "data")
    out = tmp_path / f"studies.{suffix}"
    summary = dataset(name, sample.folder, out, **sample.arguments)
    studies = list(open_studies(out, needs={"image", "reference"}, also=["patient", "split"]))
    assert not [each for each in studies if isinstance(each, BadRow)]
    assert len(studies) == summary.studies.total() >= 1
    for study in studies:
        assert all(path.is_file() for path in study.images)
        assert study.parts
        assert study.views is None or len(study.views) == len(study.images)
    assert summary.tables == {"": out}


def test_sections_views_and_patients_reach_the_commands(tmp_path):
    sample = mimic_cxr_jpg(tmp_path / "jpg")
    out = tmp_path / "mimic.parquet"
    dataset("mimic-cxr-jpg", sample.folder, out, **sample.arguments)
    first, second, third = open_studies(out, needs={"image", "reference"}, also=["patient"])
    assert (first.id, first.extra) == ("50000001", {"patient": "10000001"})
    assert first.views == ("PA", "LATERAL")
    assert first.selected(TextPolicy("impression")).reference == "Normal."
    assert first.selected(TextPolicy("all")).reference == "Clear lungs. Normal."
    assert second.selected(TextPolicy("auto")).reference == "Small left effusion."
    assert third.selected(TextPolicy("auto")).reference == "Edema."
    rows = [record for _, record in read_rows(out)]
    assert list(rows[0]) == [
        *("id", "patient", "split", "image", "view", "rows", "columns"),
        *("indication", "history", "technique", "comparison", "findings", "impression"),
        "full_report",
    ]
    assert (rows[0]["split"], rows[0]["rows"], rows[0]["columns"]) == (
        "train",
        [3056] * 2,
        [2544] * 2,
    )


def test_ids_of_many_digits_stay_text_in_every_format(tmp_path):
    sample = SAMPLES["padchest"](tmp_path / "data")
    for suffix in ("parquet", "jsonl", "csv"):
        out = tmp_path / f"padchest.{suffix}"
        dataset("padchest", sample.folder, out)
        patients = [row["patient"] for _, row in read_rows(out)]
        assert patients == ["839860488694292331", "3"]


def test_what_is_left_out_is_listed_and_counted(tmp_path):
    sample = mimic_cxr_jpg(tmp_path / "jpg")
    out = tmp_path / "tables" / "mimic_{split}.jsonl"
    summary = dataset("mimic-cxr-jpg", sample.folder, out, **sample.arguments)
    assert summary.tables == {
        "train": tmp_path / "tables" / "mimic_train.jsonl",
        "validate": tmp_path / "tables" / "mimic_validate.jsonl",
    }
    assert dict(summary.studies) == {"train": 2, "validate": 1}
    assert dict(summary.films) == {"train": 3, "validate": 1}
    assert dict(summary.omitted) == {
        ("film", "the file of the film is absent"): 1,
        ("study", "the file of the report is absent"): 1,
        ("study", "the report has neither findings nor an impression"): 1,
    }
    # A report without sections is the data set's own way, absent files are not.
    assert summary.faults == 2
    assert summary.notes == [
        "1 reports have no heading of findings or impression; their last paragraph is taken for "
        "the findings"
    ]
    with (tmp_path / "tables" / "mimic.rows.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["what"], row["row"], row["id"]) for row in rows] == [
        ("film", "4", "50000003"),
        ("study", "6", "50000004"),
        ("study", "7", "50000005"),
    ]
    assert rows[0]["detail"] == "files/p11/p11000002/s50000003/cc-gone.jpg"
    assert rows[0]["file"] == "mimic-cxr-2.0.0-metadata.csv.gz"
    content = json.loads((tmp_path / "tables" / "mimic.json").read_text(encoding="utf-8"))
    assert content["studies"] == {"train": 2, "validate": 1}
    assert content["faults"] == 2


def test_the_same_files_give_the_same_bytes(tmp_path):
    sample = chexpert_plus(tmp_path / "chexpert")
    for suffix in ("parquet", "jsonl", "csv"):
        out = tmp_path / f"a.{suffix}"
        dataset("chexpert-plus", sample.folder, out)
        before = out.read_bytes()
        dataset("chexpert-plus", sample.folder, out)
        assert out.read_bytes() == before


def test_paths_start_from_the_table_or_from_the_films(tmp_path):
    sample = r2gen(tmp_path / "iu_xray")
    beside, elsewhere = tmp_path / "a.jsonl", tmp_path / "else" / "b.jsonl"
    for out, relative in ((beside, False), (elsewhere, False), (tmp_path / "c.jsonl", True)):
        dataset("r2gen", sample.folder, out, relative=relative)
        first = next(iter(read_rows(out)))[1]["image"][0]
        known = {
            beside: "iu_xray/images/CXR2384_IM-0942/0.png",
            elsewhere: str(sample.folder / "images/CXR2384_IM-0942/0.png"),
        }
        assert first == known.get(out, "images/CXR2384_IM-0942/0.png")
    assert [
        study.images[0].is_file()
        for study in open_studies(tmp_path / "c.jsonl", needs={"image"}, image_root=sample.folder)
    ] == [True, True]


def test_nothing_is_written_where_no_study_is_left(tmp_path):
    sample = iu_kaggle(tmp_path / "iu")
    out = tmp_path / "none.parquet"
    with pytest.raises(InvalidTable, match=r"no study of the part test can be used.*needs indiana"):
        dataset("iu-kaggle", sample.folder, out, split="test")
    for path in (sample.folder / "images" / "images_normalized").iterdir():
        path.unlink()
    with pytest.raises(InvalidTable, match="no film of the study was found"):
        dataset("iu-kaggle", sample.folder, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["iu"]


def test_a_table_that_is_there_stays_where_the_new_one_fails(tmp_path):
    sample = iu_kaggle(tmp_path / "iu")
    out = tmp_path / "iu.jsonl"
    dataset("iu-kaggle", sample.folder, out)
    before = out.read_bytes()
    with pytest.raises(InvalidTable):
        dataset("iu-kaggle", sample.folder, out, split="test")
    assert out.read_bytes() == before
    with pytest.raises(InvalidSetting, match=r"one of .parquet, .jsonl, .csv"):
        dataset("iu-kaggle", sample.folder, tmp_path / "iu.xlsx")
    (tmp_path / "file").touch()
    with pytest.raises(OutputFailed, match="is a file, not a folder"):
        dataset("iu-kaggle", sample.folder, tmp_path / "file" / "iu.jsonl")


def test_squeezed_films_get_their_proportions_back(tmp_path):
    sample = squared_films(tmp_path / "iu")
    out = tmp_path / "iu.jsonl"
    summary = dataset("squared-films", sample.folder, out, proportions=tmp_path / "restored")
    shapes = {
        path.stem: Image.open(path).size[::-1]
        for study in open_studies(out, needs={"image"})
        for path in study.images
    }
    # Of 40 x 40 pixels: the shorter side of the original keeps them.
    assert shapes == {"tall": (60, 40), "side": (40, 40), "wide": (40, 60), "even": (40, 40)}
    counts = summary.proportions
    assert counts is not None
    assert (counts.restored, counts.right, counts.unknown) == (2, 1, 1)
    assert "2 films were squeezed and are stretched back, 1 had" in summary.notes[0]
    # Stretched, not cut or padded: shrunk again, it is the film.
    squeezed = np.asarray(Image.open(sample.folder / "images" / "tall.jpg"), dtype=float)
    tall = np.asarray(Image.open(tmp_path / "restored" / "images" / "tall.png"), dtype=np.float32)
    again = cv2.resize(tall, (40, 40), interpolation=cv2.INTER_AREA)
    assert np.corrcoef(squeezed.ravel(), again.ravel())[0, 1] > 0.95


@pytest.mark.parametrize("out", ["iu.jsonl", "tables/iu.jsonl"])
def test_relative_folders_name_the_same_films(tmp_path, monkeypatch, out):
    sample = squared_films(tmp_path / "iu")
    monkeypatch.chdir(tmp_path)
    dataset("squared-films", sample.folder.name, out, proportions="restored")
    films = [path for study in open_studies(out, needs={"image"}) for path in study.images]
    assert sorted(Path(path).stem for path in films) == ["even", "side", "tall", "wide"]
    for path in films:
        copied = Path(path).stem in ("tall", "wide")
        folder = tmp_path / "restored" if copied else sample.folder
        assert Path(path).resolve() == folder / "images" / f"{Path(path).stem}{Path(path).suffix}"
        assert Path(path).is_file()


def test_restored_films_are_made_once_and_again_for_a_newer_film(tmp_path):
    sample = squared_films(tmp_path / "iu")
    out, copies = tmp_path / "iu.jsonl", tmp_path / "restored"
    dataset("squared-films", sample.folder, out, proportions=copies)
    tall = copies / "images" / "tall.png"
    content = tall.read_bytes()
    tall.write_bytes(b"a mark")
    later = (sample.folder / "images" / "tall.jpg").stat().st_mtime_ns + 10**9
    os.utime(tall, ns=(later, later))
    dataset("squared-films", sample.folder, out, proportions=copies)
    assert tall.read_bytes() == b"a mark"
    os.utime(sample.folder / "images" / "tall.jpg", ns=(later + 1, later + 1))
    dataset("squared-films", sample.folder, out, proportions=copies)
    assert tall.read_bytes() == content


def test_a_damaged_film_costs_no_other(tmp_path):
    sample = squared_films(tmp_path / "iu")
    (sample.folder / "images" / "tall.jpg").write_bytes(b"no picture")
    out = tmp_path / "iu.jsonl"
    summary = dataset("squared-films", sample.folder, out, proportions=tmp_path / "restored")
    assert [len(row["image"]) for _, row in read_rows(out)] == [1, 2]
    assert summary.omitted["film", "the row or file cannot be read"] == 1


def test_proportions_need_sizes_and_a_folder(tmp_path):
    sample = iu_kaggle(tmp_path / "iu")
    with pytest.raises(InvalidSetting, match="does not state the films' original size"):
        dataset("iu-kaggle", sample.folder, tmp_path / "a.csv", proportions=tmp_path / "p")
    squared = squared_films(tmp_path / "squared")
    with pytest.raises(InvalidSetting, match="leave relative out"):
        dataset(
            "squared-films",
            squared.folder,
            tmp_path / "a.csv",
            proportions=tmp_path / "p",
            relative=True,
        )


@pytest.mark.parametrize(
    ("height", "width", "rows", "columns", "expected"),
    [
        (256, 256, 2991, 2992, None),
        (256, 256, 3056, 2544, (308, 256)),
        (256, 256, 2048, 2496, (256, 312)),
        (100, 200, 300, 600, None),
        # Ten times as long as wide is no film: the stated size is wrong.
        (256, 256, 3000, 300, None),
    ],
)
def test_sizes_by_hand(height, width, rows, columns, expected):
    assert restored_size(height, width, rows, columns) == expected
