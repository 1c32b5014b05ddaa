"""Sensitivity of metrics to changes of a report.

Source: Dawidowicz, Hirsch, Tal, "VLScore", NeurIPS 2024: Table 2 (removing a pathology's sentence
against an insignificant one), Table 3 (another place or severity against [UNK] for a word that
says nothing), Figure 2 (normal reports replaced by a standard normal report).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnProgress, no_progress, plain_dict
from vlscore.data import TextPolicy
from vlscore.evaluation.sensitivities.changed_pairs import (
    EmbeddedPairs,
    Pair,
    kinds_of,
    means_by_study,
    select_pairs,
)
from vlscore.evaluation.sensitivities.pair_values import (
    PairValues,
    all_failures,
    chosen_metrics,
    failure_reasons,
    on_common_rows,
    pair_values,
    without_rows,
)
from vlscore.stats import (
    Interval,
    auc,
    benjamini_hochberg,
    grouped_difference,
    grouped_mean,
    paired_test,
    two_sample_test,
)

NORMAL_KIND = "standard-normal"


@dataclass(frozen=True)
class KindComparison:
    """Two kinds of perturbation whose effects a table of the paper compares."""

    table: str
    significant: str
    control: str


COMPARISONS = (
    KindComparison("Table 2", "remove-pathology", "remove-insignificant"),
    KindComparison("Table 3", "change-location", "replace-uninformative"),
    KindComparison("Table 3", "change-severity", "replace-uninformative"),
)


@dataclass(frozen=True)
class KindResult:
    """One metric on one kind of perturbation; intervals resample studies.

    Attributes:
        pairs, studies: how many were scored.
        value: mean of the metric for the perturbed reports.
        drop: mean loss against the unperturbed report; above 0 is worse.
    """

    kind: str
    is_significant: bool
    pairs: int
    studies: int
    value: Interval
    drop: Interval


@dataclass(frozen=True)
class Contrast:
    """Difference between a metric's drop for a significant kind and that for its control.

    Attributes:
        delta: mean drop of the significant kind less that of the control.
        significant_drop, control_drop: mean drops of the two kinds, whose difference is delta.
        pairs, control_pairs: how many were scored.
        ratio: mean drop of the significant kind over that of the control; nan where the interval
            of the control's holds 0, because a ratio to a number near 0 means nothing.
        auc: probability that a significant change drops further than a control's.
        test, p_value: Wilcoxon's test over the studies that have both kinds, where those are at
            least half of all studies compared; else Mann-Whitney's. On means per study.
        adjusted_p: Benjamini-Hochberg over all contrasts of the run.
    """

    comparison: KindComparison
    delta: Interval
    significant_drop: Interval
    control_drop: Interval
    pairs: int
    control_pairs: int
    ratio: float
    auc: float
    test: str
    p_value: float
    adjusted_p: float


@dataclass(frozen=True)
class MetricResult:
    """One metric on all perturbations.

    Attributes:
        name, signature, higher_is_better: of the metric.
        kinds: a result for each kind, in the order of the perturbations.
        contrasts: those of the paper's comparisons for which both kinds are there.
        normal: values for normal reports against the standard normal report, the data of Figure 2.
    """

    name: str
    signature: str
    higher_is_better: bool
    kinds: list[KindResult]
    contrasts: list[Contrast]
    normal: list[float]


@dataclass(frozen=True)
class Sensitivity:
    """Results of all metrics on all perturbations.

    Attributes:
        metrics: results, in the order asked for.
        left_out: metrics that could not be computed here, and why.
        failures: study -> why a pair of it was not scored by some metric. Every metric's numbers
            are of the same pairs: those that all metrics have values for.
        pairs, studies: how many the perturbations hold.
        truncated: distinct reports that the encoder did not read to the end.
    """

    metrics: list[MetricResult]
    left_out: dict[str, str]
    failures: dict[str, str]
    pairs: int
    studies: int
    truncated: int
    values: list[PairValues] = field(default_factory=list, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for json: None replaces numbers that are not finite."""
        content = plain_dict(replace(self, values=[]))
        del content["values"]
        return content


