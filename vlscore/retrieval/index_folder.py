"""Index on disk: a folder with mapped vectors, texts with their ids, and a manifest.

The manifest `index.json` describes the index, and names the files of the current generation with
their sizes and sha256. It is replaced last, atomically, so that readers see either the old index or
the new one, never a mix.

An index may come from an untrusted source: everything in it is checked, and no file is unpickled.
"""

import json
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vlscore.core import (
    Signature,
    __version__,
    difference,
    file_digest,
    frame_of_columns,
    write_json,
)
from vlscore.data import BadRow
from vlscore.encoders import encoder_from_file
from vlscore.errors import InvalidIndex

if TYPE_CHECKING:
    import pandas


FORMAT = 1
MANIFEST = "index.json"
KINDS = ("report", "image")
ROLES = {"vectors", "table", "bad_rows", "flat", "approximate"}

_LARGEST = 2**62


@dataclass(frozen=True)
class FileRecord:
    """File of the index: its name in the folder, size in bytes and sha256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """Content of `index.json`.

    Attributes:
        kind: what the vectors embed: "report" or "image".
        encoder, checksum: name of the encoder and sha256 of its weights.
        demonstration: the encoder is the bundled one, trained on synthetic phantoms.
        signature: encoder, text or image policy and precision in one line.
        rows: distinct texts (or images), each with one vector.
        items: number of reports (or images), repeated ones counted.
        bad_rows: rows of the source that could not be used.
        sources: each table, in the order they were added: "name", "path" as the user wrote it,
            "sha256", and "request", the digest of the call that added it.
        files: "vectors", "table", "bad_rows", and a FAISS file, "flat" or "approximate", if there
            is one.
        approximate: the FAISS factory string of an approximate index, or None.
        generation: grows by one with every change.
        request: digest of the build that made it, to recognise a build killed at its very end.
    """

    kind: str
    encoder: str
    checksum: str
    demonstration: bool
    signature: str
    dim: int
    rows: int
    items: int
    bad_rows: int
    sources: list[dict[str, str]]
    files: dict[str, FileRecord]
    approximate: str | None = None
    generation: int = 1
    request: str = ""
    format: int = FORMAT
    version: str = field(default=__version__)

    @property
    def facts(self) -> Signature:
        """Return the signature as a `Signature`."""
        has_subject = self.signature.startswith("index|")
        # Indexes of earlier versions were printed without what the signature is of.
        return Signature.parse(self.signature if has_subject else f"index|{self.signature}")


def encoder_name_of(path: Path, manifest: Manifest, option: str = "--encoder") -> str:
    """Return the name of the index's encoder, to load it; raise UnknownName if not registered.

    Args:
        path: folder of the index.
        option: the command-line option that names a user's own encoder, for the message.
    """
    return encoder_from_file(manifest.encoder, path / MANIFEST, option)


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of an index; raise InvalidIndex if it cannot be read."""
    source = path / MANIFEST
    try:
        raw = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = " (an unfinished build; repeat the command)" if (path / ".parts").is_dir() else ""
        raise InvalidIndex(
            f"{path} is no index{hint}: no {MANIFEST}. `vlscore index build` makes one"
        ) from None
    except NotADirectoryError:
        raise InvalidIndex(
            f"{path} is a file; an index is a folder, which `vlscore index build` makes of a table"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidIndex(f"{source} cannot be read: {type(error).__name__}") from None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        found = raw.get("format") if isinstance(raw, dict) else type(raw).__name__
        raise InvalidIndex(f"{source}: format {found!r}; this version reads format {FORMAT}")
    try:
        files = {role: FileRecord(**record) for role, record in raw.pop("files").items()}
        manifest = Manifest(files=files, **raw)
    except (TypeError, KeyError, AttributeError):
        manifest = None
    if manifest is None or not _is_sound(manifest):
        raise InvalidIndex(f"{source}: entries are missing, unknown or malformed")
    return manifest


def _is_sound(manifest: Manifest) -> bool:
    counts = ("dim", "rows", "items", "bad_rows", "generation")
    texts = ("kind", "encoder", "checksum", "signature", "request", "version")
    return (
        all(_is_count(getattr(manifest, name)) for name in counts)
        and manifest.dim > 0
        and all(_is_text(getattr(manifest, name)) for name in texts)
        and manifest.kind in KINDS
        and isinstance(manifest.demonstration, bool)
        and (manifest.approximate is None or _is_text(manifest.approximate))
        and isinstance(manifest.sources, list)
        and all(map(_is_source, manifest.sources))
        and {"vectors", "table", "bad_rows"} <= manifest.files.keys() <= ROLES
        and all(map(_is_record, manifest.files.values()))
    )


def _is_record(record: FileRecord) -> bool:
    # A name with a folder in it would make the index read other people's files.
    local = _is_text(record.name) and Path(record.name).name == record.name != ".."
    return local and _is_count(record.size) and _is_text(record.sha256)


def _is_source(source: object) -> bool:
    return (
        isinstance(source, dict)
        and {"name", "sha256"} <= source.keys()
        and all(map(_is_text, source.values()))
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST


def _is_text(value: object) -> bool:
    """Return whether a value is a text of one line without control characters."""
    return isinstance(value, str) and value.isprintable()


_ROWS = 10_000
TABLE_SCHEMA = pa.schema([("text", pa.large_string()), ("ids", pa.list_(pa.string()))])


class Index:
    """Index: vectors of a corpus, mapped from disk, with its texts and ids.

    Attributes:
        path: the folder.
        manifest: description of its sources, encoder and files.
        vectors: (n, d) float32, a memory map.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self.vectors = _map_vectors(path, manifest)

    @cached_property
    def _table(self) -> pa.Table:
        # Read on first use only, because it is read completely for its check.
        return _map_table(self.path, self.manifest)

    def __len__(self) -> int:
        return self.manifest.rows

    def text(self, row: int) -> str:
        """Return the report of a row; in an index of images, the path."""
        text: str = self._table.column("text")[row].as_py()
        return text

    def texts(self) -> list[str]:
        """Return the reports of all rows, in the order of the corpus."""
        texts: list[str] = self._table.column("text").to_pylist()
        return texts

    def iter_texts(self) -> Iterator[str]:
        """Yield the reports of all rows, loading a few at a time."""
        for start in range(0, len(self), _ROWS):
            yield from self._table.column("text").slice(start, _ROWS).to_pylist()

    def ids(self, row: int) -> list[str]:
        """Return the ids of all reports with the text of this row."""
        ids: list[str] = self._table.column("ids")[row].as_py()
        return ids

    def all_ids(self) -> list[list[str]]:
        """Return the ids of every row."""
        ids: list[list[str]] = self._table.column("ids").to_pylist()
        return ids

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a distinct text: row, ids (with ";"), text. Needs pandas."""
        ids = [";".join(each) for each in self.all_ids()]
        columns = {"row": range(len(self)), "ids": ids, "text": self.texts()}
        return frame_of_columns(columns)

    def file(self, role: str) -> Path:
        """Return the path of the file with that role; raise InvalidIndex if there is none."""
        record = self.manifest.files.get(role)
        if record is None:
            raise InvalidIndex(f"{self.path}: the index has no {role} file")
        return self.path / record.name

    def bad_rows(self) -> list[BadRow]:
        """Return the rows of the tables that could not be used."""
        return [BadRow(r["row"], r["id"], r["reason"]) for r in self.bad_row_records()]

    def bad_row_records(self) -> list[dict[str, Any]]:
        """Return them as in the file: table (its number in `sources`), row, id, reason."""
        path = self.file("bad_rows")
        try:
            records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except (OSError, ValueError, RecursionError):
            records = [None]
        if not all(map(_is_bad_row, records)):
            raise InvalidIndex(f"{path} is damaged; build the index again")
        return records

    def check_text_policy(self, printed: str) -> None:
        """Raise InvalidIndex unless the printed policy is the one that selected its reports."""
        there = self.manifest.facts.get("txt")
        if there != printed:
            raise self._made_otherwise(f"txt: {there} against {printed}")

    def check_made_with(self, name: str, checksum: str, signature: Signature | None = None) -> None:
        """Raise InvalidIndex unless the index was made with this encoder and these settings.

        Args:
            name, checksum: of the encoder.
            signature: from `index_signature`; None to compare the encoder alone.
        """
        if checksum != self.manifest.checksum:
            raise InvalidIndex(
                f"{self.path} was made with {self.manifest.encoder} "
                f"(sha256 {self.manifest.checksum[:12]}), not with {name} ({checksum[:12]}); "
                "build an index with this encoder, or name the other one"
            )
        if signature is not None and signature != self.manifest.facts:
            raise self._made_otherwise(difference(self.manifest.facts, signature))

    def _made_otherwise(self, what: str) -> InvalidIndex:
        return InvalidIndex(
            f"{self.path} was made with other settings: {what}. Give the same "
            "settings (txt: --section, img: --image-policy, prec: --precision, "
            "COMPILED: --compile), or build an index with these"
        )


def load_index(path: str | Path, *, check: bool = True) -> Index:
    """Open an index.

    Args:
        check: compare the files' content with their recorded sha256, which reads them once.

    Raises: InvalidIndex if it is not an index, is damaged, or has an unknown format.
    """
    path = Path(path)
    manifest = read_manifest(path)
    while True:
        try:
            for record in manifest.files.values():
                _check_file(path / record.name, record, check)
            return Index(path, manifest)
        except InvalidIndex:
            # Another process may have replaced the index meanwhile, and removed these files.
            current = read_manifest(path)
            if current.generation == manifest.generation:
                raise
            manifest = current


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Replace `index.json`, which makes the new generation the current one."""
    write_json(path / MANIFEST, asdict(manifest))


def record_file(path: Path) -> FileRecord:
    """Return the record of a file just written: name, size and digest."""
    return FileRecord(path.name, path.stat().st_size, file_digest(path))


def _check_file(path: Path, record: FileRecord, check: bool) -> None:
    try:
        status = path.stat()
    except OSError:
        raise InvalidIndex(f"{path} is missing; build the index again") from None
    if not stat.S_ISREG(status.st_mode):
        raise InvalidIndex(f"{path} is no ordinary file; build the index again")
    if status.st_size != record.size:
        raise InvalidIndex(
            f"{path} holds {status.st_size} bytes instead of {record.size}; build the index again"
        )
    try:
        is_damaged = check and file_digest(path) != record.sha256
    except OSError as error:
        raise InvalidIndex(f"{path} cannot be read: {error.strerror}") from None
    if is_damaged:
        raise InvalidIndex(f"{path} is damaged: its sha256 has changed; build the index again")


def _map_vectors(path: Path, manifest: Manifest) -> NDArray[Any]:
    """Map the vectors of a file; its header must equal, byte for byte, the expected one."""
    file = path / manifest.files["vectors"].name
    shape = (manifest.rows, manifest.dim)
    header = str({"descr": "<f4", "fortran_order": False, "shape": shape})
    expected = header[:-1] + ", }"
    wrong = InvalidIndex(f"{file} does not hold {manifest.rows} x {manifest.dim} float32 vectors")
    try:
        with file.open("rb") as stream:
            start = stream.read(10)
            length = int.from_bytes(start[8:], "little")
            found = stream.read(length)
        if start[:8] != b"\x93NUMPY\x01\x00" or found.rstrip(b" \n") != expected.encode():
            raise wrong
        if file.stat().st_size != 10 + length + 4 * manifest.rows * manifest.dim:
            raise wrong
        if not manifest.rows:
            return np.empty(shape, np.float32)
        # Copy-on-write, because torch accepts only writable arrays; the file does not change.
        return np.memmap(file, "<f4", mode="c", offset=10 + length, shape=shape)
    except (OSError, ValueError) as error:
        raise InvalidIndex(f"{file} is damaged: {error}") from None


def _map_table(path: Path, manifest: Manifest) -> pa.Table:
    """Map texts and ids, and check all of them, because Arrow does not check what it reads."""
    file = path / manifest.files["table"].name
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(file)))
        if reader.schema != TABLE_SCHEMA:
            raise InvalidIndex(f"{file} does not hold texts and ids")
        table = reader.read_all()
        table.validate(full=True)
    except (OSError, MemoryError, pa.ArrowException) as error:
        raise InvalidIndex(f"{file} is damaged: {error}") from None
    if len(table) != manifest.rows or not _is_complete(table):
        raise InvalidIndex(f"{file} does not hold the texts and ids of {manifest.rows} rows")
    return table


def _is_complete(table: pa.Table) -> bool:
    """Return whether no text, no list of ids and no id is null."""
    return not any(
        chunk.null_count or (isinstance(chunk, pa.ListArray) and chunk.flatten().null_count)
        for column in table.columns
        for chunk in column.chunks
    )


def _is_bad_row(record: object) -> bool:
    return (
        isinstance(record, dict)
        and {"table", "row", "id", "reason"} == record.keys() - {"source"}
        and isinstance(record["row"], int)
        and isinstance(record.get("source", 0), int)
        and isinstance(record["table"], str)
        and isinstance(record["id"], str | None)
        and isinstance(record["reason"], str)
    )
