"""Data sets as tables: what stands in them, beside them, and that other commands read them."""

import csv
import json

import pytest

from tests.data.datasets.samples import (
    SAMPLES,
    iu_kaggle,
    mimic_cxr_jpg,
    r2gen,
)
from vlscore.data import open_studies, read_dataset, read_rows
from vlscore.errors import Failure, InvalidSetting, InvalidTable, OutputFailed


def dataset(name, folder, out, *, relative=False, **how):
    """Read a data set and write its table."""
    return read_dataset(name, folder, **how).write(out, relative=relative)


@pytest.mark.parametrize("suffix", ["parquet", "jsonl", "csv"])
@pytest.mark.parametrize("name", SAMPLES)
def test_every_data_set_becomes_a_table_that_commands_read(name, suffix, tmp_path):
    sample = SAMPLES[name](tmp_path / "data")
    out = tmp_path / f"studies.{suffix}"
    summary = dataset(name, sample.folder, out, **sample.arguments)
    studies = list(open_studies(out, needs={"image", "reference"}, also=["patient", "split"]))
    assert not [each for each in studies if isinstance(each, Failure)]
    assert len(studies) == len(summary.studies) >= 1
    for study in studies:
        assert all(path.is_file() for path in study.images)
        assert study.parts
        assert study.views is None or len(study.views) == len(study.images)
    assert summary.tables == {"": out}


def test_ids_of_many_digits_stay_text_in_every_format(tmp_path):
    sample = SAMPLES["padchest"](tmp_path / "data")
    for suffix in ("parquet", "jsonl", "csv"):
        out = tmp_path / suffix / f"padchest.{suffix}"
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
    # Studies and images of each part.
    assert summary.counts == {"train": (2, 3), "validate": (1, 1)}
    assert dict(summary.omitted) == {
        ("image", "the file of the image is absent"): 1,
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
        ("image", "4", "50000003"),
        ("study", "6", "50000004"),
        ("study", "7", "50000005"),
    ]
    assert rows[0]["detail"] == "files/p11/p11000002/s50000003/cc-gone.jpg"
    assert rows[0]["file"] == "mimic-cxr-2.0.0-metadata.csv.gz"
    content = json.loads((tmp_path / "tables" / "mimic.json").read_text(encoding="utf-8"))
    assert content["studies"] == {"train": 2, "validate": 1}
    assert content["faults"] == 2


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


def test_a_table_that_is_there_stays_where_the_new_one_fails(tmp_path):
    sample = iu_kaggle(tmp_path / "iu")
    out = tmp_path / "iu.jsonl"
    dataset("iu-kaggle", sample.folder, out)
    before = out.read_bytes()
    with pytest.raises(InvalidTable):
        dataset("iu-kaggle", sample.folder, out, split="test")
    assert out.read_bytes() == before
    dataset("iu-kaggle", sample.folder, out)
    with pytest.raises(InvalidSetting, match=r"iu\.jsonl is there already, and differs"):
        dataset("iu-kaggle", sample.folder, out, needs_images=False)
    assert out.read_bytes() == before
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {"iu", "iu.jsonl", "iu.json", "iu.rows.csv"}
    with pytest.raises(InvalidSetting, match=r"one of .parquet, .jsonl, .csv"):
        dataset("iu-kaggle", sample.folder, tmp_path / "iu.xlsx")
    (tmp_path / "file").touch()
    with pytest.raises(OutputFailed, match="is a file, not a folder"):
        dataset("iu-kaggle", sample.folder, tmp_path / "file" / "iu.jsonl")
