"""Whether swapping tells metrics that look at the image from those that do not."""

import json

import numpy as np
import pytest
from scipy import stats

from tests.evaluation.sensitivities.samples import embed, make_images, make_pairs
from vlscore.errors import InvalidSetting
from vlscore.evaluation import image_swap
from vlscore.evaluation.sensitivities.image_swap import _images_of_others
from vlscore.metrics import vlscore


@pytest.fixture(scope="module")
def pairs():
    return make_pairs()


@pytest.fixture(scope="module")
def embedded(pairs):
    return embed(pairs, make_images())


def test_a_metric_that_ignores_the_image_does_not_move(pairs, embedded):
    for result in image_swap(pairs, embedded, ["cosine"], resamples=50):
        assert result.shift.estimate == 0
        assert result.relative_shift == 0
        assert result.preference.estimate == 0.5
        assert result.rank_agreement.estimate == pytest.approx(1)
        assert result.rank_agreement_within.estimate == pytest.approx(1)
        assert result.detection_right == result.detection_wrong
        assert result.p_value == 1


def test_a_metric_of_the_image_alone_keeps_no_rank(pairs, embedded):
    results = image_swap(pairs, embedded, ["clipscore"], resamples=50)
    assert [result.image for result in results] == ["other study", "black"]
    assert all(result.shift.estimate > 0 for result in results)
    # The hash encoder embeds a black image as the origin, to which no angle leads.
    assert results[1].wrong.estimate == 0


def test_values_are_those_of_the_kernel(pairs, embedded):
    _, black = image_swap(pairs, embedded, ["vlscore"], resamples=50)
    g, r = embedded.perturbed, embedded.originals
    right = vlscore(embedded.images, g, r, embedded.C).numpy()
    wrong = vlscore(embedded.studies.black, g, r, embedded.C).numpy()
    assert black.right.estimate == pytest.approx(right.mean(), rel=1e-12)
    assert black.wrong.estimate == pytest.approx(wrong.mean(), rel=1e-12)
    assert black.shift.estimate == pytest.approx(np.abs(right - wrong).mean(), rel=1e-12)
    expected = stats.kendalltau(right, wrong).statistic
    assert black.rank_agreement.estimate == pytest.approx(expected, rel=1e-9)
    within = [
        stats.kendalltau(right[rows], wrong[rows]).statistic
        for rows in (slice(start, start + 6) for start in range(0, len(pairs), 6))
    ]
    assert black.rank_agreement_within.estimate == pytest.approx(np.mean(within), rel=1e-9)


def test_no_study_gets_its_own_image_and_all_pairs_of_one_see_the_same(pairs, embedded):
    for seed in range(10):
        others = _images_of_others(pairs, embedded, seed)
        assert not (others == embedded.images).all(dim=1).any()
        for study in {pair.study_id for pair in pairs}:
            rows = [k for k, pair in enumerate(pairs) if pair.study_id == study]
            assert len({tuple(others[k].tolist()) for k in rows}) == 1
        donors = {tuple(row) for row in others.tolist()}
        assert len(donors) == len({pair.study_id for pair in pairs})


def test_studies_without_image_are_left_out_of_the_swap(pairs):
    images = make_images()
    del images["2"]
    results = image_swap(pairs, embed(pairs, images), ["vlscore"], resamples=50)
    assert all(np.isfinite(result.shift.estimate) for result in results)


def test_default_metrics_are_those_of_the_image_with_cosine_as_control(pairs, embedded):
    results = image_swap(pairs, embedded, resamples=20)
    names = list(dict.fromkeys(result.metric for result in results))
    assert names[0] == "vlscore"
    assert names[-1] == "cosine"
    assert not {"bleu-1", "rouge-l"} & set(names)
    json.dumps([result.to_dict() for result in results], allow_nan=False)


def test_swapping_needs_images_of_two_studies(pairs, embedded):
    with pytest.raises(InvalidSetting, match="needs images"):
        image_swap(pairs, embed(pairs, None))
    alone = [pair for pair in pairs if pair.study_id == "0"]
    with pytest.raises(InvalidSetting, match="two studies"):
        image_swap(alone, embed(alone, make_images()))
