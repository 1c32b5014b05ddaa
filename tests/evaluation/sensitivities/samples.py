"""Perturbed reports and images for the benchmarks' tests, with the hash encoder."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
from PIL import Image

from tests.doubles import HashEncoder
from vlscore.data import StudyImages
from vlscore.embedding import StudyEmbedder
from vlscore.evaluation import EmbeddedPairs, Pair, embed_pairs

WORDS = ["small", "large", "left", "right", "effusion", "the", "heart", "normal", "lung", "clear"]
KINDS = {
    "remove-pathology": True,
    "remove-insignificant": False,
    "change-location": True,
    "change-severity": True,
    "replace-uninformative": False,
    "standard-normal": False,
}


def make_pairs(studies: int = 8) -> list[Pair]:
    """Significant changes replace 4 to 7 of ten words, insignificant ones 1 or 2."""
    rng = np.random.default_rng(1)
    pairs = []
    for k in range(studies):
        words = rng.choice(WORDS, 10).tolist()
        for kind, is_significant in KINDS.items():
            changed = list(words)
            count = rng.integers(4, 8) if is_significant else rng.integers(1, 3)
            for place in rng.permutation(10)[:count].tolist():
                changed[place] = f"other{rng.integers(50)}"
            pairs.append(Pair(str(k), kind, is_significant, " ".join(words), " ".join(changed)))
    return pairs


def make_images(studies: int = 8) -> dict[str, StudyImages]:
    rng = np.random.default_rng(2)
    return {
        str(k): StudyImages(str(k), (rng.random((8, 8)).astype(np.float32),))
        for k in range(studies)
    }


def embed(pairs: list[Pair], images: dict[str, StudyImages] | None) -> EmbeddedPairs:
    return embed_pairs(pairs, StudyEmbedder(HashEncoder()), images)


def write_pairs(folder: Path, pairs: list[Pair]) -> Path:
    """The folder as `vlscore perturb` would leave it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "perturbations.jsonl").open("w", encoding="utf-8") as stream:
        for pair in pairs:
            record = asdict(pair)
            significant = record.pop("is_significant")
            record["expected"] = "significant" if significant else "insignificant"
            stream.write(json.dumps(record) + "\n")
    return folder


def write_studies(folder: Path, studies: int = 8) -> Path:
    """A table of the pairs' studies, with their images beside it."""
    rng = np.random.default_rng(3)
    rows = ["id,image"]
    for k in range(studies):
        Image.fromarray(rng.integers(0, 256, (32, 32), dtype=np.uint8)).save(folder / f"{k}.png")
        rows.append(f"{k},{k}.png")
    table = folder / "studies.csv"
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return table
