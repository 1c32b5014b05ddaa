"""Rated sets that are made for tests, in the layouts of the published ones."""

import csv
import json
from collections.abc import Collection
from pathlib import Path

import numpy as np
from pandas import DataFrame

from vlscore.evaluation import AlignmentSettings, RatedPairs, Scored, align
from vlscore.stats import Result

KINDS = ("radgraph", "bertscore", "s_emb", "bleu")


def write_csv(path: Path, rows: list[dict]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


def make_rexval(folder: Path, studies: int = 3, raters: int = 2) -> tuple[Path, np.ndarray]:
    """A folder like ReXVal's, and the (raters, pairs, 6, 2) counts in it, significant ones last."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 3, (raters, studies * len(KINDS), 6, 2))
    reports = [
        {"study_id": 500 + k, "gt_report": f"Reference {k}."}
        | {kind: f"Report {kind} of {k}." for kind in KINDS}
        for k in range(studies)
    ]
    write_csv(folder / "50_samples_gt_and_candidates.csv", reports)
    rows = [
        {
            "study_number": pair // len(KINDS),
            "candidate_type": KINDS[pair % len(KINDS)],
            "error_category": category + 1,
            "rater_index": rater,
            "clinically_significant": bool(significant),
            "num_errors": int(counts[rater, pair, category, significant]),
        }
        for pair in range(studies * len(KINDS))
        for category in range(6)
        for rater in range(raters)
        for significant in range(2)
    ]
    write_csv(folder / "6_valid_raters_per_rater_error_categories.csv", rows)
    return folder, counts


def make_radpref(folder: Path, said: dict[str, dict]) -> Path:
    """A folder like RadPref's: rater -> case -> {"C1": rating, "C2": rating}."""
    inner = folder / "radiologist_annotations"
    inner.mkdir(parents=True)
    for rater, cases in said.items():
        annotations = {
            case: {
                name: {"rating": value, "errors": []} if name in ("C1", "C2") else value
                for name, value in ratings.items()
            }
            for case, ratings in cases.items()
        }
        content = json.dumps({"annotations": annotations})
        (inner / f"{rater}.json").write_text(content, encoding="utf-8")
    return folder


def rated(ratings: dict[str, list], studies: list[str] | None = None, **options) -> RatedPairs:
    """Pairs with the given (k, n) ratings; every pair a study of its own by default."""
    arrays = {name: np.array(values, dtype=float) for name, values in ratings.items()}
    k, n = next(iter(arrays.values())).shape
    return RatedPairs(
        studies=tuple(studies or [f"s{row}" for row in range(n)]),
        candidates=tuple(f"c{row}" for row in range(n)),
        raters=tuple(f"r{rater}" for rater in range(k)),
        ratings=arrays,
        **options,
    )


def valued(values: dict[str, np.ndarray], lower: Collection[str] = ()) -> Scored:
    """Values of metrics, of which some are better where they are smaller."""
    return Scored(DataFrame(values), {}, {name: name not in lower for name in values})


def aligned(pairs: RatedPairs, out: Path, scorer=None, **options) -> Result:
    """An alignment; options that are none of `align` are settings."""
    own = {n: options.pop(n) for n in ("studies", "figure", "overwrite") if n in options}
    return align(pairs, out, scorer, AlignmentSettings(**options), **own)
