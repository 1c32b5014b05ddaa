"""An encoder that sees and reads everything: the best that a geometry allows."""

import numpy as np
import pytest
import torch
from ideal_encoder import ideal_scenes
from image_use_preferences import PREFERS, TAU, image_use, resample
from image_use_scenes import draw_scenes

from vlscore.metrics import find_metric


@pytest.fixture(scope="module")
def scenes():
    return draw_scenes((5,), 150, split="train")


def _values(embedded, metric):
    found = resample(image_use(embedded, find_metric(metric)), resamples=1)
    return found[TAU][0], found[PREFERS][0]


def test_what_is_stated_alike_is_embedded_alike(scenes):
    embedded = ideal_scenes(scenes, unit=False)
    torch.testing.assert_close(embedded.images, embedded.references)
    right = scenes.errors == 0
    gap = (embedded.candidates - embedded.references).norm(dim=1)
    assert gap[right].max() < 1e-4
    changes = [s.errors.false_comparison + s.errors.omitted_comparison for s in scenes.studies]
    seen = scenes.errors - np.array(changes)
    assert gap[seen > 0].min() > 0.5


def test_sums_follow_the_errors_and_unit_length_dilutes_them(scenes):
    sums, unit = (ideal_scenes(scenes, unit=unit) for unit in (False, True))
    torch.testing.assert_close(unit.references.norm(dim=1), torch.ones(150).double())
    tau, prefers = _values(sums, "image-gain-distance")
    assert tau > 0.85
    assert prefers == 1
    diluted, prefers = _values(unit, "image-gain-distance")
    assert diluted < tau - 0.1
    assert prefers > 0.97
    assert _values(unit, "cosine")[0] == pytest.approx(_values(sums, "cosine")[0], abs=0.02)


def test_a_text_metric_does_not_see_what_the_picture_shows(scenes):
    assert 0.3 < _values(ideal_scenes(scenes, unit=True), "cosine")[1] < 0.7
