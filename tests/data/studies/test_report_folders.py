"""Folders of an archive as tables: images and reports as files, in every usual arrangement."""

import shutil
from pathlib import Path

import numpy as np
import pydicom
import pytest
from PIL import Image

from tests.command import run_command
from vlscore.data import open_studies, pair

IDS = ["A0000", "A0001.2", "B7"]
LAYOUTS = {
    "one folder": ("{}.dcm", "{}.txt", None),
    "three folders": ("images/{}.dcm", "references/{}.txt", "candidates/{}.txt"),
    "short names": ("dcm/{}.dcm", "ref/{}.txt", "gen/{}.txt"),
    "other words": ("DICOM/{}.dcm", "Ground Truth/{}.txt", "predictions/{}.txt"),
    "a folder a study": ("{}/1.dcm", "{}/reference.txt", "{}/candidate.txt"),
    "a folder a study, with folders": ("{}/dicom/im1.dcm", "{}/report.txt", "{}/generated.txt"),
    "words behind the id": ("{}_frontal.dcm", "{}_ref.txt", "{}_gen.txt"),
    "words behind a point": ("{}.dcm", "{}.reference.txt", "{}.prediction.txt"),
    "reports and one generator": ("{}.dcm", "{}.txt", "generated/{}.txt"),
    "no suffix": ("images/{}", "reports/{}.txt", "output/{}.txt"),
}


def dicom(path):
    from pydicom.data import get_testdata_file

    shutil.copy(get_testdata_file("CT_small.dcm"), path)


def made(folder: Path, layout) -> Path:
    for id in IDS:
        for place, pattern in enumerate(layout):
            if pattern is None:
                continue
            path = folder / pattern.format(id)
            path.parent.mkdir(parents=True, exist_ok=True)
            if place == 0:
                dicom(path)
            else:
                path.write_text(f"{('reference', 'candidate')[place - 1]} {id}.\n")
    (folder / ".DS_Store").write_bytes(b"\0")
    return folder


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_arrangement_is_one_table(tmp_path, layout):
    folder = made(tmp_path / "hosp", layout)
    out = tmp_path / "studies.csv"
    done = run_command("pair", folder, "--out", out)
    assert done.exit_code == 0, done.output
    roles = {"image", "reference"} | ({"candidate"} if layout[2] else set())
    rows = list(open_studies(out, needs=roles))
    assert {row.id: row.reference.strip() for row in rows} == {i: f"reference {i}." for i in IDS}
    if layout[2]:
        assert {row.id: row.candidate.strip() for row in rows} == {
            i: f"candidate {i}." for i in IDS
        }
    for row in rows:
        (image,) = row.images
        assert row.id in str(image)
        assert pydicom.dcmread(image).Modality == "CT"


def test_two_folders_of_reports_and_one_of_images(tmp_path):
    hosp = made(tmp_path / "hosp", LAYOUTS["short names"])
    out = tmp_path / "tables" / "studies.jsonl"
    (hosp / "gen" / "B7.txt").unlink()
    done = run_command("pair", hosp / "ref", hosp / "gen", "--images", hosp / "dcm", "--out", out)
    assert done.exit_code == 1, done.output
    assert "1 left out: no candidate has this id (B7)" in done.stdout
    rows = list(open_studies(out, needs={"image", "reference", "candidate"}))
    assert [(row.id, row.images[0].name) for row in rows] == [(id, f"{id}.dcm") for id in IDS[:2]]
    scored = run_command("evaluate", out, "-m", "rouge-l", "--out", tmp_path / "scored")
    assert scored.exit_code == 0, scored.output


def test_several_images_of_a_study_and_images_of_none(tmp_path):
    for name in ("B7.txt", "C1.txt"):
        (tmp_path / name).write_text("Clear.")
    pixels = Image.fromarray(np.zeros((8, 8), np.uint8))
    for name in ("B7_pa.png", "B7_lat.png", "D9.png"):
        pixels.save(tmp_path / name)
    (tmp_path / "letter.docx").write_bytes(b"PK")
    found = pair(tmp_path, None, tmp_path / "s.jsonl")
    rows = {row.id: row.images for row in open_studies(found.out, needs=(), wants={"image"})}
    assert sorted(path.name for path in rows["B7"]) == ["B7_lat.png", "B7_pa.png"]
    assert rows["C1"] == ()
    notes = " ".join(found.notes)
    assert "1 studies have no image: C1" in notes
    assert "1 images belong to no report by their names: D9.png" in notes
    assert ".docx" in notes


def test_a_text_that_is_no_text_costs_itself(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00c")
    (tmp_path / "b.txt").write_text("\ufeffClear.", encoding="utf-8")
    (tmp_path / "c.txt").write_text("  \n")
    found = pair(tmp_path, None, tmp_path / "s.csv")
    assert found.left_out.total() == 2
    assert [row.reference for row in open_studies(found.out, needs={"reference"})] == ["Clear."]


def test_a_table_command_says_how_a_folder_becomes_a_table(tmp_path):
    made(tmp_path / "hosp", LAYOUTS["one folder"])
    done = run_command("evaluate", tmp_path / "hosp", "-m", "rouge-l", "--out", tmp_path / "o")
    assert done.exit_code == 2
    assert "`vlscore pair FOLDER --out studies.csv` makes a table" in done.stderr
    done = run_command("dataset", tmp_path / "hosp", tmp_path / "hosp", "-o", tmp_path / "s.csv")
    assert "`vlscore pair FOLDER --out studies.csv` makes a table" in done.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    done = run_command("pair", empty, "--out", tmp_path / "s.csv")
    assert "without reports as text files" in done.stderr
