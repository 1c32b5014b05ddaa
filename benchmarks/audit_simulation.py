"""Claim: the shares of `vlscore audit read` recover how often a generator looks at the film.

Protocol: 200 repetitions of 100 phantom scenes. A simulated generator knows what each film shows:
the scene's findings, without the hidden one, mirrored, another scene's, or none. It looks at a
finding with the probability p, fixed for each study and finding; else it states the finding with
the frequency that it has among phantoms, on a side drawn likewise, the same for all films of a
study. So of the findings that it states the share p depends on the film, and of the one-sided ones
the share p follows the mirror. Further generators: one that draws its prior anew for each film, one
that looks and ignores sides, and one that copies the report of the most similar of 500 other
scenes, for which no share is known beforehand. Coverage: share of the repetitions whose 95 %
interval holds the true share. No picture and no report is read here: tests/evaluation/audit do.

Run: python benchmarks/audit_simulation.py [--repetitions 200]
         [--out benchmarks/results/audit_simulation.md]
"""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas
from machine import describe_machine, publish

from vlscore.data import KINDS, sample_scene
from vlscore.evaluation.audit.audit_settings import (
    BLANK,
    ELSEWHERE,
    HARMLESS,
    HIDDEN,
    MIRRORED,
    ORIGINAL,
    OTHER,
)
from vlscore.evaluation.audit.grounding import difference, effects_of, share
from vlscore.stats import Interval, TextTable

STUDIES, LIBRARY, REGIONS = 100, 500, 3
SWAPPED = {"left": "right", "right": "left"}

#: Finding -> its sides.
Shown = dict[str, frozenset[str]]
#: Number of the study, what its film shows, number of the film -> what is stated.
Generator = Callable[[int, Shown, int], Shown]


def scene_of(rng: np.random.Generator) -> Shown:
    """Return the findings of a random phantom."""
    return {each.kind: sides_of(each.side) for each in sample_scene(rng).findings}


def sides_of(side: str | None) -> frozenset[str]:
    """Return the sides of a finding of one side, of both, or of none."""
    return frozenset({"bilateral": ("left", "right"), None: ()}.get(side, (side,)))


class Looking:
    """Looks at a finding with probability p, else states it as often as phantoms have it."""

    def __init__(self, p: float, prior: Sequence[Shown], seed: int, *, anew: bool = False) -> None:
        self._p, self._prior, self._seed, self._anew = p, prior, seed, anew

    def __call__(self, study: int, film: Shown, number: int) -> Shown:
        rng = np.random.default_rng([self._seed, study])
        looks = dict(zip(KINDS, rng.random(len(KINDS)) < self._p, strict=True))
        if self._anew:
            rng = np.random.default_rng([self._seed, study, number])
        found = {}
        for kind in KINDS:
            # Of each finding another phantom, so that frequencies are kept and nothing else.
            guessed = self._prior[int(rng.integers(len(self._prior)))]
            source = film if looks[kind] else guessed
            if kind in source:
                found[kind] = source[kind]
        return found


def without_sides(seed: int, prior: Sequence[Shown]) -> Generator:
    """Looks at every finding, and writes a side by heart."""

    def state(study: int, film: Shown, number: int) -> Shown:
        rng = np.random.default_rng([seed, study])
        side = {kind: frozenset((str(rng.choice(["left", "right"])),)) for kind in KINDS}
        return {kind: side[kind] if sides else sides for kind, sides in film.items()}

    return state


def nearest(library: Sequence[Shown]) -> Generator:
    """Copies the report of the most similar other scene."""

    def state(study: int, film: Shown, number: int) -> Shown:
        return max(library, key=lambda each: (_likeness(each, film), -len(each)))

    return state


def _likeness(one: Shown, other: Shown) -> float:
    pairs = [{(kind, *sorted(sides)) for kind, sides in each.items()} for each in (one, other)]
    kinds = len(one.keys() & other.keys()) / max(len(one.keys() | other.keys()), 1)
    return kinds + len(pairs[0] & pairs[1]) / max(len(pairs[0] | pairs[1]), 1)


