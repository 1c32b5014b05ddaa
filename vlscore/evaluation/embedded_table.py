"""Embeddings of the studies of a table: images, references, candidates."""

from collections.abc import Collection, Sequence
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
        studies: the n studies; their reports have the sections that the policy selects.
        vectors: role ("image", "reference", "candidate") -> (n, d) float32.
        failed: the other rows, in the table's order.
    """

    studies: Sequence[Study]
    vectors: dict[str, Tensor]
    failed: Sequence[BadRow]

    @property
    def references(self) -> list[str]:
        """Return the n references."""
        return [study.reference or "" for study in self.studies]


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

    Args:
        policy: what of a report counts; None leaves reports as they are.
        roles: what is embedded; default: what the table was opened for.
        workers: processes that decode images.
        on_progress: called with the rows read and the rows that failed.

    Raises: InvalidTable where no row can be embedded.
    """
    parts: dict[str, list[Tensor]] = {role: [] for role in sorted(roles or table.needs)}
    studies: list[Study] = []
    failed: list[BadRow] = []
    rows, done = iter(table), 0
    with embedder.decoder(workers) as decoder:
        while batch := list(islice(rows, embedder.rows_at_once)):
            done += len(batch)
            used = [study for row in batch if (study := _selected(row, policy, failed))]
            found = {}
            if "image" in parts:
                found["image"] = embedder.embed_studies(
                    [embedder.begin(StudyViews.of(each), decoder) for each in used]
                )
            for role in ("reference", "candidate"):
                if role in parts:
                    found[role] = embedder.embed_texts([getattr(s, role) or "" for s in used])
            errors: dict[int, VLScoreError] = {}
            for each in found.values():
                errors = {**each.failures, **errors}
            failed += [BadRow(used[k].row, used[k].id, str(errors[k])) for k in sorted(errors)]
            good = [k for k in range(len(used)) if k not in errors]
            studies += [used[k] for k in good]
            for role, vectors in parts.items():
                vectors.append(found[role].vectors[good])
            on_progress(done, len(failed))
    if not studies:
        raise InvalidTable(
            f"{table.path}: no row can be embedded; row {failed[0].row}: {failed[0].reason}"
        )
    failed.sort(key=lambda row: row.row)
    return EmbeddedTable(studies, {r: torch.cat(each) for r, each in parts.items()}, failed)


def _selected(row: Study | BadRow, policy: TextPolicy | None, failed: list[BadRow]) -> Study | None:
    """Return the study with the sections that count; None, and a failed row, where it has none."""
    if isinstance(row, BadRow):
        failed.append(row)
        return None
    try:
        return row if policy is None else row.selected(policy)
    except VLScoreError as error:
        failed.append(BadRow(row.row, row.id, str(error)))
        return None
