"""Failure modes of metrics: errors in the reports that a metric scores best.

Yu et al. 2023 (Patterns), "Failure modes of metrics": for every study, the report of a corpus that
a metric scores best is that metric's oracle report. Radiologists count its errors by category. A
metric whose oracle reports have many errors of a category does not detect that category. In a rated
set the oracle is the candidate: ReXVal's candidates are called by the metrics that found them.
"""

from itertools import permutations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import checked_arguments, frame
from vlscore.errors import InvalidSetting
from vlscore.evaluation.alignment.rated_pairs import (
    INSIGNIFICANT,
    SIGNIFICANT,
    TOTAL,
    RatedPairs,
    mean_of_raters,
)
from vlscore.stats import (
    Array,
    Content,
    Presentation,
    Result,
    TextTable,
    crossed,
    grouped_mean,
    interval_cells,
    one_sided_p_value,
    text_table,
    with_adjusted_p,
)

if TYPE_CHECKING:
    from pandas import DataFrame

ANY = "any category"
# False discovery rate of the paper.
RATE = 0.01
_SUMS = {"all": TOTAL, "significant": SIGNIFICANT, "insignificant": INSIGNIFICANT}
_FLAGS = {"all": (True, False, None), "significant": (True,), "insignificant": (False,)}
_MEANS = (
    "Mean errors of a report, by candidate (the metric that chose it, or the generator that wrote "
    "it): fewer are better. 95 % bootstrap intervals over studies. n: rated reports."
)
_TESTS = (
    "Reports of the first candidate have more errors than those of the other, by a one-sided "
    "paired t test over n studies, at a false discovery rate of {rate:g} (p: adjusted over {count} "
    "tests, Benjamini-Hochberg). result.json has every pair of candidates."
)


@checked_arguments
def failure_modes(
    pairs: RatedPairs,
    out: str | Path,
    *,
    rate: float = RATE,
    resamples: int = 1000,
    seed: int = 0,
    overwrite: bool = False,
) -> Result:
    """Compare the errors of the oracles of a rated set, and write tables and all numbers.

    Args:
        pairs: what `read_ratings` read; candidates are called by the metrics that chose them.
        out: folder for the results.
        rate: false discovery rate.
        resamples, seed: of the bootstrap.
        overwrite: replace earlier results.

    Returns: the frames of `compare_errors`.
    Raises: InvalidSetting, FolderInUse.
    """
    key = {
        "command": "failure-modes",
        **pairs.key,
        "rate": rate,
        "resamples": resamples,
        "seed": seed,
    }

    def compute(folder: Path) -> Content:
        frames = compare_errors(pairs, rate=rate, resamples=resamples, seed=seed)
        read_as = f"{', '.join(pairs.ratings)}: read as numbers of errors"
        return Content(
            frames,
            failures=pairs.bad,
            notes=[*pairs.notes, *([] if TOTAL in pairs.ratings else [read_as])],
            facts={"pairs": len(pairs), "raters": list(pairs.raters)},
        )

    return Result.make(out, key, compute, overwrite=overwrite)


def compare_errors(
    pairs: RatedPairs,
    *,
    rate: float = RATE,
    resamples: int = 1000,
    seed: int = 0,
) -> "dict[str, DataFrame]":
    """Compare the errors of several oracles' reports, category by category.

    Errors are the mean of the raters of a report. Sets without categories are compared by all
    errors alone.

    Args:
        pairs: error counts; `candidates` name the oracles.
        rate: false discovery rate.
        resamples, seed: of the bootstrap of the means.

    Returns:
        "means": of a candidate (the metric that chose the reports), which errors ("all",
            "significant" or "insignificant") and category: n rated reports, mean.
        "tests": of whether a candidate's reports have more errors than those of the other, on the n
            studies that both have: difference of means, p_value (one-sided, of Student's paired t
            test; nan where n is 1), adjusted_p (Benjamini-Hochberg over all tests of these errors),
            is_worse (at the false discovery rate).
    Raises: InvalidSetting for ratings that count no errors, or a rate that is no probability.
    """
    if pairs.meaning != "errors":
        raise InvalidSetting(f"failure modes need counts of errors, not {pairs.meaning}")
    if not 0 < rate < 1:
        raise InvalidSetting(f"a false discovery rate must be between 0 and 1, not {rate}")
    from pandas import Series

    oracles = list(dict.fromkeys(pairs.candidates))
    ids = [list(pairs.studies), list(pairs.candidates)]
    means, tests = [], []
    options = {"resamples": resamples, "seed": seed}
    for which, errors in _errors(pairs).items():
        # Of each category: a row a study, a column an oracle.
        tables = {
            category: Series(values, index=ids).unstack() for category, values in errors.items()
        }
        for name, (category, table) in product(oracles, tables.items()):
            if len(own := table[name].dropna()):
                mean = grouped_mean(own, own.index.tolist(), **options)
                row = {"candidate": name, "which": which, "category": category}
                means.append({**row, "n": len(own), "mean": mean})
        rows: list[dict[str, Any]] = []
        for (category, table), (name, other) in product(tables.items(), permutations(oracles, 2)):
            if len(both := table[[name, other]].dropna()):
                x, y = both.to_numpy().T
                row = {"candidate": name, "other": other, "which": which, "category": category}
                row |= {"n": len(x), "difference": float((x - y).mean())}
                rows.append({**row, "p_value": one_sided_p_value(x, y)})
        tests += [{**row, "is_worse": row["adjusted_p"] <= rate} for row in with_adjusted_p(rows)]
    return {"means": frame(means), "tests": frame(tests)}


def _errors(pairs: RatedPairs) -> dict[str, dict[str, Array]]:
    """Return which errors -> category -> (n,) mean errors of the raters; first the sum."""
    found: dict[str, dict[str, Array]] = {}
    for which, name in _SUMS.items():
        if name not in pairs.ratings:
            continue
        found[which] = {ANY: pairs.means[name]}
        for category in dict.fromkeys(category for category, _ in pairs.counts):
            own = [
                values
                for (of, significant), values in pairs.counts.items()
                if of == category and significant in _FLAGS[which]
            ]
            if own:
                found[which][category] = mean_of_raters(np.sum(own, axis=0))
    if found:
        return found
    # Columns of counts under any name; a single column counts all errors.
    means = dict(pairs.means)
    return {"all": means if len(means) > 1 else {ANY: next(iter(means.values()))}}


def _tables(run: Result) -> list[TextTable]:
    """Return a table of means for each significance, and one of the oracles that are worse."""
    tables = []
    for which, means in run.frames["means"].groupby("which", sort=False):
        rows = crossed(
            means.assign(cell=interval_cells(means, "mean")), "candidate", "category", "cell"
        )
        counts = means.groupby("candidate", sort=False)["n"].unique()
        rows.insert(1, "n", ["-".join(map(str, sorted(each))) for each in counts])
        tables.append(text_table(f"Errors of the chosen reports: {which} errors", rows, _MEANS))
        tests = run.frames["tests"]
        tests = tests[tests["which"] == which] if len(tests) else tests
        if len(tests) and len(worse := tests[tests["is_worse"]]):
            caption = _TESTS.format(rate=run.key["rate"], count=len(tests))
            shown = {"candidate": "candidate", "other": "other", "category": "category", "n": "n"}
            shown |= {"difference": "more errors", "adjusted_p": "p"}
            title = f"More errors: {which} errors"
            tables.append(text_table(title, worse, caption, columns=shown))
    return tables


PRESENTATION = Presentation(_tables)
