"""Inputs whose results are stored in tests/evaluation/data/values_*.json."""

import csv
import json
from pathlib import Path

import numpy as np

from tests.evaluation.alignment.samples import write_csv
from tests.evaluation.sensitivities.samples import write_studies

ROOT = Path(__file__).parents[2]
PHANTOM = ROOT / "perturbations" / "phantom"


def phantom_pairs(count: int) -> list[dict]:
    """The first changes of the phantom data set."""
    with (PHANTOM / "perturbations.jsonl").open(encoding="utf-8") as stream:
        return [json.loads(line) for line in stream][:count]


def long_table(folder: Path) -> Path:
    """Ratings by three raters of changed reports: ties, missing ratings, a rater without some."""
    rng = np.random.default_rng(3)
    rows = []
    for k, pair in enumerate(phantom_pairs(60)):
        for rater in ("ann", "bob", "eve"):
            rating = str(rng.integers(1, 6)) if rng.random() > 0.1 else ""
            rows.append({"study_id": pair["study_id"], "candidate_id": f"{pair['kind']} {k}",
                         "rater": rater, "rating": rating, "reference": pair["original"],
                         "candidate": pair["perturbed"]})  # fmt: skip
    return write_csv(folder / "long.csv", rows)


def wide_table(folder: Path) -> Path:
    """Ranks of three candidates a study, a column for each of two raters."""
    rng = np.random.default_rng(4)
    rows = []
    for study in range(12):
        ranks = [rng.permutation(3) + 1 for _ in range(2)]
        rows += [{"study_id": f"s{study}", "candidate_id": f"c{k}", "ann": ranks[0][k],
                  "bob": ranks[1][k] if study else ""} for k in range(3)]  # fmt: skip
    return write_csv(folder / "wide.csv", rows)


def values_table(folder: Path, table: Path) -> Path:
    """Values computed elsewhere for the pairs of a table of ratings, some of them missing."""
    with table.open(encoding="utf-8", newline="") as stream:
        ids = dict.fromkeys(
            (row["study_id"], row["candidate_id"]) for row in csv.DictReader(stream)
        )
    rng = np.random.default_rng(5)
    rows = [{"study_id": s, "candidate_id": c, "one": round(rng.random(), 3),
             "two": round(rng.random(), 1) if rng.random() > 0.2 else ""}
            for s, c in ids]  # fmt: skip
    return write_csv(folder / f"values-{table.stem}.csv", rows)


def some_perturbations(folder: Path) -> tuple[Path, Path]:
    """A tenth of the phantom data set's changes, of eight studies with images, and their table."""
    pairs = phantom_pairs(80)
    names = {name: str(k % 8) for k, name in enumerate(dict.fromkeys(p["study_id"] for p in pairs))}
    changed = folder / "changed"
    changed.mkdir()
    with (changed / "perturbations.jsonl").open("w", encoding="utf-8") as stream:
        for pair in pairs:
            stream.write(json.dumps({**pair, "study_id": names[pair["study_id"]]}) + "\n")
    return changed, write_studies(folder)


def fill(folder: Path) -> None:
    """Fill in the sheets of a folder at random, some rows not at all."""
    rng = np.random.default_rng(8)
    for path in sorted(folder.glob("sheet-*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            rows = list(csv.DictReader(stream))
        asked = [name for name in rows[0] if name not in ("item", "reference", "candidate",
                                                         "report A", "report B")]  # fmt: skip
        for row in rows:
            if rng.random() < 0.1:
                continue
            for name in asked:
                if name == "preferred":
                    row[name] = str(rng.choice(["A", "B", "tie"]))
                elif "significant" in name:
                    row[name] = str(rng.integers(3))
                else:
                    row[name] = str(rng.integers(1, 6))
        write_csv(path, rows)
