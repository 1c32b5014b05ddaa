"""What an index is made of: reports or radiographs of a table, and how they are embedded."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vlscore.embedding import EmbeddingEngine
from vlscore.embedding.engine import Embedded
from vlscore.errors import InvalidReport, InvalidSetting
from vlscore.reports import TextPolicy
from vlscore.studies import BadRow, ColumnNames, Report, open_reports, open_studies

# Rows that are embedded and kept at a time: so much work at most is lost by a kill.
_REPORTS_AT_ONCE, _IMAGES_AT_ONCE = 500, 100


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
        images = _images(table, settings)
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
    rows = open_reports(table, id_column=settings.id_column, text_column=settings.text_column)
    return (_selected(row, settings.policy) for row in rows)


def _selected(row: Report | BadRow, policy: TextPolicy) -> Report | BadRow:
    try:
        return row if isinstance(row, BadRow) else row.selected(policy)
    except InvalidReport as error:
        return BadRow(row.row, row.id, str(error))


def _images(table: Path, settings: SourceSettings) -> Iterator[Report | BadRow]:
    names = ColumnNames(
        id=settings.id_column,
        image=settings.image_column,
        options={"id": "--id-column", "image": "--image-column"},
    )
    rows = open_studies(table, needs={"image"}, image_root=settings.image_root, columns=names)
    return (
        row if isinstance(row, BadRow) else Report(row.id, str(row.images[0]), row.row)
        for row in rows
    )
