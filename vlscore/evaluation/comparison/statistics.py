"""Statistics of a comparison: facts about the texts, numbers of every system, and tests.

All systems and differences are computed over the same studies.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnProgress, Signature, no_progress
from vlscore.errors import InvalidSetting
from vlscore.evaluation.baselines.baseline_base import BASELINE
from vlscore.evaluation.comparison.system_values import MetricElsewhere, NumberLayout, SystemValues
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


@dataclass(frozen=True)
class TextFacts:
    """Facts about the candidates of one system as texts; shares are between 0 and 1.

    Attributes:
        count: of candidates.
        empty: number of empty candidates.
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
    """Count facts about candidates as texts.

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


def same_text_notes(facts: Mapping[str, TextFacts]) -> list[str]:
    """Return a sentence for each system that writes the same report for all studies.

    Baselines are left out: to be so is what they are for.

    >>> one = text_facts(["Clear lungs."] * 3, set())
    >>> same_text_notes({"ours": one, "baseline:constant": one})
    ['ours has one and the same report for all 3 studies, whatever they show']
    """
    return [
        f"{name} has one and the same report for all {each.count} studies, whatever they show"
        for name, each in facts.items()
        if each.count > 1 and round(each.distinct * each.count) == 1
        if not name.startswith(BASELINE)
    ]


def same_words(report: str) -> str:
    """Return the text that is compared to find copies: lower case, one blank between words."""
    return " ".join(report.lower().split())


# A difference is shown where p is below it, or the 95 % interval excludes 0.
_LEVEL = 0.05
_NOTHING = Interval(float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True)
class _Quantity:
    """One number of every system, before it is computed.

    Attributes:
        metric: the metric's name.
        higher_is_better: direction.
        name: of the number.
        statistics: (systems, studies, sums); nan where a study has no value.
        combine: what makes the number of summed statistics; `mean_of_sums` of means.
        of_corpus: the metric, where the number is a value of the whole corpus; else None.
        title: name of the number as papers print it; empty: `name`.
        is_headline: whether it is the headline of its metric.
    """

    metric: str
    higher_is_better: bool
    name: str
    statistics: NDArray[np.float64]
    combine: Combine = mean_of_sums
    of_corpus: Metric | None = None
    title: str = ""
    is_headline: bool = True


@dataclass(frozen=True)
class Measured:
    """One number of every system.

    Attributes:
        name: of the column, as in "findings-f1.precision", or "bleu-4 corpus".
        metric: the metric's name.
        higher_is_better: direction.
        count: studies for which every system has a value; all numbers are over these.
        values: system -> value with its 95 % bootstrap interval; nan where it is not defined, as
            the F1 of an observation that no report mentions.
        support: system -> how many times the references state what the value is made of; empty
            where the value is no F1 of the whole corpus.
        left_out: system -> share of the resamples in which the value is not defined, and which
            its interval leaves out; where that is not 0.
        title: name of the number as papers print it.
        is_headline: whether it is the headline of its metric (`Metric.headline`).
        of_corpus: whether it is a value of the whole corpus.
    """

    name: str
    metric: str
    higher_is_better: bool
    count: int
    values: Mapping[str, Interval]
    support: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, float] = field(default_factory=dict)
    title: str = ""
    is_headline: bool = True
    of_corpus: bool = False


@dataclass(frozen=True)
class Tested:
    """The difference of two systems in one number.

    Attributes:
        name: as in `Measured`.
        first, second: systems; the difference is the first less the second.
        count: studies.
        difference: with its 95 % interval by the paired bootstrap.
        p_value: two-sided, by the paired permutation test.
        adjusted: p after Benjamini and Hochberg, over the tests of all headlines; nan for a number
            that is no headline.
        left_out: share of the resamples in which the difference is not defined, and which its
            interval leaves out.
        adjusted_all: p after Benjamini and Hochberg, over all tests of the comparison.
    """

    name: str
    first: str
    second: str
    count: int
    difference: Interval
    p_value: float
    adjusted: float
    left_out: float = 0.0
    adjusted_all: float = math.nan

    @property
    def disagrees(self) -> bool:
        """Return whether one of interval and p value shows a difference and the other shows none.

        The interval comes from the bootstrap and p from randomization; the level is 5 % of both.
        """
        if not (math.isfinite(self.difference.low) and math.isfinite(self.p_value)):
            return False
        excludes_nothing = self.difference.low <= 0 <= self.difference.high
        return excludes_nothing == (self.p_value < _LEVEL)


@dataclass(frozen=True)
class Comparison:
    """Results of a comparison, from which all tables are made.

    Attributes:
        studies: how many were compared.
        measured: in the order of the metrics.
        tested: every two systems in every number; two baselines are not tested.
        texts: system -> what its candidates are like.
        failed: system -> metric -> studies without a value, where there are some.
        signatures: metric -> what its numbers depend on.
        notes: notes for the reader, one sentence each.
        against: the system that is tested against each other one; None: every two are tested.
    """

    studies: int
    measured: tuple[Measured, ...]
    tested: tuple[Tested, ...]
    texts: Mapping[str, TextFacts]
    failed: Mapping[str, Mapping[str, int]]
    signatures: Mapping[str, str]
    notes: tuple[str, ...] = ()
    against: str | None = None

    @property
    def systems(self) -> list[str]:
        """Return the names of the systems in their order; baselines last."""
        return list(self.texts)


def compare_values(
    values: Mapping[str, SystemValues],
    texts: Mapping[str, TextFacts],
    signatures: Mapping[Metric, Signature],
    *,
    given: Sequence[MetricElsewhere] = (),
    notes: Sequence[str] = (),
    resamples: int = 2000,
    permutations: int = 9999,
    seed: int = 0,
    patients: Sequence[str] | None = None,
    against: str | None = None,
    on_progress: OnProgress = no_progress,
) -> Comparison:
    """Compare systems from their values for the same studies.

    Args:
        values, texts: by system.
        signatures: of the metrics, in the order of the columns.
        given: metrics that were computed elsewhere. Systems without a value are left out of them.
        resamples, permutations, seed: see `vlscore.stats.paired_sums`.
        patients: whose each study is; whole patients are then resampled and permuted. None: every
            study counts for itself.
        on_progress: called with (numbers done, how many of them no study has).
        against: the system that is tested against each other one; None: every two are tested.

    Raises: InvalidSetting where no system is called as `against`.
    """
    names = list(values)
    if against is not None and against not in names:
        raise InvalidSetting(f"no system is called {against}; there are {', '.join(names)}")
    layout = NumberLayout(tuple(signatures))
    numbers = np.stack([values[name].numbers for name in names])
    measured: list[Measured] = []
    tested: list[Tested] = []
    elsewhere = {each.name for each in given}
    quantities = chain(_quantities(numbers, layout), _quantities_elsewhere(given, names))
    for done, quantity in enumerate(quantities):
        on_progress(done, sum(each.count == 0 for each in measured))
        whose = list(range(len(names)))
        statistics = quantity.statistics
        if quantity.metric in elsewhere:
            whose = [k for k in whose if np.isfinite(statistics[k]).all(-1).any()]
            statistics = statistics[whose]
        present = np.isfinite(statistics).all(axis=(0, 2))
        if not present.any():
            measured.append(_described(quantity, 0, dict.fromkeys(names, _NOTHING)))
            continue
        counted = statistics[:, present]
        if patients is not None:
            counted = sums_by_group(counted, [patients[int(k)] for k in np.flatnonzero(present)])
        sums = paired_sums(counted, resamples=resamples, permutations=permutations, seed=seed)
        sums = replace(sums, count=int(present.sum()))
        whose_names = [names[k] for k in whose]
        # Intervals of sums over patients are those of the sums; of single studies, of the values.
        plain = None if patients is not None else counted
        found = _measured(quantity, sums, whose_names, plain, resamples, seed)
        measured.append(replace(found, values={**dict.fromkeys(names, _NOTHING), **found.values}))
        tested += [
            _tested(quantity, sums, whose_names, a, b)
            for a, b in combinations(range(len(whose)), 2)
            if _is_tested(whose_names[a], whose_names[b], against)
        ]
    on_progress(len(measured), sum(each.count == 0 for each in measured))
    return Comparison(
        studies=numbers.shape[1],
        measured=tuple(measured),
        tested=tuple(_adjusted(tested, {each.name for each in measured if each.is_headline})),
        texts=dict(texts),
        failed={name: _failed(values[name], layout) for name in names},
        signatures={
            **{str(metric): str(signature) for metric, signature in signatures.items()},
            **{each.name: each.signature for each in given},
        },
        notes=tuple(notes),
        against=against,
    )


def count_numbers(metrics: Iterable[Metric], given: Sequence[MetricElsewhere] = ()) -> int:
    """Return how many numbers `compare_values` computes of every system."""
    return sum(len(m.columns) + len(m.corpus) for m in metrics) + len(given)


def _is_tested(first: str, second: str, against: str | None) -> bool:
    """Return whether two systems are compared by a test; two baselines never are."""
    if against is not None and against not in (first, second):
        return False
    return not (first.startswith(BASELINE) and second.startswith(BASELINE))


def _quantities(numbers: NDArray[np.float64], layout: NumberLayout) -> Iterator[_Quantity]:
    """Yield every number with its (systems, studies, sums) statistics; nan without a value."""
    for metric in layout.metrics:
        columns = numbers[:, :, layout.columns(metric)]
        for k, (name, output) in enumerate(zip(metric.columns, metric.outputs, strict=True)):
            column = np.where(np.isfinite(columns[:, :, k]), columns[:, :, k], np.nan)
            yield _Quantity(
                str(metric),
                output.higher_is_better,
                name,
                mean_statistics(column),
                title=metric.printed(output.name if k else ""),
                is_headline=k == 0 and not metric.headline,
            )
        for output in metric.corpus:
            # Statistics without a value are 0, which would count as a candidate without words.
            has_value = np.isfinite(columns[:, :, :1])
            yield _Quantity(
                str(metric),
                output.higher_is_better,
                corpus_name(metric, output.name),
                np.where(has_value, numbers[:, :, layout.statistics(metric)], np.nan),
                partial(_corpus_value, metric, output.name),
                metric,
                metric.printed(output.name, of_corpus=True),
                output.name == metric.headline,
            )


def _quantities_elsewhere(
    given: Sequence[MetricElsewhere], names: Sequence[str]
) -> Iterator[_Quantity]:
    """Yield the numbers of metrics computed elsewhere; a baseline has no values of them."""
    for each in given:
        count = len(next(iter(each.values.values())))
        none = np.full(count, np.nan)
        column = np.stack([each.values.get(name, none) for name in names])
        yield _Quantity(each.name, each.higher_is_better, each.name, mean_statistics(column))


def _corpus_value(metric: Metric, name: str, sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return corpus_of_sums(metric, sums)[name]


def _described(
    quantity: _Quantity,
    count: int,
    values: Mapping[str, Interval],
    support: Mapping[str, int] | None = None,
    left_out: Mapping[str, float] | None = None,
) -> Measured:
    """Return a number with the facts of its quantity."""
    return Measured(
        quantity.name,
        quantity.metric,
        quantity.higher_is_better,
        count,
        values,
        support or {},
        left_out or {},
        title=quantity.title or quantity.name,
        is_headline=quantity.is_headline,
        of_corpus=quantity.of_corpus is not None,
    )


def _measured(
    quantity: _Quantity,
    sums: PairedSums,
    names: Sequence[str],
    statistics: NDArray[np.float64] | None,
    resamples: int,
    seed: int,
) -> Measured:
    """Return the number of every system; intervals are those that `vlscore evaluate` prints.

    Args: statistics: (systems, studies, sums) of the studies that count; None where `sums` are of
        patients.
    """
    metric, combine = quantity.of_corpus, quantity.combine
    values, support, left_out = {}, {}, {}
    for k, name in enumerate(names):
        if metric is None and statistics is not None:
            values[name] = bootstrap_mean(statistics[k, :, 0], resamples=resamples, seed=seed)
            continue
        values[name] = sums.value(k, combine)
        if metric is None:
            continue
        number = next(o.name for o in metric.corpus if corpus_name(metric, o.name) == quantity.name)
        if (count := support_of_sums(metric, sums.totals[k]).get(number)) is not None:
            support[name] = count
        if share := sums.left_out(k, combine):
            left_out[name] = share
    return _described(quantity, sums.count, values, support, left_out)


def _tested(
    quantity: _Quantity, sums: PairedSums, names: Sequence[str], first: int, second: int
) -> Tested:
    """Return a test of two systems, each by its place in the names and in the sums."""
    found = sums.difference(first, second, quantity.combine)
    return Tested(
        quantity.name,
        names[first],
        names[second],
        sums.count,
        found.interval,
        found.p_value,
        float("nan"),
        found.left_out,
    )


def _adjusted(tested: Sequence[Tested], headlines: Collection[str]) -> list[Tested]:
    """Return the tests with p values adjusted over the headlines' tests, and over all tests."""
    of_headlines = adjusted_p_values([test.p_value for test in tested if test.name in headlines])
    shown = iter(of_headlines.tolist())
    of_all = adjusted_p_values([test.p_value for test in tested])
    return [
        replace(test, adjusted=next(shown) if test.name in headlines else math.nan, adjusted_all=p)
        for test, p in zip(tested, of_all.tolist(), strict=True)
    ]


def _failed(values: SystemValues, layout: NumberLayout) -> dict[str, int]:
    counts = {
        str(metric): int((~np.isfinite(values.numbers[:, layout.columns(metric)][:, 0])).sum())
        for metric in layout.metrics
    }
    return {name: count for name, count in counts.items() if count}
