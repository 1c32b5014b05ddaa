"""Whether swapping tells metrics that look at the image from those that do not."""

import numpy as np
import pytest
from scipy import stats

from tests.doubles import HashEncoder
from tests.evaluation.sensitivities.samples import make_pairs, write_studies
from vlscore.data import open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidSetting
from vlscore.evaluation import SensitivitySettings, image_swap
from vlscore.evaluation.sensitivities.image_swap import _donors
from vlscore.evaluation.study_images import images_by_study, images_of
from vlscore.metrics import Scorer, vlscore

FEW = SensitivitySettings(resamples=50)


@pytest.fixture(scope="module")
def pairs():
    return make_pairs()


@pytest.fixture(scope="module")
def shown(pairs, tmp_path_factory):
    table = write_studies(tmp_path_factory.mktemp("images"))
    studies = open_studies(table, needs={"image"})
    return images_by_study(studies, set(pairs["study_id"]), "pair")[0]


@pytest.fixture(scope="module")
def embedder():
    return StudyEmbedder(HashEncoder())


def test_a_metric_that_ignores_the_image_does_not_move(pairs, shown, embedder):
    swaps = image_swap(pairs, Scorer(embedder, metrics="cosine"), shown, FEW)
    for row in swaps.to_dict("records"):
        assert (row["shift"], row["relative_shift"], row["preference"]) == (0, 0, 0.5)
        assert row["rank_agreement"] == pytest.approx(1)
        assert row["rank_agreement_within"] == pytest.approx(1)
        assert row["detection_right"] == row["detection_wrong"]
        assert row["p_value"] == 1


def test_a_metric_of_the_image_alone_keeps_no_rank(pairs, shown, embedder):
    swaps = image_swap(pairs, Scorer(embedder, metrics="clipscore"), shown, FEW)
    assert list(swaps["metric"]) == ["clipscore", "clipscore", "cosine", "cosine"]
    assert list(swaps["image"][:2]) == ["other study", "black"]
    assert (swaps["shift"][:2] > 0).all()
    # The hash encoder embeds a black image as the origin, to which no angle leads.
    assert swaps["wrong"][1] == 0


def test_values_are_those_of_the_kernel(pairs, shown, embedder):
    swaps = image_swap(pairs, Scorer(embedder, metrics="vlscore"), shown, FEW)
    black = swaps.to_dict("records")[1]
    images = embedder.embed_studies([shown(name) for name in pairs["study_id"]]).vectors
    g, r = (embedder.embed_texts(list(pairs[name])).vectors for name in ("perturbed", "original"))
    right = vlscore(images, g, r, embedder.C).numpy()
    wrong = vlscore(embedder.embed_black(), g, r, embedder.C).numpy()
    assert black["right"] == pytest.approx(right.mean(), rel=1e-12)
    assert black["wrong"] == pytest.approx(wrong.mean(), rel=1e-12)
    assert black["shift"] == pytest.approx(np.abs(right - wrong).mean(), rel=1e-12)
    expected = stats.kendalltau(right, wrong).statistic
    assert black["rank_agreement"] == pytest.approx(expected, rel=1e-9)
    within = [
        stats.kendalltau(right[rows], wrong[rows]).statistic
        for rows in (slice(start, start + 6) for start in range(0, len(pairs), 6))
    ]
    assert black["rank_agreement_within"] == pytest.approx(np.mean(within), rel=1e-9)


def test_no_study_gets_its_own_image_and_each_image_is_shown_once():
    for seed in range(10):
        donors = _donors(["a", "b", "c", "d"], seed)
        assert all(study != donor for study, donor in donors.items())
        assert sorted(donors.values()) == ["a", "b", "c", "d"]


def test_studies_without_image_are_left_out_of_the_swap(pairs, shown, embedder):
    def lacking(study):
        return None if study == "2" else shown(study)

    swaps = image_swap(pairs, Scorer(embedder, metrics="vlscore"), lacking, FEW)
    assert np.isfinite(swaps["shift"]).all()
    assert set(swaps["pairs"]) == {42}


def test_swapping_needs_images_of_two_studies(pairs, shown, embedder):
    with pytest.raises(InvalidSetting, match="needs images"):
        image_swap(pairs, Scorer(metrics="bleu-1"), images_of({}))
    alone = pairs[pairs["study_id"] == "0"].reset_index(drop=True)
    with pytest.raises(InvalidSetting, match="two studies"):
        image_swap(alone, Scorer(embedder, metrics="vlscore"), shown)
