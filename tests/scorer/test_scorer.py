"""Scores equal the kernels on the embeddings, and carry what a reader needs to trust them."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

import vlscore
from tests.doubles import HashEncoder
from vlscore.errors import InvalidSetting, InvalidStudy, UnknownName, UnreadableImage
from vlscore.scorer import Scorer
from vlscore.similarity import SIMILARITIES, find_similarity, foot, sides, triangle_area

REPORTS = ["no effusion", "left effusion is large", "heart size is normal", ""]


def picture(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (16, 12), dtype=np.uint8)


@pytest.fixture
def scorer():
    return Scorer(HashEncoder(), device="cpu")


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_batch_equals_the_kernels_on_its_embeddings(similarity):
    encoder = HashEncoder()
    scorer = Scorer(encoder, similarity=similarity, device="cpu", batch_size=2)
    images = [picture(k) for k in range(3)]
    table = scorer.score(images, REPORTS[:3], REPORTS[1:4])
    i, g, r = (
        encoder.encode_images(images),
        encoder.encode_reports(REPORTS[:3]),
        encoder.encode_reports(REPORTS[1:4]),
    )
    expected = find_similarity(similarity).compute(i, g, r, 20.0).numpy()
    np.testing.assert_allclose(table.scores, expected, rtol=1e-12)
    np.testing.assert_allclose(table.columns["area"], triangle_area(i, g, r), rtol=1e-12)
    np.testing.assert_allclose(table.columns["foot"], foot(i, g, r), rtol=1e-12)
    names = ("image_candidate", "image_reference", "candidate_reference")
    for name, expected in zip(names, sides(i, g, r), strict=True):
        np.testing.assert_allclose(table.columns[name], expected, rtol=1e-12)


def test_one_study_is_the_batch_of_one(scorer):
    one = scorer.score(picture(0), REPORTS[0], REPORTS[1])
    table = scorer.score([picture(0)], [REPORTS[0]], [REPORTS[1]])
    assert float(one) == one.score == table[0].score == table.mean()
    assert 0 < one.score < 1
    assert one.to_dict() == table[0].to_dict()


def test_the_reference_itself_scores_one(scorer):
    assert float(scorer.score(picture(0), REPORTS[1], REPORTS[1])) == 1.0


def test_a_single_value_beside_lists_holds_for_all(scorer):
    table = scorer.score(picture(0), REPORTS[:3], REPORTS[0])
    assert len(table) == 3
    assert table[0].score == 1.0
    assert table[1] == scorer.score(picture(0), REPORTS[1], REPORTS[0])


@pytest.mark.parametrize("kind", ["path", "pil", "array", "tensor"])
def test_an_image_in_any_form_scores_the_same(scorer, tmp_path, kind):
    pixels = picture(3)
    path = tmp_path / "image.png"
    Image.fromarray(pixels).save(path)
    forms = {
        "path": path,
        "pil": Image.fromarray(pixels),
        "array": pixels,
        "tensor": torch.from_numpy(pixels),
    }
    expected = scorer.score(str(path), REPORTS[0], REPORTS[1])
    assert scorer.score(forms[kind], REPORTS[0], REPORTS[1]) == expected


def test_truncation_is_said(scorer):
    long = "word " * 50
    score = scorer.score(picture(0), long, REPORTS[0])
    assert score.candidate_truncated
    assert not score.reference_truncated
    assert "truncated: candidate" in str(score)
    assert "truncated" not in str(scorer.score(picture(0), REPORTS[1], REPORTS[0]))


def test_the_signature_names_every_choice():
    scorer = Scorer(
        HashEncoder(), C=7, device="cpu", image_policy="minmax", text_policy="impression"
    )
    shown = str(scorer.signature)
    checksum = HashEncoder.checksum[:12]
    for part in (
        f"enc:hash@{checksum}",
        "C:7",
        "sim:vlscore",
        "img:minmax",
        "views:first-frontal",
        "txt:impression",
        "prec:fp32",
        f"v:{vlscore.__version__}",
    ):
        assert part in shown.split("|")
    assert str(Scorer(HashEncoder(), similarity="cosine", device="cpu").signature).count("C:") == 0


def test_results_are_plain_data(scorer):
    table = scorer.score([picture(0), picture(1)], REPORTS[:2], REPORTS[1:3])
    assert json.loads(json.dumps(table.to_dict()))["score"] == table.scores.tolist()
    assert json.loads(json.dumps(table[0].to_dict()))["signature"] == str(table.signature)
    assert f"{table.mean():.4f}" in str(table)
    assert [float(score) for score in table] == table.scores.tolist()
    assert [float(score) for score in table[:1]] == table.scores[:1].tolist()
    with pytest.raises(IndexError, match="no score 2"):
        table[2]


def test_a_bad_study_raises_or_is_listed(scorer, tmp_path):
    images = [picture(0), tmp_path / "absent.png", picture(1)]
    with pytest.raises(UnreadableImage, match=r"study 1: .*absent\.png"):
        scorer.score(images, REPORTS[:3], REPORTS[0])
    table = scorer.score(images, REPORTS[:3], REPORTS[0], on_error="keep")
    assert list(table.failures) == [1]
    assert np.isnan(table.scores).tolist() == [False, True, False]
    alone = scorer.score([images[0], images[2]], [REPORTS[0], REPORTS[2]], REPORTS[0])
    np.testing.assert_allclose(table.scores[[0, 2]], alone.scores, rtol=1e-12)


def test_lists_of_different_length_are_refused(scorer):
    with pytest.raises(InvalidStudy, match="candidates 2, references 3"):
        scorer.score(picture(0), REPORTS[:2], REPORTS[:3])


def test_an_embedding_that_is_not_finite_is_a_failure_not_a_score():
    encoder = HashEncoder()
    encoder.scale.fill_(torch.inf)
    table = Scorer(encoder, device="cpu").score(
        [picture(0)], [REPORTS[0]], [REPORTS[1]], on_error="keep"
    )
    assert "not finite" in str(table.failures[0])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"similarity": "euclid"}, UnknownName, "known: vlscore"),
        ({"precision": "fp8"}, InvalidSetting, "fp32"),
        ({"views": "all"}, InvalidSetting, "first-frontal"),
        ({"views": "frontal+lateral"}, InvalidSetting, "no tower for lateral"),
        ({"C": -1.0}, InvalidSetting, "positive"),
        ({"image_policy": "brightest"}, InvalidSetting, "window is one of"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        Scorer(HashEncoder(), device="cpu", **options)
