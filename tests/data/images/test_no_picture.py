"""Headers whose rescale values or tables leave no picture: refused, never read as a black film."""

import numpy as np
import pytest

from tests.data.images.writing import chest, lookup_table
from vlscore.data import ImagePolicy, Radiograph, as_radiograph
from vlscore.errors import UnreadableImage

GREY = np.arange(64, dtype=np.uint16).reshape(8, 8) * 40
EVERY_WINDOW = ("auto", "minmax", "percentile", "full")


def _rescaled(slope: str, intercept: str):
    dataset = chest(GREY)
    dataset.add_new("RescaleSlope", "DS", "1")
    dataset.add_new("RescaleIntercept", "DS", "0")
    # pydicom refuses some of these when they are set as numbers; files hold what they hold.
    for keyword, value in (("RescaleSlope", slope), ("RescaleIntercept", intercept)):
        dataset[keyword]._value = float(value)
    return dataset


@pytest.mark.parametrize("window", EVERY_WINDOW)
@pytest.mark.parametrize(
    ("slope", "intercept"),
    [
        ("0", "0"),
        ("nan", "0"),
        ("inf", "0"),
        ("-inf", "0"),
        ("1e308", "0"),
        ("1", "nan"),
        ("1", "inf"),
        ("1", "1e308"),
    ],
)
def test_rescale_values_that_make_no_picture(slope: str, intercept: str, window: str) -> None:
    for other in ("refuse", "accept"):
        policy = ImagePolicy(window=window, other_modalities=other)
        with pytest.raises(UnreadableImage, match=r"rescale slope and intercept.*no picture"):
            as_radiograph(_rescaled(slope, intercept), policy)


def test_a_modality_table_of_one_value() -> None:
    dataset = chest(GREY)
    dataset.ModalityLUTSequence = lookup_table(np.full(4096, 7), first=0, bits=16)
    with pytest.raises(UnreadableImage, match=r"modality lookup table.*no picture"):
        as_radiograph(dataset)


def test_pixels_that_are_not_finite_become_no_black_ones() -> None:
    film = as_radiograph(GREY.astype(np.float32) / GREY.max())
    broken = film.pixels.copy()
    broken[3, 3] = np.nan
    with pytest.raises(UnreadableImage, match="not finite"):
        Radiograph(broken, film.provenance, name="film").to_uint8()
