"""BioViL's loss against its formula."""

import numpy as np
import pytest

from tests.training.objectives.pairs import array, both_directions, cosine, drawn_pairs
from vlscore.training.objectives.contrastive import Biovil


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("temperature", [0.5, 0.1])
def test_equals_the_formula(same, temperature):
    pairs = drawn_pairs(same=same)
    images, reports = array(pairs.images), array(pairs.reports)
    scores = np.array([[cosine(a, b) / temperature for b in reports] for a in images])
    found = Biovil(temperature=temperature)(pairs)
    assert list(found) == ["global"]
    expected = np.mean(both_directions(scores, array(pairs.same)))
    assert found["global"].item() == pytest.approx(expected)
