"""GLoRIA's losses against their formulas and the authors' code."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.training.objectives.pairs import (
    array,
    attended,
    both_directions,
    cosine,
    drawn_pairs,
    places_of,
    words_of,
)
from vlscore.training.objectives.local_losses import Gloria


def expected_local(pairs, temp1, temp2, temp3):
    reports, images = words_of(pairs), places_of(pairs)
    scores = np.empty((len(images), len(reports)))
    for i, places in enumerate(images):
        for j, words in enumerate(reports):
            cosines = [cosine(word, attended(word, words, places, temp1)) for word in words]
            scores[i, j] = np.log(sum(np.exp(temp2 * value) for value in cosines))
    return sum(both_directions(temp3 * scores, array(pairs.same)))


def expected_global(pairs, temp3):
    scores = [[temp3 * cosine(a, b) for b in array(pairs.reports)] for a in array(pairs.images)]
    return sum(both_directions(np.array(scores), array(pairs.same)))


@pytest.mark.parametrize("options", [{}, {"same": True}, {"missing_places": True}])
@pytest.mark.parametrize("temperatures", [(4.0, 5.0, 10.0), (1.0, 2.0, 3.0)])
def test_equals_the_formulas(options, temperatures):
    pairs = drawn_pairs(5, **options)
    found = Gloria(**dict(zip(("temp1", "temp2", "temp3"), temperatures, strict=True)))(pairs)
    assert float(found["local"]) == pytest.approx(expected_local(pairs, *temperatures))
    assert float(found["global"]) == pytest.approx(expected_global(pairs, temperatures[2]))


def test_equals_what_the_authors_code_printed():
    # local_loss and global_loss of marshuang80/gloria at 416466a, in float64.
    found = Gloria()(drawn_pairs(9, seed=11, places=16, longest=12, padding=3))
    assert float(found["global"]) == pytest.approx(16.620706924586862, rel=1e-12)
    assert float(found["local"]) == pytest.approx(24.89762018218066, rel=1e-12)


def test_a_report_without_words_has_no_local_loss():
    pairs = drawn_pairs(5)
    is_word = pairs.is_word.clone()
    is_word[2] = False
    rest = torch.tensor([0, 1, 3, 4])
    without = replace(pairs, is_word=is_word)
    four = replace(
        pairs,
        patches=pairs.patches[rest],
        words=pairs.words[rest],
        is_word=pairs.is_word[rest],
        same=pairs.same[rest][:, rest],
        images=pairs.images[rest],
        reports=pairs.reports[rest],
    )
    assert float(Gloria()(without)["local"]) == pytest.approx(float(Gloria()(four)["local"]))
    nobody = Gloria()(replace(pairs, is_word=torch.zeros_like(is_word)))
    assert float(nobody["local"]) == 0
