"""An index on disk: vectors that are mapped, texts with their ids, and what they were made with.

An index is a folder. `index.json` names the files of the current generation with their sizes and
sha256, and is replaced last, atomically; readers see the old index or the new one, never a mix.
No file is ever unpickled.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vlscore._files import file_digest, write_json
from vlscore._version import __version__
from vlscore.errors import InvalidIndex
from vlscore.studies import BadRow

FORMAT = 1
MANIFEST = "index.json"
KINDS = ("report", "image")
_ROWS = 10_000
TABLE_SCHEMA = pa.schema([("text", pa.large_string()), ("ids", pa.list_(pa.string()))])


@dataclass(frozen=True)
class FileRecord:
    """A file of the index: its name in the folder, size in bytes and sha256."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What `index.json` says.

    Attributes:
        kind: what the vectors embed: "report" or "image".
        encoder, checksum: name of the encoder and sha256 of its weights.
        demonstration: the encoder is the bundled one, trained on synthetic phantoms.
        signature: encoder, text or image policy and precision in one line.
        rows: distinct texts (or images), each with one vector.
        items: reports (or images) that they stand for, repeated ones counted.
        bad_rows: rows of the source that could not be used.
        sources: name and sha256 of each table, in the order they were added.
        files: "vectors", "table", "bad_rows", and a FAISS file, "flat" or "approximate", where
            there is one.
        approximate: the FAISS factory string, where there is an approximate index.
        generation: grows by one with every change.
        request: digest of the build that made it, to know one that was killed at its very end.
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


class Index:
    """Vectors of a corpus, mapped from disk, with its texts and ids.

    Attributes:
        path: the folder.
        manifest: what it was made of and with.
        vectors: (n, d) float32, a memory map.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self.vectors = _map_vectors(path, manifest)
        self._table = _map_table(path, manifest)

    def __len__(self) -> int:
        return self.manifest.rows

    def text(self, row: int) -> str:
        """The report of a row; the path, in an index of images."""
        return self._table.column("text")[row].as_py()

    def texts(self) -> list[str]:
        """The reports of all rows, in the order of the corpus."""
        return self._table.column("text").to_pylist()

    def iter_texts(self) -> Iterator[str]:
        """The same, a few at a time."""
        for start in range(0, len(self), _ROWS):
            yield from self._table.column("text").slice(start, _ROWS).to_pylist()

    def ids(self, row: int) -> list[str]:
        """Ids of all reports that read like this row."""
        return self._table.column("ids")[row].as_py()

    def all_ids(self) -> list[list[str]]:
        """Ids of every row."""
        return self._table.column("ids").to_pylist()

    def file(self, role: str) -> Path:
        """Path of the file with that role; raises InvalidIndex where there is none."""
        record = self.manifest.files.get(role)
        if record is None:
            raise InvalidIndex(f"{self.path}: the index has no {role} file")
        return self.path / record.name

    def bad_rows(self) -> list[BadRow]:
        """Rows of the tables that could not be used."""
        return [BadRow(r["row"], r["id"], r["reason"]) for r in self.bad_row_records()]

    def bad_row_records(self) -> list[dict[str, Any]]:
        """The same, as the file has them: table, row, id, reason."""
        path = self.file("bad_rows")
        try:
            records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            if all(record.keys() == {"table", "row", "id", "reason"} for record in records):
                return records
        except (OSError, ValueError, AttributeError):
            pass
        raise InvalidIndex(f"{path} is damaged; build the index again")

    def check_made_with(self, name: str, checksum: str, signature: str | None = None) -> None:
        """Raises InvalidIndex unless the index was made with this encoder, in this way.

        Args:
            name, checksum: of the encoder.
            signature: as `index_signature` makes it; None to compare the encoder alone.
        """
        if checksum != self.manifest.checksum:
            raise InvalidIndex(
                f"{self.path} was made with {self.manifest.encoder} "
                f"(sha256 {self.manifest.checksum[:12]}), not with {name} ({checksum[:12]}); "
                "build an index with this encoder, or name the other one"
            )
        if signature is not None and signature != self.manifest.signature:
            there, here = self.manifest.signature.split("|"), signature.split("|")
            was = ", ".join(part for part in there if part not in here) or "nothing else"
            now = ", ".join(part for part in here if part not in there) or "nothing else"
            raise InvalidIndex(
                f"{self.path} was made with {was}; here it is {now}. Give the same policies "
                "(txt: --section, img: --window, prec: --precision), or build an index with these"
            )


def load_index(path: str | Path, *, check: bool = True) -> Index:
    """Open an index.

    Args:
        check: compare the files' content with their recorded sha256, which reads them once.

    Raises: InvalidIndex for what is no index, damaged, or of a format yet unknown.
    """
    path = Path(path)
    manifest = read_manifest(path)
    while True:
        try:
            for record in manifest.files.values():
                _check_file(path / record.name, record, check)
            return Index(path, manifest)
        except InvalidIndex:
            # Another process may just have replaced the index, and removed the files of this one.
            current = read_manifest(path)
            if current.generation == manifest.generation:
                raise
            manifest = current


def read_manifest(path: Path) -> Manifest:
    """The manifest of an index; raises InvalidIndex."""
    source = path / MANIFEST
    try:
        raw = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        hint = " (an unfinished build; repeat the command)" if (path / ".parts").is_dir() else ""
        raise InvalidIndex(
            f"{path} is no index{hint}: no {MANIFEST}. `vlscore index build` makes one"
        ) from None
    except (OSError, ValueError) as error:
        raise InvalidIndex(f"{source} cannot be read: {type(error).__name__}") from None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        found = raw.get("format") if isinstance(raw, dict) else type(raw).__name__
        raise InvalidIndex(f"{source}: format {found!r}; this version reads format {FORMAT}")
    try:
        files = {role: FileRecord(**record) for role, record in raw.pop("files").items()}
        manifest = Manifest(files=files, **raw)
    except (TypeError, KeyError, AttributeError):
        raise InvalidIndex(f"{source}: entries are missing, unknown or malformed") from None
    _check_manifest(source, manifest)
    return manifest


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Replace `index.json`: from here on the index is the new one."""
    write_json(path / MANIFEST, asdict(manifest))


