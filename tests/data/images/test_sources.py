"""One picture, given in every way there is, becomes the same radiograph."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from pydicom import dcmread
from pydicom.uid import JPEG2000Lossless

from tests.data.images.writing import chest, save
from vlscore.data import ImagePolicy, as_radiograph
from vlscore.errors import UnreadableImage

TWELVE = np.arange(1024, dtype=np.uint16).reshape(32, 32) * 4
EIGHT = (TWELVE // 16).astype(np.uint8)


@pytest.mark.parametrize("kind", ["png", "tiff", "dcm"])
def test_content_and_open_files_are_read_as_their_path_is(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"x.{kind}"
    if kind == "dcm":
        save(chest(TWELVE, BitsStored=12), path)
    else:
        Image.fromarray(EIGHT).save(path)
    content = path.read_bytes()
    expected = as_radiograph(path)
    for given in (content, bytearray(content), memoryview(content), io.BytesIO(content)):
        found = as_radiograph(given)
        np.testing.assert_array_equal(found.pixels, expected.pixels)
        assert found.provenance == expected.provenance
    with path.open("rb") as file:
        found = as_radiograph(file)
    np.testing.assert_array_equal(found.pixels, expected.pixels)
    assert found.name == str(path)


def test_arrays_tensors_and_pictures_are_read_as_their_file_is(tmp_path: Path) -> None:
    Image.fromarray(EIGHT).save(tmp_path / "x.png")
    expected = as_radiograph(tmp_path / "x.png").pixels
    for given in (EIGHT, torch.from_numpy(EIGHT), Image.fromarray(EIGHT), EIGHT[None]):
        np.testing.assert_array_equal(as_radiograph(given).pixels, expected)


@pytest.mark.parametrize("compressed", [False, True])
def test_a_dataset_is_read_as_its_file_is_and_stays_as_it_is(
    tmp_path: Path, compressed: bool
) -> None:
    dataset = chest(TWELVE, BitsStored=12, WindowCenter="", WindowWidth="", ViewPosition="LL")
    if compressed:
        dataset.compress(JPEG2000Lossless, generate_instance_uid=False)
    path = save(dataset, tmp_path / "x.dcm")
    expected = as_radiograph(path)
    for given in (dataset, dcmread(path)):
        before = given.to_json()
        found = as_radiograph(given)
        np.testing.assert_array_equal(found.pixels, expected.pixels)
        assert found.provenance == expected.provenance
        assert given.to_json() == before


def test_a_dataset_that_was_never_in_a_file(tmp_path: Path) -> None:
    dataset = chest(TWELVE, BitsStored=12)
    del dataset.file_meta
    np.testing.assert_allclose(as_radiograph(dataset), TWELVE / 4092, atol=1e-6)
    assert not hasattr(dataset, "file_meta")


def test_the_policy_accepts_what_it_says_in_all_of_them() -> None:
    accept = ImagePolicy(other_modalities="accept")
    blank = np.zeros((8, 8), np.uint8)
    stream = io.BytesIO()
    Image.fromarray(blank).save(stream, "png")
    for given in (blank, stream.getvalue(), chest(blank), Image.fromarray(blank)):
        with pytest.raises(UnreadableImage, match="shows nothing"):
            as_radiograph(given)
        assert as_radiograph(given, accept).shape == (8, 8)
