"""The image-use test on embeddings whose answer is known: what is shown, and what is stated."""

import numpy as np
import pytest
import torch
from image_use_preferences import (
    FAR_OUT,
    FOLLOWS,
    PREFERS,
    PREFERS_BLACK,
    PREFERS_SWAPPED,
    QUANTITIES,
    TAU,
    TAU_BLACK,
    TAU_SCENE,
    image_use,
    resample,
    summarise,
)
from image_use_scenes import (
    EmbeddedScenes,
    Imperfect,
    arrange,
    draw_scenes,
    embed_scenes,
)
from imperfect_references import FORMS

from tests.doubles import HashEncoder
from vlscore.data import BOTH, KINDS, ZONES, count_errors
from vlscore.embedding import StudyEmbedder
from vlscore.metrics import find_metric

PLACES = [(kind, side, zone) for kind in KINDS for side in (None, *BOTH) for zone in (None, *ZONES)]
# Directions that nothing shown or true takes; one that all embeddings take; one of images alone.
SPARE = 8
BIAS, GAP = len(PLACES) + SPARE, len(PLACES) + SPARE + 1
WIDTH = GAP + 1


def content(findings):
    """A finding is a direction of its own at each place, a little longer where it is severe."""
    vector = np.zeros(WIDTH)
    vector[BIAS] = 1
    for finding in findings:
        length = 1 + 0.1 * (finding.severity or 0)
        vector[PLACES.index((finding.kind, finding.side, finding.zone))] = length
    return vector


def astray(lengths, seed):
    """Vectors of these lengths in directions that are neither shown nor stated."""
    vectors = np.zeros((len(lengths), WIDTH))
    columns = len(PLACES) + np.random.default_rng(seed).integers(SPARE, size=len(lengths))
    vectors[np.arange(len(lengths)), columns] = lengths
    return torch.from_numpy(vectors)


@pytest.fixture(scope="module")
def embedded():
    """Pictures and reports of what they state, each perfectly; candidates as far as they err."""
    scenes = draw_scenes((5, 6), 90, split="train")
    shown = torch.tensor(np.array([content(study.scene.findings) for study in scenes.studies]))
    # What no two candidates share, so that none are tied.
    noise = np.random.default_rng(3).uniform(0, 0.01, len(shown))
    candidates = shown + astray(np.sqrt(scenes.errors + noise), 0)
    images = shown.clone()
    images[:, GAP] = 3
    black = torch.zeros(WIDTH).double()
    black[GAP] = 3
    imperfect = {}
    for form, drawn in scenes.imperfect.items():
        rows = np.array([row for row, _ in drawn])
        stated = torch.tensor(np.array([content(each.stated) for _, each in drawn]))
        true = shown[rows]
        # As far from the reference as the true one.
        false = stated + astray((true - stated).norm(dim=1).numpy(), 1)
        imperfect[form] = Imperfect(rows, stated, true, false, stated)
    return EmbeddedScenes(scenes, images, candidates, shown, black, imperfect, 10.0, "enc:ideal")


def values(embedded, metric):
    """Quantity -> its value."""
    drawn = resample(image_use(embedded, find_metric(metric)), resamples=1)
    return {name: each[0] for name, each in drawn.items()}


def test_scenes_are_those_of_their_seeds(embedded):
    scenes = embedded.scenes
    assert scenes.seed_of.tolist() == [5] * 90 + [6] * 90
    swapped = scenes.other_study
    assert sorted(swapped) == list(range(180))
    assert (swapped != np.arange(180)).all()
    assert (scenes.seed_of[swapped] == scenes.seed_of).all()
    for form, drawn in scenes.imperfect.items():
        for row, study in drawn:
            assert study.scene == scenes.studies[row].scene
            assert count_errors(study.stated, study.scene.findings).total == 1
            assert study.form == form
    taken = scenes.imperfect_form
    assert set(taken.tolist()) == {-1, 0, 1, 2}
    for row, form in enumerate(taken.tolist()):
        if form >= 0:
            assert row in {number for number, _ in scenes.imperfect[list(FORMS)[form]]}


