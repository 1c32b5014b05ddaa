"""A checksum stands for all that embeddings depend on, and for nothing else."""

import json
from pathlib import Path

import pytest
import torch

from tests.doubles import BrightnessPipeline, HashEncoder
from tests.encoders.test_attacks import changed, write_model
from vlscore.encoders import Tokens, convert, load_encoder, verify


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_model(tmp_path / "model", changed(""))


def test_another_vocabulary_is_another_checksum(folder: Path) -> None:
    before = load_encoder("openclip", weights=folder)
    described = json.loads((folder / "tokenizer.json").read_text())
    words = described["model"]["vocab"]
    words["small"], words["effusion"] = words["effusion"], words["small"]
    (folder / "tokenizer.json").write_text(json.dumps(described))
    after = load_encoder("openclip", weights=folder)
    assert after.weights_digest == before.weights_digest
    assert after.checksum != before.checksum
    assert not torch.equal(*(e.encode_reports(["small effusion"]) for e in (before, after)))


def test_other_preprocessing_is_another_checksum(folder: Path) -> None:
    before = load_encoder("openclip", weights=folder)
    (folder / "open_clip_config.json").write_text(
        json.dumps(changed("preprocess_cfg", interpolation="bilinear"))
    )
    after = load_encoder("openclip", weights=folder)
    assert after.weights_digest == before.weights_digest
    assert after.checksum != before.checksum


def test_another_container_is_the_same_checksum(folder: Path, tmp_path: Path) -> None:
    before = load_encoder("openclip", weights=folder)
    model = folder / "open_clip_model.safetensors"
    (checked,) = verify(folder)
    assert checked.digest == before.weights_digest
    from vlscore.encoders import load_checkpoint

    torch.save({"state_dict": load_checkpoint(model)}, tmp_path / "again.ckpt")
    assert convert(tmp_path / "again.ckpt", model, overwrite=True) == before.weights_digest
    assert load_encoder("openclip", weights=folder).checksum == before.checksum


class Vocabulary:
    def __init__(self, *words: str) -> None:
        self.words = words

    def get_vocab(self) -> dict[str, int]:
        return {word: n for n, word in enumerate(self.words)}


def of_own(
    *, words: tuple[str, ...] = ("a", "b"), lower: bool = False, scale: float = 1.0, low: int = 0
) -> str:
    from vlscore.encoders import JointEncoder

    class Mine(HashEncoder):
        checksum = JointEncoder.checksum
        tokenizer = Vocabulary(*words)

        def tokenize(self, reports: list[str]) -> Tokens:  # type: ignore[override]
            return super().tokenize([r.lower() if lower else r for r in reports])

    encoder = Mine()
    encoder.scale.data.fill_(scale)
    encoder.image_pipeline = BrightnessPipeline()
    encoder.image_pipeline.low = low  # type: ignore[attr-defined]
    return encoder.checksum


def test_an_encoder_of_ones_own_has_one_too() -> None:
    same = {of_own(), of_own()}
    assert len(same) == 1
    others = {of_own(words=("b", "a")), of_own(lower=True), of_own(scale=2.0), of_own(low=1)}
    assert len(others | same) == 5
