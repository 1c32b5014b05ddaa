"""Make a bundled encoder of the encoders that two benchmarks have trained.

`phantom`: of those of benchmarks/phantom_encoders.py, the one that retrieves best on the validation
scenes (seed 2). `phantom-judging`: the one that reads findings of `benchmarks/judging_encoder.py
--stages`, with weights in half precision. Nothing that the phantom benchmarks measure is looked at.
C is the largest area T over 500 calibration studies (seed 3) with candidates of one to six errors,
in training phrasings.

Run: python weights/phantom/make.py FOLDER [--name phantom-judging] [--out weights/phantom]
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.data import render, sample_studies
from vlscore.encoders import JointEncoder, SmallEncoder, load_encoder
from vlscore.encoders.cards import card_of
from vlscore.metrics import triangle_area

CALIBRATION, STUDIES = 3, 500
JUDGING = "phantom-judging"


def best_of(folder: Path) -> tuple[Path, dict[str, float]]:
    """The folder of the encoder with the best mean recall, of equals R@1, and its validation."""
    found = {
        run.parent: json.loads(run.read_text())["best_validation"]
        for run in sorted(folder.glob("*-[0-9]/run.json"))
    }
    if not found:
        raise SystemExit(f"{folder} holds no encoders; see benchmarks/phantom_encoders.py")
    names = ("mean recall", "image to text R@1", "text to image R@1")
    best = max(found, key=lambda place: [found[place][name] for name in names])
    return best, found[best]


def largest_area(encoder: JointEncoder) -> float:
    drawn = [s for s in sample_studies(CALIBRATION, STUDIES) if s.errors.total > 0]
    pictures = [render(s.scene).astype(np.float32) / np.float32(4095) for s in drawn]
    areas = triangle_area(
        encoder.encode_images(pictures),
        encoder.encode_reports([s.candidate for s in drawn]),
        encoder.encode_reports([s.reference for s in drawn]),
    )
    return float(areas.max())


def choose(folder: Path, name: str) -> tuple[SmallEncoder, dict[str, Any]]:
    """The encoder to bundle, and how it was trained."""
    if name == JUDGING:
        place = folder / "judging-staged-findings"
        trained: dict[str, Any] = {"run": place.name}
    else:
        place, validated = best_of(folder)
        trained = {"run": place.name, "validation": validated}
    encoder = load_encoder("small", weights=place)
    assert isinstance(encoder, SmallEncoder)
    return encoder, trained


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what the benchmark has written")
    parser.add_argument("--name", choices=("phantom", JUDGING), default="phantom")
    parser.add_argument("--out", type=Path, help="default: the folder of this encoder in weights")
    options = parser.parse_args()
    encoder, trained = choose(options.folder, options.name)
    if options.name == JUDGING:
        encoder.half().float()
    card, constant = card_of(options.name), float(f"{largest_area(encoder):.4g}")
    if options.name == JUDGING:
        encoder.half()
    encoder.save(
        options.out or Path(__file__).parents[1] / options.name,
        {
            "title": card.title,
            "C": constant,
            "C_source": card.C_source,
            "licence": card.licence,
            "citation": card.citation,
            "notes": list(card.notes),
            "demonstration": True,
            "trained": trained,
        },
    )
    print(f"{trained}\nset C = {constant} in weights/cards/{options.name}.toml, with")
    print(f"dim = {encoder.card.dim}, normalised = {encoder.card.normalised}")


if __name__ == "__main__":
    main()
