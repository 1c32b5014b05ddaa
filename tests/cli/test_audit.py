"""`vlscore audit`: what its two commands print, and their exit status."""

import csv

import numpy as np
import pytest
from PIL import Image

REPORTS = ("Small left pleural effusion.", "Cardiomegaly.", "Clear lungs.")


@pytest.fixture
def studies(tmp_path):
    """A table of four studies; the film of the last one is cut off."""
    with (tmp_path / "studies.csv").open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow(["id", "image", "reference"])
        for k in range(4):
            pixels = np.random.default_rng(k).integers(60, 200, (40, 50), dtype=np.uint8)
            path = tmp_path / f"{k}.png"
            Image.fromarray(pixels).save(path)
            if k == 3:
                path.write_bytes(path.read_bytes()[:300])
            rows.writerow([f"s{k}", path.name, REPORTS[k % 3]])
    return tmp_path / "studies.csv"


def test_from_films_to_verdicts(command, studies, tmp_path):
    made = command("audit", "make", studies, "--out", tmp_path / "audit")
    assert made.exit_code == 1
    assert "1 study is left out:\n  row 4 (s3): " in made.stderr
    assert "films of 3 studies" in made.stdout
    assert (
        command("audit", "make", studies, "--out", tmp_path / "more", "--keep-going").exit_code == 0
    )
    films = tmp_path / "audit" / "films.csv"
    for name in ("constant", "random"):
        call = ("baseline", name, films, "--train", studies, "--out", tmp_path / name, "-q")
        assert command(*call).exit_code == 0
    given = [
        f"--reports={name}={tmp_path / name}/candidates.jsonl" for name in ("constant", "random")
    ]
    done = command("audit", "read", tmp_path / "audit", *given, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert "grounding (region)" in done.stdout
    for name in ("constant", "random"):
        assert f"note: {name} " in done.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("make", "absent.csv"), "no such file"),
        (("make", "{}", "--alterations", "bent"), "no alteration is called 'bent'"),
        (("make", "{}", "--format", "tiff"), "png or dicom"),
        (("make", "{}", "--image-policy", "authors"), "one encoder"),
        (("make", "{}", "--rename", "image=film"), "no column film"),
        (("read", "{}", "--reports", "{}"), "vlscore audit make"),
    ],
)
def test_mistakes_are_one_line(command, studies, tmp_path, words, reason):
    given = [word.format(studies) for word in words]
    done = command("audit", *given, "--out", tmp_path / "out")
    assert done.exit_code == 2, done.output
    assert reason in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("reports", ["absent.jsonl", "."])
def test_reports_that_are_no_table_are_one_line(command, studies, tmp_path, reports):
    command("audit", "make", studies, "--out", tmp_path / "audit", "-q")
    path = tmp_path / reports
    done = command("audit", "read", tmp_path / "audit", "--reports", path, "--out", tmp_path / "o")
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
