"""The embedder of studies: policies are its own, failures stay with their rows."""

import warnings

import numpy as np
import pytest
import torch

from tests.doubles import HashEncoder
from vlscore.core import Signature
from vlscore.data import ImagePolicy
from vlscore.embedding import StudyEmbedder, StudyViews
from vlscore.embedding.embedder import _lying_on
from vlscore.errors import (
    BrokenContract,
    DemonstrationEncoderWarning,
    InvalidSetting,
    UnreadableImage,
)


def picture(seed=0, dtype=np.uint8):
    high = np.iinfo(dtype).max
    return np.random.default_rng(seed).integers(0, high, (16, 12), dtype=dtype, endpoint=True)


def test_a_second_embedder_changes_neither_the_encoder_nor_the_first():
    encoder = HashEncoder()
    before = encoder.image_policy
    first = StudyEmbedder(encoder, image_policy="percentile", views="first-frontal")
    alone = first.embed_studies([StudyViews([picture(1, np.uint16)])]).vectors
    signature = first.signature
    second = StudyEmbedder(encoder, image_policy="full", views="mean")
    assert second.embed_studies([StudyViews([picture(1, np.uint16)])]).vectors.tolist() != (
        alone.tolist()
    )
    again = first.embed_studies([StudyViews([picture(1, np.uint16)])]).vectors
    assert torch.equal(again, alone)
    assert first.signature == signature != second.signature
    assert encoder.image_policy is before
    assert StudyEmbedder(encoder).image_policy == before


def test_bad_studies_fail_alone_and_hold_nan(tmp_path):
    studies = [
        StudyViews([picture(0)]),
        StudyViews([]),
        StudyViews([tmp_path / "absent.png"]),
        StudyViews([picture(1), tmp_path / "absent.png"]),
        StudyViews([picture(2)]),
    ]
    embedded = StudyEmbedder(HashEncoder(), views="mean", batch_size=2).embed_studies(studies)
    assert list(embedded.failures) == [1, 2, 3]
    assert isinstance(embedded.failures[2], UnreadableImage)
    assert embedded.vectors.isnan().all(1).tolist() == [False, True, True, True, False]
    alone = HashEncoder().encode_images([picture(0), picture(2)])
    torch.testing.assert_close(embedded.vectors[[0, 4]], alone)


def test_texts_fail_alone_and_tell_truncation():
    embedded = StudyEmbedder(HashEncoder()).embed_texts(["a", "untokenizable", "word " * 50, ""])
    assert list(embedded.failures) == [1]
    assert embedded.truncated.tolist() == [False, False, True, False]
    assert embedded.vectors[1].isnan().all()


def test_decoding_may_begin_before_embedding(tmp_path):
    embedder = StudyEmbedder(HashEncoder())
    with embedder.decoder() as decoder:
        begun = [embedder.begin(StudyViews([picture(k)]), decoder) for k in range(3)]
        late = embedder.embed_studies(begun).vectors
    now = embedder.embed_studies([StudyViews([picture(k)]) for k in range(3)]).vectors
    assert torch.equal(late, now)


def test_a_black_image_is_embedded_though_a_study_may_not_be_black():
    embedder = StudyEmbedder(HashEncoder())
    assert embedder.embed_black().tolist() == [0.0] * 8


def test_embeddings_that_are_not_finite_are_failures():
    encoder = HashEncoder()
    encoder.scale.fill_(torch.nan)
    embedded = StudyEmbedder(encoder).embed_studies([StudyViews([picture()])])
    assert "not finite" in str(embedded.failures[0])


def test_the_signature_is_a_value_that_parses_back():
    signature = StudyEmbedder(HashEncoder(), image_policy="minmax", precision="bf16").signature
    assert str(signature) == (
        f"embeddings|enc:hash@{HashEncoder.checksum[:12]}|img:minmax|views:first-frontal|prec:bf16"
    )
    assert Signature.parse(str(signature)) == signature
    assert StudyEmbedder("phantom", device="cpu").signature.has("DEMONSTRATION-ENCODER")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"precision": "fp8"}, InvalidSetting, "fp32"),
        ({"views": "all"}, InvalidSetting, "first-frontal"),
        ({"views": "frontal+lateral"}, InvalidSetting, "no tower for lateral"),
        ({"image_policy": "brightest"}, InvalidSetting, "percentile"),
        ({"image_policy": ImagePolicy.named("authors")}, InvalidSetting, "reader of its authors"),
        ({"batch_size": 0}, InvalidSetting, "at least 1, not 0"),
        ({"device": "gpu"}, InvalidSetting, "no device is called 'gpu'"),
        ({"device": "cuda:99"}, InvalidSetting, "there is no device"),
        ({"weights": "/no/such"}, InvalidSetting, "is an object that has both"),
        ({"tokenizer": "/no/such"}, InvalidSetting, "is an object that has both"),
    ],
)
def test_settings_that_cannot_be_honoured_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        StudyEmbedder(HashEncoder(), **options)


def test_a_model_in_training_mode_is_refused():
    with pytest.raises(BrokenContract, match="training mode"):
        StudyEmbedder(HashEncoder().train())


def test_the_demonstration_encoder_warns_once(monkeypatch):
    from vlscore.embedding import embedder as studies

    studies._warn_of_demonstration.cache_clear()
    with pytest.warns(DemonstrationEncoderWarning, match="synthetic phantoms"):
        StudyEmbedder("phantom", device="cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        StudyEmbedder("phantom", device="cpu")


def test_an_encoder_that_others_hold_stays_where_it_is():
    """The device "meta" is there on every machine."""
    encoder = HashEncoder()
    shared = StudyEmbedder(encoder)
    vectors = shared.embed_texts(["left effusion"]).vectors
    moved = _lying_on(torch.device("meta"), encoder)
    assert moved.device.type == "meta"
    assert encoder.device.type == shared.encoder.device.type == "cpu"
    assert torch.equal(shared.embed_texts(["left effusion"]).vectors, vectors)
    assert StudyEmbedder(encoder, device="cpu").encoder is encoder
