"""Claim: scores that use the picture exist, and no encoder that makes them was told the answer.

Protocol: three test sets of 400 phantom scenes (seeds 101, 102, 103) in held-out phrasings. The
encoders were trained on scenes of seed 1 in other phrasings, from pairs of image and report alone,
by the objectives of seven papers, three training seeds each; one folder each, OBJECTIVE-SEED. Each
picture and text is embedded once; every similarity is computed on the embeddings.

tau: Kendall's tau_b between score and true errors as a share of the largest that ties allow, by
right references. tau scene: the same by references with one error, errors counted against the
scene. Prefers true: among studies whose reference omits a shown finding, states one that is not
shown, or has a wrong side, the share in which the candidate that mends that error beats the one
with a further error of the same category; chance is .5. Black, swapped: the same with a black
image, with another study's. Follows picture: the share in which it beats a paraphrase of the
imperfect reference. Far out: the share of studies in which a point three times as far from the
image as the reference, on the line through both, scores no worse than a candidate with one error.

Choices (the weight of the image, which score an encoder gets) are made on 400 scenes of
seed 2 in training phrasings, never on the test sets: among the scores that look at image and
reference, the one with the largest tau scene, which needs both, in the mean over the training
seeds. That rule was settled after parts of the test tables had been seen with two earlier rules
(the score that prefers the true candidate most; both goals weighed), so that the rows of chosen
scores are a little too good; the tables with every score are not touched by it. The goal is a tau
of .85, prefers true of .93, and no point far out that is paid. Intervals resample the test
studies; parentheses hold the range over encoders.

Run: python benchmarks/phantom_image_use.py --encoders FOLDER --cache FOLDER \
[--out benchmarks/results/phantom_image_use.md]
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from ideal_encoder import ideal_scenes
from image_use_numbers import (
    METRICS,
    TEST_SEEDS,
    Judged,
    judge,
    scenes_of,
)
from image_use_preferences import (
    FAR_OUT,
    FOLLOWS,
    PREFERS,
    PREFERS_BLACK,
    PREFERS_SWAPPED,
    TAU,
    TAU_BLACK,
    TAU_SCENE,
    TAU_SWAPPED,
    Summary,
    image_use,
    resample,
    summarise,
)
from imperfect_references import FORMS
from machine import describe_machine, publish

from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidSetting
from vlscore.metrics import find_metric
from vlscore.stats import TextTable, markdown, number

# What a score should reach, means over training seeds; besides, no point far out may be paid.
GOALS = {TAU: 0.85, PREFERS: 0.93}


def chosen_on_validation(encoders: Sequence[Judged]) -> str:
    """Of the scores of image and reference, the one with the largest tau scene on validation."""

    def tau_scene(key: str) -> float:
        return float(np.mean([each.validation[key][TAU_SCENE][0] for each in encoders]))

    return max(filter(_looks_at_both, METRICS), key=tau_scene)


def _looks_at_both(name: str) -> bool:
    metric = find_metric(name)
    return metric.uses_image and metric.uses_reference


def chosen_table(groups: Mapping[str, Sequence[Judged]]) -> TextTable:
    """For each group the score chosen on validation scenes, and the published one, on test sets."""
    rows = []
    for name, encoders in groups.items():
        for key in ("vlscore", chosen_on_validation(encoders)):
            found = summarise([each.test[key] for each in encoders])
            goals = (found[quantity].interval.estimate for quantity in GOALS)
            is_reached = all(x >= y for x, y in zip(goals, GOALS.values(), strict=True))
            rows.append(
                (
                    name,
                    key,
                    *(_cell(found[quantity]) for quantity in (TAU, TAU_SCENE, PREFERS)),
                    *(_mean(found[quantity]) for quantity in (PREFERS_BLACK, FAR_OUT)),
                    "yes" if is_reached and found[FAR_OUT].high < 0.05 else "no",
                )
            )
    columns = ("encoder", "score", "tau", "tau scene", "prefers true", "black", "far out")
    title = "The published score, and the one chosen on the validation scenes"
    return TextTable(title, (*columns, "goal reached"), tuple(rows))


def full_table(title: str, encoders: Sequence[Judged]) -> TextTable:
    """Every quantity of every score, over encoders of one group or of all."""
    rows = []
    for key in METRICS:
        found = summarise([each.test[key] for each in encoders])
        rows.append(
            (
                key,
                *(_cell(found[name]) for name in (TAU, TAU_SCENE, PREFERS)),
                *(_mean(found[name]) for name in FORMS),
                *(_mean(found[name]) for name in (PREFERS_BLACK, PREFERS_SWAPPED, FOLLOWS)),
                *(_mean(found[name]) for name in (FAR_OUT, TAU_BLACK, TAU_SWAPPED)),
            )
        )
    columns = ("score", "tau", "tau scene", "prefers true", "omits", "states", "wrong side")
    columns += ("black", "swapped", "follows picture", "far out", "tau black", "tau swapped")
    return TextTable(title, columns, tuple(rows))


def ideal_table(options: argparse.Namespace) -> TextTable:
    """What the geometry alone allows: an encoder that sees and reads everything but changes."""
    scenes = scenes_of("held_out", options.studies)
    embedded = [ideal_scenes(scenes, unit=unit) for unit in (False, True)]
    shown = (TAU, TAU_SCENE, PREFERS)
    rows = []
    for metric in METRICS:
        cells = []
        for here in embedded:
            # Image and reference coincide where the reference is right: no triangle has an area.
            use = image_use(replace(here, C=1.0), find_metric(metric))
            found = resample(use, resamples=1)
            cells += [number(float(found[name][0]), 2) for name in shown]
        rows.append((metric, *cells))
    columns = [f"{name}, {what}" for what in ("sums", "unit length") for name in shown]
    return TextTable("An ideal encoder", ("score", *columns), tuple(rows))


def _mean(found: Summary) -> str:
    return f"{found.interval.estimate:.2f}"


def _cell(found: Summary) -> str:
    i = found.interval
    spread = f" ({found.low:.2f} to {found.high:.2f})" if found.low < found.high else ""
    return f"{i.estimate:.3f} [{i.low:.3f}, {i.high:.3f}]{spread}"


def describe(judged: Sequence[Judged], options: argparse.Namespace) -> str:
    groups: dict[str, list[Judged]] = {}
    for each in judged:
        groups.setdefault(each.group, []).append(each)
    trained = [f"{name} ({len(of)})" for name, of in groups.items()]
    lines = [
        "# Does the image count? Scores of encoders that were not told the answer",
        f"{len(TEST_SEEDS)} x {options.studies} test studies; {len(judged)} contrastive "
        f"encoders: {', '.join(trained)}. {describe_machine()}",
        "Brackets: 95 % bootstrap interval over the test studies, of the mean over encoders; "
        "in parentheses the smallest and the largest among the encoders. "
        "`python benchmarks/phantom_image_use.py` says what each column is.",
    ]
    tables = [chosen_table({**groups, "all contrastive": judged})]
    tables += [full_table("All contrastive encoders", judged)]
    tables += [ideal_table(options)]
    tables += [full_table(name, encoders) for name, encoders in groups.items()]
    return "\n\n".join([*lines, markdown(tables)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--encoders", type=Path, required=True, help="folder of folders OBJECTIVE-SEED"
    )
    parser.add_argument("--cache", type=Path, required=True, help="folder of stored embeddings")
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--resamples", type=int, default=100)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.cache.mkdir(parents=True, exist_ok=True)
    judged = []
    for folder in (card.parent for card in cards(options.encoders)):
        print(folder.name, flush=True)
        embedder = StudyEmbedder("small", weights=str(folder))
        judged.append(judge(folder.name, embedder, options))
    publish(describe(judged, options), options.out)


def cards(folder: Path) -> list[Path]:
    """The cards of the encoders in a folder, by name."""
    found = sorted(folder.glob("*/card.json"))
    if not found:
        raise InvalidSetting(f"{folder} holds no folder with a card.json")
    return found


if __name__ == "__main__":
    main()
