"""Claim: `vlscore compare --reference-errors` recovers the F1 that systems have against the truth.

Protocol: 500 repetitions of 600 simulated films with thirteen findings, present in .01 to .25 of
them. A reference misses each finding and states false ones at known rates. Two systems state
findings independently of the reference: one states little, the other much. How well they do is
drawn anew in each repetition, so that their F1 against the references of all films are at most .03
apart, and errors of the references often decide which is better. All enter the command's own
computation as counts of labels, with 300 resamples.

The truth: F1 (micro) over the population, computed from the rates alone, and the place at which two
systems change places: the root of the difference of their F1 as the textbook's formula (Rogan,
Gladen 1978) corrects the population's counts, found by bisection. No sampling and no code of the
package is in it.

Coverage is the share of 95 % intervals that hold the truth. Of places, an interval holds the truth
"none" where its upper end is none. "Calibration": the first system's stated probability of being
better, and how often it was. Ways to know the rates:

- exact: a rate for each finding, known without error.
- counted: one rate for all findings, counted in 300 other films whose truth is known.
- interval: the same, given as an estimate with its 95 % interval.
- truth for some: 300 of the films have a second report, which is the truth.
- two reports: all films have a second report, equally good; of the statements that only one of them
  makes, .9, .5 or .1 are true. The command does not know this share.
- wrong reports: the share of wrong reports, counted in 478 others; .5 to 1 of the errors are missed
  findings.
- shared errors: the systems repeat .3 of the errors; the command is told so, or not.

Rows with "many" have 5,000 films instead of 600.

Run: python benchmarks/reference_errors.py [--repetitions 500]
         [--out benchmarks/results/reference_errors.md]
With --generated FOLDER (--out benchmarks/results/reference_errors_real.md) it prints instead what
the command says of five real generators for 273 studies, with the rates emergency-2026.
"""

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from data import GENERATED
from machine import describe_machine, publish

from vlscore.evaluation import ComparisonSettings, compare
from vlscore.evaluation.comparison.error_rates import (
    ErrorRates,
    rates_of_findings,
    rates_of_reports,
    rates_of_second,
)
from vlscore.evaluation.comparison.reference_errors import Correction
from vlscore.findings import CHEXPERT_LABELS
from vlscore.metrics import Metric, Output, Scorer, find_metric
from vlscore.stats import Interval, Rate, TextTable, bootstrap_interval, markdown, number

FILMS, VALIDATED, RESAMPLES, REPORTS = 600, 300, 300, 478
CLOSE, MANY = 0.03, 5_000
Array = np.ndarray
LABELS = [name for name in CHEXPERT_LABELS if name != "No Finding"]
PLACES = [CHEXPERT_LABELS.index(name) for name in LABELS]
METRIC = find_metric("findings-f1")


class MicroF1(Metric):
    """The primary number of findings-f1 alone, because its others take most of the time."""

    name = "micro-f1"
    corpus = (Output("micro-13", METRIC.description),)
    primary = "micro-13"
    statistics = METRIC.statistics

    def corpus_values(self, sums: Array) -> dict[str, Array]:
        tp, fp, fn = (each[:, PLACES].sum(1) for each in np.split(sums, 3, axis=1))
        return {"micro-13": 2 * tp / (2 * tp + fp + fn)}

    def counted_labels(self) -> tuple[str, ...]:
        return CHEXPERT_LABELS


PRESENT = np.array([0.25, 0.2, 0.15, 0.12, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02, 0.02, 0.01])
VARIED = np.array([0.5, 1.5, 1.0, 0.7, 1.3, 0.5, 1.5, 1.0, 0.7, 1.3, 0.5, 1.5, 1.0])


