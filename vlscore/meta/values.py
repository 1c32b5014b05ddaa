"""Values of every metric for originals and perturbed reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError
from vlscore.meta.embedding import EmbeddedPairs
from vlscore.meta.pairs import Pair
from vlscore.metrics import METRICS, Metric, compute, find_metric, provider_of, signature

DEFAULT_METRICS = tuple(METRICS)


@dataclass(frozen=True, eq=False)
class PairValues:
    """What a metric says of n pairs; failed pairs hold nan.

    Attributes:
        metric: which metric.
        signature: what its numbers depend on.
        originals: (n,) values of the original report as the candidate, itself the reference.
        perturbed: (n,) values of the perturbed report, the original being the reference.
    """

    metric: Metric
    signature: str
    originals: NDArray[np.float64]
    perturbed: NDArray[np.float64]

    @property
    def drops(self) -> NDArray[np.float64]:
        """(n,) how much worse the perturbed report does; above 0 is worse in either direction."""
        sign = 1 if self.metric.higher_is_better else -1
        return sign * (self.originals - self.perturbed)


def usable_metrics(
    names: Sequence[str] | None, embedded: EmbeddedPairs | None
) -> tuple[list[Metric], dict[str, str]]:
    """The metrics to compute, and those of the default list that cannot be, with the reason.

    Args:
        names: those asked for; None for every metric that can be computed here.

    Raises: InvalidSetting or MissingDependency where a metric that was asked for cannot be.
    """
    metrics, left_out = [], {}
    for name in dict.fromkeys(DEFAULT_METRICS if names is None else names):
        metric = find_metric(name)
        try:
            _require(metric, embedded)
        except (InvalidSetting, MissingDependency) as error:
            if names is not None:
                raise
            left_out[metric.name] = str(error)
        else:
            metrics.append(metric)
    return metrics, left_out


def pair_values(
    pairs: Sequence[Pair], metrics: Sequence[Metric], embedded: EmbeddedPairs | None
) -> list[PairValues]:
    """Values of each metric; equal pairs of texts are computed once.

    Raises: InvalidSetting where a metric needs an encoder, or images, that are not there.
    """
    values = []
    for metric in metrics:
        _require(metric, embedded)
        if metric.uses_embeddings:
            assert embedded is not None
            originals = embedded_values(metric, embedded, embedded.originals)
            perturbed = embedded_values(metric, embedded, embedded.perturbed)
            described = signature(metric, embedded.triples(embedded.perturbed))
        else:
            originals = _text_values(metric, [(pair.original, pair.original) for pair in pairs])
            perturbed = _text_values(metric, [(pair.perturbed, pair.original) for pair in pairs])
            described = signature(metric)
        values.append(PairValues(metric, described, originals, perturbed))
    return values


def embedded_values(
    metric: Metric, embedded: EmbeddedPairs, candidates: Tensor, images: Tensor | None = None
) -> NDArray[np.float64]:
    """(n,) values of candidates' embeddings, the originals being the references."""
    triples = embedded.triples(candidates, images)
    empty = [""] * len(triples)
    values = compute([metric], empty, empty, embeddings=triples)[str(metric)]
    values[list(embedded.failures)] = np.nan
    return values


def failure_reasons(failures: Mapping[int, VLScoreError], pairs: Sequence[Pair]) -> dict[str, str]:
    """Study id -> why a pair of it could not be embedded."""
    return {pairs[position].study_id: str(error) for position, error in failures.items()}


def _require(metric: Metric, embedded: EmbeddedPairs | None) -> None:
    if not metric.uses_embeddings:
        signature(metric)
        provider_of(metric).version()
        return
    if embedded is None:
        raise InvalidSetting(f"{metric.name} looks at embeddings: name an encoder")
    if metric.uses_image and not embedded.has_images:
        raise InvalidSetting(f"{metric.name} looks at the image: give the studies' images")
    if metric.name == "vlscore" and embedded.C is None:
        raise InvalidSetting("vlscore needs the encoder's constant C, and nobody stated one")


def _text_values(metric: Metric, texts: list[tuple[str, str]]) -> NDArray[np.float64]:
    distinct = list(dict.fromkeys(texts))
    candidates, references = [c for c, _ in distinct], [r for _, r in distinct]
    computed = compute([metric], candidates, references)[str(metric)]
    known = dict(zip(distinct, computed.tolist(), strict=True))
    return np.array([known[pair] for pair in texts])
