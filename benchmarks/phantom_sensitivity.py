"""Claim: some metrics notice significant changes more than insignificant ones.

`phantom` learned from pairs of image and report. More encoders are in phantom_image_use.py.

Protocol: held-out phantom scenes (seed 201; training uses seed 1), reports in held-out phrasings
with denials and non-clinical sentences, three scenes in four with a finding, one without. Every
kind of `vlscore.perturb` (seed 0, one change of each kind a report) changes them; the standard
normal report is made from these reports. The original is the reference. Intervals resample studies.
Targets: removal's Δ at least 0.15; location and severity at least 3 times the drop of [UNK]. Text
metrics score the same pairs. Every image-aware metric is also computed with another study's and
with a black image.

Run: python benchmarks/phantom_sensitivity.py [--out benchmarks/results/phantom_sensitivity.md]
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from machine import describe_machine, publish

from vlscore.data import Scene, Study, render, write_report
from vlscore.data.phantom.phantom_pairs import scene_at
from vlscore.embedding import StudyViews
from vlscore.evaluation import (
    compare_kinds,
    image_swap,
    reading_by_own_rules,
    score_pairs,
    sensitivity_tables,
)
from vlscore.metrics import Scorer
from vlscore.perturb import Expected, perturb_report, standard_normal_of
from vlscore.stats import markdown, with_demonstration_note

SEED = 201
# Of so many scenes one has no finding; chance would give fewer.
ONE_NORMAL_IN = 4
METRICS = ["vlscore", "cosine", "image-centred-cosine", "bounding-sphere", "clipscore"]
METRICS += ["refclipscore", "bleu-1", "bleu-4", "rouge-l"]


def scenes(count: int) -> Iterator[tuple[str, Scene]]:
    """`count` scenes in the order of the corpus, as many of each sort as wanted."""
    wanted = {True: count - count // ONE_NORMAL_IN, False: count // ONE_NORMAL_IN}
    position = 0
    while any(wanted.values()):
        scene = scene_at(SEED, position)
        has_finding = bool(scene.findings)
        if wanted[has_finding]:
            wanted[has_finding] -= 1
            yield f"phantom-{SEED}-{position:05d}", scene
        position += 1


def report_of(study_id: str, scene: Scene) -> str:
    """The study's report."""
    rng = np.random.default_rng([SEED, int(study_id.rsplit("-", 1)[1]), 7])
    return write_report(rng, scene.findings, split="held_out", negatives=0.4, others=0.6)


def pairs_of(reports: dict[str, str]) -> pd.DataFrame:
    """One change of each kind that a report allows."""
    standard = standard_normal_of(reports.values())
    return pd.DataFrame(
        {
            "study_id": study_id,
            "kind": change.kind,
            "is_significant": change.expected is Expected.SIGNIFICANT,
            "original": change.original,
            "perturbed": change.perturbed,
            "category": change.category,
        }
        for study_id, report in reports.items()
        for change in perturb_report(report, study_id=study_id, standard_normal=standard)
    )


def noticed(pairs: pd.DataFrame, scorer: Scorer, images: dict[str, Study]) -> str:
    """Tables and signatures of what the metrics notice, and of swapped images."""

    def shown(study: str) -> StudyViews:
        return StudyViews(images[study].images, images[study].views)

    scored = score_pairs(pairs, scorer, shown)
    if scored.reasons:
        raise SystemExit(f"pairs without a value: {scored.reasons}")
    frames = {**compare_kinds(pairs, scored), "swaps": image_swap(pairs, scorer, shown)}
    tables = sensitivity_tables(frames, reading_by_own_rules(scorer))
    tables = with_demonstration_note(tables, scored.signatures.values())
    return markdown(tables, map(str, scored.signatures.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--encoders", nargs="+", default=["phantom"])
    options = parser.parse_args()
    reports, images = {}, {}
    for study_id, scene in scenes(options.studies):
        reports[study_id] = report_of(study_id, scene)
        picture = render(scene).astype(np.float32) / np.float32(4095)
        images[study_id] = Study(study_id, (picture,))
    pairs = pairs_of(reports)
    parts = [
        "# What metrics notice, on phantoms",
        f"{len(pairs):,} changes of {len(images)} held-out phantom studies. {describe_machine()}",
    ]
    for name in options.encoders:
        parts += [f"## With `{name}`", noticed(pairs, Scorer(name, metrics=METRICS), images)]
    report = "\n\n".join(parts)
    report += "\n"
    publish(report, options.out)


if __name__ == "__main__":
    main()