@dataclass(frozen=True)
class World:
    """True rates of one repetition: (13,) of the reference, (2, 13) of the systems."""

    missed: Array
    invented: Array
    found: Array
    added: Array
    shared: float = 0.0

    @classmethod
    def drawn(cls, rng: np.random.Generator, missed: Array, false: Array, shared: float) -> "World":
        """Draw the systems; `false` is the share of the reference's statements.

        One that states little and one that states much, whose F1 against the references of the
        population are at most .03 apart: so errors of the references often decide.
        """
        invented = false / (1 - false) * PRESENT * (1 - missed) / (1 - PRESENT)
        while True:
            found = rng.uniform([[0.3], [0.5]], [[0.6], [0.9]]) * rng.uniform(0.8, 1.1, (2, 13))
            added = rng.uniform([[0.05], [0.3]], [[0.4], [1.2]]) * rng.uniform(0.5, 1.5, (2, 13))
            world = cls(missed, invented, found, added * PRESENT, shared)
            if abs(world.difference_at(0.0)[0]) < CLOSE:
                return world

    def films(self, rng: np.random.Generator, count: int) -> tuple[Array, Array, Array]:
        """Return truth (n, 13), references (2, n, 13) and systems (2, n, 13)."""
        truth = rng.random((count, 13)) < PRESENT
        errs = rng.random((2, count, 13)) < np.where(truth, self.missed, self.invented)
        references = truth ^ errs
        shape = (2, count, 13)
        rates = np.where(truth, self.found[:, None], self.added[:, None])
        repeats = errs[:1] & (rng.random(shape) < self.shared)
        systems = np.where(repeats, references[:1], rng.random(shape) < rates)
        return truth, references, systems

    def true_f1(self) -> Array:
        """Return the F1 (2,) of the population."""
        wrong = np.stack([self.missed, self.invented])
        found = self.found * (1 - self.shared * wrong[0])
        added = self.added * (1 - self.shared * wrong[1]) + self.shared * wrong[1]
        hits = PRESENT * found
        said = hits + (1 - PRESENT) * added
        return 2 * hits.sum(1) / (said + PRESENT).sum(1)

    def difference_at(self, scale: float) -> tuple[float, float]:
        """Return the difference of the F1 of the population, corrected for scaled rates.

        Returns: it, and the share of wrong references; nan where no such rates are possible.
        """
        seen = PRESENT * (1 - self.missed) + (1 - PRESENT) * self.invented
        hits = PRESENT * (1 - self.missed) * self.found + (1 - PRESENT) * self.invented * self.added
        said = PRESENT * self.found + (1 - PRESENT) * self.added
        false = (1 - PRESENT) * self.invented / seen
        m, q = (scale * p / (1 - p + scale * p) for p in (self.missed, false))
        there = (1 - q) * seen / (1 - m)
        e = q * seen / (1 - there)
        true = ((1 - e) * hits - e * (said - hits)) / (1 - m - e)
        if (true.sum(1) > said.sum(1)).any() or there.sum() > 13:
            return np.nan, np.nan
        f1 = 2 * true.sum(1) / (said + there).sum(1)
        return float(f1[0] - f1[1]), float(-np.expm1(-(there * m + q * seen).sum()))

    def place(self) -> float:
        """Return the share of wrong references at which the systems change places; inf for none."""
        false = self.invented * (1 - PRESENT)
        false = false / (PRESENT * (1 - self.missed) + false)
        # As far as the command searches: up to rates of .9.
        grid = np.linspace(0, 1, 100) ** 2 * 9
        grid /= max((each / (1 - each)).max() for each in (self.missed, false))
        start = np.sign(self.difference_at(0.0)[0])
        for low, high in pairwise(grid):
            if np.isnan(self.difference_at(high)[0]):
                return np.inf
            if np.sign(self.difference_at(high)[0]) != start:
                for _ in range(50):
                    middle = (low + high) / 2
                    is_before = np.sign(self.difference_at(middle)[0]) == start
                    low, high = (middle, high) if is_before else (low, middle)
                return self.difference_at(high)[1]
        return np.inf


def counted(stated: Array, systems: Array) -> Array:
    """Return (k, n, 3 x 14) true positives, false positives and misses against (n, 13) labels."""
    parts = (systems & stated, systems & ~stated, ~systems & stated)
    sums = np.zeros((*systems.shape[:2], 3, len(CHEXPERT_LABELS)))
    for k, part in enumerate(parts):
        sums[:, :, k, PLACES] = part
    return sums.reshape(*systems.shape[:2], -1)


Know = Callable[[World, np.random.Generator, tuple[Array, Array, Array]], ErrorRates]


def exact(world: World, rng: np.random.Generator, films: tuple[Array, Array, Array]) -> ErrorRates:
    rates = {
        name.lower(): {"missed": Rate(world.missed[k]), "invented": Rate(world.invented[k])}
        for k, name in enumerate(LABELS)
    }
    return rates_of_findings(rates, CHEXPERT_LABELS, "exact")


