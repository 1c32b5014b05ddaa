"""Values of a table of reports: the only place where rows become values.

`evaluate`, `compare`, `align`, `sensitivity` and others read a table, score it here, and analyse
the values.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from vlscore.core import OnProgress, no_progress
from vlscore.data import Study
from vlscore.errors import Failure, InvalidSetting, InvalidStudy, VLScoreError
from vlscore.metrics import Computed, Item, Scorer, ScoreTable, spread

# Rows that are scored together where nothing is embedded.
_TEXTS_AT_ONCE = 1000
# If so many rows all fail for one reason, the settings are wrong, not the data.
_ALL_ALIKE = 100

ItemOrError = Item | VLScoreError
# Scores batches of rows, in their order.
Engine = Callable[[Scorer, Iterable[list[Item]]], Iterator[ScoreTable]]
# Whether it is unknown which of a study's images is frontal, and the first was taken.
VIEW_GUESSED = "view_guessed"


def score_table(
    items: Sequence[ItemOrError],
    scorer: Scorer,
    *,
    workers: int = 0,
    on_progress: OnProgress = no_progress,
    keep_going: bool = True,
    names: Callable[[int], str] = "row {}".format,
    batches: Sequence[Sequence[int]] | None = None,
    engine: Engine | None = None,
) -> ScoreTable:
    """Score rows of candidate, reference and images.

    Rows with the same images are scored together, so that each image is embedded once, also
    without a cache. Images of the next rows are decoded while some are being scored. Metrics that
    weigh words by the references, such as CIDEr-D, are fitted to those of all rows, unless
    `scorer` was fitted before.

    Args:
        items: n rows; an error stands for a row that cannot be read, and is its failure.
        workers: processes that decode images; 0 decodes in this one.
        on_progress: called with the numbers of rows that are done, and of those that failed.
        keep_going: whether to go on where the first hundred rows all fail for one reason.
        names: returns the name of a row for messages.
        batches: positions of rows that are scored together, as `rows_of_part` returns them;
            default: all rows.
        engine: scores batches elsewhere, in their order; default: this process.

    Returns: n rows of values; a row that fails has nan, and a reason in `failures`. Rows of no
        batch have nan, without a reason. `geometry` says of which studies it was guessed
        which image is frontal (`view_guessed`).
    Raises: InvalidSetting where it does not go on.
    """
    scorer = scorer.prepared(items)
    mine = rows_of_part(items, scorer) if batches is None else batches
    readable = {row: item for row, item in enumerate(items) if isinstance(item, Item)}
    unread = {
        row: item for batch in mine for row in batch if isinstance(item := items[row], VLScoreError)
    }
    usable = [[row for row in batch if row in readable] for batch in mine]
    usable = [batch for batch in usable if batch]
    done, failed = 0, len(unread)
    failures: dict[int, VLScoreError] = dict(unread)
    valued: set[int] = set()
    parts: list[ScoreTable] = []
    order: list[int] = []
    on_progress(failed, failed)
    taken = ([readable[row] for row in batch] for batch in usable)
    scored = engine(scorer, taken) if engine else score_batches(scorer, taken, workers)
    for rows, found in zip(usable, scored, strict=True):
        parts.append(found)
        order += rows
        failures |= {rows[k]: error for k, error in found.failures.items()}
        done, failed = len(order) + len(unread), len(failures)
        if not keep_going:
            # A row with the value of any metric is no sign of wrong settings.
            columns = [each.columns[0] for each in found.values.values()]
            some = np.isfinite(columns).any(axis=0)
            valued |= {rows[k] for k in np.flatnonzero(some)}
            without = {row: error for row, error in failures.items() if row not in valued}
            keep_going = done >= _ALL_ALIKE
            if keep_going and len(without) == done:
                _refuse_if_alike(without, names)
        on_progress(done, failed)
    if not parts:
        if not keep_going and failed >= _ALL_ALIKE:
            _refuse_if_alike(failures, names)
        parts.append(scorer.score_items([]))
    return _joined(parts, order, unread, len(items))


def item_of(row: Study | Failure, scorer: Scorer, position: int | None = None) -> ItemOrError:
    """Return what `score_table` scores of a row; an error for one that could not be read.

    Args: position: of the row in its table, from 0.
    """
    if isinstance(row, Failure):
        return InvalidStudy(row.reason)
    if not scorer.needs.images:
        return Item(row.candidate or "", row.reference, None, row.parts, row.lacking, position)

    from vlscore.embedding import StudyViews  # loads torch

    shown = None if "image" in row.lacking else StudyViews.of(row)
    return Item(row.candidate or "", row.reference, shown, row.parts, row.lacking, position)


def score_batches(
    scorer: Scorer, batches: Iterable[list[Item]], workers: int = 0
) -> Iterator[ScoreTable]:
    """Yield the values of each batch; the images of one batch are decoded ahead."""
    embedder = scorer.embedder if scorer.needs.images else None
    if embedder is None:
        yield from map(scorer.score_items, batches)
        return
    with embedder.decoder(workers) as decoder:
        ahead: list[Item] | None = None
        for batch in chain(batches, [None]):
            for item in batch or ():
                if item.shown is not None:
                    embedder.begin(item.shown, decoder)
            if ahead is not None:
                table = scorer.score_items(ahead)
                guessed = [item.shown is not None and item.shown.guessed for item in ahead]
                yield ScoreTable(table.values, {**table.geometry, VIEW_GUESSED: np.array(guessed)})
            ahead = batch


def rows_of_part(
    items: Sequence[ItemOrError], scorer: Scorer, part: tuple[int, int] = (1, 1)
) -> list[list[int]]:
    """Return the batches of the k-th of n parts: positions of rows that are scored together.

    Rows of the same images are in one batch, as far as they fit.
    """
    number, count = part
    size = _TEXTS_AT_ONCE
    if scorer.embedder is not None:
        size = scorer.embedder.rows_at_once
    is_path, groups = (str, os.PathLike), dict[Any, list[int]]()
    for row, item in enumerate(items):
        # What rows of the same images share.
        shared: Any = row
        if isinstance(item, Item) and item.shown is not None and item.shown.images:
            images = item.shown.images
            shared = tuple(os.fspath(i) if isinstance(i, is_path) else id(i) for i in images)
        groups.setdefault(shared, []).append(row)
    batches: list[list[int]] = [[]]
    for group in groups.values():
        if len(batches[-1]) + len(group) > size:
            batches.append([])
        batches[-1] += group
        while len(batches[-1]) > size:
            batches[-1:] = [batches[-1][:size], batches[-1][size:]]
    return [batch for batch in batches if batch][number - 1 :: count]


def _joined(
    parts: Sequence[ScoreTable], order: Sequence[int], unread: dict[int, VLScoreError], count: int
) -> ScoreTable:
    """Return the values of all rows in the order of the table."""
    starts = np.cumsum([0, *map(len, parts)]).tolist()
    values = {}
    for metric, first in parts[0].values.items():
        each = [part.values[metric] for part in parts]
        sums = [one.statistics for one in each if one.statistics is not None]
        together = Computed(
            [np.concatenate(column) for column in zip(*(one.columns for one in each), strict=True)],
            np.concatenate(sums) if sums else None,
            {
                start + k: error
                for start, one in zip(starts, each, strict=False)
                for k, error in one.failures.items()
            },
            first.signature,
        )
        values[metric] = together.spread(order, count, unread)
    geometry = {
        name: spread(np.concatenate([part.geometry[name] for part in parts]), order, count)
        for name in parts[0].geometry
    }
    return ScoreTable(values, geometry)


def _refuse_if_alike(failures: dict[int, VLScoreError], names: Callable[[int], str]) -> None:
    """Raise InvalidSetting if all rows so far, which failed, did so for one reason."""
    if len({_kind_of(str(error)) for error in failures.values()}) > 1:
        return
    row = min(failures)
    raise InvalidSetting(
        f"the first {len(failures)} rows all fail for one reason, and nothing was written; "
        f"{names(row)}: {failures[row]}. Look at the settings, above all the image folder and the "
        "columns; with keep_going (--keep-going) the rows that follow are tried as well"
    )


def _kind_of(reason: str) -> str:
    """Return a reason without the path or name at its beginning."""
    _, separator, words = reason.partition(": ")
    return words if separator else reason
