"""Computing the rows of a table chunk by chunk, one being decoded while another is scored."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import count, islice
from pathlib import Path

import pyarrow as pa

from vlscore._resumable import ResumableFolder
from vlscore.embedding import ImageDecoder, StudyViews
from vlscore.errors import InvalidSetting
from vlscore.evaluation.results import layout_of
from vlscore.evaluation.rows import REASONS, chunk_table, read_chunk, reasons_of, write_chunk
from vlscore.scorer import Item, Scorer
from vlscore.studies import BadRow, Study

# Batches in one chunk: enough for equal reports to meet and for lengths to be bucketed.
_BATCHES_IN_CHUNK = 8
# Rows of a chunk where nothing is embedded.
_TEXTS_IN_CHUNK = 1000
# So many rows that all fail for one reason are no accident of the data.
_ALL_ALIKE = 100

Row = Study | BadRow
OnProgress = Callable[[int, int], None]
# A chunk's rows, and the image files that they were made from.
_Computed = tuple[pa.Table, list[Path]]


def chunk_tables(folder: ResumableFolder) -> Iterator[pa.Table]:
    """The rows of every finished chunk, in order."""
    return (read_chunk(chunk.path) for chunk in folder.chunks())


def compute_rows(
    folder: ResumableFolder,
    scorer: Scorer,
    studies: Iterable[Row],
    *,
    workers: int,
    on_progress: OnProgress,
    stops_if_alike: bool,
) -> int:
    """Compute the rows that no chunk of the folder holds yet.

    Args:
        studies: all rows, those of finished chunks included.
        stops_if_alike: refuse to go on where the first hundred rows all fail for one reason.

    Returns: how many rows there are.
    Raises: InvalidSetting where it refuses; nothing was written then.
    """
    done = folder.rows
    failed = sum(_failed(table) for table in chunk_tables(folder))
    on_progress(done, failed)
    embedder = scorer.embedder if scorer.plan.needs.images else None
    with embedder.decoder(workers) if embedder is not None else nullcontext() as decoder:
        computed = _computed(islice(studies, done, None), scorer, decoder)
        if stops_if_alike and not done:
            computed = _unless_all_alike(computed)
        for rows, images in computed:
            with folder.append(len(rows), inputs=images) as place:
                write_chunk(place, rows)
            done, failed = done + len(rows), failed + _failed(rows)
            on_progress(done, failed)
    return done


def _failed(rows: pa.Table) -> int:
    return len(rows) - int(rows[REASONS].null_count)


def _computed(
    studies: Iterator[Row], scorer: Scorer, decoder: ImageDecoder | None
) -> Iterator[_Computed]:
    schema = layout_of(scorer).schema()
    size = _TEXTS_IN_CHUNK
    if scorer.embedder is not None:
        size = _BATCHES_IN_CHUNK * scorer.embedder.engine.batch_size
    for chunk in _decoding_ahead(_chunks(studies, size), scorer, decoder):
        images = [path for row, _ in chunk if isinstance(row, Study) for path in row.images]
        if scorer.embedder is not None:
            # A chunk's numbers depend on its rows alone, in a run that was stopped as in any other.
            scorer.embedder.engine.forget()
        yield _scored(chunk, scorer, schema), images


def _unless_all_alike(computed: Iterator[_Computed]) -> Iterator[_Computed]:
    """The same chunks, held back until they show that a setting is not what is wrong."""
    held: list[_Computed] = []
    kinds: set[str] = set()
    example = ""
    for rows, images in computed:
        held.append((rows, images))
        count_failed = 0
        for row, study_id, reasons in reasons_of(rows):
            count_failed += 1
            kinds |= {_kind_of(reason) for reason in reasons.values()}
            name = f"row {row}" + (f" ({study_id})" if study_id is not None else "")
            example = example or f"{name}: {next(iter(reasons.values()))}"
        if count_failed < len(rows) or len(kinds) > 1:
            break
        if (seen := sum(len(each) for each, _ in held)) >= _ALL_ALIKE:
            raise InvalidSetting(
                f"the first {seen} rows all fail for one reason, and nothing was written; "
                f"{example}. Look at the settings, above all the image folder and the columns; "
                "with keep_going (--keep-going) the rows that follow are tried as well"
            )
    yield from held
    yield from computed


def _kind_of(reason: str) -> str:
    """A reason without the path or name that most begin with."""
    _, separator, words = reason.partition(": ")
    return words if separator else reason


_Prepared = tuple[Row, Item | None]


def _chunks(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    while chunk := list(islice(rows, size)):
        yield chunk


def _decoding_ahead(
    chunks: Iterator[list[Row]], scorer: Scorer, decoder: ImageDecoder | None
) -> Iterator[list[_Prepared]]:
    """Begin decoding one chunk while the one before it is being scored."""
    ahead: deque[list[_Prepared]] = deque()
    for chunk in chunks:
        ahead.append([(row, _prepare(row, scorer, decoder)) for row in chunk])
        if len(ahead) > 1:
            yield ahead.popleft()
    yield from ahead


def _prepare(row: Row, scorer: Scorer, decoder: ImageDecoder | None) -> Item | None:
    if isinstance(row, BadRow):
        return None
    shown = StudyViews(row.images, row.views) if decoder is not None else None
    item = Item(row.candidate or "", row.reference, shown, row.parts)
    return scorer.begin_decoding(item, decoder) if decoder is not None else item


def _scored(chunk: Sequence[_Prepared], scorer: Scorer, schema: pa.Schema) -> pa.Table:
    items = [item for _, item in chunk if item is not None]
    number = count()
    studies = [row if isinstance(row, Study) else None for row, _ in chunk]
    said = [study.suspicious if study is not None else () for study in studies]
    return chunk_table(
        schema,
        [row.row for row, _ in chunk],
        [row.id for row, _ in chunk],
        scorer.score_items(items) if items else None,
        [None if item is None else next(number) for _, item in chunk],
        {k: row.reason for k, (row, _) in enumerate(chunk) if isinstance(row, BadRow)},
        {
            "empty_candidate": [s is not None and not (s.candidate or "").strip() for s in studies],
            "candidate_says_missing": ["candidate" in each for each in said],
            "reference_says_missing": ["reference" in each for each in said],
            "view_guessed": [
                item is not None and item.shown is not None and item.shown.guessed
                for _, item in chunk
            ],
        },
    )
