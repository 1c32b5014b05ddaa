"""What the candidates of a system are like as texts, whatever a metric says of them.

The numbers of a comparison: every system, every difference, over the same studies.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from vlscore.core import Signature
from vlscore.evaluation.comparison.system_values import GivenMetric, Layout, SystemValues
from vlscore.evaluation.comparison.systems import BASELINE
from vlscore.metrics import Metric, corpus_name, corpus_of_sums
from vlscore.stats import (
    Combine,
    Interval,
    PairedSums,
    benjamini_hochberg,
    mean_of_sums,
    mean_statistics,
    paired_sums,
)

# The end of a finished sentence; quotes and brackets may close behind it.
_ENDS = re.compile(r"[.!?][\"'\u2019\u201d)\]]*$")


@dataclass(frozen=True)
class TextFacts:
    """Of the candidates of one system; shares are between 0 and 1.

    Attributes:
        count: of candidates.
        empty: how many say nothing.
        mean_words: words of a candidate, split at blanks.
        distinct: share of different candidates among all.
        verbatim: share that equals some reference of the table, or some report of the training
            table where one was given.
        unfinished: share that does not end a sentence; empty candidates are not counted.
        truncated: share of which the encoder did not read the end; None without an encoder.
    """

    count: int
    empty: int
    mean_words: float
    distinct: float
    verbatim: float
    unfinished: float
    truncated: float | None = None


def text_facts(
    candidates: Sequence[str], known: Collection[str], truncated: float | None = None
) -> TextFacts:
    """Count.

    Args:
        candidates: n texts, n at least 1.
        known: reports, as `same_words` makes them.

    >>> facts = text_facts(["Clear lungs .", "clear lungs.", "A nodule in"], {"clear lungs ."})
    >>> [round(share, 2) for share in (facts.distinct, facts.verbatim, facts.unfinished)]
    [1.0, 0.33, 0.33]
    """
    texts = [same_words(candidate) for candidate in candidates]
    count = len(texts)
    return TextFacts(
        count=count,
        empty=sum(not text for text in texts),
        mean_words=sum(len(text.split()) for text in texts) / count,
        distinct=len(set(texts)) / count,
        verbatim=sum(bool(text) and text in known for text in texts) / count,
        unfinished=sum(bool(text) and not _ENDS.search(text) for text in texts) / count,
        truncated=truncated,
    )


def same_words(report: str) -> str:
    """What is compared to find copies: lower case, one blank between words."""
    return " ".join(report.lower().split())


# Metric, whether larger is better, name of the number, statistics, what makes the number of them.
_Quantity = tuple[str, bool, str, NDArray[np.float64], Combine]
_NOTHING = Interval(float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True)
class Measured:
    """One number of every system.

    Attributes:
        name: of the column, as in "findings-f1.precision", or "bleu-4 corpus".
        metric: the metric's name.
        higher_is_better: direction.
        count: studies for which every system has a value; all numbers are over these.
        values: system -> value with its 95 % bootstrap interval.
    """

    name: str
    metric: str
    higher_is_better: bool
    count: int
    values: Mapping[str, Interval]


@dataclass(frozen=True)
class Tested:
    """The difference of two systems in one number.

    Attributes:
        name: as in `Measured`.
        first, second: systems; the difference is the first less the second.
        count: studies.
        difference: with its 95 % interval by the paired bootstrap.
        p_value: two-sided, by the paired permutation test.
        adjusted: p after Benjamini and Hochberg, over all tests of the comparison.
    """

    name: str
    first: str
    second: str
    count: int
    difference: Interval
    p_value: float
    adjusted: float


@dataclass(frozen=True)
class Comparison:
    """Everything that the tables show.

    Attributes:
        studies: how many were compared.
        measured: in the order of the metrics.
        tested: every two systems in every number; two baselines are not tested.
        texts: system -> what its candidates are like.
        failed: system -> metric -> studies without a value, where there are some.
        signatures: metric -> what its numbers depend on.
        notes: what a reader should know besides.
    """

    studies: int
    measured: tuple[Measured, ...]
    tested: tuple[Tested, ...]
    texts: Mapping[str, TextFacts]
    failed: Mapping[str, Mapping[str, int]]
    signatures: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def systems(self) -> list[str]:
        """Names, as they were given; baselines last."""
        return list(self.texts)


def compare_values(
    values: Mapping[str, SystemValues],
    texts: Mapping[str, TextFacts],
    signatures: Mapping[Metric, Signature],
    *,
    given: Sequence[GivenMetric] = (),
    notes: Sequence[str] = (),
    resamples: int = 2000,
    permutations: int = 9999,
    seed: int = 0,
) -> Comparison:
    """Compare systems from their values for the same studies.

    Args:
        values, texts: by system.
        signatures: of the metrics, in the order of the columns.
        given: metrics that were computed elsewhere. Systems without a value are left out of them.
        resamples, permutations, seed: see `vlscore.stats.paired_sums`.
    """
    names = list(values)
    layout = Layout(tuple(signatures))
    numbers = np.stack([values[name].numbers for name in names])
    measured, tested = [], []
    elsewhere = {each.name for each in given}
    for metric, is_higher, name, statistics, combine in chain(
        _quantities(numbers, layout), _given_quantities(given, names)
    ):
        whose = list(range(len(names)))
        if metric in elsewhere:
            whose = [k for k in whose if np.isfinite(statistics[k]).all(-1).any()]
            statistics = statistics[whose]
        present = np.isfinite(statistics).all(axis=(0, 2))
        count = int(present.sum())
        pairs = [
            (a, b)
            for a, b in combinations(whose, 2)
            if not names[a].startswith(BASELINE) or not names[b].startswith(BASELINE)
        ]
        found = dict.fromkeys(names, _NOTHING)
        if count:
            sums = paired_sums(
                statistics[:, present],
                resamples=resamples,
                permutations=permutations,
                seed=seed,
            )
            place = {k: row for row, k in enumerate(whose)}
            found |= {names[k]: sums.value(place[k], combine) for k in whose}
            tested += [
                _tested(sums, name, names, (a, place[a]), (b, place[b]), combine) for a, b in pairs
            ]
        measured.append(Measured(name, metric, is_higher, count, found))
    return Comparison(
        studies=numbers.shape[1],
        measured=tuple(measured),
        tested=tuple(_adjusted(tested)),
        texts=dict(texts),
        failed={name: _failed(values[name], layout) for name in names},
        signatures={
            **{str(metric): str(signature) for metric, signature in signatures.items()},
            **{each.name: each.signature for each in given},
        },
        notes=tuple(notes),
    )


def _quantities(numbers: NDArray[np.float64], layout: Layout) -> Iterator[_Quantity]:
    """Every number with its statistics, (systems, studies, sums); nan where there is no value."""
    for metric in layout.metrics:
        columns = numbers[:, :, layout.columns(metric)]
        for k, (name, output) in enumerate(zip(metric.columns, metric.outputs, strict=True)):
            column = np.where(np.isfinite(columns[:, :, k]), columns[:, :, k], np.nan)
            is_higher = output.higher_is_better
            yield str(metric), is_higher, name, mean_statistics(column), mean_of_sums
        for output in metric.corpus:
            # Statistics without a value are 0, which would count as a candidate without words.
            has_value = np.isfinite(columns[:, :, :1])
            sums = np.where(has_value, numbers[:, :, layout.statistics(metric)], np.nan)
            name = corpus_name(metric, output.name)
            combine = partial(_corpus_value, metric, output.name)
            yield str(metric), output.higher_is_better, name, sums, combine


def _given_quantities(given: Sequence[GivenMetric], names: Sequence[str]) -> Iterator[_Quantity]:
    """As `_quantities`; a baseline has no values."""
    for each in given:
        count = len(next(iter(each.values.values())))
        none = np.full(count, np.nan)
        column = np.stack([each.values.get(name, none) for name in names])
        yield each.name, each.higher_is_better, each.name, mean_statistics(column), mean_of_sums


def _corpus_value(metric: Metric, name: str, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return corpus_of_sums(metric, sums)[name]


def _tested(
    sums: PairedSums,
    name: str,
    names: Sequence[str],
    first: tuple[int, int],
    second: tuple[int, int],
    combine: Combine,
) -> Tested:
    """A test of two systems, each by its place in the names and in the sums."""
    found = sums.difference(first[1], second[1], combine)
    nan = float("nan")
    return Tested(
        name, names[first[0]], names[second[0]], sums.count, found.interval, found.p_value, nan
    )


def _adjusted(tested: Sequence[Tested]) -> list[Tested]:
    """The same with adjusted p values; a test that gave none is left out of the correction."""
    defined = [k for k, test in enumerate(tested) if np.isfinite(test.p_value)]
    adjusted = benjamini_hochberg([tested[k].p_value for k in defined])
    by_position = dict(zip(defined, adjusted.tolist(), strict=True))
    return [
        replace(test, adjusted=by_position.get(k, float("nan"))) for k, test in enumerate(tested)
    ]


def _failed(values: SystemValues, layout: Layout) -> dict[str, int]:
    counts = {
        str(metric): int((~np.isfinite(values.numbers[:, layout.columns(metric)][:, 0])).sum())
        for metric in layout.metrics
    }
    return {name: count for name, count in counts.items() if count}
