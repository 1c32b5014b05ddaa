"""Values of every metric for originals and perturbed reports."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vlscore._signature import Signature
from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.meta.embedding import EmbeddedPairs
from vlscore.meta.pairs import Pair
from vlscore.metrics import (
    Batch,
    EmbeddingTriples,
    Fit,
    Metric,
    Plan,
    find_metrics,
    lacks,
    usable_metrics,
)


@dataclass(frozen=True, eq=False)
class PairValues:
    """What a metric says of n pairs; failed pairs hold nan.

    Attributes:
        metric: which metric.
        signature: what its numbers depend on.
        originals: (n,) values of the original report as the candidate, itself the reference.
        perturbed: (n,) values of the perturbed report, the original being the reference.
        failures: position of a pair -> why it lacks one of the two.
    """

    metric: Metric
    signature: Signature
    originals: NDArray[np.float64]
    perturbed: NDArray[np.float64]
    failures: Mapping[int, VLScoreError] = field(default_factory=dict)

    @property
    def drops(self) -> NDArray[np.float64]:
        """(n,) how much worse the perturbed report does; above 0 is worse in either direction."""
        return self.metric.sign * (self.originals - self.perturbed)

    @property
    def has_both(self) -> NDArray[np.bool_]:
        """(n,) whether both values are there."""
        return np.asarray(np.isfinite(self.originals) & np.isfinite(self.perturbed))


def chosen_metrics(
    names: object, embeddings: EmbeddingTriples | None
) -> tuple[list[Metric], dict[str, str]]:
    """The metrics to compute, and those of the default list that cannot be, with the reason.

    Args:
        names: those asked for; None for every free metric that can be computed here.
        embeddings: of any number of pairs, where there are some.

    Raises: InvalidSetting or MissingDependency where a metric that was asked for cannot be; also
        where nothing is left to compute.
    """
    if names is None:
        metrics, left_out = usable_metrics(embeddings)
        if not metrics:
            raise InvalidSetting("no metric can be computed here: name an encoder or the studies")
        return metrics, left_out
    found = find_metrics(names)
    for metric in found:
        reason = lacks(metric, embeddings)
        if reason is not None:
            raise InvalidSetting(
                f"{metric} cannot be computed: {reason}. Give the studies' images (--studies) and "
                "an encoder (--encoder), as far as they are absent"
            )
    Plan(found).require()
    return list(found), {}


def fit_metrics(pairs: Sequence[Pair], metrics: Sequence[Metric]) -> Mapping[Metric, Fit]:
    """The metrics that need it, fitted to the original reports: each study's counts once."""
    originals = {pair.study_id: pair.original for pair in pairs}
    return Plan(metrics).fit(originals.values()).fits


def pair_values(
    pairs: Sequence[Pair],
    metrics: Sequence[Metric],
    embedded: EmbeddedPairs | None = None,
    *,
    text: str | None = None,
    images: Tensor | None = None,
    fits: Mapping[Metric, Fit] | None = None,
) -> list[PairValues]:
    """Values of each metric; what is equal for several pairs is computed once.

    Args:
        pairs: as selected by the text policy.
        text: how that policy is printed.
        images: (n, d) to show instead of each study's own.
        fits: what metrics such as CIDEr-D were fitted to; default: these pairs' originals.

    Raises: InvalidSetting where a metric needs an encoder, or images, that are not there.
    """
    plan = Plan(metrics, text=text)
    plan = plan.fitted_as(fit_metrics(pairs, metrics) if fits is None else fits)
    # An original is compared with itself once a study, however many changes were made of it.
    keys = [(p.study_id, p.original, p.original) for p in pairs]
    keys += [(p.study_id, p.perturbed, p.original) for p in pairs]
    if images is not None:
        keys = [(str(row), g, r) for row, (_, g, r) in enumerate(keys)]
    first: dict[tuple[str, str, str], int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    rows = list(first.values())
    triples = _triples(embedded, images, rows) if embedded is not None else None
    batch = Batch([keys[row][1] for row in rows], [keys[row][2] for row in rows], triples)
    place = {key: k for k, key in enumerate(first)}
    spread = [place[key] for key in keys]
    found = []
    half = len(pairs)
    for metric, values in plan.values(batch).items():
        full = values.headline[spread]
        failures: dict[int, VLScoreError] = {}
        for row, k in enumerate(spread):
            if k in values.failures:
                failures.setdefault(row % half, values.failures[k])
        failures = dict(sorted(failures.items()))
        found.append(PairValues(metric, values.signature, full[:half], full[half:], failures))
    return found


def on_common_rows(values: Sequence[PairValues]) -> list[PairValues]:
    """The values of those pairs that every metric has values for; the others become nan."""
    if not values:
        return []
    common = np.logical_and.reduce([each.has_both for each in values])
    return [
        replace(
            each,
            originals=np.where(common, each.originals, np.nan),
            perturbed=np.where(common, each.perturbed, np.nan),
        )
        for each in values
    ]


def without_rows(values: PairValues, failures: Mapping[int, VLScoreError]) -> PairValues:
    """The values, nan where a pair failed for a reason of its own."""
    originals, perturbed = values.originals.copy(), values.perturbed.copy()
    originals[list(failures)] = perturbed[list(failures)] = np.nan
    return replace(
        values,
        originals=originals,
        perturbed=perturbed,
        failures=dict(sorted({**values.failures, **failures}.items())),
    )


def all_failures(values: Iterable[PairValues]) -> dict[int, VLScoreError]:
    """Position of a pair -> why the first metric that lacks a value for it has none."""
    found: dict[int, VLScoreError] = {}
    for each in values:
        found = {**each.failures, **found}
    return dict(sorted(found.items()))


def failure_reasons(failures: Mapping[int, VLScoreError], pairs: Sequence[Pair]) -> dict[str, str]:
    """Study id -> why a pair of it has no values."""
    return {pairs[position].study_id: str(error) for position, error in failures.items()}


def _triples(
    embedded: EmbeddedPairs, images: Tensor | None, rows: Sequence[int]
) -> EmbeddingTriples:
    """Of the rows of twice the pairs: originals as candidates first, then the perturbed."""
    count = len(embedded.originals)
    own = [row % count for row in rows]
    both = embedded.triples(embedded.originals, images).take(own)
    candidates = both.candidates.clone()
    changed = [k for k, row in enumerate(rows) if row >= count]
    candidates[changed] = embedded.perturbed[[own[k] for k in changed]]
    return replace(both, candidates=candidates)
