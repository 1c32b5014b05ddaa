"""Do sentence shares and maps point at what changes the score? A check by deletion on phantoms.

Protocol: phantoms of seed 20267, which no training read, held-out phrasings, the bundled encoder.

Shares (`vlscore.explain`, metric vlscore): the sentences of a candidate with errors are deleted one
after the other, down to one; the area under the curve is the mean score along the way. Orders: the
largest share first, the largest share last, and the mean of ten random orders. Intervals: 95 %,
studies resampled.

Maps (`vlscore.pages.sentence_maps`): each sentence of the true reports has a map, and its check
compares the blurring of the marked places with that of copies of the map at other places. Reported:
the mean share of copies that the map beats (chance is .5) and the share of maps that beat nine of
ten, for sentences with a positive finding and for others. Intervals: sentences by study resampled.

Cost: processor seconds of one study, beside those of scoring it.

    python benchmarks/explanations.py --out benchmarks/results/explanations.md
"""

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import machine
import numpy as np

from vlscore.data import PhantomStudy, render, sample_studies, split_sentences
from vlscore.errors import DemonstrationEncoderWarning
from vlscore.findings import extract
from vlscore.metrics import Scorer, explain_with
from vlscore.pages import sentence_maps
from vlscore.stats import Interval, bootstrap_mean

SEED, ORDERS = 20267, 10
PASSES = 0.9


def timed(run: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return what a function returns, and its processor seconds."""
    began = time.process_time()
    found = run(*arguments)
    return found, time.process_time() - began


def area(scorer: Scorer, image: Any, study: PhantomStudy, order: Sequence[int]) -> float:
    """Return the mean score while the sentences are deleted in this order, down to one."""
    sentences = split_sentences(study.candidate)
    left = [
        " ".join(s.text for k, s in enumerate(sentences) if k not in order[:count])
        for count in range(len(sentences))
    ]
    table = scorer.score([image] * len(left), left, [study.reference] * len(left))
    return float(np.mean(table.columns["vlscore"]))


def shares(scorer: Scorer, studies: Sequence[PhantomStudy]) -> tuple[list[list[float]], float]:
    """Return for each study the areas of the three orders, and the mean cost of an explanation."""
    rng = np.random.default_rng(SEED)
    rows, cost = [], []
    for study in studies:
        image = render(study.scene)
        found, seconds = timed(explain_with, scorer, image, study.candidate, study.reference)
        count = len(found.candidate)
        if count < 2 or study.errors.total == 0:
            continue
        cost.append(seconds)
        order = np.argsort([-each.share for each in found.candidate], kind="stable").tolist()
        random = [
            area(scorer, image, study, rng.permutation(count).tolist()) for _ in range(ORDERS)
        ]
        first, last = (area(scorer, image, study, o) for o in (order, order[::-1]))
        rows.append([first, float(np.mean(random)), last])
    return rows, float(np.mean(cost))


def maps(
    scorer: Scorer, studies: Sequence[PhantomStudy]
) -> tuple[dict[str, list[list[float]]], float]:
    """Return by kind of sentence the shares of copies beaten, a list a study; and the mean cost."""
    assert scorer.embedder is not None
    found: dict[str, list[list[float]]] = {"positive": [], "other": []}
    cost = []
    for study in studies:
        texts = [s.text for s in split_sentences(study.reference)]
        image = render(study.scene)
        drawn, seconds = timed(sentence_maps, scorer.embedder.encoder, image, texts)
        cost.append(seconds / len(texts))
        of: dict[str, list[float]] = {"positive": [], "other": []}
        for each in drawn[1]:
            is_positive = any(finding.is_likely for finding in extract(each.text))
            of["positive" if is_positive else "other"].append(each.beaten / each.copies)
        for name, values in of.items():
            if values:
                found[name].append(values)
    return found, float(np.mean(cost))


def shown(value: Interval) -> str:
    """Return an estimate with its interval."""
    return f"{value.estimate:.3f} [{value.low:.3f}, {value.high:.3f}]"


def main() -> None:
    """Measure, and print or write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--studies", type=int, default=30)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", DemonstrationEncoderWarning)
    scorer = Scorer(metrics="vlscore", cache=False)
    studies = list(sample_studies(SEED, arguments.studies, split="held_out"))
    rows, explained = shares(scorer, studies)
    beaten, mapped = maps(scorer, studies)
    one = studies[0]
    image = render(one.scene)
    scored = [timed(scorer.score, image, one.candidate, one.reference)[1] for _ in range(10)]
    areas = np.array(rows)
    lines = [
        "# Explanations: a check by deletion",
        "",
        machine.describe_machine(),
        "",
        f"Shares: {len(areas)} candidates with errors, sentences deleted one by one.",
        "",
        "| order | mean score along the way | against random |",
        "| --- | ---: | ---: |",
    ]
    for place, name in enumerate(("largest share first", "random", "largest share last")):
        mean = shown(bootstrap_mean(areas[:, place], seed=0))
        apart = "" if place == 1 else shown(bootstrap_mean(areas[:, place] - areas[:, 1], seed=0))
        lines.append(f"| {name} | {mean} | {apart} |")
    lines += [
        "",
        "Maps: share of moved copies that a map beats (chance: .5).",
        "",
        f"| sentences | n | beaten | maps that beat {PASSES:.0%} of the copies |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name, values in beaten.items():
        every = [value for of in values for value in of]
        mean = shown(bootstrap_mean(np.array([np.mean(of) for of in values]), seed=0))
        passing = np.mean(np.array(every) >= PASSES)
        lines.append(f"| {name} | {len(every)} | {mean} | {passing:.2f} |")
    lines += [
        "",
        f"Processor seconds: scoring a study {np.mean(scored):.4f}, explaining it by sentences "
        f"{explained:.3f}, one map with its check {mapped:.3f}.",
    ]
    machine.publish("\n".join(lines) + "\n", arguments.out)


if __name__ == "__main__":
    main()
