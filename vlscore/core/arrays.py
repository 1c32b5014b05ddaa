"""Shapes of embeddings: bring three sets into one shape."""

from collections.abc import Sequence
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.errors import InvalidSetting

ArrayLike = Tensor | NDArray[Any] | Sequence[Any]


def as_rows(x: ArrayLike) -> Tensor:
    """Convert numbers (n, d) or (d,) to floating-point (n, d). Raises: InvalidSetting."""
    rows = torch.as_tensor(x)
    if not rows.is_floating_point():
        rows = rows.double()
    if rows.ndim not in (1, 2):
        raise InvalidSetting(f"embeddings have shape (n, d) or (d,), not {tuple(rows.shape)}")
    return rows if rows.ndim == 2 else rows[None]


def triples(*points: ArrayLike) -> tuple[Tensor, ...]:
    """Bring all arrays to one shape (n, d); a single row is repeated n times.

    Raises: InvalidSetting, with the shapes, if they do not fit together.
    """
    rows = [as_rows(x) for x in points]
    count = max(len(x) for x in rows)
    if len({x.shape[1] for x in rows}) > 1 or any(len(x) not in (1, count) for x in rows):
        shapes = ", ".join(str(tuple(x.shape)) for x in rows)
        raise InvalidSetting(f"embeddings must have one shape (n, d); these have {shapes}")
    return tuple(x.expand(count, -1) for x in rows)
