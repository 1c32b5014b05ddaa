"""BioViL's loss against its formula."""

import numpy as np
import pytest

from tests.training.objectives.pairs import array, both_directions, cosine, drawn_pairs
from vlscore.errors import InvalidSetting
from vlscore.training.objectives.local_losses import Biovil, Gloria
from vlscore.training.registry import find_objective


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


def test_the_local_loss_is_glorias():
    pairs = drawn_pairs(5)
    found = find_objective("biovil(local_weight=0.5)", dim=6, local_dim=5)(pairs)
    assert found["local"].item() == pytest.approx(0.5 * Gloria()(pairs)["local"].item())


def test_only_with_a_local_loss_it_needs_local_vectors():
    assert not Biovil().local
    assert find_objective("biovil", dim=6).name == "biovil"
    with pytest.raises(InvalidSetting, match="compares places with words"):
        find_objective("biovil(local_weight=1)", dim=6)
