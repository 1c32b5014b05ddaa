"""Claim: intervals of means and of F1 hold the truth as often as they say, but for few or skewed
values and for rare observations; those get no interval.

Protocol. Samples are drawn from known distributions. A nominal 95 % interval is made of each, and
"coverage" is the share of samples whose interval includes the true value.

Means: `vlscore.stats.bootstrap_mean` with 1,000 resamples, of n normal and of n lognormal values
(true mean exp(1/2)).

F1 of one observation in 1,000 studies: the candidate's recall equals its precision equals the true
F1, and the expected support is spread from 1 to 25; samples are sorted by the support that they
have. Resamples are drawn as `paired_sums` draws them, in fewer steps: a resample of studies is a
multinomial draw of hits, extra and missed mentions. An interval without width counts as a miss
here; its share is in the second table, and vlscore prints none. LEAST_SUPPORT, from which on
vlscore prints intervals, is the smallest of these supports with a coverage of .85 or more at every
true F1 from .2 to .9.

Run: python benchmarks/interval_coverage.py [--out benchmarks/results/interval_coverage.md]
"""

from collections import defaultdict

import numpy as np
from machine import describe_machine, out_of, publish

from vlscore.stats import (
    LEAST_SUPPORT,
    TextTable,
    bootstrap_interval,
    bootstrap_mean,
    markdown,
    number,
)

SIZES = (10, 20, 50, 100, 273, 1500)
F1S = (0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9)
EXPECTED_SUPPORTS = (1, 2, 3, 5, 8, 12, 18, 25)
SUPPORTS = (1, 2, 3, 5, 7, 10, 15, 20)
STUDIES, SAMPLES, RESAMPLES = 1000, 3000, 1000
MEAN_SAMPLES = 1000


def main() -> None:
    rng = np.random.default_rng(0)
    tables = [of_means(rng), *of_f1(rng)]
    parts = ["# How often intervals hold the truth", describe_machine(), protocol()]
    publish("\n\n".join([*parts, markdown(tables)]), out_of(str(__doc__)))


def protocol() -> str:
    return str(__doc__).split("\n\nRun:")[0]


def of_means(rng: np.random.Generator) -> TextTable:
    kinds = {
        "normal": (lambda n: rng.standard_normal(n), 0.0),
        "lognormal": (lambda n: rng.lognormal(size=n), float(np.exp(0.5))),
    }
    rows = []
    for name, (draw, true) in kinds.items():
        cells = []
        for size in SIZES:
            found = [bootstrap_mean(draw(size), resamples=1000) for _ in range(MEAN_SAMPLES)]
            cells.append(number(float(np.mean([i.low <= true <= i.high for i in found])), 2))
        rows.append((name, *cells))
    columns = ("values", *(f"n = {size}" for size in SIZES))
    return TextTable("Coverage of the mean", columns, tuple(rows), f"{MEAN_SAMPLES} samples each.")


def of_f1(rng: np.random.Generator) -> list[TextTable]:
    covered, empty = {}, {}
    for f1 in F1S:
        held: dict[int, list[bool]] = defaultdict(list)
        width: dict[int, list[bool]] = defaultdict(list)
        for expected in EXPECTED_SUPPORTS:
            stated = expected / STUDIES
            shares = [stated * f1, stated * (1 - f1), stated * (1 - f1)]
            for _ in range(SAMPLES):
                counts = rng.multinomial(STUDIES, [*shares, 1 - sum(shares)])
                support = int(counts[0] + counts[2])
                if support not in SUPPORTS:
                    continue
                drawn = rng.multinomial(STUDIES, counts / STUDIES, size=RESAMPLES)
                found = bootstrap_interval(f1_of(np.vstack([counts, drawn])), STUDIES)
                held[support].append(bool(found.low <= f1 <= found.high))
                width[support].append(bool(np.isnan(found.low)))
        covered[f1] = [float(np.mean(held[s])) for s in SUPPORTS]
        empty[f1] = [float(np.mean(width[s])) for s in SUPPORTS]
    columns = ("true F1", *(f"support {support}" for support in SUPPORTS))
    return [
        TextTable(title, columns, tuple((str(f), *(number(v, 2) for v in each[f])) for f in F1S))
        for title, each in (
            (f"Coverage of the F1 of an observation (no interval below {LEAST_SUPPORT})", covered),
            ("Share of samples whose resamples all have the same F1", empty),
        )
    ]


def f1_of(counts: np.ndarray) -> np.ndarray:
    """Return F1 of (k, 4) hits, extra, missed and absent mentions; nan where there is none."""
    hits, extra, missed, _ = counts.T
    whole = 2 * hits + extra + missed
    return np.where(whole > 0, 2 * hits / np.maximum(whole, 1), np.nan)


if __name__ == "__main__":
    main()
