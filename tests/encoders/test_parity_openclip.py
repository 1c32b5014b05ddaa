"""BiomedCLIP against open_clip, by its own name and through a folder with a configuration."""

import json
from pathlib import Path

import pytest
import torch

from tests.encoders.goldens import (
    TOLERANCE,
    Golden,
    assert_same,
    assert_same_pixels,
    assert_same_tokens,
    load_as_authors,
    row_error,
)
from vlscore.encoders import JointEncoder, load_encoder
from vlscore.encoders.models.openclip import BIOMEDCLIP_CONFIG
from vlscore.errors import IncompatibleCheckpoint, UnknownName, WeightsNotFound

CONFIG = "open_clip_config.json"
HUB_ID = "microsoft/BiomedCLIP-PubMedBERT_256-vit_base_patch16_224"


@pytest.fixture(scope="module")
def golden() -> Golden:
    return Golden.of("biomedclip")


@pytest.fixture(scope="module")
def folder(golden: Golden, checkpoints: Path) -> Path:
    """As downloaded from the hub, but for the configuration."""
    torch.save(golden.tensors(), checkpoints / "open_clip_pytorch_model.bin")
    golden.vocabulary(checkpoints)
    return checkpoints


@pytest.fixture(scope="module")
def encoder(folder: Path) -> JointEncoder:
    return load_as_authors("biomedclip", folder, None)


def test_parity_by_name(encoder: JointEncoder, golden: Golden) -> None:
    assert_same(encoder, golden)


def test_parity_on_all_inputs(encoder: JointEncoder, golden: Golden, shared: Path) -> None:
    assert_same(encoder, golden.whole(shared))


def test_parity_with_configuration(folder: Path, golden: Golden) -> None:
    (folder / CONFIG).write_text(json.dumps(BIOMEDCLIP_CONFIG))
    encoder = load_as_authors(f"openclip:{folder}", folder, None)
    assert encoder.card.dim == 512
    assert encoder.card.max_tokens == 256
    assert_same_tokens(encoder, golden)
    assert golden.compare(encoder.encode_reports(golden.texts), "report") <= TOLERANCE


def test_hub_id_with_local_files(folder: Path, golden: Golden) -> None:
    (folder / CONFIG).unlink(missing_ok=True)
    encoder = load_as_authors(f"openclip:hf-hub:{HUB_ID}", folder, None)
    assert_same_pixels(encoder.image_pipeline, golden)


def test_architecture_with_a_checkpoint(tmp_path: Path) -> None:
    import open_clip

    torch.manual_seed(0)
    model = open_clip.create_model("ViT-S-32-alt").eval()
    torch.save({f"module.{k}": v for k, v in model.state_dict().items()}, tmp_path / "model.pt")
    encoder = load_encoder("openclip:ViT-S-32-alt", weights=tmp_path / "model.pt")
    reports = ["lungs are clear", "effusion " * 100]
    tokens = encoder.tokenize(reports)
    assert tokens.truncated.tolist() == [False, True]
    with torch.inference_mode():
        expected = model.encode_text(open_clip.tokenize(reports), normalize=True)
    assert encoder.card.dim == expected.shape[1]
    # The library and ours need not multiply by the same routine.
    assert row_error(encoder.encode_reports(reports), expected) <= 2e-6


def test_unknown_architecture() -> None:
    with pytest.raises(UnknownName, match="no architecture 'ViT-Z-99'"):
        load_encoder("openclip:ViT-Z-99")


def test_architecture_without_weights_names_its_tags() -> None:
    with pytest.raises(WeightsNotFound, match="laion2b_s34b_b79k"):
        load_encoder("openclip:ViT-B-32")


def test_no_model_named() -> None:
    with pytest.raises(WeightsNotFound, match="which model"):
        load_encoder("openclip")


def test_folder_without_configuration(tmp_path: Path) -> None:
    (tmp_path / "open_clip_pytorch_model.bin").write_bytes(b"")
    with pytest.raises(WeightsNotFound, match=r"open_clip_config\.json is not there"):
        load_encoder("openclip", weights=tmp_path)


def test_a_larger_vocabulary_than_the_models_is_refused(folder: Path, tmp_path: Path) -> None:
    more = (folder / "vocab.txt").read_text() + "further\n"
    (tmp_path / "vocab.txt").write_text(more)
    with pytest.raises(IncompatibleCheckpoint, match="but the vocabulary has 30523"):
        load_encoder("biomedclip", weights=folder, tokenizer=tmp_path)
