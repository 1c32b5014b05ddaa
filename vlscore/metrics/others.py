"""Percentile of an image score: how many reports of other studies score worse for this study.

What is a good value of VLScore depends on the encoder and on the table. This number needs no
label: the candidate competes with candidates of other studies for the same image and reference.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vlscore.metrics.batch import Batch, EmbeddingTriples
from vlscore.metrics.metric import Metric
from vlscore.metrics.plan import Plan

if TYPE_CHECKING:
    from torch import Tensor

#: Candidates of other studies with which each candidate is compared.
OTHERS = 100
_SEED = 0
# Triples that are computed at once: at d = 768 their embeddings take 10 MB, and stay in a cache.
_AT_ONCE = 1 << 10
# Embeddings are float32, and their last digits depend on what was embedded together.
_ROUNDING = 1e-5


def drawn_others(candidates: Sequence[str]) -> list[str]:
    """Return the candidates with which those of a table are compared, drawn with a fixed seed.

    They are the same for every study and every part of the table. A frequent report is drawn as
    often as its share is.

    Args: candidates: n selected texts of the whole table.
    Returns: at most `OTHERS` texts; none of fewer than two.
    """
    if len(candidates) < 2:
        return []
    order = np.random.default_rng(_SEED).permutation(len(candidates))
    return [candidates[k] for k in sorted(order[:OTHERS].tolist())]


def percentile_column(metric: Metric | str) -> str:
    """Return the column of a metric's percentile, as in "vlscore.percentile"."""
    return f"{metric}.percentile"


def has_percentile(metric: Metric) -> bool:
    """Return whether a metric looks at the image by an encoder's embeddings."""
    return metric.uses_image and metric.uses_embeddings


def percentiles(
    batch: Batch,
    values: Mapping[Metric, NDArray[np.float64]],
    others: Sequence[str],
    vectors: "Tensor",
) -> dict[str, NDArray[np.float64]]:
    """Compute the share of other candidates that score worse for each study's image and reference.

    Candidates with the same words are not compared. A score that is equal, except for the rounding
    of embeddings, is not worse.

    Args:
        batch: n studies with their embeddings.
        values: metric -> (n,) values of the studies' own candidates.
        others, vectors: m texts and their (m, d) embeddings; nan where there is none.

    Returns: column -> (n,) in [0, 1]; nan where the candidate has no value, or no other has.
    """
    found = {percentile_column(metric): np.full(len(batch), np.nan) for metric in values}
    plan = Plan(list(values))
    texts = np.array(others, dtype=object)
    step = max(_AT_ONCE // len(others), 1)
    for start in range(0, len(batch), step):
        rows = range(start, min(start + step, len(batch)))
        mismatched = _mismatched(batch, rows, others, vectors)
        computed = plan.values(mismatched)
        own_words = np.array([batch.candidates[row] for row in rows], dtype=object)
        is_other = own_words[:, None] != texts
        for metric, all_own in values.items():
            theirs = computed[metric].columns[0].reshape(len(rows), len(others))
            own = all_own[rows.start : rows.stop, None]
            counted = is_other & np.isfinite(theirs) & np.isfinite(own)
            slack = _ROUNDING * np.maximum(np.maximum(np.abs(theirs), np.abs(own)), 1.0)
            is_worse = counted & (metric.sign * (own - theirs) > slack)
            total = counted.sum(1)
            share = is_worse.sum(1) / np.maximum(total, 1)
            found[percentile_column(metric)][rows.start : rows.stop] = np.where(
                total > 0, share, np.nan
            )
    return found


def _mismatched(batch: Batch, rows: range, others: Sequence[str], vectors: "Tensor") -> Batch:
    """Return each of some studies with each of the other candidates in place of its own."""
    triples, count = batch.embeddings, len(others)
    assert triples is not None
    here = slice(rows.start, rows.stop)

    def repeated(part: "Tensor | None") -> "Tensor | None":
        return None if part is None else part[here].repeat_interleave(count, dim=0)

    references = batch.references
    return replace(
        batch,
        candidates=list(others) * len(rows),
        references=None
        if references is None
        else [references[row] for row in rows for _ in range(count)],
        embeddings=EmbeddingTriples(
            repeated(triples.images),
            vectors.repeat(len(rows), 1),
            repeated(triples.references),
            triples.signature,
            triples.C,
        ),
    )
