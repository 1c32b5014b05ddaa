from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from PIL import Image

from vlscore.data import ImagePolicy, Provenance, Radiograph, as_radiograph
from vlscore.errors import UnreadableImage

ACCEPT = ImagePolicy(other_modalities="accept")
EIGHT_BITS = npst.arrays(np.uint8, npst.array_shapes(min_dims=2, max_dims=2, max_side=9))


@given(EIGHT_BITS)
def test_eight_bits_are_exact(values: np.ndarray) -> None:
    radiograph = as_radiograph(values, ACCEPT)
    assert radiograph.pixels.dtype == np.float32
    np.testing.assert_array_equal(radiograph.pixels, values / np.float32(255))
    np.testing.assert_array_equal(radiograph.to_uint8(), values)


@given(EIGHT_BITS, st.sampled_from([np.int32, np.int64, np.uint32]))
def test_widened_eight_bits_stay_eight_bits(values: np.ndarray, wide: type) -> None:
    np.testing.assert_array_equal(as_radiograph(values.astype(wide), ACCEPT).to_uint8(), values)


@pytest.mark.parametrize("depth", [np.uint16, np.int16, np.int32])
def test_deeper_integers_take_their_own_range(depth: type) -> None:
    values = np.array([[300, 1300], [2300, 4300]], depth)
    np.testing.assert_allclose(as_radiograph(values), [[0, 0.25], [0.5, 1]], atol=1e-7)


@pytest.mark.parametrize("shape", [(4, 5), (4, 5, 1), (1, 4, 5), (4, 5, 3), (3, 4, 5), (4, 5, 4)])
def test_layouts_of_one_grey_image_are_told_apart(shape: tuple[int, ...]) -> None:
    grey = np.arange(20, dtype=np.uint8).reshape(4, 5)
    if len(shape) == 2:
        values = grey
    else:
        axis = 2 if shape[:2] == (4, 5) else 0
        values = np.stack([grey] * shape[axis], axis)
    assert values.shape == shape
    np.testing.assert_array_equal(as_radiograph(values).to_uint8(), grey)


def test_colour_is_pillows_luma() -> None:
    colours = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    expected = np.asarray(Image.fromarray(colours).convert("L"))
    np.testing.assert_array_equal(as_radiograph(colours, ACCEPT).to_uint8(), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_tensors_of_any_float_type(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[0.0, 0.5], [0.25, 1.0]], dtype=dtype, requires_grad=True)
    np.testing.assert_array_equal(as_radiograph(tensor), [[0, 0.5], [0.25, 1]])


@pytest.mark.parametrize("make", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("shape", [(3, 1), (4, 1), (2, 1), (2, 3), (1, 1), (3,), (4,), (2,), (7,)])
def test_a_batch_is_never_one_image(shape: tuple[int, ...], make: object) -> None:
    batch = np.random.default_rng(0).integers(0, 256, (*shape, 16, 12), np.uint8)
    with pytest.raises(UnreadableImage, match=rf"batch of {shape[0]} images, give list\(batch\)"):
        as_radiograph(make(batch))


def test_the_radiographs_of_real_patients_are_never_one_image(shared: Path) -> None:
    """The most alike of them, made of one size, still are three patients."""
    names = ["nih_00006585_008.png", "nih_00006585_010.png", "nih_00006585_017.png"]
    opened = [Image.open(shared / "data/radiographs" / name) for name in names]
    batch = np.stack([np.asarray(each.convert("L").resize((96, 96))) for each in opened])
    with pytest.raises(UnreadableImage, match=r"list\(batch\)"):
        as_radiograph(batch)


def test_equal_channels_in_front_are_one_image() -> None:
    grey = np.random.default_rng(0).integers(0, 256, (16, 12), np.uint8)
    rounded = np.stack([grey, np.maximum(grey, 1) - 1, grey])  # as a JPEG in colour rounds
    assert np.abs(as_radiograph(rounded).to_uint8().astype(int) - grey).max() <= 1
    opaque = np.stack([grey, grey, grey, np.full_like(grey, 255)])
    np.testing.assert_array_equal(as_radiograph(opaque).to_uint8(), grey)
    other = np.stack([grey, grey, grey, np.flip(grey)])  # three times one patient, and another
    with pytest.raises(UnreadableImage, match=r"list\(batch\)"):
        as_radiograph(other)


def test_a_radiograph_is_itself() -> None:
    radiograph = Radiograph(np.zeros((2, 2), np.float32), Provenance("array", 32))
    assert as_radiograph(radiograph) is radiograph


@pytest.mark.parametrize("shape", [(40_000, 1), (1, 5000), (1000, 4100)])
def test_endless_strips_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(UnreadableImage, match="too elongated"):
        as_radiograph(np.zeros(shape, np.uint8), ACCEPT)


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (np.array([[0.0, np.nan]]), "not finite"),
        (np.array([[0.0, np.inf]]), "not finite"),
        (np.array([[0.0, 255.0]]), r"\[0, 1\]"),
        (np.array([[-0.5, 0.5]]), r"\[0, 1\]"),
        (np.zeros((0, 4), np.uint8), "no pixels"),
        (np.zeros(7, np.uint8), "not that of one image"),
        (np.zeros((2, 5, 5, 3), np.uint8), "not that of one image"),
        (np.zeros((5, 5, 7), np.uint8), "not that of one image"),
        (np.zeros((2, 2), complex), "not grey levels"),
        (np.array([["a", "b"]]), "not grey levels"),
        (np.array([[None, {}]]), "not grey levels"),
        ([[0, 1]], "a list is no image"),
        (None, "NoneType is no image"),
    ],
)
def test_what_is_no_image_is_refused_with_its_reason(image: object, reason: str) -> None:
    with pytest.raises(UnreadableImage, match=reason):
        as_radiograph(image)


def test_pixels_that_are_not_finite_become_no_black_ones() -> None:
    broken = np.full((3, 3), np.nan, np.float32)
    with pytest.raises(UnreadableImage, match="not finite"):
        Radiograph(broken, Provenance("array", 32)).to_uint8()
