"""SigLIP's loss against its formula, and against open_clip's."""

import numpy as np
import pytest
import torch
from open_clip.loss import SigLipLoss

from tests.training.objectives.pairs import array, cosine, drawn_pairs
from vlscore.training.objectives.contrastive import Siglip


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize(("scale", "bias"), [(10.0, -10.0), (3.0, 0.5)])
def test_equals_the_formula(same, scale, bias):
    pairs = drawn_pairs(same=same)
    images, reports, alike = (array(x) for x in (pairs.images, pairs.reports, pairs.same))
    total = 0.0
    for i, image in enumerate(images):
        for j, report in enumerate(reports):
            if i != j and alike[i, j]:
                continue
            sign = 1 if i == j else -1
            total += np.log1p(np.exp(-sign * (scale * cosine(image, report) + bias)))
    found = Siglip(scale=scale, bias=bias).double()(pairs)
    assert found["sigmoid"].item() == pytest.approx(total / len(images))


def test_equals_open_clips():
    pairs = drawn_pairs(11, seed=4)
    images, reports = (x / x.norm(dim=1, keepdim=True) for x in (pairs.images, pairs.reports))
    expected = SigLipLoss()(images, reports, torch.tensor(10.0), torch.tensor(-10.0))
    assert Siglip().double()(pairs)["sigmoid"].item() == pytest.approx(expected.item())
