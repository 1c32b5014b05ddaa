"""Embeddings of the studies of a table: images, references, candidates."""

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnProgress, no_progress
from vlscore.data import Study, StudyTable, TextPolicy
from vlscore.embedding.embedder import StudyEmbedder, StudyViews
from vlscore.errors import Failure, InvalidTable, VLScoreError

STUDIES_AT_ONCE = 128


@dataclass(frozen=True, eq=False)
class EmbeddedTable:
    """Rows of a table that were embedded.

    Attributes:
        studies: n studies; their reports have the sections that the policy selects.
        vectors: role ("image", "reference", "candidate") -> (n, d) float32; nan for a study that
            lacks an optional input.
        failed: the other rows, in the table's order.
    """

    studies: Sequence[Study]
    vectors: dict[str, NDArray[np.float32]]
    failed: Sequence[Failure] = ()

    @property
    def references(self) -> list[str]:
        """Return the n references."""
        return [study.reference or "" for study in self.studies]

    @property
    def has_prior(self) -> list[bool]:
        """Return (n,) whether a study has an earlier image."""
        return [study.prior is not None for study in self.studies]

    @property
    def rows(self) -> int:
        """Number of table rows."""
        return len(self.studies) + len(self.failed)


def embed_table(
    table: StudyTable,
    embedder: StudyEmbedder,
    policy: TextPolicy | None,
    *,
    roles: Collection[str] = (),
    workers: int = 0,
    on_progress: OnProgress = no_progress,
) -> EmbeddedTable:
    """Embed the studies of a table; all vectors are held in memory, 4·d bytes each.

    Args: see `embedded_batches`. on_progress: called with the rows read and the rows that failed.
    Raises: InvalidTable where no row can be embedded.
    """
    roles, parts, done, failed = roles or table.needs, [], 0, 0
    for part in embedded_batches(table, embedder, policy, roles=roles, workers=workers):
        parts.append(part)
        done, failed = done + part.rows, failed + len(part.failed)
        on_progress(done, failed)
    studies = [study for part in parts for study in part.studies]
    bad = [row for part in parts for row in part.failed]
    if not studies:
        raise InvalidTable(
            f"{table.path}: no row can be embedded; row {bad[0].row}: {bad[0].reason}"
        )
    vectors = {role: np.concatenate([part.vectors[role] for part in parts]) for role in roles}
    return EmbeddedTable(studies, vectors, bad)


def embedded_batches(
    table: StudyTable,
    embedder: StudyEmbedder | None,
    policy: TextPolicy | None,
    *,
    roles: Collection[str] = (),
    size: int = STUDIES_AT_ONCE,
    workers: int = 0,
) -> Iterator[EmbeddedTable]:
    """Yield the rows of a table in order, embedded `size` at a time.

    The next batch is decoded while the current one is used.

    Args:
        embedder: None if nothing is embedded.
        policy: what of a report counts; None leaves reports as they are.
        roles: what is embedded; default: what the table was opened for.
        workers: processes that decode images; 0 decodes in this one.
    """
    roles = [] if embedder is None else sorted(roles or table.roles)
    rows = iter(table)
    decoder = embedder.decoder(workers) if embedder and "image" in roles else None
    ahead: deque[tuple[list[tuple[Study, StudyViews | None]], list[Failure]]] = deque()
    with decoder or nullcontext():
        while some := list(islice(rows, size)):
            begun: list[tuple[Study, StudyViews | None]] = []
            failed: list[Failure] = []
            for row in some:
                study = _selected(row, table, policy)
                if isinstance(study, Failure):
                    failed.append(study)
                elif embedder is None or decoder is None or not study.images:
                    begun.append((study, None))
                else:
                    begun.append((study, embedder.begin(StudyViews.of(study), decoder)))
            ahead.append((begun, failed))
            if len(ahead) > 1:
                yield _embedded(*ahead.popleft(), table, embedder, roles)
        while ahead:
            yield _embedded(*ahead.popleft(), table, embedder, roles)


def _selected(
    row: Study | Failure, table: StudyTable, policy: TextPolicy | None
) -> Study | Failure:
    """Return the study with the sections that count; an optional reference without them is None."""
    if isinstance(row, Failure) or policy is None:
        return row
    try:
        return row.selected(policy)
    except VLScoreError as error:
        if {"reference", "candidate"} & table.needs:
            return Failure(row.row, row.id, str(error))
        return replace(row, reference=None, parts=None)


def _embedded(
    begun: Sequence[tuple[Study, StudyViews | None]],
    failed: list[Failure],
    table: StudyTable,
    embedder: StudyEmbedder | None,
    roles: Collection[str],
) -> EmbeddedTable:
    found: dict[str, NDArray[np.float32]] = {}
    errors: dict[int, VLScoreError] = {}
    for role in roles:
        assert embedder is not None
        items: list[Any] = [
            views if role == "image" else getattr(study, role) for study, views in begun
        ]
        there = [k for k, item in enumerate(items) if item is not None]
        some = [items[k] for k in there]
        rows = embedder.embed_studies(some) if role == "image" else embedder.embed_texts(some)
        found[role] = np.full((len(items), embedder.dim), np.nan, np.float32)
        found[role][there] = rows.vectors.numpy()
        if role in table.needs:
            errors = {**{there[k]: error for k, error in rows.failures.items()}, **errors}
    failed += [Failure(begun[k][0].row, begun[k][0].id, str(why)) for k, why in errors.items()]
    good = [k for k in range(len(begun)) if k not in errors]
    return EmbeddedTable(
        [begun[k][0] for k in good],
        {role: vectors[good] for role, vectors in found.items()},
        sorted(failed, key=lambda row: int(row.row or 0)),
    )