@pytest.mark.parametrize("metric", ["midpoint-distance", "image-gain-distance"])
def test_a_score_that_uses_a_perfect_picture_prefers_what_it_shows(embedded, metric):
    found = values(embedded, metric)
    assert found[PREFERS] == 1
    assert [found[form] for form in FORMS] == [1, 1, 1]
    assert found[FAR_OUT] == 0
    assert found[FOLLOWS] > 0
    assert values(embedded, "image-gain-distance(image=4)")[FOLLOWS] == 1


def test_a_score_of_the_reference_alone_follows_it_and_no_image_moves_it(embedded):
    found = values(embedded, "cosine")
    assert found[FOLLOWS] == 0
    assert found[PREFERS] == found[PREFERS_BLACK] == found[PREFERS_SWAPPED] < 0.9
    assert found[TAU] == found[TAU_BLACK]
    looking = values(embedded, "image-gain-distance")
    assert looking[PREFERS_BLACK] < looking[PREFERS]


def test_true_errors_rank_as_the_largest_tau_allows_where_references_are_right(embedded):
    perfect = values(embedded, "image-gain-distance")
    assert perfect[TAU] == pytest.approx(1)
    # Where every reference has one error, the picture makes up for it.
    assert perfect[TAU_SCENE] == pytest.approx(1)
    assert values(embedded, "cosine")[TAU_SCENE] < 0.9


def test_every_point_of_the_line_is_paid_by_the_area_and_the_height_alone(embedded):
    assert values(embedded, "height")[FAR_OUT] == 1
    assert values(embedded, "vlscore")[FAR_OUT] == 1
    assert values(embedded, "segment-distance")[FAR_OUT] == 0


def test_summaries_hold_the_mean_the_range_and_an_interval(embedded):
    good = resample(image_use(embedded, find_metric("image-gain-distance")), resamples=30)
    poor = resample(image_use(embedded, find_metric("clipscore")), resamples=30)
    assert tuple(good) == QUANTITIES
    found = summarise([good, poor])[TAU]
    assert found.interval.estimate == pytest.approx((good[TAU][0] + poor[TAU][0]) / 2)
    assert (found.low, found.high) == (poor[TAU][0], good[TAU][0])
    assert found.interval.low < found.interval.estimate < found.interval.high
    again = resample(image_use(embedded, find_metric("clipscore")), resamples=30)
    np.testing.assert_array_equal(again[TAU], poor[TAU])


def test_vectors_come_where_they_belong():
    scenes = draw_scenes((5,), 12, split="held_out")
    embedder = StudyEmbedder(HashEncoder())
    rng = np.random.default_rng(0)
    pictures = [rng.random((16, 16), dtype=np.float32) for _ in scenes.studies]
    vectors = embed_scenes(embedder, scenes, pictures)
    embedded = arrange(scenes, vectors, C=20.0, signature=str(embedder.signature))
    torch.testing.assert_close(embedded.images, embedder.encoder.encode_images(pictures).double())
    torch.testing.assert_close(embedded.black, embedder.embed_black().double())

    def of(texts):
        return embedder.encoder.encode_reports(texts).double()

    torch.testing.assert_close(embedded.candidates, of([s.candidate for s in scenes.studies]))
    for form, drawn in scenes.imperfect.items():
        found = embedded.imperfect[form]
        assert found.rows.tolist() == [row for row, _ in drawn]
        torch.testing.assert_close(found.references, of([each.reference for _, each in drawn]))
        torch.testing.assert_close(found.true, of([each.true for _, each in drawn]))
        torch.testing.assert_close(found.false, of([each.false for _, each in drawn]))
        torch.testing.assert_close(found.copied, of([each.copied for _, each in drawn]))
