"""Computing the rows of a table chunk by chunk, one being decoded while another is scored."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from vlscore.core import FinishedRun, OnProgress, ResumableFolder, first_replaced, stamps
from vlscore.data import BadRow, Study, has_headings
from vlscore.errors import InvalidSetting
from vlscore.evaluation.row_chunks import ChunkWriter
from vlscore.evaluation.scoring.results import DETAILS, layout_of
from vlscore.evaluation.scoring.summary import (
    IMAGES,
    REASONS,
    chunk_table,
    read_chunk,
    reasons_of,
    write_chunk,
)
from vlscore.metrics import Item, Scorer

if TYPE_CHECKING:
    from vlscore.embedding import ImageDecoder


# Rows of a chunk where nothing is embedded.
_TEXTS_IN_CHUNK = 1000
# If so many rows all fail for one reason, the settings are wrong, not the data.
_ALL_ALIKE = 100

Row = Study | BadRow


@dataclass(frozen=True)
class Job:
    """Part of a table that is to be computed.

    Attributes:
        metrics: names of the metrics, some of the scorer's; None for all.
        only: numbers of the rows; None for all.
        skip: so many of these rows are done already.
    """

    metrics: tuple[str, ...] | None = None
    only: frozenset[int] | None = None
    skip: int = 0

    def scorer(self, scorer: Scorer) -> Scorer:
        """Return the scorer of these metrics alone."""
        if self.metrics is None:
            return scorer
        return scorer.of_some([m for m in scorer.metrics if str(m) in self.metrics])

    def rows(self, table: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows, without those that are done."""
        asked = (row for row in table if self.only is None or row.row in self.only)
        return islice(asked, self.skip, None)


class ComputedChunk(NamedTuple):
    """A chunk's rows, and the image files that they were made from."""

    rows: pa.Table
    images: list[Path]


class Computing(Protocol):
    """Computer of the chunks of a job: this process, several processes, or a cluster."""

    def chunks(self, job: Job) -> Iterator[ComputedChunk]:
        """Yield the chunks, in the order of the rows; every class yields the same bytes."""
        ...


class Here:
    """Computer of chunks in this process.

    Args: workers: processes that decode images; 0 decodes in this one.
    """

    def __init__(self, table: Iterable[Row], scorer: Scorer, workers: int) -> None:
        self.table, self.scorer, self._workers = table, scorer, workers

    def chunks(self, job: Job) -> Iterator[ComputedChunk]:
        """Yield all chunks."""
        return self.part(job, 0, 1)

    def part(self, job: Job, first: int, step: int) -> Iterator[ComputedChunk]:
        """Yield every `step`-th chunk, from number `first` on."""
        scorer = job.scorer(self.scorer)
        embedder = scorer.embedder if scorer.plan.needs.images else None
        mine = islice(chunks_of(job.rows(self.table), scorer), first, None, step)
        with embedder.decoder(self._workers) if embedder is not None else nullcontext() as decoder:
            schema = layout_of(scorer).schema()
            for prepared in _decoding_ahead(mine, scorer, decoder):
                yield computed(prepared, scorer, schema)


def chunk_tables(folder: ResumableFolder) -> Iterator[pa.Table]:
    """Yield the rows of every finished chunk, in order."""
    return (read_chunk(chunk.path) for chunk in folder.chunks())


def compute_rows(
    folder: ResumableFolder,
    computing: Computing,
    job: Job,
    *,
    on_progress: OnProgress,
    stops_if_alike: bool,
) -> int:
    """Compute the rows that no chunk of the folder holds yet.

    Args:
        job: all rows, those of finished chunks included.
        stops_if_alike: stop if the first hundred rows all fail for one reason.

    Returns: how many rows there are.
    Raises: InvalidSetting where it refuses; nothing was written then.
    """
    chunks = ChunkWriter(folder, on_progress)
    found = computing.chunks(replace(job, skip=chunks.done))
    if stops_if_alike and not chunks.done:
        found = _refuse_if_all_fail(found)
    for rows, images in found:
        failed = len(rows) - int(rows[REASONS].null_count)
        with chunks.append(len(rows), failed, images) as place:
            write_chunk(place, rows)
    return chunks.done


def chunks_of(rows: Iterator[Row], scorer: Scorer) -> Iterator[list[Row]]:
    """Yield the rows, as many at a time as this scorer computes together."""
    size = _TEXTS_IN_CHUNK
    if scorer.embedder is not None:
        size = scorer.embedder.engine.rows_at_once
    while chunk := list(islice(rows, size)):
        yield chunk


def computed(chunk: Sequence["Prepared"], scorer: Scorer, schema: pa.Schema) -> ComputedChunk:
    """Return the rows of a chunk with their values, and the images that they were made from."""
    images = [path for row, _ in chunk if isinstance(row, Study) for path in row.images]
    if scorer.embedder is not None:
        # A chunk's numbers depend on its rows alone, in a run that was stopped as in any other.
        scorer.embedder.engine.forget()
    return ComputedChunk(_scored(chunk, scorer, schema), images)


