"""Maps of sentences: an encoder that looks at one corner, and one whose words point elsewhere."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from vlscore.encoders import load_encoder
from vlscore.encoders.base import ImageFeatures, ReportFeatures
from vlscore.pages.sentence_maps import maps_to_dict, sentence_maps

SIDE = 4


class _Corner:
    """An encoder of 16 places whose image vector is the brightness of the upper left one.

    Args: place: the place to which the words of every sentence point.
    """

    device = torch.device("cpu")
    image_policy = None

    def __init__(self, place: int) -> None:
        self.place = place
        self.image_pipeline = SimpleNamespace(load=lambda image, policy: torch.as_tensor(image))

    def image_features(self, pixels):
        return ImageFeatures(self.embed_images(pixels), torch.eye(SIDE * SIDE)[None])

    def embed_images(self, pixels):
        corner = pixels[:, 0, :8, :8].mean((1, 2))
        return torch.stack([corner, torch.full_like(corner, 0.5)], dim=1)

    def tokenize(self, reports):
        return torch.zeros(1)

    def report_features(self, tokens):
        words = torch.eye(SIDE * SIDE)[self.place][None, None]
        return ReportFeatures(torch.tensor([[1.0, 0.0]]), words, torch.ones(1, 1, dtype=torch.bool))


def image():
    pixels = np.zeros((1, 32, 32), dtype=np.float32)
    pixels[0, :8, :8] = 1.0
    return pixels


def test_a_map_that_marks_what_the_encoder_looks_at_beats_all_copies():
    _, (found,) = sentence_maps(_Corner(0), image(), ["Edema."])
    assert found.places.shape == (SIDE, SIDE)
    assert found.places[0, 0] == found.places.max() == 1.0
    assert (found.beaten, found.copies) == (15, 15)


def test_a_map_that_marks_another_place_does_not():
    _, (found,) = sentence_maps(_Corner(10), image(), ["Edema."])
    assert found.places[2, 2] == found.places.max()
    assert found.beaten <= found.copies / 2


def test_a_bundled_encoder_has_maps_that_a_page_can_draw():
    encoder = load_encoder("phantom")
    image = np.random.default_rng(0).integers(0, 4096, (128, 128), dtype=np.uint16)
    pixels, maps = sentence_maps(encoder, image, ["Left effusion.", "No edema."])
    shown = maps_to_dict(pixels, maps)
    assert [each["text"] for each in shown["sentences"]] == ["Left effusion.", "No edema."]
    for each in shown["sentences"]:
        assert (min(each["places"]), max(each["places"])) == (0, 1)
        assert 0 <= each["beaten"] <= each["copies"]
    assert shown["image"].startswith("data:image/webp;base64,")
    again = sentence_maps(encoder, image, ["Left effusion."])[1][0]
    assert again.beaten == pytest.approx(maps[0].beaten)