def audited(scenes: Sequence[Shown], state: Generator, seed: int) -> pandas.DataFrame:
    """Return what a generator states about all altered films of some scenes."""
    films = []
    for study, scene in enumerate(scenes):
        rng = np.random.default_rng([seed, study])
        first = state(study, scene, 0)
        others = [s for k, s in enumerate(scenes) if k != study and not s.keys() & first.keys()]
        shown: list[tuple[str, str | None, Shown]] = [
            (BLANK, None, {}),
            (MIRRORED, None, {k: frozenset(SWAPPED[s] for s in v) for k, v in scene.items()}),
            *((kind, None, scene) for kind in HARMLESS),
        ]
        if others:
            shown.append((OTHER, None, others[int(rng.integers(len(others)))]))
        for kind in list(first)[:REGIONS]:
            hidden = {name: sides for name, sides in scene.items() if name != kind}
            shown += [(HIDDEN, kind, hidden), (ELSEWHERE, kind, scene)]
        films.append((str(study), ORIGINAL, None, (), first))
        films += [
            (str(study), alteration, finding, (), state(study, film, number))
            for number, (alteration, finding, film) in enumerate(shown, start=1)
        ]
    names = ["study", "alteration", "finding", "sides", "stated"]
    return pandas.DataFrame(films, columns=names, dtype=object)


def shares_of(films: pandas.DataFrame) -> dict[str, Interval]:
    """Return the shares that the audit prints of all findings."""
    effects = effects_of(films)
    return {
        "grounding, region": difference([(s, a, b) for s, _, a, b in effects["region"]]),
        "grounding, film": difference([(s, a, b) for s, _, a, b in effects["film"]]),
        "side": difference([(s, a, b) for s, _, a, b in effects["side"]]),
        "findings on blank": share([(s, float(bool(found))) for s, found in effects["blank"]]),
        "steadiness": share(effects["steadiness"]),
    }


def simulated(repetitions: int) -> TextTable:
    """Return the means of all shares, and the coverage where the true share is known."""
    prior = [scene_of(np.random.default_rng([7, k])) for k in range(2000)]
    of: dict[str, tuple[Callable[[int], Generator], dict[str, float]]] = {
        f"looks with p = {p:g}": (
            lambda seed, p=p: Looking(p, prior, seed),
            {"grounding, region": p, "grounding, film": p, "side": p},
        )
        for p in (0.0, 0.25, 0.5, 0.75, 1.0)
    }
    no = {"grounding, region": 0.0, "grounding, film": 0.0, "side": 0.0}
    of["writes from the prior, anew for each film"] = (
        lambda seed: Looking(0.0, prior, seed, anew=True),
        no,
    )
    of["looks, ignores sides"] = (
        lambda seed: without_sides(seed, prior),
        {"grounding, region": 1.0, "grounding, film": 1.0, "side": 0.0},
    )
    of["copies the nearest report"] = (lambda seed: nearest(prior[:LIBRARY]), {})
    rows = []
    for name, (make, truth) in of.items():
        found: dict[str, list[Interval]] = {}
        for repetition in range(repetitions):
            scenes = [scene_of(np.random.default_rng([repetition, 1, k])) for k in range(STUDIES)]
            films = audited(scenes, make(repetition), repetition)
            for number, value in shares_of(films).items():
                found.setdefault(number, []).append(value)
        cells = [name]
        for number, values in found.items():
            mean = float(np.nanmean([value.estimate for value in values]))
            cell = f"{mean:.3f}"
            if number in truth:
                held = [v.low <= truth[number] <= v.high for v in values if not np.isnan(v.low)]
                cell += f" ({np.mean(held):.3f} of {len(held)})" if held else ""
            cells.append(cell)
        rows.append(tuple(cells))
    heads = ("generator", *found)
    return TextTable("", heads, tuple(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    table = simulated(arguments.repetitions)
    publish(
        f"# Does an audit recover how often a generator looks?\n\n{describe_machine()}\n\n"
        f"{arguments.repetitions} repetitions of {STUDIES} phantoms. Means of the estimates; in "
        "parentheses the share of repetitions whose 95 % interval holds the true share.\n\n"
        f"{table.markdown()}",
        arguments.out,
    )


if __name__ == "__main__":
    main()
