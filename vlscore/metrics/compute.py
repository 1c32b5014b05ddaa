"""Computing metrics over reports."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from vlscore._version import __version__
from vlscore.errors import InvalidReport, InvalidSetting
from vlscore.metrics.embeddings import EmbeddingTriples
from vlscore.metrics.metric import Metric
from vlscore.metrics.registry import find_metric, provider_of


def compute(
    metrics: Iterable[str | Metric],
    candidates: Sequence[str],
    references: Sequence[str],
    *,
    embeddings: EmbeddingTriples | None = None,
) -> dict[str, NDArray[np.float64]]:
    """Values of each metric for each candidate.

    Args:
        metrics: names, as in "bleu-4" or "bleu-4(smoothing=exp)", or Metrics.
        candidates: n generated reports; an empty one is scored, not refused.
        references: n reference reports.
        embeddings: of the same n studies, where a metric looks at embeddings.

    Returns: metric -> (n,) float64, in the order of `metrics`.
    Raises: UnknownName, InvalidSetting, InvalidReport naming the position of what is no text,
        MissingDependency with what to install.

    >>> compute(["bleu-1"], ["No effusion ."], ["no effusion."])["bleu-1"].tolist()
    [1.0]
    """
    _check(candidates, references, embeddings)
    values = {}
    for metric in map(find_metric, metrics):
        computed = provider_of(metric).compute(metric, candidates, references, embeddings)
        values[str(metric)] = np.asarray(computed, dtype=np.float64)
    return values


def signature(metric: str | Metric, embeddings: EmbeddingTriples | None = None) -> str:
    """What a metric's numbers depend on: parameters, conventions, library and version.

    >>> signature("bleu-4").split("|")[:4]
    ['bleu-4', 'smoothing:none', 'tokens:13a', 'level:sentence']
    """
    metric = find_metric(metric)
    provider = provider_of(metric)
    facts = {**metric.settings, **provider.conventions(metric)}
    parts = [metric.name, *(f"{name}:{value}" for name, value in facts.items())]
    if metric.uses_embeddings:
        if embeddings is not None:
            parts.append(embeddings.signature)
            if metric.name == "vlscore" and embeddings.C is not None:
                parts.append(f"C:{embeddings.C:.10g}")
    else:
        parts.append(f"{provider.library}:{provider.version()}")
    return "|".join([*parts, f"v:{__version__}"])


def _check(
    candidates: Sequence[str], references: Sequence[str], embeddings: EmbeddingTriples | None
) -> None:
    for name, texts in (("candidates", candidates), ("references", references)):
        if isinstance(texts, str):
            raise InvalidReport(f"{name} is a list of reports, not one text")
        for position, text in enumerate(texts):
            if not isinstance(text, str):
                raise InvalidReport(
                    f"{name}[{position}] is a {type(text).__name__}; a report is a text"
                )
    lengths = {"candidates": len(candidates), "references": len(references)}
    if embeddings is not None:
        lengths["embeddings"] = len(embeddings)
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InvalidSetting(f"lengths must be equal; these are {shown}")
