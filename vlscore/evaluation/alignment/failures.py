"""Failure modes of metrics: errors in the reports that a metric scores best.

Yu et al. 2023 (Patterns), "Failure modes of metrics": for every study, the report of a corpus that
a metric scores best is that metric's oracle report. Radiologists count its errors by category. A
metric whose oracle reports have many errors of a category does not detect that category. In a rated
set the oracle is the candidate: ReXVal's candidates are called by the metrics that found them.

`failure_modes` writes those of a rated set into a folder of results.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any, Literal

import numpy as np

from vlscore.core import (
    ResumableFolder,
    file_digest,
    plain,
    run_record,
    with_former_calls,
    write_json,
)
from vlscore.errors import InvalidSetting
from vlscore.evaluation.alignment.rated_pairs import (
    INSIGNIFICANT,
    SIGNIFICANT,
    TOTAL,
    Array,
    RatedPairs,
    mean_of_raters,
)
from vlscore.evaluation.alignment.tables import write_csv
from vlscore.stats import (
    Interval,
    Run,
    TextTable,
    adjusted_p_values,
    grouped_mean,
    interval,
    one_sided_t_test,
    p_value,
    write_tables,
)

Which = Literal["all", "significant", "insignificant"]
ANY = "any category"
# False discovery rate of the paper.
RATE = 0.01


@dataclass(frozen=True)
class CategoryMean:
    """Mean errors of one category in the reports of one oracle, resampled by study.

    Attributes:
        candidate: the oracle: the metric that chose the reports.
        which: "all", "significant" or "insignificant" errors.
        category: of the errors; "any category" for their sum.
        n: reports that were rated.
    """

    candidate: str
    which: Which
    category: str
    n: int
    mean: Interval


@dataclass(frozen=True)
class FailureTest:
    """Test whether one oracle's reports have more errors of a category than those of another.

    Attributes:
        candidate, other: the oracles, compared on the n studies that both have a report of.
        difference: mean errors of the first less those of the other.
        p_value: one-sided, of Student's paired t test over studies; nan where n is 1.
        adjusted_p: Benjamini-Hochberg over all tests of errors of this significance.
        is_worse: whether the first is worse at the requested false discovery rate.
    """

    candidate: str
    other: str
    which: Which
    category: str
    n: int
    difference: float
    p_value: float
    adjusted_p: float
    is_worse: bool


@dataclass(frozen=True)
class FailureModes:
    """Errors in the reports that the oracles of some metrics choose.

    Attributes:
        candidates: the oracles, in the order of the set.
        means: one an oracle, significance and category.
        tests: one an ordered pair of oracles, significance and category.
        rate: false discovery rate of `is_worse`.
    """

    candidates: Sequence[str]
    means: Sequence[CategoryMean]
    tests: Sequence[FailureTest]
    rate: float


def failure_modes_of(
    pairs: RatedPairs,
    *,
    rate: float = RATE,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> FailureModes:
    """Compare the errors of several oracles' reports, category by category.

    Errors are the mean of the raters of a report. Sets without categories are compared by all
    errors alone.

    Args:
        pairs: error counts; `candidates` name the oracles.
        rate: false discovery rate.
        level, resamples, seed: of the bootstrap of the means.

    Raises: InvalidSetting for ratings that count no errors, or a rate that is no probability.
    """
    if pairs.meaning != "errors":
        raise InvalidSetting(f"failure modes are of error counts, not of {pairs.meaning}")
    if not 0 < rate < 1:
        raise InvalidSetting(f"a false discovery rate lies between 0 and 1, not at {rate}")
    candidates = list(dict.fromkeys(pairs.candidates))
    means: list[CategoryMean] = []
    tests: list[FailureTest] = []
    for which, errors in _errors(pairs).items():
        by_candidate = {
            name: {category: _of(pairs, values, name) for category, values in errors.items()}
            for name in candidates
        }
        for name, found in by_candidate.items():
            for category, rated in found.items():
                if rated:
                    interval = grouped_mean(
                        list(rated.values()),
                        list(rated),
                        level=level,
                        resamples=resamples,
                        seed=seed,
                    )
                    means.append(CategoryMean(name, which, category, len(rated), interval))
        tests += _tests(which, list(errors), by_candidate, rate)
    return FailureModes(candidates, means, tests, rate)


def _errors(pairs: RatedPairs) -> dict[Which, dict[str, Array]]:
    """Return significance -> category -> (n,) mean errors of the raters; first the sum."""
    sums: dict[Which, str] = {
        "all": TOTAL,
        "significant": SIGNIFICANT,
        "insignificant": INSIGNIFICANT,
    }
    flags: dict[Which, set[bool | None]] = {
        "all": {True, False, None},
        "significant": {True},
        "insignificant": {False},
    }
    known = {which: name for which, name in sums.items() if name in pairs.ratings}
    if not known:
        # Columns of counts under any name; a single column counts all errors.
        means = dict(pairs.means)
        return {"all": means if len(means) > 1 else {ANY: next(iter(means.values()))}}
    found: dict[Which, dict[str, Array]] = {}
    for which, name in known.items():
        found[which] = {ANY: pairs.means[name]}
        for category in dict.fromkeys(category for category, _ in pairs.counts):
            of = [
                v
                for (of_category, significant), v in pairs.counts.items()
                if of_category == category and significant in flags[which]
            ]
            if of:
                found[which][category] = mean_of_raters(np.sum(of, axis=0))
    return found


def _of(pairs: RatedPairs, values: Array, candidate: str) -> dict[str, float]:
    """Return study -> errors of one oracle's report, for studies with a rated report."""
    return {
        study: float(value)
        for study, name, value in zip(pairs.studies, pairs.candidates, values, strict=True)
        if name == candidate and not np.isnan(value)
    }


