"""What tests of several commands use."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.command import Done, run_command
from tests.doubles import HashEncoder
from vlscore.encoders import ENCODERS


@pytest.fixture
def hash_encoder(monkeypatch):
    """Every command loads the hash encoder, and decodes images here: to start workers is slow."""
    from vlscore.embedding import embedder as studies

    decoder = studies.StudyEmbedder.decoder
    # An index names its encoder, and a file may name registered ones alone.
    monkeypatch.setitem(ENCODERS._members, "hash", HashEncoder)
    monkeypatch.setitem(ENCODERS._plain, "hash", "hash")
    monkeypatch.setattr(
        studies, "named_encoder", lambda *_, **__: studies.EncoderSource(HashEncoder())
    )
    monkeypatch.setattr(studies.StudyEmbedder, "decoder", lambda self, workers=0: decoder(self))


@pytest.fixture
def command() -> Callable[..., Done]:
    """Run a command in this process; stdout and stderr are kept apart."""
    return run_command


def write_jsonl(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read_jsonl(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


REPORTS = [
    {"id": "a1", "report": "Clear lungs.", "patient": "p1"},
    {"id": "a2", "report": "Small left effusion.", "patient": "p2"},
    {"id": "a3", "report": "Clear lungs.", "patient": "p3"},
    {"id": "a4", "report": "", "patient": "p4"},
    {"id": "a5", "report": "Large right pneumothorax.", "patient": "p5"},
    {"id": "a6", "report": "untokenizable", "patient": "p6"},
    {"id": "a7", "report": "Heart size is normal.", "patient": "p7"},
]


@pytest.fixture
def corpus(tmp_path):
    """Seven reports, four distinct ones that can be used."""
    return write_jsonl(tmp_path / "corpus.jsonl", REPORTS)


@pytest.fixture
def studies(tmp_path):
    """Three studies: one whose reference stands verbatim in the corpus, one without its image."""
    rng = np.random.default_rng(5)
    for name in "xyz":
        pixels = rng.integers(0, 256, (32, 32), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    rows = [
        {"id": "s1", "image": "x.png", "reference": "Clear\nlungs. ", "own": "a1;a3"},
        {"id": "s2", "image": "absent.png", "reference": "Clear lungs.", "own": ""},
        {"id": "s3", "image": "z.png", "reference": "Left effusion.", "own": "a2"},
    ]
    return write_jsonl(tmp_path / "studies.jsonl", rows)
