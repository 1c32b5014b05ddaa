"""Items of an index (reports or radiographs), and the finished parts of its build.

`open_source` reads the items of a table. `IndexParts` stores what a build has embedded so far,
in chunks that are complete even if the process is killed.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import Chunk, Chunks, Signature, damaged, text_digest
from vlscore.data import (
    BadRow,
    ColumnNames,
    Report,
    Study,
    TextPolicy,
    is_encodable,
    open_reports,
    open_studies,
)
from vlscore.embedding import Embedded, StudyEmbedder
from vlscore.errors import InvalidReport, InvalidSetting
from vlscore.retrieval.search_settings import SourceSettings

# Rows that are embedded and stored at a time: a kill loses at most this much work.
_REPORTS_AT_ONCE, _IMAGES_AT_ONCE = 500, 100


Embed = Callable[[Sequence[str]], Embedded]


@dataclass
class IndexSource:
    """Items to embed, each a text or the path of an image, and the way to embed them.

    Attributes:
        rows: rows of the table.
        embedding: context manager that returns the function which embeds items.
        at_once: rows that are embedded and stored at a time.
        texts_are_paths: whether the items are paths of images.
    """

    rows: Iterator[Report | BadRow]
    embedding: AbstractContextManager[Embed]
    at_once: int
    texts_are_paths: bool = False


def open_source(
    table: Path, embedder: StudyEmbedder, settings: SourceSettings, workers: int = 0
) -> IndexSource:
    """Open the items of a table; raise InvalidSetting for a kind other than report or image."""
    if settings.kind == "report":
        embedding = nullcontext(embedder.engine.embed_reports)
        return IndexSource(_reports(table, settings), embedding, _REPORTS_AT_ONCE)
    if settings.kind == "image":
        return IndexSource(
            _images(table, settings),
            _embedding_images(embedder, workers),
            _IMAGES_AT_ONCE,
            texts_are_paths=True,
        )
    raise InvalidSetting(f'an index holds "report" or "image", not {settings.kind!r}')


def index_signature(embedder: StudyEmbedder, kind: str, text_policy: TextPolicy) -> Signature:
    """Return what an index's vectors depend on: encoder, text or image policy, precision."""
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
    return (_named_by_image(row) for row in rows)


def _named_by_image(row: Study | BadRow) -> Report | BadRow:
    if isinstance(row, BadRow):
        return row
    path = str(row.images[0])
    if not is_encodable(path):
        reason = f"the image's name {path!a} holds bytes that are not UTF-8: rename the file"
        return BadRow(row.row, row.id, reason)
    return Report(row.id, path, row.row)


_ITEMS, _VECTORS = "items.json", "vectors.npy"


@dataclass(frozen=True)
class BuildKey:
    """Settings that must match before an unfinished build can be resumed.

    Attributes:
        table, sha256: name and content of the table.
        checksum: of the encoder's weights.
        signature: of the index.
        settings: settings for reading the table.
        base: sha256s of the index to which the table is added; empty for a new one.
        generation: of the index that is replaced, 0 if there is none. It distinguishes a build
            that was killed after it had become the next generation from one that replaces that.
    """

    table: str
    sha256: str
    checksum: str
    signature: str
    settings: list[str | None]
    base: list[str]
    generation: int

    @property
    def request(self) -> str:
        """Return the digest of the request."""
        return request_of(asdict(self))


def request_of(key: dict[str, Any]) -> str:
    """Return the digest of a build's request, which does not depend on the index it is added to."""
    asked = {name: value for name, value in key.items() if name not in ("base", "generation")}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def short_digest(text: str) -> bytes:
    """Return a digest of sixteen bytes of a text, also of a file name that is not UTF-8."""
    return text_digest(text)[:16]


