"""Computing metrics over reports that are in memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore._signature import Signature
from vlscore.metrics.batch import Batch, MetricValues, as_texts
from vlscore.metrics.embeddings import EmbeddingTriples
from vlscore.metrics.metric import Metric
from vlscore.metrics.plan import Plan


def compute(
    metrics: Any,
    candidates: Any,
    references: Any,
    *,
    embeddings: EmbeddingTriples | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Values of each metric for each candidate.

    Args:
        metrics: names, as in "bleu-4" or "bleu-4(smoothing=exp)", or Metrics; one or several.
        candidates: n generated reports; an empty one is scored, not refused.
        references: n reference reports; None where no metric looks at them.
        embeddings: of the same n studies, where a metric looks at embeddings.

    Returns: column -> (n,) float64, in the order of `metrics`; a metric of several numbers has
        several columns, the first under its own name.
    Raises: UnknownName, InvalidSetting, InvalidReport naming the position of what is no text,
        MissingDependency with what to install.

    >>> compute(["bleu-1"], ["No effusion ."], ["no effusion."])["bleu-1"].tolist()
    [1.0]
    """
    found = compute_values(metrics, candidates, references, embeddings=embeddings)
    return {name: column for each in found.values() for name, column in each.columns.items()}


def compute_values(
    metrics: Any,
    candidates: Any,
    references: Any,
    *,
    embeddings: EmbeddingTriples | None = None,
) -> dict[Metric, MetricValues]:
    """As `compute`, with signatures, failures and what corpus values are computed from."""
    plan = Plan(metrics)
    plan.require()
    texts = None if references is None else as_texts("references", references)
    return plan.values(Batch(as_texts("candidates", candidates), texts, embeddings))


def signature(metric: str | Metric, embeddings: EmbeddingTriples | None = None) -> Signature:
    """What a metric's numbers depend on: parameters, conventions, library and version.

    >>> str(signature("bleu-4")).split("|")[:4]
    ['bleu-4', 'smoothing:none', 'tokens:13a', 'level:sentence']
    """
    plan = Plan([metric])
    plan.require()
    (found,) = plan.metrics
    if embeddings is None:
        return plan.signature(found)
    return plan.signature(found, embeddings.facts, embeddings.C)