def _refuse_if_all_fail(computed: Iterator[ComputedChunk]) -> Iterator[ComputedChunk]:
    """Yield the chunks once a row has a value or fails for another reason than the first."""
    waiting: list[ComputedChunk] = []
    kinds: set[str] = set()
    example = ""
    for rows, images in computed:
        waiting.append(ComputedChunk(rows, images))
        count_failed = 0
        for row, study_id, reasons in reasons_of(rows):
            count_failed += 1
            kinds |= {_kind_of(reason) for reason in reasons.values()}
            name = f"row {row}" + (f" ({study_id})" if study_id is not None else "")
            example = example or f"{name}: {next(iter(reasons.values()))}"
        if count_failed < len(rows) or len(kinds) > 1:
            break
        if (seen := sum(len(each) for each, _ in waiting)) >= _ALL_ALIKE:
            raise InvalidSetting(
                f"the first {seen} rows all fail for one reason, and nothing was written; "
                f"{example}. Look at the settings, above all the image folder and the columns; "
                "with keep_going (--keep-going) the rows that follow are tried as well"
            )
    yield from waiting
    yield from computed


def _kind_of(reason: str) -> str:
    """Return a reason without the path or name at its beginning."""
    _, separator, words = reason.partition(": ")
    return words if separator else reason


Prepared = tuple[Row, Item | None]


def _decoding_ahead(
    chunks: Iterator[list[Row]], scorer: Scorer, decoder: "ImageDecoder | None"
) -> Iterator[list[Prepared]]:
    """Begin decoding one chunk while the one before it is being scored."""
    ahead: deque[list[Prepared]] = deque()
    for chunk in chunks:
        ahead.append([(row, prepare(row, scorer, decoder)) for row in chunk])
        if len(ahead) > 1:
            yield ahead.popleft()
    yield from ahead


def prepare(row: Row, scorer: Scorer, decoder: "ImageDecoder | None") -> Item | None:
    """Return the item of a row, and begin to decode its images; None for a bad row."""
    if isinstance(row, BadRow):
        return None
    if decoder is None:
        return Item(row.candidate or "", row.reference, None, row.parts)

    from vlscore.embedding import StudyViews  # loads torch

    shown = StudyViews(row.images, row.views)
    item = Item(row.candidate or "", row.reference, shown, row.parts)
    return scorer.begin_decoding(item, decoder)


def _scored(chunk: Sequence[Prepared], scorer: Scorer, schema: pa.Schema) -> pa.Table:
    items = [item for _, item in chunk if item is not None]
    number = count()
    studies = [row if isinstance(row, Study) else None for row, _ in chunk]
    missing = [study.suspicious if study is not None else () for study in studies]
    reads_images = scorer.plan.needs.images
    takes_all = scorer.text_policy.section_of("reference") == "all"
    looks_for_headings = takes_all and scorer.plan.needs.references
    return chunk_table(
        schema,
        [row.row for row, _ in chunk],
        [row.id for row, _ in chunk],
        scorer.score_items(items) if items else None,
        [None if item is None else next(number) for _, item in chunk],
        {k: row.reason for k, (row, _) in enumerate(chunk) if isinstance(row, BadRow)},
        {
            "empty_candidate": [s is not None and not (s.candidate or "").strip() for s in studies],
            "candidate_says_missing": ["candidate" in each for each in missing],
            "reference_says_missing": ["reference" in each for each in missing],
            "reference_has_headings": [
                looks_for_headings
                and s is not None
                and s.parts is None
                and has_headings(s.reference or "")
                for s in studies
            ],
            "view_guessed": [
                item is not None and item.shown is not None and item.shown.guessed
                for _, item in chunk
            ],
        },
        [stamped(s.images) if reads_images and s is not None else None for s in studies],
    )


_ROWS_AT_ONCE = 10_000


def stamped(paths: Sequence[Path]) -> str | None:
    """Return size, time and digest of each file as json text; None where no file is there."""
    found = stamps(paths)
    return json.dumps(found) if found else None


def require_same_images(run: FinishedRun, *, must_know: bool = False) -> None:
    """Check that the images of a finished run are the files that its rows were computed from.

    A file that is gone replaces nothing.

    Args: must_know: also refuse a run whose details do not name the files that it read.
    Raises: InvalidSetting naming the first file with another content.
    """
    how = "Choose another output folder, or give --overwrite to compute all rows anew"
    with pq.ParquetFile(run.file(DETAILS)) as file:
        if IMAGES not in file.schema_arrow.names:
            if must_know:
                raise InvalidSetting(
                    f"{run.folder} does not say which image files it was computed from, so that no "
                    f"number of images can be added to it. {how}"
                )
            return
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[IMAGES]):
            replaced = _first_replaced(batch.column(0))
            if replaced is not None:
                raise InvalidSetting(
                    f"{replaced} has been replaced since {run.folder} was computed from it; one "
                    f"row would hold numbers of two images. Bring the file back. {how}"
                )


def _first_replaced(column: pa.Array) -> str | None:
    for text in column.to_pylist():
        if text is not None and (path := first_replaced(json.loads(text))) is not None:
            return path
    return None
