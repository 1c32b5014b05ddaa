"""Tables of perturbed reports in the layout of the paper's authors."""

import base64
import csv
import gzip
import re

import numpy as np
import pytest
from PIL import Image

from tests.command import run_command
from vlscore.errors import InvalidTable
from vlscore.evaluation import SensitivitySettings, read_pairs, sensitivity
from vlscore.metrics import Scorer

FILES = {
    "location": "change-location",
    "severity": "change-severity",
    "noninformative": "replace-uninformative",
    "Insignificant": "remove-insignificant",
    "pathology": "remove-pathology",
    "constantdata": "standard-normal",
}
HARMLESS = {"replace-uninformative", "remove-insignificant", "standard-normal"}
COLUMNS = ("", "Path_frontal", "gt", "output")


def write(folder, name, *rows, columns=COLUMNS):
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(columns)
        table.writerows((number, *row) for number, row in enumerate(rows))
    return path


def image_of(number):
    return f"files/p10/p1000/s{number}/dicom-{number}.jpg"


def folder_of_tables(folder):
    for k, name in enumerate(FILES):
        write(
            folder,
            name,
            (image_of(50 + k), "Small left effusion. Clear lungs.", "Clear lungs."),
            ("elsewhere/film.png", "No edema.", ""),
        )
    return folder


def test_the_names_of_the_tables_are_the_kinds(tmp_path):
    pairs = read_pairs(folder_of_tables(tmp_path / "made"))
    assert set(pairs["kind"]) == set(FILES.values())
    for name, kind in FILES.items():
        of = pairs[pairs["kind"] == kind]
        number = 50 + list(FILES).index(name)
        assert of["study_id"].tolist() == [str(number), "elsewhere/film.png"]
        assert of["original"].tolist() == ["Small left effusion. Clear lungs.", "No edema."]
        # An empty cell is a report that states nothing, not the word "nan".
        assert of["perturbed"].tolist() == ["Clear lungs.", ""]
        assert set(of["is_significant"]) == {kind not in HARMLESS}
    one = read_pairs(tmp_path / "made" / "pathology.csv")
    assert set(one["kind"]) == {"remove-pathology"}


def test_control_files_are_told_from_tables(tmp_path):
    for name in FILES:
        write(tmp_path / "control", name, ("50", "3"), columns=("", "study_id", "sentence"))
    with pytest.raises(InvalidTable, match=r"control files.*Path_frontal, gt, output"):
        read_pairs(tmp_path / "control")


def test_a_row_without_a_report_is_named(tmp_path):
    write(tmp_path / "made", "severity", (image_of(1), "Edema.", "x"), (image_of(2), " ", "x"))
    with pytest.raises(InvalidTable, match=r'severity\.csv, row 2: "gt" is empty'):
        read_pairs(tmp_path / "made")


def test_tables_whose_images_are_all_absent_are_refused_with_the_reason(tmp_path):
    write(tmp_path / "made", "pathology", (image_of(1), "Left effusion. Clear.", "Clear."))
    done = run_command(
        *("sensitivity", "-p", tmp_path / "made", "-m", "vlscore", "-e", "phantom"),
        *("--image-root", tmp_path, "--out", tmp_path / "out"),
    )
    assert done.exit_code != 0
    assert "no change has a value of every metric" in done.stderr
    assert "dicom-1.jpg" in done.stderr
    assert not (tmp_path / "out" / "run.json").exists()


def test_the_images_that_the_tables_name_are_used(tmp_path):
    folder = tmp_path / "made"
    rng = np.random.default_rng(0)
    rows = []
    for number in range(1, 4):
        path = tmp_path / "mimic" / image_of(number)
        path.parent.mkdir(parents=True)
        Image.fromarray(rng.integers(0, 256, (32, 32), dtype=np.uint8)).save(path)
        rows.append((image_of(number), f"Left effusion. Tube {number}.", "Left effusion."))
    write(folder, "Insignificant", *rows)
    write(folder, "pathology", *[(image, gt, gt.split(". ")[1]) for image, gt, _ in rows])
    done = run_command(
        *("sensitivity", "-p", folder, "-m", "vlscore,bleu-1", "-e", "phantom"),
        *("--image-root", tmp_path / "mimic", "--out", tmp_path / "out", "--resamples", 50),
    )
    assert done.exit_code == 0, done.output
    settings = SensitivitySettings(resamples=50)
    again = sensitivity(folder, tmp_path / "words", Scorer(metrics="bleu-1"), settings)
    kinds = again.frame("kinds").set_index("kind")
    # One word of four is left of "Left effusion. Tube 1.", and two are: precision 1, brevity
    # penalty exp(1 - 4/2).
    assert kinds.loc["remove-pathology", "value"] == pytest.approx(np.exp(-1))
    assert kinds.loc["remove-insignificant", "value"] == pytest.approx(np.exp(-1))
    page = run_command("report", tmp_path / "out", "--out", tmp_path / "page.html")
    assert page.exit_code == 0, page.output
    content = re.search(r"H4sI[A-Za-z0-9+/=]+", (tmp_path / "page.html").read_text("utf-8"))
    assert content is not None
    assert "Tube 1" in gzip.decompress(base64.b64decode(content[0])).decode("utf-8")