def validated(world: World, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """Return errors and cases of missed findings and of false statements in other films."""
    truth, (reference, _), _ = world.films(rng, VALIDATED)
    missed = [int((truth & ~reference).sum()), int(truth.sum())]
    return missed, [int((reference & ~truth).sum()), int(reference.sum())]


def by_counts(world: World, rng: np.random.Generator, films: tuple[Array, ...]) -> ErrorRates:
    missed, false = (Rate.counted(*each) for each in validated(world, rng))
    rates = {"default": {"missed": missed, "false_discovery": false}}
    return rates_of_findings(rates, CHEXPERT_LABELS, "counted")


def by_interval(world: World, rng: np.random.Generator, films: tuple[Array, ...]) -> ErrorRates:
    rates = []
    for errors, of in validated(world, rng):
        # Wilson's interval, as a paper would print it.
        p, z = errors / of, 1.96
        middle, half = p + z * z / 2 / of, z * np.sqrt(p * (1 - p) / of + z * z / 4 / of**2)
        ends = ((middle + sign * half) / (1 + z * z / of) for sign in (-1, 1))
        rates.append(Rate.within(p, *ends))
    named = {"default": {"missed": rates[0], "false_discovery": rates[1]}}
    return rates_of_findings(named, CHEXPERT_LABELS, "interval")


def by_truth(world: World, rng: np.random.Generator, films: tuple[Array, ...]) -> ErrorRates:
    truth, references, _ = films
    return of_second(references[0][:VALIDATED], truth[:VALIDATED], is_truth=True)


def by_peer(world: World, rng: np.random.Generator, films: tuple[Array, ...]) -> ErrorRates:
    return of_second(*films[1], is_truth=False)


def of_second(first: Array, second: Array, *, is_truth: bool) -> ErrorRates:
    sums = counted(first, second[None])[0].sum(0).reshape(3, -1)
    return rates_of_second(sums, CHEXPERT_LABELS, len(first), is_truth=is_truth, source="second")


def by_reports(world: World, rng: np.random.Generator, films: tuple[Array, ...]) -> ErrorRates:
    truth, (reference, _), _ = world.films(rng, REPORTS)
    wrong = int((truth != reference).any(1).sum())
    rate = Rate.counted(wrong, REPORTS)
    return rates_of_reports(rate, (0.5, 1), CHEXPERT_LABELS, "reports")


#: Name -> how rates are known, missed, false, shared errors of the systems, and those told.
WAYS: dict[str, tuple[Know, Array, Array, float, float]] = {
    "exact": (exact, 0.15 * VARIED, 0.08 * VARIED, 0.0, 0.0),
    "counted": (by_counts, 0.15 + 0 * VARIED, 0.08 + 0 * VARIED, 0.0, 0.0),
    "interval": (by_interval, 0.15 + 0 * VARIED, 0.08 + 0 * VARIED, 0.0, 0.0),
    "truth for some": (by_truth, 0.15 * VARIED, 0.08 * VARIED, 0.0, 0.0),
    "two reports, .9": (by_peer, 0.15 + 0 * VARIED, 0.02 + 0 * VARIED, 0.0, 0.0),
    "two reports, .5": (by_peer, 0.11 + 0 * VARIED, 0.1 + 0 * VARIED, 0.0, 0.0),
    "two reports, .1": (by_peer, 0.02 + 0 * VARIED, 0.15 + 0 * VARIED, 0.0, 0.0),
    "wrong reports": (by_reports, 0.15 + 0 * VARIED, 0.06 + 0 * VARIED, 0.0, 0.0),
    "exact, many": (exact, 0.15 * VARIED, 0.08 * VARIED, 0.0, 0.0),
    "counted, many": (by_counts, 0.15 + 0 * VARIED, 0.08 + 0 * VARIED, 0.0, 0.0),
    "shared errors, told": (exact, 0.15 * VARIED, 0.08 * VARIED, 0.3, 0.3),
    "shared errors, not told": (exact, 0.15 * VARIED, 0.08 * VARIED, 0.3, 0.0),
}


def holds(interval: Interval, truth: float) -> bool:
    return bool(interval.low <= truth <= interval.high)


def holds_place(row: dict[str, Any], truth: float) -> bool:
    """Return whether an interval of places, whose ends may be none (nan), holds the truth."""
    place = row["place"]
    low, high = (np.inf if np.isnan(each) else each for each in (place.low, place.high))
    return bool(low <= truth <= high)


@dataclass
class Found:
    """What one way yields over all repetitions."""

    scored: list[bool]
    f1: list[bool]
    difference: list[bool]
    width: list[float]
    bias: list[float]
    places: list[bool]
    finite: list[bool]
    narrow: list[bool]
    stated: list[float]
    is_better: list[bool]
    refused: int = 0


def repeated(name: str, repetitions: int) -> Found:
    know, missed, false, shared, told = WAYS[name]
    found = Found(*([] for _ in range(10)))
    for repetition in range(repetitions):
        rng = np.random.default_rng([repetition, list(WAYS).index(name)])
        world = World.drawn(rng, missed, false, shared)
        films = world.films(rng, MANY if "many" in name else FILMS)
        sums = counted(films[1][0], films[2])
        truth, place = world.true_f1(), replace(world, shared=0.0).place()
        settings = ComparisonSettings(
            reference_errors="simulated", shared_errors=told, resamples=RESAMPLES, seed=repetition
        )
        one = Correction(MicroF1(), ("a", "b"), sums, know(world, rng, films), settings)
        if "micro-13" not in one.values:
            found.refused += 1
            continue
        values, (pair,) = [row["corrected"] for row in one.numbers], one.pairs
        scored = one.scored["micro-13"].T
        scored = [bootstrap_interval(each, FILMS) for each in scored]
        found.scored += map(holds, scored, truth)
        found.f1 += map(holds, values, truth)
        found.bias += [each.estimate - true for each, true in zip(values, truth, strict=True)]
        found.width += [each.high - each.low for each in values]
        found.difference.append(holds(pair["corrected"], truth[0] - truth[1]))
        if not shared:
            found.places.append(holds_place(pair, place))
            found.finite.append(bool(np.isfinite(place)))
            # Not from 0 to none.
            shown = pair["place"]
            found.narrow.append(bool(not shown.low <= 0 or not np.isnan(shown.high)))
        found.stated.append(pair["first_better"])
        found.is_better.append(bool(truth[0] > truth[1]))
    return found


def of_some(values: list[bool], there: list[bool]) -> str:
    """Return the mean of some values, and their number."""
    some = [value for value, is_there in zip(values, there, strict=True) if is_there]
    return f"{np.mean(some):.3f} of {len(some)}" if some else "-"


def tables_of(repetitions: int) -> list[TextTable]:
    found = {name: repeated(name, repetitions) for name in WAYS}
    rows = [
        (
            name,
            number(float(np.mean(each.scored))),
            number(float(np.mean(each.f1))),
            number(float(np.mean(each.difference))),
            number(float(np.mean(each.bias))),
            number(float(np.mean(each.width))),
            number(float(np.mean(each.places))) if each.places else "-",
            of_some(each.places, each.finite),
            of_some(each.places, each.narrow),
            str(each.refused),
        )
        for name, each in found.items()
    ]
    columns = (
        "rates", "as scored", "corrected", "difference", "mean error", "mean width", "places",
        "where there is one", "where the interval is not all", "refused",
    )  # fmt: skip
    bins = (0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0001)
    calibration = []
    for name, each in found.items():
        stated, better = np.array(each.stated), np.array(each.is_better)
        cells = []
        for low, high in pairwise(bins):
            here = (stated >= low) & (stated < high)
            cells.append(f"{better[here].mean():.2f} of {here.sum()}" if here.any() else "-")
        calibration.append((name, *cells))
    heads = [f"{low:g} to {min(high, 1):g}" for low, high in pairwise(bins)]
    return [
        TextTable("Coverage of nominal 95 % intervals", columns, tuple(rows)),
        TextTable(
            "How often the first system is better, by its stated probability",
            ("rates", *heads),
            tuple(calibration),
        ),
    ]


def of_real(folder: Path) -> str:
    """Return the tables of real generators with published rates."""
    paths = {name: folder / f"{name}.jsonl" for name in GENERATED}
    sources = [GENERATED[name].check(path) for name, path in paths.items()]
    with tempfile.TemporaryDirectory() as out:
        settings = ComparisonSettings(reference_errors="emergency-2026")
        scorer = Scorer(metrics=METRIC)
        found = compare(list(map(str, paths.values())), Path(out) / "out", scorer, settings)
        tables = [each for each in found.tables if "errors of the references" in each.title]
        said = [f"- {note}" for note in found.notes]
    parts = ["# Real generators, without errors of the references", describe_machine()]
    return "\n\n".join([*parts, *sources, markdown(tables), "\n".join(said), ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--generated", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    if arguments.generated is not None:
        publish(of_real(arguments.generated), arguments.out)
        return
    parts = ["# Are rankings right when the references are wrong?", describe_machine()]
    parts.append(str(__doc__).split("\n\nRun:")[0])
    parts.append(markdown(tables_of(arguments.repetitions)))
    publish("\n\n".join(parts), arguments.out)


if __name__ == "__main__":
    main()
