"""Inputs whose results are stored in tests/evaluation/data/values_*.json."""

import csv
import json
from pathlib import Path

import numpy as np

from tests.evaluation.alignment.samples import make_rexval, write_csv
from tests.evaluation.sensitivities.samples import write_studies

ROOT = Path(__file__).parents[2]
PHANTOM = ROOT / "perturbations" / "phantom"
RADPREF = ROOT.parent / "shared" / "data" / "radpref"
REFISCO = """id,indication,impression_original,impression_edited,score,annotator,source
p1,x,Small effusion.,[no edit],No error,0,XREM
p1,x,Left fracture.,[delete],Urgent error,0,XREM
p1,x,,Right edema.,Not actionable,0,XREM
p1,x,Small effusion.,Large effusion.,Emergent error,1,XREM
p2,x,Clear.,[no edit],No error,1,Expert
p2,x,Clear lungs.,No edema.,Urgent error,0,XREM
p3,x,Clear.,[no edit],No error,1,Expert
p3,x,Mass on the left.,Mass on the right.,Emergent error,0,XREM
p4,x,Normal heart.,Enlarged heart.,Actionable nonurgent error,0,XREM
"""


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


def rexval(folder: Path) -> tuple[Path, Path]:
    """A folder like ReXVal's, and a table of values for it."""
    made, _ = make_rexval(folder / "rexval", studies=8, raters=3)
    rng = np.random.default_rng(6)
    rows = [{"study_id": 500 + k, "candidate_id": name, "one": round(rng.random(), 2),
             "two": round(rng.random(), 3), "three": k}
            for k in range(8) for name in ("radgraph", "bertscore", "s_emb", "bleu")]  # fmt: skip
    return made, write_csv(folder / "values-rexval.csv", rows)


def refisco(folder: Path) -> Path:
    """A table in ReFiSco's first layout."""
    (folder / "refisco.csv").write_text(REFISCO, encoding="utf-8")
    return folder / "refisco.csv"


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


def reports(folder: Path) -> Path:
    """Reports whose sentences state and deny findings."""
    texts = dict.fromkeys(pair["original"] for pair in phantom_pairs(345))
    rows = [{"id": str(k), "report": text} for k, text in enumerate(texts)]
    return write_csv(folder / "reports.csv", rows)


def systems(folder: Path) -> list[Path]:
    """Three systems for 12 studies; in study 0 two of them say the same."""
    paths = []
    for name in ("one", "two", "three"):
        rows = [{"id": f"s{k:02}", "reference": f"Reference {k}.",
                 "candidate": "Same." if k == 0 and name != "three" else f"={name}+{k}"}
                for k in range(12)]  # fmt: skip
        paths.append(write_csv(folder / f"{name}.csv", rows))
    return paths


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
