"""Perturbed reports and images for the benchmarks' tests."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image

WORDS = ["small", "large", "left", "right", "effusion", "the", "heart", "normal", "lung", "clear"]
KINDS = {
    "remove-pathology": True,
    "remove-insignificant": False,
    "change-location": True,
    "change-severity": True,
    "replace-uninformative": False,
    "standard-normal": False,
}


def make_pairs(studies: int = 8) -> pd.DataFrame:
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
            pairs.append(
                {
                    "study_id": str(k),
                    "kind": kind,
                    "is_significant": is_significant,
                    "original": " ".join(words),
                    "perturbed": " ".join(changed),
                    "category": None,
                }
            )
    return pd.DataFrame(pairs)


def write_pairs(folder: Path, pairs: pd.DataFrame) -> Path:
    """The folder as `vlscore perturb` would leave it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "perturbations.jsonl").open("w", encoding="utf-8") as stream:
        for record in pairs.to_dict("records"):
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
