"""Studies on their way into a search: read from a table, embedded as far as a metric looks at them.

A table need not have what a metric does not look at: image to text needs no reference, text to
text no image. What is there is used all the same, to describe the hits; except that plain
text-to-text and text-to-image retrieval leave images alone, which take the longest.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from vlscore.errors import VLScoreError
from vlscore.reports import select
from vlscore.scorer import Item, Scorer
from vlscore.search.kernels import Array
from vlscore.studies import (
    BadRow,
    ColumnNames,
    Report,
    Study,
    StudyImages,
    read_reports,
    read_rows,
    read_studies,
    read_study_images,
)

_STUDIES_AT_ONCE = 128

# How many rows tell what columns a table has.
_HEAD = 100

_LEAVE_IMAGES = ("text-to-text", "text-to-image")


@dataclass(frozen=True)
class Query:
    """One study that is searched for.

    Attributes:
        row, id: of the table.
        reference: the part of it that is embedded; None where none is read.
        record: the whole row.
    """

    row: int
    id: str | None
    reference: str | None
    record: Any


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

    def batches(self, scorer: Scorer, metric: str, needs: tuple[str, ...]) -> Iterator[QueryBatch]:
        """All rows in order, embedded.

        Args:
            metric: of the search.
            needs: "image", "reference" or both.

        Raises: InvalidTable where the table lacks a column that is needed.
        """
        has = self.columns_there()
        with_images = metric not in _LEAVE_IMAGES and (
            "image" in needs or self.columns.image in has
        )
        with_references = "reference" in needs or self.columns.reference in has
        rows = zip(self._read(with_images, with_references), read_rows(self.path), strict=True)
        while chunk := list(islice(rows, _STUDIES_AT_ONCE)):
            yield _embed(chunk, scorer, with_images, with_references)

    def columns_there(self) -> set[str]:
        """Names of the columns that the first rows have."""
        head = [record for _, record in islice(read_rows(self.path), _HEAD)]
        return {name for record in head if isinstance(record, dict) for name in record}

    def _read(
        self, with_images: bool, with_references: bool
    ) -> Iterator[Study | StudyImages | Report | BadRow]:
        # The oracle needs no candidate; the reference stands in for it.
        names = replace(self.columns, candidate=self.columns.reference)
        if with_images and with_references:
            return read_studies(self.path, image_root=self.image_root, columns=names)
        if with_images:
            return read_study_images(self.path, image_root=self.image_root, columns=names)
        return read_reports(self.path, id_column=names.id, text_column=names.reference)


def _embed(
    chunk: list[Any], scorer: Scorer, with_images: bool, with_references: bool
) -> QueryBatch:
    failed = [row for row, _ in chunk if isinstance(row, BadRow)]
    studies = [(row, raw) for row, raw in chunk if not isinstance(row, BadRow)]
    vectors, failures = _vectors([row for row, _ in studies], scorer, with_images, with_references)
    queries, good = [], []
    for position, (study, (number, record)) in enumerate(studies):
        failure: VLScoreError | str | None = failures.get(position)
        if failure is None and not all(
            bool(v[position].isfinite().all()) for v in vectors.values()
        ):
            failure = "the encoder returned an embedding that is not finite"
        if failure is not None:
            failed.append(BadRow(number, study.id, str(failure)))
            continue
        text = _reference(study)
        reference = None if text is None else select(text, scorer.text_policy)
        queries.append(Query(number, study.id, reference, record))
        good.append(position)
    kept = {name: np.array(values[good].numpy()) for name, values in vectors.items()}
    return QueryBatch(queries, kept.get("images"), kept.get("references"), failed)


def _vectors(
    studies: list[Any], scorer: Scorer, with_images: bool, with_references: bool
) -> tuple[dict[str, Tensor], dict[int, VLScoreError]]:
    if with_images and with_references:
        images, references, failures = scorer.embed_references(
            [Item(s.images, "", s.reference, s.views) for s in studies]
        )
        return {"images": images, "references": references}, failures
    if with_images:
        images, failures = scorer.embed_images([Item(s.images, "", "", s.views) for s in studies])
        return {"images": images}, failures
    references, _, failures = scorer.embed_texts([s.text for s in studies])
    return {"references": references}, failures


def _reference(study: Study | StudyImages | Report) -> str | None:
    if isinstance(study, Study):
        return study.reference
    return study.text if isinstance(study, Report) else None
