"""Shares of sentences: they add up, equal deletion where they must, and find the error."""

import math

import numpy as np
import pytest

import vlscore
from tests.doubles import HashEncoder
from vlscore.encoders import SmallEncoder
from vlscore.errors import InvalidSetting
from vlscore.metrics import Scorer, find_metric
from vlscore.metrics.explaining import explain_with

CANDIDATE = "Large left effusion. The heart is normal. Old rib fracture."
REFERENCE = "The heart is normal. Small nodule in the apex."
METRICS = (
    "vlscore", "height", "segment-distance", "midpoint-distance", "image-gain-distance",
    "cosine", "bounding-sphere",
)  # fmt: skip


def picture(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (16, 12), dtype=np.uint8)


@pytest.fixture(scope="module")
def additive() -> SmallEncoder:
    words = sorted(set(f"{CANDIDATE} {REFERENCE}".lower().replace(".", "").split()))
    return SmallEncoder.new(words, style="judging", side=32, dim=16, width=16).eval()


def explained(encoder, metric: str, candidate: str = CANDIDATE, reference: str = REFERENCE):
    scorer = Scorer(encoder, metrics=metric, device="cpu", C=50.0 if metric == "vlscore" else None)
    return explain_with(scorer, picture(), candidate, reference), scorer


@pytest.mark.parametrize("metric", METRICS)
def test_shares_add_up_to_what_the_candidate_loses(additive, metric):
    found, scorer = explained(additive, metric)
    assert found.method == "additive"
    assert found.score == pytest.approx(float(scorer.score(picture(), CANDIDATE, REFERENCE)))
    assert found.best == pytest.approx(float(scorer.score(picture(), REFERENCE, REFERENCE)))
    shares = [each.share for each in (*found.candidate, *found.reference)]
    lost = (found.best - found.score) * find_metric(metric).sign
    assert sum(shares) == pytest.approx(lost, rel=2e-2, abs=1e-4)


def test_shares_of_a_squared_distance_are_those_of_its_formula(additive):
    found, scorer = explained(additive, "image-gain-distance(image=1e-9)")
    of = {
        text: scorer.embedder.embed_texts([text]).vectors[0].double().numpy()
        for text in (CANDIDATE, REFERENCE, *(s.text for s in (*found.candidate, *found.reference)))
    }
    apart = of[CANDIDATE] - of[REFERENCE]
    for sentence in found.candidate:
        assert sentence.share == pytest.approx(of[sentence.text] @ apart, abs=1e-5)
    for sentence in found.reference:
        assert sentence.share == pytest.approx(-of[sentence.text] @ apart, abs=1e-5)


@pytest.mark.parametrize("encoder", [HashEncoder, None])
@pytest.mark.parametrize("metric", METRICS)
def test_deletion_is_the_score_without_the_sentence(additive, encoder, metric):
    found, scorer = explained(additive if encoder is None else encoder(), metric)
    sign = find_metric(metric).sign
    score = float(scorer.score(picture(), CANDIDATE, REFERENCE))
    for sentence in found.candidate:
        without = CANDIDATE.replace(sentence.text, "")
        gain = sign * (float(scorer.score(picture(), without, REFERENCE)) - score)
        assert sentence.deletion == pytest.approx(gain, abs=1e-5)
    for sentence in found.reference:
        more = f"{CANDIDATE} {sentence.text}"
        gain = sign * (float(scorer.score(picture(), more, REFERENCE)) - score)
        assert sentence.deletion == pytest.approx(gain, abs=1e-5)


def test_an_encoder_that_does_not_add_up_is_explained_by_deletion():
    words = sorted(set(f"{CANDIDATE} {REFERENCE}".lower().replace(".", "").split()))
    encoder = SmallEncoder.new(words, style="siglip", side=32, dim=16, width=16).eval()
    found, _ = explained(encoder, "cosine")
    assert found.method == "deletion"
    for sentence in (*found.candidate, *found.reference):
        assert sentence.share == sentence.deletion


def test_a_sentence_that_both_state_costs_nothing_beside_errors_at_right_angles(additive):
    found, _ = explained(additive, "image-gain-distance(image=1e-9)", REFERENCE, REFERENCE)
    assert [each.share for each in (*found.candidate, *found.reference)] == [0.0] * 4
    assert found.score == found.best


def test_metrics_of_texts_are_explained_without_an_encoder():
    found = vlscore.explain(None, CANDIDATE, REFERENCE, metrics="rouge-l")
    assert found.method == "deletion"
    matching = found.candidate[1]
    assert matching.text == "The heart is normal."
    assert matching.share < 0 < found.candidate[0].share
    assert found.reference[1].share > 0
    assert "Small nodule in the apex." in str(found)
    assert found.to_dict()["candidate"][0]["start"] == 0


def test_an_empty_candidate_has_no_sentence(additive):
    found, _ = explained(additive, "image-gain-distance", "")
    assert found.candidate == ()
    lost = found.score - found.best
    assert math.isclose(sum(each.share for each in found.reference), lost, rel_tol=1e-4)


def test_what_cannot_be_explained_is_refused(additive):
    with pytest.raises(InvalidSetting, match="does not use the reference"):
        explained(additive, "clipscore")
    scorer = Scorer(additive, metrics="cosine", device="cpu")
    with pytest.raises(InvalidSetting, match="one study"):
        explain_with(scorer, None, [CANDIDATE], [REFERENCE])
