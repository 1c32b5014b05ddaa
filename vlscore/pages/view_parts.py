"""What the views of several commands share: their options, their studies, their intervals."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.core import OnProgress, no_progress
from vlscore.data import Study
from vlscore.errors import VLScoreError
from vlscore.pages.marked_texts import judged_block
from vlscore.pages.page_parts import Block, RunView
from vlscore.pages.result_folder import ResultFolder, studies_by_row


@dataclass(frozen=True)
class PageOptions:
    """What a page may hold, and where its inputs are.

    Attributes:
        texts: whether reports, ids and paths are on the page.
        table: table of the studies, where run.json names none or it was moved.
        image_root: folder that image paths start from.
        on_progress: called with (cases read, 0).
    """

    texts: bool = True
    table: Path | None = None
    image_root: Path | None = None
    on_progress: OnProgress = no_progress


def tables_named(record: Mapping[str, Any]) -> Mapping[str, str]:
    found = record.get("tables")
    return found if isinstance(found, Mapping) else {}


def read_texts(
    view: RunView, options: PageOptions, read: Callable[[], Mapping[Any, Study]]
) -> Mapping[Any, Study]:
    """Return the studies that `read` returns; none, and a note, where their table is not there."""
    if not options.texts:
        return {}
    try:
        return read()
    except (VLScoreError, TypeError) as error:
        view.notes.append(
            f"Reports are not shown: {error}. Name the table with --table "
            "(in Python: table=) and make the page again."
        )
        return {}


def studies_of(
    folder: ResultFolder, view: RunView, options: PageOptions, *needs: str
) -> Mapping[int, Study]:
    def read() -> Mapping[int, Study]:
        table = folder.studies(needs, options.table, options.image_root)
        return studies_by_row(table, folder.text_policy())

    return read_texts(view, options, read)


def judged_blocks(
    studies: Sequence[Study | None],
    options: PageOptions,
    triangles: Sequence[list[float] | None] | None = None,
    errors: Sequence[Any] | None = None,
) -> list[list[Block]] | None:
    """Return a block for each study; None where no study could be read."""
    if not any(studies):
        return None
    found: list[list[Block]] = []
    for place, study in enumerate(studies):
        if study is None or study.reference is None or study.candidate is None:
            found.append([])
            continue
        given = None if errors is None else errors[place]
        block = judged_block(study.candidate, study.reference, given)
        block.triangle = triangles[place] if triangles is not None else None
        found.append([block])
        options.on_progress(len(found), 0)
    return found


def interval_of(
    value: Mapping[str, Any] | None,
) -> tuple[float | None, float | None, float | None]:
    if value is None:
        return None, None, None
    return value.get("estimate"), value.get("low"), value.get("high")
