"""What is noted of an image is printed once, wherever the image was decoded."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from pydicom.uid import JPEG2000Lossless

from tests.data.images.writing import chest, save
from tests.doubles import HashEncoder
from vlscore.data import ImagePolicy, read_image
from vlscore.embedding import ImageDecoder
from vlscore.errors import ImageNoteWarning

GREY = np.kron(np.arange(64, dtype=np.uint8).reshape(8, 8) * 4, np.ones((8, 8), np.uint8))


def contradictory(path: Path, *, compressed: bool = False) -> Path:
    dataset = chest(GREY, PresentationLUTShape="INVERSE")
    if compressed:
        dataset.compress(JPEG2000Lossless, generate_instance_uid=False)
    return save(dataset, path)


def test_reading_warns_of_the_notes(tmp_path: Path) -> None:
    with pytest.warns(ImageNoteWarning, match=r"a\.dcm: Photometric.*was inverted"):
        read_image(contradictory(tmp_path / "a.dcm"))


@pytest.mark.parametrize("workers", [0, 1])
def test_a_note_is_printed_once_for_many_images(workers: int, tmp_path: Path) -> None:
    paths = [contradictory(tmp_path / f"{k}.dcm", compressed=True) for k in range(3)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with ImageDecoder(HashEncoder().image_pipeline, ImagePolicy(), workers) as decoder:
            for pending in [decoder.submit(path) for path in paths]:
                assert pending.stored().shape
    notes = [each for each in caught if each.category is ImageNoteWarning]
    assert len(notes) == 1
    assert str(notes[0].message).startswith(f"{paths[0]}: Photometric Interpretation")


def test_the_command_prints_a_sentence_and_no_source(tmp_path: Path) -> None:
    path = contradictory(tmp_path / "a.dcm")
    call = [
        sys.executable,
        "-m",
        "vlscore",
        "score",
        "-i",
        str(path),
        "-g",
        "Clear.",
        "-r",
        "Clear.",
    ]
    run = subprocess.run(call, capture_output=True, text=True)
    assert run.returncode == 0
    assert f"warning: {path}: Photometric Interpretation" in run.stderr
    assert "warnings.warn" not in run.stderr
