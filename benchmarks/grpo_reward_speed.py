"""Claim: the reward of 64 completions of a GRPO step takes milliseconds by a metric of texts; an
image that is named by its path is embedded once, not once for each completion.

Protocol. A step has 16 prompts of 4 completions each, made of phantom studies (seed 3): the first
of four studies gives image and reference, all four give a candidate. Each step has other studies.
The reward is called as TRL calls it. Processor time of this process (all threads), which other
programs change less than the wall clock: the median and the least of the steps. The rewards take
turns, and a first step of each, which loads the encoder and the lexicons, is not counted. The
image metric uses the bundled encoder `phantom`. Images are paths, or images that Pillow has
decoded, as a data set of `datasets` hands them out. The cache on disk is off.

Run: python benchmarks/grpo_reward_speed.py [--out benchmarks/results/grpo_reward_speed.md]
"""

import argparse
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

from machine import describe_machine, publish
from PIL import Image

from vlscore.data import render, sample_studies
from vlscore.data.phantom.phantom_pairs import write_png
from vlscore.integrations import ReportReward

PROMPTS, COMPLETIONS = 16, 4
TEXTS = ("rouge-l", "bleu-4", "findings-f1")


def steps_of(count: int, folder: Path) -> list[dict[str, list[Any]]]:
    """Return the columns of each step: completions, references, paths and decoded images."""
    studies = list(sample_studies(3, PROMPTS * COMPLETIONS * count))
    steps: list[dict[str, list[Any]]] = []
    for number in range(0, len(studies), COMPLETIONS):
        if number % (PROMPTS * COMPLETIONS) == 0:
            steps.append({name: [] for name in ("completions", "reference", "path", "film")})
        group = studies[number : number + COMPLETIONS]
        path = folder / f"{number}.png"
        write_png(path, render(group[0].scene))
        for study in group:
            steps[-1]["completions"].append(study.candidate)
            steps[-1]["reference"].append(group[0].reference)
            steps[-1]["path"].append(str(path))
            # A data set decodes an image again for each of its rows.
            steps[-1]["film"].append(Image.open(path).copy())
    return steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rewards = {name: ReportReward(name) for name in TEXTS}
    for column in ("path", "film"):
        reward = ReportReward("vlscore", image=column, cache=False)
        rewards[f"vlscore, images as {'paths' if column == 'path' else 'decoded images'}"] = reward
    taken: dict[str, list[float]] = {name: [] for name in rewards}
    with tempfile.TemporaryDirectory() as place:
        for step in steps_of(options.steps + 1, Path(place)):
            for name, reward in rewards.items():
                spent = time.process_time()
                found = reward(**step)
                taken[name].append(1000 * (time.process_time() - spent))
                assert None not in found
    lines = [
        "# Time of a reward for one step of GRPO",
        "",
        describe_machine(),
        "",
        f"{PROMPTS * COMPLETIONS} completions of {PROMPTS} prompts; {options.steps} steps.",
        "",
        "| reward | processor ms a step | least |",
        "|---|---:|---:|",
    ]
    for name, times in taken.items():
        lines.append(f"| {name} | {statistics.median(times[1:]):.0f} | {min(times[1:]):.0f} |")
    publish("\n".join(lines) + "\n", options.out)


if __name__ == "__main__":
    main()
