"""What an index is made of: reports or radiographs of a table, and how they are embedded."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from vlscore.embedding import EmbeddingEngine
from vlscore.embedding.engine import Embedded
from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.reports import TextPolicy, select
from vlscore.studies import (
    BadRow,
    ColumnNames,
    Report,
    is_encodable,
    read_reports,
    read_rows,
    read_study_images,
)
from vlscore.studies.tables import REPORT_COLUMNS, REPORT_SECTIONS

# Rows that are embedded and kept at a time: so much work at most is lost by a kill.
_REPORTS_AT_ONCE, _IMAGES_AT_ONCE = 500, 100

# How many rows tell what columns a table has.
_HEAD = 100

# Columns that a section is read from, the first that has a text; both are the reader's default.
_SECTION_COLUMNS = {
    "findings": ("findings",),
    "impression": ("impression",),
    "auto": ("findings", "impression"),
}


@dataclass(frozen=True)
class SourceSettings:
    """How a table is read.

    Attributes:
        kind: "report", or "image" for an index of radiographs.
        text_policy: which section of a report is embedded.
        id_column, text_column, image_column: names of columns; text None for the reader's choice.
        image_root: folder that image paths start from; default: the table's.
    """

    kind: str = "report"
    text_policy: TextPolicy | str | None = None
    id_column: str = "id"
    text_column: str | None = None
    image_column: str = "image"
    image_root: str | Path | None = None

    @property
    def policy(self) -> TextPolicy:
        """The text policy as an object."""
        return TextPolicy.named(self.text_policy)

    def to_list(self) -> list[str | None]:
        """What must be equal for an unfinished build to be gone on with."""
        root = str(self.image_root) if self.image_root is not None else None
        return [self.id_column, self.text_column, self.image_column, root]


@dataclass
class Source:
    """Items to embed, each a text or the path of an image, and how they are embedded."""

    rows: Iterator[Report | BadRow]
    embed: Callable[[Sequence[str]], Embedded]
    at_once: int
    texts_are_paths: bool = False


def open_source(table: Path, engine: EmbeddingEngine, settings: SourceSettings) -> Source:
    """The items of a table; raises InvalidSetting for a kind that no index holds."""
    if settings.kind == "report":
        return Source(_reports(table, settings), engine.embed_reports, _REPORTS_AT_ONCE)
    if settings.kind == "image":
        images = _encodable(_images(table, settings))
        return Source(images, engine.embed_images, _IMAGES_AT_ONCE, texts_are_paths=True)
    raise InvalidSetting(f'an index holds "report" or "image", not {settings.kind!r}')


def index_signature(engine: EmbeddingEngine, kind: str, text_policy: TextPolicy) -> str:
    """What the vectors of an index depend on: encoder, text or image policy, precision."""
    encoder = engine.encoder
    if kind == "report":
        input = [f"txt:{text_policy.signature()}"]
    else:
        input = [f"img:{encoder.image_policy.signature()}", "views:first"]
    parts = [
        f"enc:{encoder.card.name}@{encoder.checksum[:12]}",
        *input,
        f"prec:{engine.precision}",
        *(["DEMONSTRATION-ENCODER"] if encoder.card.demonstration else []),
    ]
    return "|".join(parts)


def _reports(table: Path, settings: SourceSettings) -> Iterator[Report | BadRow]:
    section = settings.policy.section
    if settings.text_column is None and section != "all" and _has_sections_for_columns(table):
        return _encodable(_section_columns(table, section, settings.id_column))
    rows = read_reports(table, id_column=settings.id_column, text_column=settings.text_column)
    return _encodable(_selected(rows, settings.policy))


def _has_sections_for_columns(table: Path) -> bool:
    head = [record for _, record in islice(read_rows(table), _HEAD)]
    columns = {name for record in head if isinstance(record, dict) for name in record}
    return bool(columns & set(REPORT_SECTIONS)) and not columns & set(REPORT_COLUMNS)


def _section_columns(table: Path, section: str, id_column: str) -> Iterator[Report | BadRow]:
    columns = _SECTION_COLUMNS.get(section, (None,))
    readings = [read_reports(table, id_column=id_column, text_column=name) for name in columns]
    for versions in zip(*readings, strict=True):
        yield next((row for row in versions if isinstance(row, Report)), versions[-1])


def _selected(rows: Iterator[Report | BadRow], policy: TextPolicy) -> Iterator[Report | BadRow]:
    for row in rows:
        if isinstance(row, BadRow):
            yield row
            continue
        try:
            yield replace(row, text=select(row.text, policy))
        except VLScoreError as error:
            yield BadRow(row.row, row.id, str(error))


def _encodable(rows: Iterator[Report | BadRow]) -> Iterator[Report | BadRow]:
    """Lone surrogates stand for bytes that were no text; no file of ours could hold them."""
    for row in rows:
        if isinstance(row, Report) and not (is_encodable(row.text) and is_encodable(row.id)):
            yield BadRow(row.row, None, "its text or id holds bytes that are not UTF-8")
        else:
            yield row


def _images(table: Path, settings: SourceSettings) -> Iterator[Report | BadRow]:
    names = ColumnNames(id=settings.id_column, image=settings.image_column)
    rows = read_study_images(table, image_root=settings.image_root, columns=names)
    for row, (number, _) in zip(rows, read_rows(table), strict=True):
        if isinstance(row, BadRow):
            yield row
        else:
            yield Report(row.id, str(row.images[0]), number)
