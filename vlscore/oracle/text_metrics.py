"""Oracles of metrics that compare texts: re-ranked candidates, or the whole corpus."""

from collections.abc import Collection, Sequence

import numpy as np

from vlscore.errors import InvalidSetting
from vlscore.metrics import Metric, compute, find_metric

_AT_ONCE = 10_000


def best_texts(
    metric: str | Metric,
    reference: str,
    texts: Sequence[str],
    *,
    k: int = 10,
    rows: Sequence[int] | None = None,
    excluded: Collection[int] = (),
) -> list[tuple[int, float]]:
    """The k texts that score best against a reference, as (row, score), best first.

    Args:
        metric: any registered metric of texts alone, such as "bleu-4".
        texts: the whole corpus.
        rows: candidates among it, found by another search; default: all, which is exact.
        excluded: rows that must not be found.

    Equal scores keep the order of the corpus. Raises: UnknownName; InvalidSetting for a metric
    that looks at embeddings.

    >>> best_texts("bleu-1", "no effusion", ["clear lungs", "no effusion", "effusion"], k=1)
    [(1, 1.0)]
    """
    metric = find_metric(metric)
    if metric.uses_embeddings:
        raise InvalidSetting(f"{metric} looks at embeddings; search the index with it instead")
    barred = set(excluded)
    offered = range(len(texts)) if rows is None else sorted(set(rows))
    candidates = [row for row in offered if row not in barred]
    scores = np.empty(len(candidates))
    for start in range(0, len(candidates), _AT_ONCE):
        part = candidates[start : start + _AT_ONCE]
        values = compute([metric], [texts[row] for row in part], [reference] * len(part))
        scores[start : start + len(part)] = values[str(metric)]
    sign = -1 if metric.higher_is_better else 1
    order = np.argsort(sign * scores, kind="stable")[:k]
    return [(candidates[position], float(scores[position])) for position in order]
