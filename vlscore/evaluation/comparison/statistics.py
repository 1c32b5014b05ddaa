"""Statistics of a comparison: numbers of every system, paired tests, facts about the texts.

All systems and differences are computed over the same studies.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.evaluation.baselines.baseline_base import BASELINE
from vlscore.metrics import Metric, corpus_name, corpus_of_sums, support_of_sums
from vlscore.stats import (
    Combine,
    Interval,
    PairedSums,
    adjusted_p_values,
    bootstrap_mean,
    mean_of_sums,
    mean_statistics,
    paired_sums,
    sums_by_group,
)

# The end of a finished sentence; quotes and brackets may close behind it.
_ENDS = re.compile(r"[.!?][\"'\u2019\u201d)\]]*$")
_NOTHING = Interval(float("nan"), float("nan"), float("nan"))

Array = NDArray[np.float64]
Record = dict[str, Any]


@dataclass(frozen=True)
class Quantity:
    """One number of k systems for n studies.

    Attributes:
        name: of the number, as in "findings-f1.precision" or "bleu-4 corpus".
        of: name of the metric.
        higher_is_better: direction.
        statistics: (k, n, s) sums; nan where a study has no value.
        title: name of the number as papers print it.
        primary: whether it is the one number of its metric that a paper prints.
        corpus: metric and name of its output, for a value of the whole corpus; None for a mean.
        all_systems: whether a study counts only where every system has a value; else systems
            without any value are left out.
    """

    name: str
    of: str
    higher_is_better: bool
    statistics: Array
    title: str
    primary: bool = True
    corpus: tuple[Metric, str] | None = None
    all_systems: bool = True

    @property
    def combine(self) -> Combine:
        """Return the function that makes the number of summed statistics."""
        return mean_of_sums if self.corpus is None else partial(_corpus_value, *self.corpus)


def quantities_of(
    metric: Metric, columns: Mapping[str, Array], sums: Array | None
) -> Iterator[Quantity]:
    """Yield every number of a metric.

    Args:
        columns: name -> (k, n) values, nan where there is none.
        sums: (k, n, s) of the metric's corpus values.
    """
    for k, (name, output) in enumerate(zip(metric.columns, metric.outputs, strict=True)):
        yield Quantity(
            name,
            str(metric),
            output.higher_is_better,
            mean_statistics(columns[name]),
            metric.printed(output.name if k else ""),
            k == 0 and not metric.primary,
        )
    for output in metric.corpus:
        assert sums is not None
        # Statistics without a value are 0, which would count as a candidate without words.
        there = np.isfinite(columns[str(metric)])[:, :, None]
        yield Quantity(
            corpus_name(metric, output.name),
            str(metric),
            output.higher_is_better,
            np.where(there, sums, np.nan),
            metric.printed(output.name, of_corpus=True),
            output.name == metric.primary,
            (metric, output.name),
        )


def compared(
    systems: Sequence[str],
    quantities: Sequence[Quantity],
    *,
    resamples: int = 2000,
    permutations: int = 9999,
    seed: int = 0,
    patients: Sequence[str] | None = None,
    against: str | None = None,
) -> tuple[list[Record], list[Record]]:
    """Compare systems by their values for the same studies.

    Args:
        systems: k names.
        resamples, permutations, seed: see `vlscore.stats.paired_sums`.
        patients: whose each study is; whole patients are then resampled and permuted. None: every
            study counts for itself.
        against: the system that is tested against each other one; None: every two are tested.

    Returns: one record a number and system, and one a number and pair of systems. p values are
        adjusted over the primary numbers' tests (adjusted_p) and over all (adjusted_p_all).
    """
    measured: list[Record] = []
    tested: list[Record] = []
    for quantity in quantities:
        found, tests = _of_quantity(
            quantity, systems, resamples, permutations, seed, patients, against
        )
        measured += found
        tested += tests
    primary = {quantity.name for quantity in quantities if quantity.primary}
    of_primary = [test for test in tested if test["metric"] in primary]
    for family, name in ((tested, "adjusted_p_all"), (of_primary, "adjusted_p")):
        for test, p in zip(family, adjusted_p_values([t["p"] for t in family]), strict=True):
            test[name] = float(p)
    return measured, tested


def _of_quantity(
    quantity: Quantity,
    systems: Sequence[str],
    resamples: int,
    permutations: int,
    seed: int,
    patients: Sequence[str] | None,
    against: str | None,
) -> tuple[list[Record], list[Record]]:
    statistics, names = quantity.statistics, list(systems)
    if not quantity.all_systems:
        some = [k for k in range(len(names)) if np.isfinite(statistics[k]).all(-1).any()]
        statistics, names = statistics[some], [names[k] for k in some]
    there = np.isfinite(statistics).all(axis=(0, 2)) if names else np.zeros(1, dtype=bool)
    count = int(there.sum())
    values: dict[str, Record] = {}
    tests = []
    if count:
        counted = statistics[:, there]
        if patients is not None:
            counted = sums_by_group(counted, [patients[int(k)] for k in np.flatnonzero(there)])
        sums = paired_sums(counted, resamples=resamples, permutations=permutations, seed=seed)
        for k, name in enumerate(names):
            support = _support(quantity, sums, k)
            values[name] = {
                "value": sums.value(k, quantity.combine).supported(support),
                "support": support,
                "left_out": sums.left_out(k, quantity.combine) or None,
            }
            if quantity.corpus is None and patients is None:
                # The interval that `vlscore evaluate` prints.
                column = counted[k, :, 0]
                values[name]["value"] = bootstrap_mean(column, resamples=resamples, seed=seed)
        for a, b in combinations(range(len(names)), 2):
            if _is_tested(names[a], names[b], against):
                found = sums.difference(a, b, quantity.combine)
                supports = [values[names[k]]["support"] for k in (a, b)]
                tests.append(
                    {
                        "metric": quantity.name,
                        "first": names[a],
                        "second": names[b],
                        "n": count,
                        "difference": found.interval.supported(
                            None if None in supports else min(supports)
                        ),
                        "p": found.p_value,
                        "adjusted_p": float("nan"),
                    }
                )
    facts = {
        "metric": quantity.name,
        "of": quantity.of,
        "title": quantity.title,
        "primary": quantity.primary,
        "of_corpus": quantity.corpus is not None,
        "higher_is_better": quantity.higher_is_better,
        "n": count,
    }
    nothing = {"value": _NOTHING, "support": None, "left_out": None}
    measured = [{**facts, "system": name, **values.get(name, nothing)} for name in systems]
    return measured, tests


def _support(quantity: Quantity, sums: PairedSums, system: int) -> int | None:
    if quantity.corpus is None:
        return None
    metric, output = quantity.corpus
    return support_of_sums(metric, sums.totals[system]).get(output)


def _corpus_value(metric: Metric, output: str, sums: Array) -> Array:
    return corpus_of_sums(metric, sums)[output]


def _is_tested(first: str, second: str, against: str | None) -> bool:
    """Return whether two systems are compared by a test; two baselines never are."""
    if against is not None and against not in (first, second):
        return False
    return not (first.startswith(BASELINE) and second.startswith(BASELINE))


def text_facts(candidates: Sequence[str], known: Collection[str]) -> Record:
    """Count facts about candidates as texts; shares are between 0 and 1.

    Args:
        candidates: n texts, n at least 1.
        known: reports, as `same_words` makes them, of which copies are counted.

    >>> facts = text_facts(["Clear lungs .", "clear lungs.", "A nodule in"], {"clear lungs ."})
    >>> [round(facts[share], 2) for share in ("distinct", "verbatim", "unfinished")]
    [1.0, 0.33, 0.33]
    """
    texts = [same_words(candidate) for candidate in candidates]
    count = len(texts)
    return {
        "mean_words": sum(len(text.split()) for text in texts) / count,
        "distinct": len(set(texts)) / count,
        "verbatim": sum(bool(text) and text in known for text in texts) / count,
        "unfinished": sum(bool(text) and not _ENDS.search(text) for text in texts) / count,
        "empty": sum(not text for text in texts),
        "n": count,
    }


def same_words(report: str) -> str:
    """Return the text that is compared to find copies: lower case, one blank between words."""
    return " ".join(report.lower().split())