def record_file(path: Path) -> FileRecord:
    """Name, size and digest of a file just written."""
    return FileRecord(path.name, path.stat().st_size, file_digest(path))


def _check_manifest(source: Path, manifest: Manifest) -> None:
    counts = (manifest.dim, manifest.rows, manifest.items, manifest.bad_rows, manifest.generation)
    plain = all(isinstance(value, int) and value >= 0 for value in counts)
    needed = {"vectors", "table", "bad_rows"} <= set(manifest.files)
    # A name with a folder in it would make the index read other people's files.
    local = all(
        isinstance(record.name, str) and Path(record.name).name == record.name
        for record in manifest.files.values()
    )
    if not (plain and needed and local and manifest.kind in KINDS):
        raise InvalidIndex(f"{source}: entries are missing, unknown or malformed")


def _check_file(path: Path, record: FileRecord, check: bool) -> None:
    try:
        size = path.stat().st_size
    except OSError:
        raise InvalidIndex(f"{path} is missing; build the index again") from None
    if size != record.size:
        raise InvalidIndex(
            f"{path} holds {size} bytes instead of {record.size}; build the index again"
        )
    if check and file_digest(path) != record.sha256:
        raise InvalidIndex(f"{path} is damaged: its sha256 has changed; build the index again")


def _map_vectors(path: Path, manifest: Manifest) -> NDArray[Any]:
    file = path / manifest.files["vectors"].name
    try:
        # Copy-on-write: torch takes only writable arrays, and the file stays as it is.
        vectors = np.load(file, mmap_mode="c" if manifest.rows else None, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidIndex(f"{file} is damaged: {error}") from None
    expected = (manifest.rows, manifest.dim)
    if vectors.shape != expected or vectors.dtype != np.float32 or not vectors.flags.c_contiguous:
        raise InvalidIndex(f"{file} holds {vectors.shape} {vectors.dtype}, not {expected} float32")
    return vectors


def _map_table(path: Path, manifest: Manifest) -> pa.Table:
    file = path / manifest.files["table"].name
    try:
        table = pa.ipc.open_file(pa.memory_map(str(file))).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise InvalidIndex(f"{file} is damaged: {error}") from None
    if table.schema != TABLE_SCHEMA or len(table) != manifest.rows:
        raise InvalidIndex(f"{file} does not hold the texts and ids of {manifest.rows} rows")
    return table