class KnownTexts:
    """Row number by text, as digests, so that a corpus of long reports need not fit in RAM."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._rows: dict[bytes, int] = {}
        self.extend(texts)

    def extend(self, texts: Iterable[str]) -> None:
        """Add further texts, with the next numbers."""
        for text in texts:
            self._rows[short_digest(text)] = len(self._rows)

    def get(self, text: str) -> int | None:
        """Return the row of a text, None for a new one."""
        return self._rows.get(short_digest(text))

    def __len__(self) -> int:
        return len(self._rows)


@dataclass(frozen=True)
class IndexPart:
    """Result of one part of the table.

    Attributes:
        texts: new texts, in the order of their vectors.
        owners: (row in the index, id) of every usable item.
        bad: (row of the table, id, reason) of the others.
    """

    texts: list[str]
    owners: list[tuple[int, str]]
    bad: list[tuple[int, str | None, str]]


class IndexParts:
    """Finished parts of one build, in the table's order.

    Args:
        out: folder of the index.
        key: key of the build to which they must belong.
        known: the texts of the index so far; those of the parts are added.
        anew: for a new index: discard damaged parts, or those of another build.

    Attributes:
        done, failed: rows of the table so far, and how many of them were bad.

    Raises: InvalidSetting for parts of another build; ChecksumMismatch for damaged ones.
    """

    def __init__(
        self,
        out: Path,
        key: BuildKey | dict[str, Any],
        dim: int,
        known: KnownTexts,
        *,
        anew: bool = False,
    ) -> None:
        self._dim, self._known = dim, known
        self._chunks = Chunks(out, asdict(key) if isinstance(key, BuildKey) else key, anew=anew)
        self.done, self.failed = self._chunks.rows, 0
        for part in self:
            self._count(part)

    def __iter__(self) -> Iterator[IndexPart]:
        return map(_read, self._chunks)

    def vectors(self) -> Iterator[NDArray[Any]]:
        """Yield the vectors (n, d) float32 of each part."""
        return map(self._vectors, self._chunks)

    def append(
        self, chunk: Sequence[Report | BadRow], embed: Embed, *, are_paths: bool = False
    ) -> None:
        """Embed a part of the table and store it.

        Args: are_paths: whether the texts are paths of images, whose replacement is detected.
        """
        bad = [(row.row, row.id, row.reason) for row in chunk if isinstance(row, BadRow)]
        reports = [row for row in chunk if isinstance(row, Report)]
        new = [
            text
            for text in dict.fromkeys(report.text for report in reports)
            if self._known.get(text) is None
        ]
        embedded = embed(new)
        vectors = embedded.vectors.numpy()
        reasons = {new[k]: str(error) for k, error in embedded.failures.items()}
        for position in np.flatnonzero(~np.isfinite(vectors).all(1)).tolist():
            reasons.setdefault(
                new[position], "the encoder returned an embedding that is not finite"
            )
        good = [position for position, text in enumerate(new) if text not in reasons]
        texts = [new[position] for position in good]
        row_of_new = {text: len(self._known) + number for number, text in enumerate(texts)}
        owners = []
        for report in reports:
            row = row_of_new.get(report.text, self._known.get(report.text))
            if row is None:
                bad.append((report.row, report.id, reasons[report.text]))
            else:
                owners.append((row, report.id))
        bad.sort(key=lambda row: row[0])
        part = IndexPart(texts, owners, bad)
        kept = np.ascontiguousarray(vectors[good], np.float32)
        files = [report.text for report in reports] if are_paths else ()
        with self._chunks.append(len(chunk), inputs=files) as folder:
            np.save(folder / _VECTORS, kept, allow_pickle=False)
            (folder / _ITEMS).write_text(json.dumps(asdict(part)), encoding="utf-8")
        self.done += len(chunk)
        self._count(part)

    def remove(self) -> None:
        """Remove the parts, after the index holds them."""
        self._chunks.discard()

    def _count(self, part: IndexPart) -> None:
        self._known.extend(part.texts)
        self.failed += len(part.bad)

    def _vectors(self, chunk: Chunk) -> NDArray[Any]:
        path = chunk.path / _VECTORS
        try:
            vectors: NDArray[Any] = np.load(path, allow_pickle=False)
        except (OSError, ValueError):
            raise damaged(path) from None
        if vectors.shape != (len(_read(chunk).texts), self._dim):
            raise damaged(path)
        return vectors


def _read(chunk: Chunk) -> IndexPart:
    path = chunk.path / _ITEMS
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        owners = [(int(row), str(id)) for row, id in raw["owners"]]
        bad = [(int(row), id, str(reason)) for row, id, reason in raw["bad"]]
        return IndexPart(raw["texts"], owners, bad)
    except (OSError, ValueError, KeyError, TypeError):
        raise damaged(path) from None
