"""Which changes of a report a metric notices.

Source: Dawidowicz, Hirsch, Tal, "VLScore", NeurIPS 2024: Table 2 (removing a pathology's sentence
against an insignificant one), Table 3 (another place or severity against [UNK] for a word that
says nothing), Figure 2 (normal reports replaced by a standard normal report).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore._files import plain
from vlscore.meta.embedding import EmbeddedPairs
from vlscore.meta.pairs import Pair, kinds_of
from vlscore.meta.values import PairValues, failure_reasons, pair_values, usable_metrics
from vlscore.stats import Interval, auc, benjamini_hochberg, paired_test, two_sample_test
from vlscore.stats.grouped import grouped_difference, grouped_mean

NORMAL_KIND = "standard-normal"


@dataclass(frozen=True)
class Comparison:
    """Two kinds of perturbation whose effects a table of the paper compares."""

    table: str
    significant: str
    control: str


COMPARISONS = (
    Comparison("Table 2", "remove-pathology", "remove-insignificant"),
    Comparison("Table 3", "change-location", "replace-uninformative"),
    Comparison("Table 3", "change-severity", "replace-uninformative"),
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
    """How much more a metric drops for a significant kind than for its control.

    Attributes:
        delta: mean drop of the significant kind less that of the control.
        ratio: mean drop of the significant kind over that of the control; inf where the control's
            is 0, nan where both are.
        auc: probability that a significant change drops further than a control's.
        test, p_value: Wilcoxon's test over the studies that have both kinds, where those are at
            least half of all studies compared; else Mann-Whitney's. On means per study.
        adjusted_p: Benjamini-Hochberg over all contrasts of the run.
    """

    comparison: Comparison
    delta: Interval
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
    """The whole benchmark.

    Attributes:
        metrics: results, in the order asked for.
        left_out: metrics that could not be computed here, and why.
        failures: study -> why it was not scored by metrics that need embeddings.
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
        """Plain data, ready for json: None stands for numbers that are not finite."""
        content = asdict(replace(self, values=[]))
        del content["values"]
        return plain(content)


def sensitivity(
    pairs: Sequence[Pair],
    metrics: Sequence[str] | None = None,
    embedded: EmbeddedPairs | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Sensitivity:
    """Run metrics over perturbations.

    Args:
        pairs: from `read_pairs`.
        metrics: names; default: all that can be computed here.
        embedded: from `embed_pairs`, for metrics that look at embeddings.
        resamples, seed: of the bootstrap.

    Raises: InvalidSetting, MissingDependency, UnknownName for metrics that cannot be computed.
    """
    chosen, left_out = usable_metrics(metrics, embedded)
    values = pair_values(pairs, chosen, embedded)
    results = [_of_metric(pairs, each, resamples, seed) for each in values]
    return Sensitivity(
        metrics=_adjusted(results),
        left_out=left_out,
        failures=failure_reasons(embedded.failures, pairs) if embedded is not None else {},
        pairs=len(pairs),
        studies=len({pair.study_id for pair in pairs}),
        truncated=embedded.truncated if embedded is not None else 0,
        values=values,
    )


@dataclass(frozen=True, eq=False)
class _Group:
    """The scored pairs of one kind."""

    studies: list[str]
    values: NDArray[np.float64]
    drops: NDArray[np.float64]

    def drop_by_study(self) -> dict[str, float]:
        drops: dict[str, list[float]] = {}
        for study, drop in zip(self.studies, self.drops.tolist(), strict=True):
            drops.setdefault(study, []).append(drop)
        return {study: float(np.mean(found)) for study, found in drops.items()}


def _of_metric(
    pairs: Sequence[Pair], values: PairValues, resamples: int, seed: int
) -> MetricResult:
    groups = {kind: _group(pairs, values, kind) for kind in kinds_of(pairs)}
    groups = {kind: group for kind, group in groups.items() if group.studies}
    is_significant = {pair.kind: pair.is_significant for pair in pairs}
    normal = groups.get(NORMAL_KIND)
    return MetricResult(
        name=str(values.metric),
        signature=values.signature,
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
    comparison: Comparison, significant: _Group, control: _Group, resamples: int, seed: int
) -> Contrast:
    test, p_value = _test(significant.drop_by_study(), control.drop_by_study())
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
        ratio=_ratio(float(significant.drops.mean()), float(control.drops.mean())),
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


def _ratio(significant: float, control: float) -> float:
    if control == 0:
        return float("nan") if significant == 0 else float(np.copysign(np.inf, significant))
    return significant / control


def _adjusted(results: list[MetricResult]) -> list[MetricResult]:
    """The same results with p values adjusted over all contrasts of the run."""
    p_values = [contrast.p_value for result in results for contrast in result.contrasts]
    adjusted = iter(benjamini_hochberg(p_values).tolist())
    return [
        replace(
            result,
            contrasts=[replace(each, adjusted_p=next(adjusted)) for each in result.contrasts],
        )
        for result in results
    ]
