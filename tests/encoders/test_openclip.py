"""open_clip models by name, folder and architecture; BiomedCLIP through a configuration."""

import json
from pathlib import Path

import pytest
import torch

from tests.encoders.goldens import (
    TOLERANCE,
    Golden,
    assert_same_tokens,
    load_as_authors,
    row_error,
)
from vlscore.encoders import load_encoder
from vlscore.encoders.models.openclip import BIOMEDCLIP_CONFIG
from vlscore.errors import UnknownName, WeightsNotFound

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


@pytest.mark.slow
def test_parity_with_configuration(folder: Path, golden: Golden) -> None:
    (folder / CONFIG).write_text(json.dumps(BIOMEDCLIP_CONFIG))
    encoder = load_as_authors("openclip", folder, None)
    assert encoder.card.dim == 512
    assert encoder.card.max_tokens == 256
    assert_same_tokens(encoder, golden)
    assert golden.compare(encoder.encode_reports(golden.texts), "report") <= TOLERANCE


def test_architecture_with_a_checkpoint(tmp_path: Path) -> None:
    import open_clip

    torch.manual_seed(0)
    model = open_clip.create_model("ViT-S-32-alt").eval()
    torch.save(model.state_dict(), tmp_path / "model.pt")
    encoder = load_encoder("openclip:ViT-S-32-alt", weights=tmp_path / "model.pt")
    reports = ["lungs are clear", "effusion " * 100]
    tokens = encoder.tokenize(reports)
    assert tokens.truncated.tolist() == [False, True]
    with torch.inference_mode():
        expected = model.encode_text(open_clip.tokenize(reports), normalize=True)
    assert encoder.card.dim == expected.shape[1]
    # The library and ours need not multiply by the same routine.
    assert row_error(encoder.encode_reports(reports), expected) <= 2e-6


@pytest.mark.parametrize("name", ["ViT-B/32", "ViT-B-32", "ViT-B/32-quickgelu", "RN50x4"])
def test_a_name_with_a_slash_is_the_architecture_that_open_clip_takes_it_for(name: str) -> None:
    import open_clip

    assert open_clip.get_model_config(name.replace("/", "-")) is not None
    with pytest.raises(WeightsNotFound, match=rf"openclip:{name.replace('/', '-')} has weights"):
        load_encoder(f"openclip:{name}")


@pytest.mark.parametrize("name", ["ViT-B-32:openai", "ViT-B/32:openai", "ViT-B-32/openai"])
def test_without_a_network_a_tag_fails_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    def repeats(*_: object, **__: object) -> None:
        raise AssertionError("the hub's client repeats its attempts")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", repeats)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("vlscore.encoders.weight_files.cached_file", lambda *_, **__: None)
    with pytest.raises(WeightsNotFound, match=r"could not be downloaded from huggingface\.co/timm"):
        load_encoder(f"openclip:{name}")


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("openclip:ViT-Z-99", UnknownName, "no architecture 'ViT-Z-99'"),
        ("openclip:ViT-B-32", WeightsNotFound, "laion2b_s34b_b79k"),
        ("openclip", WeightsNotFound, "which model"),
    ],
)
def test_a_model_that_is_not_named(name: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        load_encoder(name)
