"""Odd and hostile values in the files of a data set: each costs its own study alone."""

import csv
import gzip
import json
import os
import struct
import tarfile
import zipfile

import pytest

from vlscore.data import read_dataset
from vlscore.errors import InvalidSetting, InvalidTable

SIZES = "ImageID,ImageDir,StudyID,Report,Rows_DICOM,Columns_DICOM\n"


def r2gen(folder, *entries):
    """An annotation.json, and one image that exists."""
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "a.png").write_bytes(b"not read here")
    content = {
        "train": [{"id": str(k), "image_path": ["a.png"], **e} for k, e in enumerate(entries)]
    }
    (folder / "annotation.json").write_text(json.dumps(content))
    return folder


GOOD = {"report": "Clear lungs."}


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize(
    "odd",
    [
        {"report": "Clear \ud800."},
        {"image_path": ["x\0y/a.png"], "report": "Clear."},
        {"image_path": ["\ud800/a.png"], "report": "Clear."},
        {"id": "a\udfff", "report": "Clear."},
        {"id": "a\0b", "report": "Clear."},
        {"split": "\ud800", "report": "Clear."},
    ],
    ids=["report", "NUL in a path", "path", "id", "NUL in an id", "split"],
)
@pytest.mark.parametrize("check", [True, False])
def test_an_odd_value_costs_its_study_alone(odd, format, check, tmp_path):
    folder = r2gen(tmp_path / "d", odd, GOOD)
    made = read_dataset("r2gen", folder, check_files=check).write(tmp_path / f"t.{format}")
    assert list(made.studies["id"]) == ["1"]
    assert made.faults >= 1
    listed = (tmp_path / "t.rows.csv").read_text(encoding="utf-8")
    assert "cannot be read" in listed
    json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "path", ["../secret.png", "a/../../secret.png", "..\\secret.png", "/../secret.png"]
)
@pytest.mark.parametrize("check", [True, False])
def test_no_image_is_outside_the_folder_of_images(path, check, tmp_path):
    (tmp_path / "secret.png").write_bytes(b"")
    folder = r2gen(tmp_path / "d", {**GOOD, "image_path": [path]}, GOOD)
    made = read_dataset("r2gen", folder, check_files=check, needs_images=False)
    assert [list(each) for each in made.studies["image"]] == [
        [],
        ["images/a.png" if check else "a.png"],
    ]


@pytest.mark.parametrize("parts", [("fold/1", "fold-1"), ("Train set", "train-set")])
def test_two_parts_never_have_one_file(parts, tmp_path):
    folder = r2gen(tmp_path / "d", *({**GOOD, "split": each} for each in parts))
    with pytest.raises(InvalidSetting, match=f"{parts[0]}.*{parts[1]}"):
        read_dataset("r2gen", folder).write(tmp_path / "t_{split}.jsonl")
    assert not list(tmp_path.glob("t_*"))
    made = read_dataset("r2gen", folder).write(tmp_path / "t.jsonl")
    assert len((tmp_path / "t.jsonl").read_text().splitlines()) == len(made.studies) == 2


def test_no_cell_is_a_formula_and_texts_come_back(tmp_path):
    formulas = {"id": "=cmd|' /c calc'!A1", "report": '=HYPERLINK("http://e/","x")'}
    gone = {"id": "=1+1", "image_path": ["=gone.png"], "report": "'=1"}
    made = read_dataset("r2gen", r2gen(tmp_path / "d", formulas, gone)).write(tmp_path / "t.csv")
    for name in ("t.csv", "t.rows.csv"):
        with (tmp_path / name).open(newline="", encoding="utf-8") as stream:
            for row in csv.reader(stream):
                assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r")) for cell in row)
    from vlscore.data import open_studies

    (study,) = open_studies(tmp_path / "t.csv", needs={"reference"})
    assert (study.id, study.reference) == (formulas["id"], formulas["report"])
    assert len(made.studies) == 1


