import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from PIL import Image

from vlscore.errors import UnreadableImage
from vlscore.images import ImagePolicy, as_radiograph

EIGHT_BITS = npst.arrays(np.uint8, npst.array_shapes(min_dims=2, max_dims=2, max_side=9))


@given(EIGHT_BITS)
def test_eight_bits_are_exact(values: np.ndarray) -> None:
    radiograph = as_radiograph(values)
    assert radiograph.pixels.dtype == np.float32
    np.testing.assert_array_equal(radiograph.pixels, values / np.float32(255))
    np.testing.assert_array_equal(radiograph.to_uint8(), values)


@given(EIGHT_BITS, st.sampled_from([np.int32, np.int64, np.uint32]))
def test_widened_eight_bits_stay_eight_bits(values: np.ndarray, wide: type) -> None:
    np.testing.assert_array_equal(as_radiograph(values.astype(wide)).to_uint8(), values)


@pytest.mark.parametrize("depth", [np.uint16, np.int16, np.int32])
def test_deeper_integers_take_their_own_range(depth: type) -> None:
    values = np.array([[300, 1300], [2300, 4300]], depth)
    np.testing.assert_allclose(as_radiograph(values), [[0, 0.25], [0.5, 1]], atol=1e-7)


def test_values_far_from_zero_keep_their_digits() -> None:
    values = np.array([[2**30, 2**30 + 1], [2**30 + 2, 2**30 + 4]], np.int64)
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
    np.testing.assert_array_equal(as_radiograph(colours).to_uint8(), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_tensors_of_any_float_type(dtype: torch.dtype) -> None:
    tensor = torch.tensor([[0.0, 0.5], [0.25, 1.0]], dtype=dtype, requires_grad=True)
    np.testing.assert_array_equal(as_radiograph(tensor), [[0, 0.5], [0.25, 1]])


def test_one_value_is_no_error_in_memory() -> None:
    assert as_radiograph(np.zeros((1, 1), np.uint16)).pixels.tolist() == [[0.0]]
    assert as_radiograph(np.zeros((2, 2), np.uint8), ImagePolicy(window="minmax")).pixels.max() == 0


def test_a_radiograph_is_itself() -> None:
    radiograph = as_radiograph(np.zeros((2, 2), np.uint8))
    assert as_radiograph(radiograph) is radiograph


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


def test_too_many_pixels_are_refused() -> None:
    with pytest.raises(UnreadableImage, match="max_pixels"):
        as_radiograph(np.zeros((20, 20), np.uint8), ImagePolicy(max_pixels=399))