def sensitivity_of_pairs(
    pairs: Sequence[Pair],
    metrics: Any = None,
    embedded: EmbeddedPairs | None = None,
    *,
    text_policy: TextPolicy | str | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> Sensitivity:
    """Run metrics over perturbations.

    Args:
        pairs: from `read_pairs`.
        metrics: names; default: all that can be computed here.
        embedded: from `embed_pairs` of the pairs that `select_pairs` gave for the text policy.
        text_policy: what of the reports is compared, by every metric.
        resamples, seed: of the bootstrap.

    Raises: InvalidSetting, MissingDependency, UnknownName for metrics that cannot be computed.
    """
    policy = TextPolicy.named(text_policy)
    triples = embedded.triples(embedded.perturbed) if embedded is not None else None
    chosen, left_out = chosen_metrics(metrics, triples)
    selected, unselected = select_pairs(pairs, policy)
    values = pair_values(selected, chosen, embedded, text=policy.signature())
    values = [without_rows(each, unselected) for each in values]
    return sensitivity_of_values(
        pairs,
        values,
        left_out=left_out,
        failures=failure_reasons(all_failures(values), pairs),
        truncated=embedded.truncated if embedded is not None else 0,
        resamples=resamples,
        seed=seed,
    )


def sensitivity_of_values(
    pairs: Sequence[Pair],
    values: Sequence[PairValues],
    *,
    left_out: Mapping[str, str] | None = None,
    failures: Mapping[str, str] | None = None,
    truncated: int = 0,
    resamples: int = 2000,
    seed: int = 0,
    on_progress: OnProgress = no_progress,
) -> Sensitivity:
    """Return the benchmark from values that are computed already.

    Args: on_progress: called with (metrics done, 0), for intervals take long.
    """
    results = []
    for each in on_common_rows(values):
        results.append(_of_metric(pairs, each, resamples, seed))
        on_progress(len(results), 0)
    return Sensitivity(
        metrics=_adjusted(results),
        left_out=dict(left_out or {}),
        failures=dict(failures or {}),
        pairs=len(pairs),
        studies=len({pair.study_id for pair in pairs}),
        truncated=truncated,
        values=list(values),
    )


@dataclass(frozen=True, eq=False)
class _Group:
    """The scored pairs of one kind."""

    studies: list[str]
    values: NDArray[np.float64]
    drops: NDArray[np.float64]


def _of_metric(
    pairs: Sequence[Pair], values: PairValues, resamples: int, seed: int
) -> MetricResult:
    groups = {kind: _group(pairs, values, kind) for kind in kinds_of(pairs)}
    groups = {kind: group for kind, group in groups.items() if group.studies}
    is_significant = {pair.kind: pair.is_significant for pair in pairs}
    normal = groups.get(NORMAL_KIND)
    return MetricResult(
        name=str(values.metric),
        signature=str(values.signature),
        higher_is_better=values.metric.higher_is_better,
        kinds=[
            KindResult(
                kind=kind,
                is_significant=is_significant[kind],
                pairs=len(group.studies),
                studies=len(set(group.studies)),
                value=grouped_mean(group.values, group.studies, resamples=resamples, seed=seed),
                drop=grouped_mean(group.drops, group.studies, resamples=resamples, seed=seed),
            )
            for kind, group in groups.items()
        ],
        contrasts=[
            _contrast(each, groups[each.significant], groups[each.control], resamples, seed)
            for each in COMPARISONS
            if each.significant in groups and each.control in groups
        ],
        normal=normal.values.tolist() if normal is not None else [],
    )


def _group(pairs: Sequence[Pair], values: PairValues, kind: str) -> _Group:
    drops = values.drops
    rows = [k for k, pair in enumerate(pairs) if pair.kind == kind and np.isfinite(drops[k])]
    return _Group([pairs[k].study_id for k in rows], values.perturbed[rows], drops[rows])


def _contrast(
    comparison: KindComparison, significant: _Group, control: _Group, resamples: int, seed: int
) -> Contrast:
    test, p_value = _test(
        means_by_study(significant.studies, significant.drops),
        means_by_study(control.studies, control.drops),
    )
    drops = [
        grouped_mean(group.drops, group.studies, resamples=resamples, seed=seed)
        for group in (significant, control)
    ]
    return Contrast(
        comparison=comparison,
        delta=grouped_difference(
            significant.drops,
            significant.studies,
            control.drops,
            control.studies,
            resamples=resamples,
            seed=seed,
        ),
        significant_drop=drops[0],
        control_drop=drops[1],
        pairs=len(significant.studies),
        control_pairs=len(control.studies),
        ratio=_ratio(*drops),
        auc=auc(significant.drops, control.drops),
        test=test,
        p_value=p_value,
        adjusted_p=p_value,
    )


def _test(significant: dict[str, float], control: dict[str, float]) -> tuple[str, float]:
    both = sorted(significant.keys() & control.keys())
    if 2 * len(both) >= len(significant.keys() | control.keys()):
        result = paired_test([significant[s] for s in both], [control[s] for s in both])
    else:
        result = two_sample_test(list(significant.values()), list(control.values()))
    return result.name, result.p_value


def _ratio(significant: Interval, control: Interval) -> float:
    """Return the ratio of the drops; nan unless the interval of the control's drop excludes 0."""
    if not (control.low > 0 or control.high < 0):
        return float("nan")
    return significant.estimate / control.estimate


def _adjusted(results: list[MetricResult]) -> list[MetricResult]:
    """Return the same results with p values adjusted over all contrasts of the run."""
    p_values = [contrast.p_value for result in results for contrast in result.contrasts]
    adjusted = iter(benjamini_hochberg(p_values).tolist())
    return [
        replace(
            result,
            contrasts=[replace(each, adjusted_p=next(adjusted)) for each in result.contrasts],
        )
        for result in results
    ]
