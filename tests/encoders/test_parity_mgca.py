"""MGCA, and the ConVIRT of its repository, against what their code returned."""

from pathlib import Path

import pytest
from torch import Tensor

from tests.encoders.goldens import (
    TOLERANCE,
    Golden,
    assert_same_embeddings,
    assert_same_pixels,
    assert_same_tokens,
    clinical_vocabulary,
    forget_foreign_classes,
    load_as_authors,
    row_error,
    save_lightning,
)
from vlscore.encoders import JointEncoder, load_encoder
from vlscore.errors import UnknownName

NAMES = ["mgca-resnet50", "mgca-vit", "convirt-mgca"]


@pytest.fixture(scope="module")
def known() -> dict[str, Tensor]:
    """Tensors made already: both MGCA models have the same report tower."""
    return {}


@pytest.mark.parametrize("name", NAMES)
def test_parity(name: str, shared: Path, checkpoints: Path, known: dict[str, Tensor]) -> None:
    golden = Golden.of(shared, name.replace("-", "_"))
    tensors = golden.tensors(known=known)
    known.update(tensors)
    path = save_lightning(checkpoints / "model.ckpt", tensors, {"emb_dim": 128})
    forget_foreign_classes()
    vocabulary = clinical_vocabulary(shared)

    encoder = load_as_authors(name, path, vocabulary)

    assert encoder.card.normalised
    assert_same_pixels(encoder.image_pipeline, golden)
    assert_same_tokens(encoder, golden)
    assert_same_embeddings(encoder, golden)
    if name == "convirt-mgca":
        assert_same_before_normalisation(load_as_authors(f"{name}:raw", path, vocabulary), golden)
    with pytest.raises(UnknownName, match="no variant 'cooked'"):
        load_encoder(f"{name}:cooked", weights=path, tokenizer=vocabulary)


def assert_same_before_normalisation(encoder: JointEncoder, golden: Golden) -> None:
    """The output of the last batch normalisation."""
    assert not encoder.card.normalised
    assert row_error(encoder.encode_images(golden.images), golden["img_global_raw"]) <= TOLERANCE
    assert row_error(encoder.encode_reports(golden.texts), golden["txt_global_raw"]) <= TOLERANCE
