"""What the contrastive losses have in common: cosines, and the two directions of InfoNCE."""

from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn import functional

from vlscore.errors import InvalidSetting

# Below this, a product of two lengths counts as this, so that a zero vector has cosine 0.
_SHORTEST = 1e-8
_NONE: Mapping[str, float] = MappingProxyType({})


def cosines(rows: Tensor, columns: Tensor) -> Tensor:
    """(n, d) and (m, d) -> (n, m), the cosine of each row with each column's vector."""
    lengths = torch.outer(_lengths(rows), _lengths(columns)).clamp(min=_SHORTEST)
    return rows @ columns.T / lengths


def pairwise_cosines(one: Tensor, other: Tensor) -> Tensor:
    """(..., d) twice -> (...), the cosine of each vector with its partner."""
    lengths = (_lengths(one) * _lengths(other)).clamp(min=_SHORTEST)
    return (one * other).sum(-1) / lengths


def unit(vectors: Tensor) -> Tensor:
    """(..., d) -> the same directions of length 1; a zero vector stays zero."""
    return functional.normalize(vectors, dim=-1)


def no_negatives(same: Tensor) -> Tensor:
    """(n, n) bool, True for rows that are the same but not one row: neither pair nor negative."""
    return same & ~torch.eye(len(same), dtype=torch.bool, device=same.device)


def contrast(scores: Tensor, same: Tensor) -> tuple[Tensor, Tensor]:
    """InfoNCE (van den Oord et al. 2018) in both directions.

    Args:
        scores: (n, n), images in rows and reports in columns, divided by the temperature.
        same: (n, n) bool, as in PairFeatures.

    Returns: the mean cross entropy of finding an image's report among the reports, and of finding
        a report's image among the images.
    """
    scores = scores.masked_fill(no_negatives(same), -torch.inf)
    own = scores.diagonal()
    return (scores.logsumexp(1) - own).mean(), (scores.logsumexp(0) - own).mean()


def check_settings(
    objective: str, *, above_zero: Mapping[str, float], at_least_zero: Mapping[str, float] = _NONE
) -> None:
    """Refuse a temperature or weight that makes no loss. Raises InvalidSetting."""
    for key, value in above_zero.items():
        if not 0 < value < float("inf"):
            raise InvalidSetting(f"{objective}'s {key} must be above 0, not {value}")
    for key, value in at_least_zero.items():
        if not 0 <= value < float("inf"):
            raise InvalidSetting(f"{objective}'s {key} must be at least 0, not {value}")


def _lengths(vectors: Tensor) -> Tensor:
    # Of a zero vector it has the gradient 0, where that of a root of a sum is not a number.
    found: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return found
