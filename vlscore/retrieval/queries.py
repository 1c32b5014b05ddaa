"""Queries of a search: studies read from a table, and embedded as far as a metric needs them.

Image or reference may also be optional, only to describe the hits. If a study lacks an optional
input, or its image cannot be read, it is searched for like any other, with nan for that input.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vlscore.data import BadRow, Study, StudyTable, TextPolicy
from vlscore.embedding import EmbeddedRows, ImageDecoder, StudyEmbedder, StudyViews
from vlscore.errors import VLScoreError
from vlscore.retrieval.vector_search.corpus import Array

STUDIES_AT_ONCE = 128

Begun = list[tuple[Study | BadRow, StudyViews | None]]


@dataclass(frozen=True)
class Query:
    """One study that is searched for.

    Attributes:
        row, id: row number and id in the table.
        reference: the section of the reference that is embedded; None if none is read.
        record: the requested further columns.
    """

    row: int
    id: str
    reference: str | None
    record: Mapping[str, Any] | None


@dataclass(frozen=True)
class QueryBatch:
    """Batch of table rows: embedded studies, and rows that could not be embedded.

    Attributes:
        queries: q studies.
        images, references: (q, d) float32; None if they are not read, nan for a study that lacks
            an optional input.
        failed: rows that cannot be searched for.
        inputs: images that were read.
    """

    queries: list[Query]
    images: Array | None
    references: Array | None
    failed: list[BadRow]
    inputs: list[Path]

    @property
    def rows(self) -> int:
        """Return the number of table rows."""
        return len(self.queries) + len(self.failed)


@dataclass(frozen=True)
class QueryTable:
    """Table of studies to search for.

    Attributes:
        studies: table from `open_studies`, with its required and optional inputs.
        embedder: None if nothing is embedded.
        policy: which section of a reference is used.
    """

    studies: StudyTable
    embedder: StudyEmbedder | None
    policy: TextPolicy

    def batches(
        self, *, skip: int = 0, size: int = STUDIES_AT_ONCE, workers: int = 0
    ) -> Iterator[QueryBatch]:
        """Yield the rows in order, embedded `size` at a time.

        The embeddings of a batch do not depend on earlier batches, so that a run resumed at a
        batch gets the same bits.

        Args:
            skip: number of rows to leave out at the beginning.
            workers: processes that decode images; 0 decodes in this one.
        """
        rows = islice(self.studies, skip, None)
        reads_images = self.embedder is not None and "image" in self.studies.roles
        decoder = self.embedder.decoder(workers) if self.embedder and reads_images else None
        ahead: deque[Begun] = deque()
        # The next batch is decoded while the current one is searched for.
        with decoder if decoder is not None else nullcontext():
            while chunk := list(islice(rows, size)):
                ahead.append([self._begin(row, decoder) for row in chunk])
                if len(ahead) > 1:
                    yield self._embed(ahead.popleft())
            while ahead:
                yield self._embed(ahead.popleft())

    def _begin(
        self, row: Study | BadRow, decoder: ImageDecoder | None
    ) -> tuple[Study | BadRow, StudyViews | None]:
        if isinstance(row, BadRow):
            return row, None
        try:
            row = row.selected(self.policy)
        except VLScoreError as error:
            if "reference" in self.studies.needs:
                return BadRow(row.row, row.id, str(error)), None
            row = replace(row, reference=None, parts=None)
        if decoder is None or self.embedder is None or not row.images:
            return row, None
        return row, self.embedder.begin(StudyViews(row.images, row.views), decoder)

    def _embed(self, begun: Begun) -> QueryBatch:
        failed = [row for row, _ in begun if isinstance(row, BadRow)]
        studies = [row for row, _ in begun if isinstance(row, Study)]
        shown = [views for row, views in begun if isinstance(row, Study)]
        vectors: dict[str, Tensor] = {}
        failures: dict[int, VLScoreError] = {}
        if (embedder := self.embedder) is not None:
            embedder.engine.forget()
            roles, count = self.studies.roles, len(studies)
            if "image" in roles:
                images = _some(shown, count, embedder.embed_studies, embedder.dim)
                vectors["image"] = images.vectors
                failures |= images.failures if "image" in self.studies.needs else {}
            if "reference" in roles:
                texts = [study.reference for study in studies]
                references = _some(texts, count, embedder.embed_texts, embedder.dim)
                vectors["reference"] = references.vectors
                if "reference" in self.studies.needs:
                    failures = {**references.failures, **failures}
        for position, error in failures.items():
            study = studies[position]
            failed.append(BadRow(study.row, study.id, str(error)))
        good = [position for position in range(len(studies)) if position not in failures]
        kept = {name: np.array(values[good].numpy()) for name, values in vectors.items()}
        return QueryBatch(
            [
                Query(s.row, s.id, s.reference, s.extra)
                for s in (studies[position] for position in good)
            ],
            kept.get("image"),
            kept.get("reference"),
            sorted(failed, key=lambda row: row.row),
            [path for study in studies for path in study.images],
        )


def _some(
    items: Sequence[Any],
    count: int,
    embed: Callable[[Sequence[Any]], EmbeddedRows],
    dim: int,
) -> EmbeddedRows:
    """Embed the items that are not None; the others get nan."""
    there = [position for position, item in enumerate(items) if item is not None]
    vectors = torch.full((count, dim), torch.nan)
    truncated = torch.zeros(count, dtype=torch.bool)
    if not there:
        return EmbeddedRows(vectors, {}, truncated)
    found = embed([items[position] for position in there])
    vectors[there], truncated[there] = found.vectors, found.truncated
    return EmbeddedRows(vectors, {there[k]: e for k, e in found.failures.items()}, truncated)
