"""Tokenizers and image pipelines on the odd inputs of ../shared/encoders/edge_cases."""

import hashlib
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.encoders.goldens import SALT, clinical_vocabulary, sha256
from vlscore.data import Provenance, Radiograph
from vlscore.encoders import ImagePipeline, JointEncoder, WordPieceTokenizer
from vlscore.encoders.blocks.pixels import PadCropPipeline, fitted_shape, pad_to_square
from vlscore.encoders.models.biovil import ResizeCropPipeline
from vlscore.encoders.models.gloria import GloriaEncoder
from vlscore.encoders.models.limitr import LimitrEncoder
from vlscore.encoders.models.medclip import MedclipResNetEncoder, SquareCanvasPipeline
from vlscore.errors import UnreadableImage

EMPTY = [101, 102]
PIPELINES: dict[str, ImagePipeline] = {
    "limitr": PadCropPipeline(),
    "biovil": ResizeCropPipeline(480),
    "medclip": SquareCanvasPipeline(),
}


@pytest.fixture(scope="module")
def texts(shared: Path) -> list[dict[str, Any]]:
    path = shared / "encoders" / "edge_cases" / f"text_{SALT}.json"
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tokenizer(shared: Path) -> WordPieceTokenizer:
    return WordPieceTokenizer.from_file(clinical_vocabulary(shared))


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (LimitrEncoder, "limitr_ids"),
        (GloriaEncoder, "gloria_ids"),
        (MedclipResNetEncoder, "bert_raw_ids_trunc77"),
    ],
)
def test_token_ids(
    kind: type[JointEncoder], field: str, texts: list[dict[str, Any]], tokenizer: WordPieceTokenizer
) -> None:
    with torch.device("meta"):
        encoder = kind(tokenizer)
    tokens = encoder.tokenize([case["text"] for case in texts])
    for case, ids, length in zip(texts, tokens.ids.tolist(), tokens.lengths.tolist(), strict=True):
        # Where LIMITR's authors refuse a report, there are no ids; here it is an empty report.
        assert ids[:length] == case.get(field, EMPTY), case["text"]


@pytest.fixture(scope="module")
def images(shared: Path) -> list[tuple[dict[str, Any], Radiograph]]:
    folder = shared / "encoders" / "edge_cases"
    make = _function(folder / "make_image.py", "image")
    cases = json.loads((folder / f"images_{SALT}.json").read_text())["images"]
    made = [(case, make(case["tag"], case["h"], case["w"])) for case in cases]
    for case, grey in made:
        assert hashlib.sha256(grey.tobytes()).hexdigest() == case["input_sha256"]
    source = Provenance("array", 8)
    return [(c, Radiograph(grey / np.float32(255), source, c["tag"])) for c, grey in made]


@pytest.mark.parametrize("name", PIPELINES)
def test_pixels(name: str, images: list[tuple[dict[str, Any], Radiograph]]) -> None:
    for case, radiograph in images:
        if f"{name}_error" in case:
            with pytest.raises(UnreadableImage, match="too elongated"):
                PIPELINES[name](radiograph)
        else:
            pixels = PIPELINES[name](radiograph)
            assert sha256(pixels) == case[f"{name}_pix_sha256"], radiograph.shape


def test_padded_square(images: list[tuple[dict[str, Any], Radiograph]]) -> None:
    for case, radiograph in images:
        if "resize256_u8_sha256" in case:
            grey = PadCropPipeline().resize(radiograph.to_uint8(), *fitted_shape(*radiograph.shape))
            square = torch.from_numpy(pad_to_square(grey))
            assert sha256(square) == case["resize256_u8_sha256"], radiograph.shape


def _function(path: Path, name: str) -> Callable[..., Any]:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)