def test_an_xml_of_an_unknown_encoding_and_a_pipe_cost_themselves(tmp_path):
    folder = tmp_path / "ecgen-radiology"
    folder.mkdir()
    (folder / "1.xml").write_text('<?xml version="1.0" encoding="nosuch"?><a/>')
    os.mkfifo(folder / "2.xml")
    (folder / "3.xml").symlink_to("/dev/zero")
    (folder / "4.xml").write_bytes(b" " * ((16 << 20) + 1))
    report = "<AbstractText Label='FINDINGS'>Clear lungs.</AbstractText>"
    (folder / "5.xml").write_text(f"<e><uId id='CXR5'/>{report}</e>")
    found = read_dataset("iu-openi", tmp_path, needs_images=False)
    assert list(found.studies["id"]) == ["CXR5"]
    assert found.omitted["study", "the row or file cannot be read"] == 4


def mimic(folder, study="1"):
    folder.mkdir()
    line = f"a,1,{study},train,PA,10,10\n"
    header = "dicom_id,subject_id,study_id,split,ViewPosition,Rows,Columns\n"
    for name in ("metadata", "split"):
        with gzip.open(folder / f"mimic-cxr-2.0.0-{name}.csv.gz", "wt") as stream:
            stream.write(header + line + "b,1,7,train,PA,10,10\n")
    reports = folder / "files" / "p1" / "p1"
    reports.mkdir(parents=True)
    (reports / "s7.txt").write_text("FINDINGS: Clear lungs.")
    return reports


@pytest.mark.parametrize("study", ["/../../../../../secret", "x/../../../../../secret"])
def test_no_report_is_outside_the_folder_of_reports(study, tmp_path):
    (tmp_path / "secret.txt").write_text("FINDINGS: private note.")
    folder = mimic(tmp_path / "d", study) / "s"
    folder.mkdir()
    (folder.parent / "sx").mkdir()
    found = read_dataset(
        "mimic-cxr-jpg", tmp_path / "d", reports=tmp_path / "d", needs_images=False
    )
    assert list(found.studies["id"]) == ["7"]
    assert "private" not in str(found.studies.to_dict()) + str(found.left_out.to_dict())


def test_an_unpacked_report_has_a_largest_size_and_a_pipe_is_none(tmp_path):
    reports = mimic(tmp_path / "d")
    (reports / "s1.txt").write_bytes(b"FINDINGS: " + b"a" * (16 << 20))
    options = {"reports": tmp_path / "d", "needs_images": False}
    assert list(read_dataset("mimic-cxr-jpg", tmp_path / "d", **options).studies["id"]) == ["7"]
    (reports / "s1.txt").unlink()
    os.mkfifo(reports / "s1.txt")
    assert list(read_dataset("mimic-cxr-jpg", tmp_path / "d", **options).studies["id"]) == ["7"]


def test_a_zip_that_lies_about_its_size_and_one_of_a_newer_version(tmp_path):
    mimic(tmp_path / "d")
    path = tmp_path / "reports.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("files/p1/p1/s1.txt", b"a" * (64 << 20))
        archive.writestr("files/p1/p1/s7.txt", b"FINDINGS: Clear lungs.")
    content = path.read_bytes()
    assert content.count(struct.pack("<I", 64 << 20)) == 2
    path.write_bytes(content.replace(struct.pack("<I", 64 << 20), struct.pack("<I", 1 << 20)))
    options = {"reports": path, "needs_images": False}
    assert list(read_dataset("mimic-cxr-jpg", tmp_path / "d", **options).studies["id"]) == ["7"]
    # Byte 6 of an entry of the directory is the version that unpacks it.
    place = content.index(b"PK\1\2") + 6
    path.write_bytes(content[:place] + b"\xff\0" + content[place + 2 :])
    with pytest.raises(InvalidTable, match="NotImplementedError"):
        read_dataset("mimic-cxr-jpg", tmp_path / "d", **options)


def test_a_tar_whose_header_claims_gigabytes_ends_at_the_limit(tmp_path):
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 3 << 30
    with gzip.open(tmp_path / "NLMCXR_reports.tgz", "wb", 1) as stream:
        stream.write(header.tobuf(tarfile.USTAR_FORMAT) + b"a" * (32 << 20))
    with pytest.raises(InvalidTable, match="ReadError"):
        read_dataset("iu-openi", tmp_path)


def test_a_pipe_in_place_of_a_table_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "annotation.json")
    with pytest.raises(InvalidTable, match="no ordinary file"):
        read_dataset("r2gen", tmp_path)
