"""What an index is made of: reports or radiographs of a table, and how they are embedded."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from vlscore._signature import Signature
from vlscore.embedding import StudyEmbedder
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


Embed = Callable[[Sequence[str]], Embedded]


@dataclass
class Source:
    """Items to embed, each a text or the path of an image, and how they are embedded.

    Attributes:
        rows: of the table.
        embedding: gives what embeds items, for as long as it is entered.
        at_once: rows that are embedded and kept at a time.
        texts_are_paths: whether the items are paths of images.
    """

    rows: Iterator[Report | BadRow]
    embedding: AbstractContextManager[Embed]
    at_once: int
    texts_are_paths: bool = False


def open_source(
    table: Path, embedder: StudyEmbedder, settings: SourceSettings, workers: int = 0
) -> Source:
    """The items of a table; raises InvalidSetting for a kind that no index holds."""
    if settings.kind == "report":
        embedding = nullcontext(embedder.engine.embed_reports)
        return Source(_reports(table, settings), embedding, _REPORTS_AT_ONCE)
    if settings.kind == "image":
        return Source(
            _images(table, settings),
            _embedding_images(embedder, workers),
            _IMAGES_AT_ONCE,
            texts_are_paths=True,
        )
    raise InvalidSetting(f'an index holds "report" or "image", not {settings.kind!r}')


def index_signature(embedder: StudyEmbedder, kind: str, text_policy: TextPolicy) -> Signature:
    """What the vectors of an index depend on: encoder, text or image policy, precision."""
    facts = embedder.signature
    if kind == "report":
        input = {"txt": text_policy.signature()}
    else:
        input = {"img": embedder.image_policy.signature(), "views": "first"}
    flags = [name for name, value in facts if value is None]
    signature = Signature("index").plus(enc=facts.get("enc")).plus(input)
    return signature.plus(prec=facts.get("prec")).flagged(*flags)


@contextmanager
def _embedding_images(embedder: StudyEmbedder, workers: int) -> Iterator[Embed]:
    with embedder.decoder(workers) as decoder:
        yield lambda paths: embedder.engine.embed_images(paths, decoder=decoder)


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
