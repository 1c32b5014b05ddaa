"""Embeddings of the studies of a table: images, references, candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from vlscore.core import OnProgress, no_progress
from vlscore.data import BadRow, Study, StudyTable, TextPolicy
from vlscore.embedding import StudyEmbedder, StudyViews
from vlscore.errors import InvalidTable, VLScoreError


@dataclass(frozen=True, eq=False)
class EmbeddedTable:
    """The n studies of a table that could be embedded.

    Attributes:
        references: their n texts, as the policy selects them.
        vectors: role ("image", "reference", "candidate") -> (n, d) float32.
        failed: the other rows.
    """

    references: Sequence[str]
    vectors: dict[str, Tensor]
    failed: Sequence[BadRow]


def embed_table(
    table: StudyTable,
    embedder: StudyEmbedder,
    policy: TextPolicy,
    *,
    workers: int = 0,
    on_progress: OnProgress = no_progress,
) -> EmbeddedTable:
    """Embed what the table was opened for; all vectors are held in memory, 4·d bytes each.

    Args:
        policy: what of a report counts.
        workers: processes that decode images.
        on_progress: called with the rows read and the rows that failed.

    Raises: InvalidTable where no row can be embedded.
    """
    parts: dict[str, list[Tensor]] = {role: [] for role in sorted(table.needs)}
    references: list[str] = []
    failed: list[BadRow] = []
    rows, done = iter(table), 0
    with embedder.decoder(workers) as decoder:
        while batch := list(islice(rows, embedder.engine.rows_at_once)):
            done += len(batch)
            used = [study for row in batch if (study := _selected(row, policy, failed))]
            shown = [
                embedder.begin(StudyViews(each.images, each.views, each.prior), decoder)
                for each in used
            ]
            found = {
                "image": embedder.embed_studies(shown),
                "reference": embedder.embed_texts([each.reference or "" for each in used]),
            }
            if "candidate" in table.needs:
                found["candidate"] = embedder.embed_texts([each.candidate or "" for each in used])
            errors: dict[int, VLScoreError] = {}
            for each in found.values():
                errors = {**each.failures, **errors}
            failed += [BadRow(used[k].row, used[k].id, str(errors[k])) for k in sorted(errors)]
            good = [k for k in range(len(used)) if k not in errors]
            references += [used[k].reference or "" for k in good]
            for role, vectors in parts.items():
                vectors.append(found[role].vectors[good])
            embedder.engine.forget()
            on_progress(done, len(failed))
    if not references:
        raise InvalidTable(
            f"{table.path}: no row can be embedded; row {failed[0].row}: {failed[0].reason}"
        )
    failed.sort(key=lambda row: row.row)
    return EmbeddedTable(references, {r: torch.cat(each) for r, each in parts.items()}, failed)


def _selected(row: Study | BadRow, policy: TextPolicy, failed: list[BadRow]) -> Study | None:
    """Return the study with the sections that count; None, and a failed row, where it has none."""
    if isinstance(row, BadRow):
        failed.append(row)
        return None
    try:
        return row.selected(policy)
    except VLScoreError as error:
        failed.append(BadRow(row.row, row.id, str(error)))
        return None