def _tests(
    which: Which,
    categories: Sequence[str],
    found: dict[str, dict[str, dict[str, float]]],
    rate: float,
) -> list[FailureTest]:
    rows = []
    for category in categories:
        for name, other in permutations(found, 2):
            mine, theirs = found[name][category], found[other][category]
            shared = [study for study in mine if study in theirs]
            if shared:
                x = np.array([mine[study] for study in shared])
                y = np.array([theirs[study] for study in shared])
                p_value = one_sided_t_test(x, y).p_value
                rows.append((name, other, category, len(shared), float((x - y).mean()), p_value))
    adjusted = adjusted_p_values([row[-1] for row in rows])
    return [
        FailureTest(name, other, which, category, n, difference, p_value, float(p), bool(p <= rate))
        for (name, other, category, n, difference, p_value), p in zip(rows, adjusted, strict=True)
    ]


_MEANS = (
    "Mean errors of a report, by the metric that chose it: fewer are better. 95 % bootstrap "
    "intervals over studies. n: rated reports."
)
_TESTS = (
    "Reports of the first metric have more errors than those of the other, by a one-sided paired t "
    "test over n studies, at a false discovery rate of {rate:g} (p: adjusted over {count} tests, "
    "Benjamini-Hochberg). tests.csv has every pair of metrics."
)


@dataclass(frozen=True)
class FailureRun(Run):
    """Failure modes and their files; docs/alignment.md describes them.

    A row of `to_pandas` is a metric that chose, a significance and a category: mean errors, n.

    Attributes:
        result: the numbers; None where the run had ended before.
    """

    content_file = "failure_modes.json"
    results = (content_file, "means.csv", "tests.csv", "tables.md", "tables.tex")
    rows = "means"

    result: FailureModes | None = None


def _has_no_folder(*args: Any, **keywords: Any) -> bool:
    """Return whether a call names no folder, as one of `failure_modes_of`."""
    return len(args) < 2 and "out" not in keywords


@with_former_calls(_has_no_folder, failure_modes_of)
def failure_modes(
    pairs: RatedPairs,
    out: str | Path,
    *,
    rate: float = RATE,
    resamples: int = 1000,
    seed: int = 0,
    overwrite: bool = False,
) -> FailureRun:
    """Compare the errors of the oracles of a rated set, and write tables and all numbers.

    Args:
        pairs: what `read_ratings` read; candidates are called by the metrics that chose them.
        out: folder for the results.
        rate: false discovery rate.
        resamples, seed: of the bootstrap.
        overwrite: replace earlier results.

    Raises: InvalidSetting, FolderInUse.
    """
    began = time.monotonic()
    key = {
        "files": {file.name: file_digest(file) for file in pairs.files},
        "pairs_sha256": pairs.sha256,
        "rate": rate,
        "resamples": resamples,
        "seed": seed,
    }

    def compute(folder: ResumableFolder) -> dict[str, Any]:
        result = failure_modes_of(pairs, rate=rate, resamples=resamples, seed=seed)
        tables = failure_tables(result)
        content = {
            "pairs": len(pairs),
            "studies": len(set(pairs.studies)),
            "raters": pairs.raters,
            "candidates": result.candidates,
            "rate": rate,
            "means": result.means,
            "tests": result.tests,
            "tables": tables,
            "failures": pairs.bad,
        }

        def write(place: Path) -> dict[str, Any]:
            write_json(place / FailureRun.content_file, plain(content))
            write_csv(place / "means.csv", result.means)
            write_csv(place / "tests.csv", result.tests)
            write_tables(place, tables)
            return run_record(
                files=[str(file.resolve()) for file in pairs.files],
                notes=[*pairs.notes, *_read_as_errors(pairs)],
                seconds=round(time.monotonic() - began, 3),
            )

        folder.finish(write, rows=0)
        return {"result": result}

    return FailureRun.make(out, key, compute, overwrite=overwrite)


def _read_as_errors(pairs: RatedPairs) -> list[str]:
    """Return a note where nothing in the set tells that its numbers are counts."""
    if TOTAL in pairs.ratings:
        return []
    return [f"{', '.join(pairs.ratings)}: read as numbers of errors, of which more is worse"]


def failure_tables(found: FailureModes) -> list[TextTable]:
    """Return a table of means for each significance, and one of the oracles that are worse."""
    tables = []
    for which in dict.fromkeys(each.which for each in found.means):
        means = [each for each in found.means if each.which == which]
        tables.append(_means(which, found.candidates, means))
        tests = [each for each in found.tests if each.which == which]
        rows = [
            {
                "metric": each.candidate,
                "other": each.other,
                "category": each.category,
                "n": str(each.n),
                "more errors": f"{each.difference:+.3f}",
                "p": p_value(each.adjusted_p),
            }
            for each in tests
            if each.is_worse
        ]
        if rows:
            caption = _TESTS.format(rate=found.rate, count=len(tests))
            tables.append(TextTable.of(f"More errors: {_named(which)}", rows, caption))
    return tables


def _means(which: str, candidates: Sequence[str], means: Sequence[CategoryMean]) -> TextTable:
    known = {(each.candidate, each.category): each for each in means}
    categories = list(dict.fromkeys(each.category for each in means))
    rows = []
    for name in candidates:
        cells = [known.get((name, category)) for category in categories]
        counts = sorted({each.n for each in cells if each is not None})
        shown = "-".join(map(str, counts)) if counts else "0"
        rows.append((name, shown, *(interval(None if c is None else c.mean) for c in cells)))
    columns = ("metric", "n", *categories)
    return TextTable(f"Errors of the chosen reports: {_named(which)}", columns, tuple(rows), _MEANS)


def _named(which: str) -> str:
    return f"{which} errors"
