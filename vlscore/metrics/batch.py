"""Inputs and results of a metric.

`EmbeddingTriples` holds the embeddings of image, candidate and reference. `Batch` is the input of a
metric, and `Computed` its values.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vlscore.core import Signature, without_mask
from vlscore.data import check_texts, is_missing
from vlscore.errors import InvalidReport, InvalidSetting, VLScoreError
from vlscore.metrics.memo import Memo

Bounds = tuple[float | None, float | None]
Values = NDArray[np.float64]
Read = TypeVar("Read")


@dataclass(frozen=True, eq=False)
class EmbeddingTriples:
    """Embeddings of n studies under one encoder.

    Attributes:
        images, candidates, references: (n, d) arrays or tensors; images or references may be None
            where no metric looks at them.
        signature: what the embeddings depend on (encoder, checksum, policies): a Signature, or
            the same as printed.
        C: the encoder's constant of VLScore, a positive number; None if it is unknown.
        failures: row -> why it has no embeddings; such rows hold nan.

    Raises: InvalidSetting where shapes differ, or C is not a positive number.
    """

    images: Any
    candidates: Any
    references: Any
    signature: Any
    C: float | None = None
    failures: Mapping[int, VLScoreError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("images", "candidates", "references"):
            object.__setattr__(self, name, without_mask(getattr(self, name)))
        given = [x for x in (self.images, self.candidates, self.references) if x is not None]
        shapes = [tuple(np.shape(x)) for x in given]
        if self.candidates is None or len(set(shapes)) != 1 or len(shapes[0]) != 2:
            raise InvalidSetting(f"embeddings must have the same shape (n, d); these have {shapes}")
        C: Any = self.C
        is_number = isinstance(C, int | float) and not isinstance(C, bool)
        if C is not None and not (is_number and C > 0 and math.isfinite(C)):
            raise InvalidSetting(f"C must be a positive number, not {C!r}")
        if isinstance(self.signature, str):
            parsed = Signature.parse(f"embeddings|{self.signature}")
            object.__setattr__(self, "signature", parsed)

    @cached_property
    def areas(self) -> Any:
        """Area of each triangle (n,), Eq. 1, for `vlscore`; a tensor."""
        import torch

        from vlscore.metrics.similarity import triangle_area

        points = (self.images, self.candidates, self.references)
        return triangle_area(*map(torch.as_tensor, points))

    def take(self, rows: Sequence[int]) -> "EmbeddingTriples":
        """Return the embeddings of some rows."""
        images, candidates, references = (
            None if part is None else np.asarray(part[list(rows)])
            for part in (self.images, self.candidates, self.references)
        )
        failures = {k: self.failures[row] for k, row in enumerate(rows) if row in self.failures}
        return EmbeddingTriples(images, candidates, references, self.signature, self.C, failures)


@dataclass(frozen=True, eq=False)
class Fit:
    """References to which a metric was fitted.

    Attributes:
        state: as the metric's `fit` returned it.
        references: number of references.
        digest: digest of the references, which does not depend on their order.
    """

    state: Any
    references: int
    digest: str

    def __str__(self) -> str:
        return f"{self.references}-references@{self.digest}"


@dataclass(frozen=True, eq=False)
class Batch:
    """Batch of n studies, to all texts of which the text policy has been applied.

    Attributes:
        candidates: n generated reports; an empty one is scored, not refused.
        references: n reference reports; None where no metric looks at them.
        embeddings: of the same studies; None where no metric looks at them.
        inputs: values of the current metric's `inputs`, in their order.
        fit: what the current metric was fitted to; None for a metric that is not fitted.
        memo: memory of what metrics read in texts.

    Raises: InvalidSetting where lengths differ.
    """

    candidates: Sequence[str]
    references: Sequence[str] | None = None
    embeddings: EmbeddingTriples | None = None
    inputs: Sequence["Computed"] = ()
    fit: Fit | None = None
    memo: Memo = field(default_factory=Memo)

    def __post_init__(self) -> None:
        lengths = {"candidates": len(self.candidates)}
        if self.references is not None:
            lengths["references"] = len(self.references)
        if self.embeddings is not None:
            lengths["embeddings"] = len(self.embeddings.candidates)
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise InvalidSetting(f"lists must have the same length; these have: {shown}")

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def fitted(self) -> Any:
        """Return the statistics over the references to which the metric was fitted."""
        return None if self.fit is None else self.fit.state

    def pairs(self) -> list[tuple[str, str]]:
        """Return (candidate, reference) of each study; raise InvalidSetting without references."""
        if self.references is None:
            raise InvalidSetting(
                "the metric reads references, but its definition does not ask for them: set "
                "uses_reference=True"
            )
        return list(zip(self.candidates, self.references, strict=True))

    def read(self, read: Callable[..., Sequence[Read]], *given: Any) -> list[tuple[Read, Read]]:
        """Return what a function reads in candidate and reference of each study.

        Args: read: called with `given`, and with both texts of each study, one after the other.
        """
        found = read(*given, [text for pair in self.pairs() for text in pair])
        return list(zip(found[::2], found[1::2], strict=True))


@dataclass(frozen=True, eq=False)
class Computed:
    """Values of one metric for n candidates.

    Attributes:
        columns: one (n,) array for each output of the metric, in their order; nan where the
            candidate has no value.
        statistics: (n, s) sums that corpus values are computed from, 0 in rows without a value;
            None where the metric has no corpus value.
        failures: row -> why it has no value.
        signature: what the numbers depend on; a plan adds it.
    """

    columns: Sequence[Values]
    statistics: Values | None = None
    failures: Mapping[int, VLScoreError] = field(default_factory=dict)
    signature: Signature | None = None

    def spread(
        self, rows: Sequence[int], count: int, failures: Mapping[int, VLScoreError]
    ) -> "Computed":
        """Return the values of `count` candidates, of which these are some rows.

        Args: failures: row -> why the other candidates have no value.
        """
        own = {rows[k]: error for k, error in self.failures.items()}
        sums = self.statistics
        return replace(
            self,
            columns=[spread(column, rows, count) for column in self.columns],
            statistics=None if sums is None else np.nan_to_num(spread(sums, rows, count)),
            failures=dict(sorted({**failures, **own}.items())),
        )


def spread(values: NDArray[Any], rows: Sequence[int], count: int) -> NDArray[Any]:
    """Return (count, ...) values that hold the given ones in these rows, else nan or False."""
    empty = False if values.dtype == bool else np.nan
    full = np.full((count, *values.shape[1:]), empty, dtype=values.dtype)
    full[list(rows)] = values
    return full


def as_list(name: str, texts: Any) -> list[Any]:
    """Return a list of reports from a list, tuple, numpy array or pandas Series of them.

    Raises: InvalidReport if it is one text, a dict, a set or a table.
    """
    check_texts(name, texts)
    try:
        found = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    except TypeError:
        found = None
    if not isinstance(found, list):
        raise InvalidReport(f"{name} must be a list of reports, not a {type(texts).__name__}")
    return found


def as_texts(name: str, texts: Any, *, may_be_empty: bool = True) -> list[str]:
    """Return `as_list` where each report is a text.

    Raises: InvalidReport also if it holds anything but texts, or an empty one that must not be.
    """
    found = as_list(name, texts)
    for position, text in enumerate(found):
        if not isinstance(text, str):
            kind = f"a {type(text).__name__}"
            if is_missing(text):
                kind = f'{text}; .fillna("") of a pandas column makes empty reports of such cells'
            raise InvalidReport(f"{name}[{position}] must be a text, not {kind}")
        if not (may_be_empty or text.strip()):
            raise InvalidReport(f"{name}[{position}] is empty")
    return [str(text) for text in found]
