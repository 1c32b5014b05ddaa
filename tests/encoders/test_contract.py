"""Every encoder keeps the contract: the bundled one with its weights, others with random ones."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.doubles import HashEncoder
from tests.encoders.contract import (
    ENCODER_REPORTS,
    check_devices,
    check_encoder,
    check_image_embeddings,
    check_report_embeddings,
)
from tests.encoders.goldens import row_error
from tests.encoders.random_encoders import (
    leave_pieces,
    quick_weights,
    random_encoder,
    shorten,
    word_pieces,
)
from tests.pretended_gpu import pretended_gpu
from vlscore.data import as_radiograph
from vlscore.encoders import (
    ENCODERS,
    JointEncoder,
    SmallEncoder,
    Tokens,
    entry_of,
    inference,
    load_encoder,
)
from vlscore.encoders.blocks.tokenizers import ClipTokenizer
from vlscore.encoders.models.ensemble import EnsembleEncoder
from vlscore.encoders.models.openclip import BIOMEDCLIP_CONFIG, BiomedClipEncoder
from vlscore.encoders.models.openclip_parts import CleaningWordPieces, OpenClipPipeline, build_model

CLIP_ARCHITECTURE = "ViT-S-32-alt"
RADIOGRAPH = as_radiograph(np.arange(300 * 200, dtype=np.uint16).reshape(300, 200))


WORDS = ("no", "pleural", "effusion", "is", "seen", "small", "left", "right", "the", "heart")


def make(name: str, folder: Path) -> JointEncoder:
    torch.manual_seed(0)
    if entry_of(name).weights.status == "bundled":
        return load_encoder(name)
    small = [SmallEncoder.new(WORDS[:5], seed=seed) for seed in range(2)]
    if name in ("small", "ensemble"):
        found = small[0] if name == "small" else EnsembleEncoder(small)
        return found.eval().requires_grad_(False)
    if name == "openclip":
        import open_clip

        model = open_clip.create_model(CLIP_ARCHITECTURE)
        torch.save(model.state_dict(), folder / "model.pt")
        return load_encoder(f"openclip:{CLIP_ARCHITECTURE}", weights=folder / "model.pt")
    if name == "biomedclip":
        encoder = biomedclip()
    else:
        tokenizer = ClipTokenizer() if name == "chexzero" else word_pieces(*WORDS)
        encoder = random_encoder(name, tokenizer)
    return encoder.eval().requires_grad_(False)


def biomedclip() -> JointEncoder:
    bert = "text.transformer."
    shapes = {
        f"{bert}embeddings.word_embeddings.weight": (30522, 768),
        f"{bert}embeddings.position_embeddings.weight": (512, 768),
        f"{bert}embeddings.token_type_embeddings.weight": (2, 768),
        f"{bert}encoder.layer.0.intermediate.dense.weight": (3072, 768),
    }
    shapes |= {f"{bert}encoder.layer.{n}.output.dense.bias": (768,) for n in range(12)}
    tensors = {key: torch.empty(shape, device="meta") for key, shape in shapes.items()}
    with quick_weights():
        model = build_model(BIOMEDCLIP_CONFIG["model_cfg"], tensors)
    encoder = BiomedClipEncoder(
        model,
        OpenClipPipeline(224, BIOMEDCLIP_CONFIG["preprocess_cfg"]),
        CleaningWordPieces(word_pieces(*WORDS), 256),
        BiomedClipEncoder.card,
    )
    shorten(encoder)
    leave_pieces(encoder)
    return encoder


# One encoder a family; the others in a slow run.
QUICK = ("phantom-judging", "limitr", "openclip")


@pytest.fixture(
    scope="module",
    params=[
        name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in ENCODERS.names()
    ],
)
def encoder(request: pytest.FixtureRequest, checkpoints: Path) -> Iterator[JointEncoder]:
    return make(request.param, checkpoints)


def test_the_contract(encoder: JointEncoder) -> None:
    check_encoder(encoder)


class Blind(HashEncoder):
    def embed_images(self, pixels: torch.Tensor) -> torch.Tensor:
        return torch.ones(len(pixels), self.card.dim)


class Deaf(HashEncoder):
    def embed_reports(self, tokens: Tokens) -> torch.Tensor:
        return torch.ones(len(tokens), self.card.dim)


@pytest.mark.parametrize(
    ("made", "check", "ignored"),
    [(Blind, check_image_embeddings, "image"), (Deaf, check_report_embeddings, "text")],
)
def test_an_encoder_that_ignores_its_input_is_caught(made, check, ignored) -> None:
    with pytest.raises(AssertionError, match=f"it ignores the {ignored}"):
        check(made())


@pytest.mark.gpu
def test_cpu_and_gpu_agree(encoder: JointEncoder) -> None:
    check_devices(encoder)


def test_no_tensor_stays_behind_on_the_cpu(encoder: JointEncoder) -> None:
    """All that embedding and training ask of an encoder, on a GPU that need not be there."""
    pixels = torch.stack([encoder.preprocess(RADIOGRAPH)])
    tokens = encoder.tokenize(ENCODER_REPORTS[:2])
    with pretended_gpu(), inference(torch.device("cuda"), "fp32"):
        encoder.to("cuda")
        try:
            found = encoder.embed_images(pixels.to("cuda")).cpu()
            assert encoder.embed_reports(tokens.to("cuda")).is_cuda
            if has_own(encoder, "image_features"):
                assert all_there(encoder.image_features(pixels.to("cuda")))
            if has_own(encoder, "report_features"):
                assert all_there(encoder.report_features(tokens.to("cuda")))
            if encoder.has_lateral_tower:
                both = pixels.to("cuda"), torch.tensor([True], device="cuda")
                assert encoder.study_features(both[0], *both).vectors.is_cuda
        finally:
            encoder.to("cpu")
    with inference(torch.device("cpu"), "fp32"):
        assert row_error(found, encoder.embed_images(pixels)) <= 1e-5


def has_own(encoder: JointEncoder, method: str) -> bool:
    return getattr(type(encoder), method) is not getattr(JointEncoder, method)


def all_there(features: object) -> bool:
    return all(value.is_cuda for value in vars(features).values() if value is not None)
