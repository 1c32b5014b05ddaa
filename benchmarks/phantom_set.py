"""Rated sets of phantoms, in the layout of `vlscore align`: true errors take the raters' place."""

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from significant_errors import split_errors

from vlscore.data import PhantomFinding, corrupt, render, write_report
from vlscore.data.phantom.phantom_pairs import scene_at, write_png


def rows_of_errors(
    study: str,
    system: str,
    stated: Iterable[PhantomFinding],
    true: Iterable[PhantomFinding],
    **columns: Any,
) -> list[dict[str, Any]]:
    """One row a category and significance, as `vlscore.evaluation.read_ratings` reads them.

    Args:
        system: whose candidate it is.
        columns: further cells of every row, as reports and image.
    """
    found = split_errors(tuple(stated), tuple(true))
    return [
        {
            "study_id": study,
            "candidate_id": system,
            "category": category.replace("_", " "),
            "significant": str(is_significant).lower(),
            "rating": count,
            **columns,
        }
        for is_significant, errors in found.items()
        for category, count in errors.to_dict().items()
    ]


def write_rated_set(
    folder: Path, *, seed: int, studies: int, candidates: int, most_errors: int = 5
) -> Path:
    """Images, and a table of candidates with 0 to `most_errors` known errors.

    Scenes are those of `seed`; reports are in held-out phrasings. Errors are drawn uniformly in
    number, and at random in category; `rows_of_errors` says which are significant.

    Returns: the path of ratings.csv.
    """
    rows = []
    for place in range(studies):
        scene = scene_at(seed, place)
        write_png(folder / f"{place}.png", render(scene))
        reference = write_report(
            np.random.default_rng([seed, place, 2]), scene.findings, split="held_out"
        )
        for k in range(candidates):
            rng = np.random.default_rng([seed, place, 3, k])
            stated = corrupt(rng, scene.findings, int(rng.integers(0, most_errors + 1)))
            rows += rows_of_errors(
                str(place),
                f"c{k}",
                stated,
                scene.findings,
                reference=reference,
                candidate=write_report(rng, stated, split="held_out"),
                image=f"{place}.png",
            )
    path = folder / "ratings.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path
