"""Studies on their way into a search: read from a table, embedded as far as a metric looks at them.

A table need not have what a metric does not look at: image to text needs no reference, text to
text no image. What is there is used all the same, to describe the hits; except that plain
text-to-text and text-to-image retrieval leave images alone, which take the longest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from vlscore.errors import VLScoreError
from vlscore.reports import select
from vlscore.scorer import Item, Scorer
from vlscore.search.kernels import Array
from vlscore.studies import BadRow, ColumnNames, Study, StudyTable, columns_of, open_studies

_STUDIES_AT_ONCE = 128

_LEAVE_IMAGES = ("text-to-text", "text-to-image")


@dataclass(frozen=True)
class Query:
    """One study that is searched for.

    Attributes:
        row, id: of the table.
        reference: the part of it that is embedded; None where none is read.
        record: further columns that were asked for.
    """

    row: int
    id: str | None
    reference: str | None
    record: Mapping[str, Any] | None


@dataclass(frozen=True)
class QueryBatch:
    """Studies that are embedded, and those that could not be.

    Attributes:
        queries: q studies.
        images, references: (q, d) float32; None where they are not read.
        failed: rows that cannot be searched for.
    """

    queries: list[Query]
    images: Array | None
    references: Array | None
    failed: list[BadRow]


@dataclass(frozen=True)
class QueryTable:
    """A table of studies to search for.

    Attributes:
        path: .jsonl, .csv or .parquet.
        columns: names of its columns; there need be no candidate.
        image_root: folder that image paths start from; default: the table's.
    """

    path: Path
    columns: ColumnNames = field(default_factory=ColumnNames)
    image_root: Path | None = None

    def batches(
        self, scorer: Scorer, metric: str, needs: tuple[str, ...], also: Sequence[str] = ()
    ) -> Iterator[QueryBatch]:
        """All rows in order, embedded.

        Args:
            metric: of the search.
            needs: "image", "reference" or both.
            also: further columns to hand out.

        Raises: InvalidTable where the table lacks a column that is needed.
        """
        has = self.columns_there()
        with_images = metric not in _LEAVE_IMAGES and (
            "image" in needs or self.columns.image in has
        )
        with_references = "reference" in needs or self.columns.reference in has
        rows = iter(self._open(with_images, with_references, also))
        while chunk := list(islice(rows, _STUDIES_AT_ONCE)):
            yield _embed(chunk, scorer, with_images, with_references)

    def columns_there(self) -> set[str]:
        """Names of the columns that the table has."""
        return set(columns_of(self.path))

    def _open(self, with_images: bool, with_references: bool, also: Sequence[str]) -> StudyTable:
        asked = {"image": with_images, "reference": with_references}
        return open_studies(
            self.path,
            needs={role for role, is_asked in asked.items() if is_asked},
            image_root=self.image_root,
            columns=self.columns,
            also=also,
        )


def _embed(
    chunk: list[Study | BadRow], scorer: Scorer, with_images: bool, with_references: bool
) -> QueryBatch:
    failed = [row for row in chunk if isinstance(row, BadRow)]
    studies = [row for row in chunk if isinstance(row, Study)]
    vectors, failures = _vectors(studies, scorer, with_images, with_references)
    queries, good = [], []
    for position, study in enumerate(studies):
        failure: VLScoreError | str | None = failures.get(position)
        if failure is None and not all(
            bool(v[position].isfinite().all()) for v in vectors.values()
        ):
            failure = "the encoder returned an embedding that is not finite"
        if failure is not None:
            failed.append(BadRow(study.row, study.id, str(failure)))
            continue
        text = study.reference
        reference = None if text is None else select(text, scorer.text_policy)
        queries.append(Query(study.row, study.id, reference, study.extra))
        good.append(position)
    kept = {name: np.array(values[good].numpy()) for name, values in vectors.items()}
    return QueryBatch(queries, kept.get("images"), kept.get("references"), failed)


def _vectors(
    studies: list[Study], scorer: Scorer, with_images: bool, with_references: bool
) -> tuple[dict[str, Tensor], dict[int, VLScoreError]]:
    if with_images and with_references:
        images, references, failures = scorer.embed_references(
            [Item(s.images, "", s.reference or "", s.views) for s in studies]
        )
        return {"images": images, "references": references}, failures
    if with_images:
        images, failures = scorer.embed_images([Item(s.images, "", "", s.views) for s in studies])
        return {"images": images}, failures
    references, _, failures = scorer.embed_texts([(s.reference or "").strip() for s in studies])
    return {"references": references}, failures
