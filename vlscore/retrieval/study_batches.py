"""Studies of a table with the embeddings of their images and references, a batch at a time."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch

from vlscore.data import BadRow, Study, StudyTable, TextPolicy
from vlscore.embedding import EmbeddedRows, ImageDecoder, StudyEmbedder, StudyViews
from vlscore.errors import VLScoreError
from vlscore.retrieval.corpus import Array

STUDIES_AT_ONCE = 128


@dataclass(frozen=True)
class StudyBatch:
    """Batch of table rows: embedded studies, and rows that could not be embedded.

    Attributes:
        studies: q studies, with the section of the reference that is embedded.
        images, references: (q, d) float32; None if they are not read, nan for a study that lacks
            an optional input.
        failed: the other rows, in order.
    """

    studies: list[Study]
    images: Array | None
    references: Array | None
    failed: list[BadRow]

    @property
    def rows(self) -> int:
        """Number of table rows."""
        return len(self.studies) + len(self.failed)


def embedded_batches(
    table: StudyTable,
    embedder: StudyEmbedder | None,
    policy: TextPolicy,
    *,
    size: int = STUDIES_AT_ONCE,
    workers: int = 0,
) -> Iterator[StudyBatch]:
    """Yield the rows of a table in order, embedded `size` at a time.

    Args:
        table: from `open_studies`, with its required and optional inputs.
        embedder: None if nothing is embedded.
        policy: which section of a reference is used.
        workers: processes that decode images; 0 decodes in this one.
    """
    rows = iter(table)
    decoder = embedder.decoder(workers) if embedder and "image" in table.roles else None
    ahead: deque[list[tuple[Study | BadRow, StudyViews | None]]] = deque()
    # The next batch is decoded while the current one is used.
    with decoder if decoder is not None else nullcontext():
        while some := list(islice(rows, size)):
            ahead.append([_begun(row, table, policy, embedder, decoder) for row in some])
            if len(ahead) > 1:
                yield _embedded(ahead.popleft(), table, embedder)
        while ahead:
            yield _embedded(ahead.popleft(), table, embedder)


def _begun(
    row: Study | BadRow,
    table: StudyTable,
    policy: TextPolicy,
    embedder: StudyEmbedder | None,
    decoder: ImageDecoder | None,
) -> tuple[Study | BadRow, StudyViews | None]:
    """Select the section of the reference, and begin to decode the images."""
    if isinstance(row, BadRow):
        return row, None
    try:
        row = row.selected(policy)
    except VLScoreError as error:
        if "reference" in table.needs:
            return BadRow(row.row, row.id, str(error)), None
        row = replace(row, reference=None, parts=None)
    if decoder is None or embedder is None or not row.images:
        return row, None
    return row, embedder.begin(StudyViews.of(row), decoder)


def _embedded(
    begun: Sequence[tuple[Study | BadRow, StudyViews | None]],
    table: StudyTable,
    embedder: StudyEmbedder | None,
) -> StudyBatch:
    failed = [row for row, _ in begun if isinstance(row, BadRow)]
    studies = [row for row, _ in begun if isinstance(row, Study)]
    found: dict[str, EmbeddedRows] = {}
    failures: dict[int, VLScoreError] = {}
    if embedder is not None:
        views = [views for row, views in begun if isinstance(row, Study)]
        texts = [study.reference for study in studies]
        for role, items, embed in (
            ("reference", texts, embedder.embed_texts),
            ("image", views, embedder.embed_studies),
        ):
            if role in table.roles:
                found[role] = _some(items, embed, embedder.dim)
                failures |= found[role].failures if role in table.needs else {}
    for position, error in failures.items():
        failed.append(BadRow(studies[position].row, studies[position].id, str(error)))
    good = [position for position in range(len(studies)) if position not in failures]
    vectors = {role: rows.vectors[good].numpy() for role, rows in found.items()}
    return StudyBatch(
        [studies[position] for position in good],
        vectors.get("image"),
        vectors.get("reference"),
        sorted(failed, key=lambda row: row.row),
    )


def _some(
    items: Sequence[Any], embed: Callable[[Sequence[Any]], EmbeddedRows], dim: int
) -> EmbeddedRows:
    """Embed the items that are not None; the others get nan."""
    there = [position for position, item in enumerate(items) if item is not None]
    vectors = torch.full((len(items), dim), torch.nan)
    truncated = torch.zeros(len(items), dtype=torch.bool)
    if not there:
        return EmbeddedRows(vectors, {}, truncated)
    found = embed([items[position] for position in there])
    vectors[there], truncated[there] = found.vectors, found.truncated
    return EmbeddedRows(vectors, {there[k]: e for k, e in found.failures.items()}, truncated)
