"""MedCLIP against what its authors' code returned."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.encoders.goldens import (
    Golden,
    assert_same_embeddings,
    assert_same_pixels,
    assert_same_tokens,
    clinical_vocabulary,
    load_as_authors,
)


@pytest.fixture(scope="module")
def known() -> dict[str, Tensor]:
    """Tensors made already: both models have the same report tower."""
    return {}


@pytest.mark.parametrize("name", ["medclip-resnet", "medclip-vit"])
def test_parity(name: str, shared: Path, checkpoints: Path, known: dict[str, Tensor]) -> None:
    golden = Golden.of(shared, name.replace("-", "_"))
    tensors = golden.tensors(known=known)
    known.update(tensors)
    torch.save(tensors, checkpoints / "pytorch_model.bin")

    encoder = load_as_authors(name, checkpoints, clinical_vocabulary(shared))

    assert_same_pixels(encoder.image_pipeline, golden)
    assert_same_tokens(encoder, golden)
    # Alone, no text is averaged over padding: the one value that depends on no batch.
    assert_same_embeddings(encoder, golden, reports="txt_global_single")
