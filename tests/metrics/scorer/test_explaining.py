"""Shares of sentences: those of deletion, and the error has the largest."""

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
def small() -> SmallEncoder:
    words = sorted(set(f"{CANDIDATE} {REFERENCE}".lower().replace(".", "").split()))
    return SmallEncoder.new(words, style="judging", side=32, dim=16, width=16).eval()


def explained(encoder, metric: str, candidate: str = CANDIDATE, reference: str = REFERENCE):
    scorer = Scorer(encoder, metrics=metric, device="cpu", C=50.0 if metric == "vlscore" else None)
    return explain_with(scorer, picture(), candidate, reference), scorer


@pytest.mark.parametrize("encoder", [HashEncoder, None])
@pytest.mark.parametrize("metric", METRICS)
def test_deletion_is_the_score_without_the_sentence(small, encoder, metric):
    found, scorer = explained(small if encoder is None else encoder(), metric)
    sign = find_metric(metric).sign
    score = float(scorer.score(picture(), CANDIDATE, REFERENCE))
    assert found.score == score
    assert found.best == pytest.approx(float(scorer.score(picture(), REFERENCE, REFERENCE)))
    for sentence in found.candidate:
        without = CANDIDATE.replace(sentence.text, "")
        gain = sign * (float(scorer.score(picture(), without, REFERENCE)) - score)
        assert sentence.share == pytest.approx(gain, abs=1e-5)
    for sentence in found.reference:
        more = f"{CANDIDATE} {sentence.text}"
        gain = sign * (float(scorer.score(picture(), more, REFERENCE)) - score)
        assert sentence.share == pytest.approx(gain, abs=1e-5)


def test_metrics_of_texts_are_explained_without_an_encoder():
    found = vlscore.explain(None, CANDIDATE, REFERENCE, metrics="rouge-l")
    matching = found.candidate[1]
    assert matching.text == "The heart is normal."
    assert matching.share < 0 < found.candidate[0].share
    assert found.reference[1].share > 0
    assert "Small nodule in the apex." in str(found)
    assert found.to_dict()["candidate"][0]["start"] == 0


def test_an_empty_candidate_has_no_sentence(small):
    found, _ = explained(small, "image-gain-distance", "")
    assert found.candidate == ()
    assert len(found.reference) == 2


def test_what_cannot_be_explained_is_refused(small):
    with pytest.raises(InvalidSetting, match="does not use the reference"):
        explained(small, "clipscore")
    scorer = Scorer(small, metrics="cosine", device="cpu")
    with pytest.raises(InvalidSetting, match="one study"):
        explain_with(scorer, None, [CANDIDATE], [REFERENCE])
