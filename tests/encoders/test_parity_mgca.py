"""MGCA, and the ConVIRT of its repository, against what their code returned."""

from pathlib import Path

import pytest
from torch import Tensor
from torch.nn.functional import normalize

from tests.encoders.goldens import (
    TOLERANCE,
    Golden,
    assert_same,
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


@pytest.fixture(scope="module", params=NAMES)
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden.of(request.param)


@pytest.fixture(scope="module")
def checkpoint(golden: Golden, checkpoints: Path, known: dict[str, Tensor]) -> Path:
    tensors = golden.tensors(known=known)
    known.update(tensors)
    path = save_lightning(checkpoints / "model.ckpt", tensors, {"emb_dim": 128})
    forget_foreign_classes()
    golden.vocabulary(checkpoints)
    return path


@pytest.fixture(scope="module")
def encoder(golden: Golden, checkpoint: Path) -> JointEncoder:
    return load_as_authors(golden.name.replace("_", "-"), checkpoint, None)


def test_parity(encoder: JointEncoder, golden: Golden) -> None:
    assert encoder.card.normalised
    assert_same(encoder, golden)


def test_parity_on_all_inputs(encoder: JointEncoder, golden: Golden, shared: Path) -> None:
    assert_same(encoder, golden.whole(shared))


def test_before_normalisation(encoder: JointEncoder, golden: Golden, checkpoint: Path) -> None:
    """The output of the last batch normalisation."""
    raw = load_as_authors(f"{encoder.card.name}:raw", checkpoint, None)
    assert not raw.card.normalised
    assert raw.card.name == f"{encoder.card.name}:raw"
    images, reports = raw.encode_images(golden.images), raw.encode_reports(golden.texts)
    assert row_error(normalize(images), golden["image"]) <= TOLERANCE
    if "image_raw" in golden.arrays:
        assert golden.compare(images, "image_raw") <= TOLERANCE
        assert golden.compare(reports, "report_raw") <= TOLERANCE


def test_other_variants_are_refused(encoder: JointEncoder, checkpoint: Path) -> None:
    with pytest.raises(UnknownName, match=f"no variant 'cooked'; there is {encoder.card.name}:raw"):
        load_encoder(f"{encoder.card.name}:cooked", weights=checkpoint)
