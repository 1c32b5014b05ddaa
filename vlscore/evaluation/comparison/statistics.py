"""Statistics of a comparison: numbers of every system, and paired tests.

All systems and differences are computed over the same studies.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.evaluation.scored import BASELINE, Scored
from vlscore.metrics import Metric, corpus_name, corpus_of_sums, percentile_column, support_of_sums
from vlscore.stats import (
    UNDEFINED,
    Interval,
    PairedSums,
    benjamini_hochberg,
    bootstrap_mean,
    mean_of_sums,
    mean_statistics,
    paired_sums,
    sums_by_group,
)

if TYPE_CHECKING:
    import pandas

Array = NDArray[np.float64]
Record = dict[str, Any]


@dataclass(frozen=True)
class Number:
    """One number of k systems for n studies.

    Attributes:
        facts: metric (name of the number, as in "findings-f1.precision" or "bleu-4 corpus"), of
            (name of the metric), title (as papers print it), primary (whether it is the one number
            of its metric that a paper prints), of_corpus, higher_is_better (None: neither is
            better).
        statistics: (k, n, s) sums; nan where a study has no value.
        corpus: metric and name of its output, for a value of the whole corpus; None for a mean.
        all_systems: whether a study counts only where every system has a value; else systems
            without any value are left out.
    """

    facts: Record
    statistics: Array
    corpus: tuple[Metric, str] | None = None
    all_systems: bool = True

    def combine(self, sums: Array) -> Array:
        """Return the (m,) numbers of (m, s) summed statistics."""
        if self.corpus is None:
            return mean_of_sums(sums)
        metric, output = self.corpus
        return corpus_of_sums(metric, sums)[output]


def facts_of(metric: Metric | str, better: bool = True) -> list[Record]:
    """Return the facts of each number of a metric, as of `Number`: those of corpus values last.

    Args:
        metric: or the name of values that were computed elsewhere, which have a mean alone.
        better: of a name, whether a larger value is better.
    """

    def facts(name: str, title: str, primary: bool, better: bool, corpus: bool = False) -> Record:
        known = {"metric": name, "of": str(metric), "title": title, "primary": primary}
        has_direction = isinstance(metric, str) or metric.has_direction
        direction = better if has_direction else None
        return {**known, "of_corpus": corpus, "higher_is_better": direction}

    if isinstance(metric, str):
        return [facts(metric, metric, True, better)]
    names = ["", *(each.name for each in metric.further)]
    means = [
        facts(column, metric.printed(name), not (name or metric.primary), metric.direction(each))
        for column, name, each in zip(metric.columns, names, metric.outputs, strict=True)
    ]
    return means + [
        facts(
            corpus_name(metric, each.name),
            metric.printed(each.name, of_corpus=True),
            each.name == metric.primary,
            metric.direction(each),
            corpus=True,
        )
        for each in metric.corpus
    ]


def numbers_of(scored: Scored, systems: int = 1) -> list[Number]:
    """Return every number of scored rows.

    Args: systems: k; the rows are those of n studies for one system after the other.
    """
    found: list[Number] = []
    for metric in scored.signatures:
        known = facts_of(metric, scored.higher_is_better[str(metric)])
        means = [facts for facts in known if not facts["of_corpus"]]
        if (ranked := percentile_column(metric)) in scored.rows:
            title = f"{metric.printed()} percentile"
            own = {"metric": ranked, "title": title, "primary": False, "higher_is_better": True}
            means.append(means[0] | own)
        for facts in means:
            values = scored.rows[facts["metric"]].to_numpy(dtype=np.float64)
            statistics = mean_statistics(values.reshape(systems, -1))
            found.append(Number(facts, statistics, all_systems=isinstance(metric, Metric)))
        of_corpus = [facts for facts in known if facts["of_corpus"]]
        if of_corpus:
            # Statistics without a value are 0, which would count as a candidate without words.
            there = np.isfinite(scored.rows[str(metric)].to_numpy(dtype=np.float64))[:, None]
            sums = np.where(there, scored.sums[str(metric)], np.nan)
            sums = sums.reshape(systems, -1, sums.shape[1])
            for facts, output in zip(of_corpus, metric.corpus, strict=True):
                found.append(Number(facts, sums, (metric, output.name)))
    return found


def numbers_and_tests(
    systems: Sequence[str],
    numbers: Sequence[Number],
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
    values: list[Record] = []
    tests: list[Record] = []
    last: tuple[Array, PairedSums] | None = None

    def sums_of(statistics: Array, there: NDArray[np.bool_]) -> PairedSums:
        """Draw studies or patients; numbers of the same statistics share their draws."""
        nonlocal last
        if last is None or last[0] is not statistics:
            known = statistics[:, there]
            if patients is not None:
                known = sums_by_group(known, [patients[int(k)] for k in np.flatnonzero(there)])
            drawn = paired_sums(known, resamples=resamples, permutations=permutations, seed=seed)
            last = statistics, drawn
        return last[1]

    mean_of = partial(bootstrap_mean, resamples=resamples, seed=seed)
    for number in numbers:
        is_mean = number.corpus is None and patients is None
        own, own_tests = _of_number(number, systems, sums_of, mean_of if is_mean else None, against)
        values += own
        tests += own_tests
    primary = {each.facts["metric"] for each in numbers if each.facts["primary"]}
    of_primary = [test for test in tests if test["metric"] in primary]
    for family, name in ((tests, "adjusted_p_all"), (of_primary, "adjusted_p")):
        for test, p in zip(family, benjamini_hochberg([t["p"] for t in family]), strict=True):
            test[name] = float(p)
    return values, tests


def _of_number(
    number: Number,
    systems: Sequence[str],
    sums_of: Callable[[Array, NDArray[np.bool_]], PairedSums],
    mean_of: Callable[[Array], Interval] | None,
    against: str | None,
) -> tuple[list[Record], list[Record]]:
    """Return the records of one number; `mean_of` is given where it is a mean over studies."""
    statistics, names = number.statistics, list(systems)
    if not number.all_systems:
        some = [k for k in range(len(names)) if np.isfinite(statistics[k]).all(-1).any()]
        statistics, names = statistics[some], [names[k] for k in some]
    there = np.asarray(np.isfinite(statistics).all(axis=(0, 2))) & bool(names)
    facts = {**number.facts, "n": int(there.sum())}
    values: dict[str, Record] = {}
    tests = []
    if there.any():
        for k, name in enumerate(names):
            support = left_out = None
            if mean_of is not None:
                value = mean_of(statistics[k, there, 0])
            else:
                sums = sums_of(statistics, there)
                if number.corpus is not None:
                    metric, output = number.corpus
                    support = support_of_sums(metric, sums.sums[0, k]).get(output)
                value = sums.value(k, number.combine).supported(support)
                left_out = sums.left_out(k, number.combine) or None
            values[name] = {"value": value, "support": support, "left_out": left_out}
        # Without a direction, a difference makes no system better.
        pairs = combinations(range(len(names)), 2)
        for a, b in pairs if facts["higher_is_better"] is not None else ():
            if not is_tested(names[a], names[b], against):
                continue
            found = sums_of(statistics, there).difference(a, b, number.combine)
            supports = [values[names[k]]["support"] for k in (a, b)]
            support = None if None in supports else min(supports)
            tests.append(
                {
                    "metric": facts["metric"],
                    "first": names[a],
                    "second": names[b],
                    "n": facts["n"],
                    "difference": found.interval.supported(support),
                    "p": found.p_value,
                    "adjusted_p": float("nan"),
                }
            )
    nothing = {"value": UNDEFINED, "support": None, "left_out": None}
    return [{**facts, "system": name, **values.get(name, nothing)} for name in systems], tests


def sign_of(number: Mapping[str, Any]) -> int:
    """Return 1 where a larger value of a number is better, -1 where a smaller one is, else 0."""
    better = number["higher_is_better"]
    return 0 if better is None else 1 if better else -1


def with_directions(numbers: "pandas.DataFrame") -> list[str]:
    """Return the name of each number, with its direction where larger values are not better."""
    behind = (" (neither direction is better)", "", " (lower is better)")
    records = numbers[["metric", "higher_is_better"]].to_dict("records")
    return [f"{each['metric']}{behind[sign_of(each)]}" for each in records]


def is_tested(first: str, second: str, against: str | None) -> bool:
    """Return whether two systems are compared by a test; two baselines never are."""
    if against is not None and against not in (first, second):
        return False
    return not (first.startswith(BASELINE) and second.startswith(BASELINE))
