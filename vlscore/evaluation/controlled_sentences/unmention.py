"""The stress test of Pino 2022, section 5.2: unmentioned against negative.

A report that leaves its denials unmentioned describes the same findings of the patient. A metric
should hardly change when a candidate leaves out denials that the reference has, or adds some that
it has not; it should change where a pathology is left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnPhase, OnProgress, no_phase, plain_dict
from vlscore.evaluation.controlled_sentences.corpora import (
    metrics_of_own_rules,
    pair_values,
    refuse_images,
)
from vlscore.evaluation.row_chunks import both
from vlscore.metrics import Scorer
from vlscore.perturb import perturb_report
from vlscore.stats import Interval, bootstrap, bootstrap_mean

Values = NDArray[np.float64]

# Name of a comparison -> what candidate and reference are.
COMPARED = {
    "copy": ("report", "report"),
    "denials left out": ("without denials", "report"),
    "denials added": ("report", "without denials"),
    "pathology left out": ("without pathology", "report"),
}


@dataclass(frozen=True)
class StressResult:
    """Result of one metric on reports that leave something out.

    Attributes:
        metric: its name.
        n: reports with a value in every comparison.
        means: comparison -> mean value, with its bootstrap interval over reports.
        ratio: mean loss where denials are left out, over that where a pathology is; None where the
            interval of the latter loss holds 0.
        mistaken: share of reports where leaving denials out costs as much as the pathology, or
            more.
    """

    metric: str
    n: int
    means: Mapping[str, Interval]
    ratio: Interval | None
    mistaken: Interval | None


@dataclass(frozen=True)
class Stress:
    """The stress test of some metrics.

    Attributes:
        reports: that both state and deny findings in sentences of their own, and were used.
        looked_at: all distinct reports.
        results: one a metric.
        told: metrics that read reports by the rules which changed them: in-sample upper bounds.
    """

    reports: int
    looked_at: int
    results: Sequence[StressResult]
    told: frozenset[str] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for json."""
        return plain_dict({**vars(self), "told": sorted(self.told)})


def unmention_test(
    scorer: Scorer,
    reports: Iterable[tuple[str, str]],
    *,
    most: int = 200,
    resamples: int = 1000,
    seed: int = 0,
    on_progress: OnProgress | None = None,
    on_phase: OnPhase = no_phase,
) -> Stress:
    """Leave denials, or a pathology, out of reports, and measure how each metric changes.

    Denials are left out as the perturbation kind unmention-negatives does, a pathology as
    remove-pathology does.

    Args:
        reports: (id, text); equal texts count once.
        most: reports that are used, the first that allow both changes.
        resamples, seed: of the bootstrap; `seed` also chooses the pathology.

    Raises: InvalidSetting for a metric that looks at images.
    """
    refuse_images(scorer, "the reports come without")
    texts: list[str] = []
    chosen: list[dict[str, int]] = []
    seen: dict[str, None] = {}
    for name, report in reports:
        if report in seen:
            continue
        seen[report] = None
        if len(chosen) == most:
            continue
        kinds = ("unmention-negatives", "remove-pathology")
        found = {p.kind: p.perturbed for p in perturb_report(report, kinds, seed, study_id=name)}
        if len(found) < len(kinds):
            continue
        versions = {
            "report": report,
            "without denials": found["unmention-negatives"],
            "without pathology": found["remove-pathology"],
        }
        chosen.append({version: len(texts) + k for k, version in enumerate(versions)})
        texts += versions.values()
    scorer = scorer.fit(seen) if scorer.plan.needs_fit and seen else scorer
    pairs = {
        name: [(row[candidate], row[reference]) for row in chosen]
        for name, (candidate, reference) in COMPARED.items()
    }
    every = [pair for of in pairs.values() for pair in of]
    comparing = both(on_progress, on_phase("pairs of reports", len(set(every))))
    values, _ = pair_values(scorer, texts, every, comparing)
    resampling = on_phase("resampling metrics", len(scorer.metrics))
    results = []
    for metric in scorer.metrics:
        of_metric = {
            name: np.array([values[str(metric)].get(pair, np.nan) for pair in of])
            for name, of in pairs.items()
        }
        results.append(_result(str(metric), metric.sign, of_metric, resamples, seed))
        resampling(len(results), 0)
    return Stress(len(chosen), len(seen), results, metrics_of_own_rules(scorer))


def _result(
    metric: str, sign: int, values: Mapping[str, Values], resamples: int, seed: int
) -> StressResult:
    there = ~np.isnan(np.stack(list(values.values()))).any(axis=0)
    known = {name: of[there] for name, of in values.items()}
    n = int(there.sum())
    if not n:
        return StressResult(metric, 0, {}, None, None)

    def mean(of: Values) -> Interval:
        return bootstrap_mean(of, resamples=resamples, seed=seed)

    left_out = sign * (known["copy"] - known["denials left out"])
    pathology = sign * (known["copy"] - known["pathology left out"])
    ratio = None
    if mean(pathology).low > 0:
        ratio = bootstrap(_ratio_of_means, left_out, pathology, resamples=resamples, seed=seed)
    return StressResult(
        metric,
        n,
        {name: mean(of) for name, of in known.items()},
        ratio,
        mean((left_out >= pathology).astype(np.float64)),
    )


def _ratio_of_means(x: Values, y: Values) -> float:
    return float(x.mean() / y.mean()) if y.mean() else float("nan")
