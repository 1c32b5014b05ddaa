"""Building an index from a table, and adding to one; a build that was killed goes on.

Rows are embedded a part at a time. A finished part takes its name in one rename, so after a kill
every part is whole or absent, and the build goes on behind the last. The index itself is written
from all parts at the end.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vlscore._files import atomic_write
from vlscore.embedding import EmbeddingEngine
from vlscore.errors import InvalidIndex, InvalidSetting, VLScoreError
from vlscore.oracle.approximate import build_approximate
from vlscore.oracle.store import (
    MANIFEST,
    TABLE_SCHEMA,
    Index,
    Manifest,
    digest,
    load_index,
    read_manifest,
    record_file,
    write_manifest,
)
from vlscore.reports import TextPolicy, select
from vlscore.studies import BadRow, Report, read_reports, read_study_images

PARTS = ".parts"
_PART_ROWS = 2_000
_TABLE_ROWS = 10_000


@dataclass(frozen=True)
class BuildResult:
    """An index just built, and how it went.

    Attributes:
        index: the index.
        added_rows: distinct texts that this table brought.
        repeated: reports whose text was there already.
        bad_rows: rows of this table that could not be used.
        resumed_from: rows of the table that an earlier, killed build had done.
    """

    index: Index
    added_rows: int
    repeated: int
    bad_rows: list[BadRow]
    resumed_from: int


@dataclass
class Source:
    """Items to embed: what makes two of them one, and how they are embedded."""

    kind: str
    rows: Iterator[Report | BadRow]
    embed: Callable[[Sequence[str]], Any]


def build_index(
    table: str | Path,
    out: str | Path,
    engine: EmbeddingEngine,
    *,
    kind: str = "report",
    text_policy: TextPolicy | str | None = None,
    id_column: str = "id",
    text_column: str | None = None,
    image_root: str | Path | None = None,
    approximate: str | None = None,
    overwrite: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> BuildResult:
    """Embed the reports (or images) of a table into an index.

    Equal texts become one row with all their ids. Called again after a kill with the same
    arguments, it goes on where it was.

    Args:
        kind: "report", or "image" for an index of radiographs.
        approximate: FAISS factory string ("IVF1024,Flat", "HNSW32", ...) for an approximate index
            beside the exact one.
        on_progress: called with (rows done, rows failed).

    Raises:
        InvalidTable: the table cannot be read.
        InvalidSetting: `out` holds an index already, or an unfinished build of something else.
    """
    out = Path(out)
    if (out / MANIFEST).exists() and not overwrite:
        raise InvalidSetting(
            f"{out} holds an index: `vlscore index add` extends it, --overwrite replaces it"
        )
    policy = TextPolicy.named(text_policy)
    source = _source(Path(table), engine, kind, policy, id_column, text_column, image_root)
    empty = Manifest(
        kind=kind,
        encoder=engine.encoder.card.name,
        checksum=engine.encoder.checksum,
        demonstration=engine.encoder.card.demonstration,
        signature=_signature(engine, kind, policy),
        dim=engine.encoder.card.dim,
        rows=0,
        items=0,
        bad_rows=0,
        sources=[],
        files={},
        approximate=approximate,
        generation=_generation(out),
    )
    settings = [id_column, text_column, str(image_root) if image_root else None, approximate]
    return _extend(out, Path(table), source, empty, None, settings, on_progress)


def add_to_index(
    table: str | Path,
    path: str | Path,
    engine: EmbeddingEngine,
    *,
    text_policy: TextPolicy | str | None = None,
    id_column: str = "id",
    text_column: str | None = None,
    image_root: str | Path | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> BuildResult:
    """Add the rows of another table to an index; the same encoder and policies are required.

    Raises: InvalidIndex where they differ, or the index is damaged.
    """
    index = load_index(path)
    index.check_encoder(engine.encoder.card.name, engine.encoder.checksum)
    policy = TextPolicy.named(text_policy)
    signature = _signature(engine, index.manifest.kind, policy)
    if signature != index.manifest.signature:
        raise InvalidIndex(
            f"{path} was made with {index.manifest.signature}, not with {signature}; "
            "give the same policies"
        )
    source = _source(
        Path(table), engine, index.manifest.kind, policy, id_column, text_column, image_root
    )
    settings = [id_column, text_column, str(image_root) if image_root else None]
    return _extend(index.path, Path(table), source, index.manifest, index, settings, on_progress)


def _generation(out: Path) -> int:
    """Of the index to be replaced, whose file names must not be used again; 0 for none."""
    try:
        return read_manifest(out).generation
    except InvalidIndex:
        return 0


def _source(
    table: Path,
    engine: EmbeddingEngine,
    kind: str,
    policy: TextPolicy,
    id_column: str,
    text_column: str | None,
    image_root: str | Path | None,
) -> Source:
    if kind == "report":
        reports = read_reports(table, id_column=id_column, text_column=text_column)
        return Source(kind, _selected(reports, policy), engine.embed_reports)
    if kind == "image":
        return Source(kind, _images(table, image_root), engine.embed_images)
    raise InvalidSetting(f'an index holds "report" or "image", not {kind!r}')


def _selected(rows: Iterator[Report | BadRow], policy: TextPolicy) -> Iterator[Report | BadRow]:
    for row in rows:
        if isinstance(row, BadRow):
            yield row
            continue
        try:
            # Lone surrogates stand for bytes that were no text; no file of ours could hold them.
            text = select(row.text, policy)
            text.encode("utf-8")
            yield replace(row, text=text)
        except VLScoreError as error:
            yield BadRow(row.row, row.id, str(error))
        except UnicodeEncodeError:
            yield BadRow(row.row, row.id, "the report holds bytes that are not UTF-8")


def _images(table: Path, image_root: str | Path | None) -> Iterator[Report | BadRow]:
    for number, row in enumerate(read_study_images(table, image_root=image_root), start=1):
        if isinstance(row, BadRow):
            yield row
        else:
            yield Report(row.id, str(row.images[0]), number)


def _signature(engine: EmbeddingEngine, kind: str, policy: TextPolicy) -> str:
    encoder = engine.encoder
    if kind == "report":
        input = f"txt:{policy.signature()}"
    else:
        input = f"img:{encoder.image_policy.signature()}|views:first"
    parts = [f"enc:{encoder.card.name}@{encoder.checksum[:12]}", input, f"prec:{engine.precision}"]
    return "|".join(parts)


def _extend(
    out: Path,
    table: Path,
    source: Source,
    base: Manifest,
    index: Index | None,
    settings: list[str | None],
    on_progress: Callable[[int, int], None] | None,
) -> BuildResult:
    origin = {"name": table.name, "sha256": digest(table)}
    key = {
        "table": origin,
        "signature": base.signature,
        "checksum": base.checksum,
        "settings": settings,
        "base": [record.sha256 for record in base.files.values()],
    }
    parts = _Parts(out / PARTS, key, base.dim)
    known = _Known(index.texts() if index is not None else [])
    for part in parts:
        known.extend(part.texts)
    resumed_from = parts.done
    failed = sum(len(part.bad) for part in parts)
    rest = islice(source.rows, resumed_from, None)
    while chunk := list(islice(rest, _PART_ROWS)):
        failed += parts.append(chunk, source, known)
        if on_progress is not None:
            on_progress(parts.done, failed)
    bad = [BadRow(*row) for part in parts for row in part.bad]
    manifest = _write_generation(out, parts, base, index, origin)
    write_manifest(out, manifest)
    shutil.rmtree(out / PARTS)
    _remove_other_generations(out, manifest)
    items = manifest.items - base.items
    added = manifest.rows - base.rows
    return BuildResult(load_index(out, check=False), added, items - added, bad, resumed_from)


class _Known:
    """Row number by text, kept as digests: a corpus of long reports need not fit in memory."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._rows: dict[bytes, int] = {}
        self.extend(texts)

    def extend(self, texts: Sequence[str]) -> None:
        for text in texts:
            self._rows[_key(text)] = len(self._rows)

    def get(self, text: str) -> int | None:
        return self._rows.get(_key(text))

    def __len__(self) -> int:
        return len(self._rows)


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8")).digest()[:16]


@dataclass(frozen=True)
class _Part:
    """What a stretch of the table brought: new texts, (row, id) of every item, bad rows."""

    path: Path
    texts: list[str]
    owners: list[tuple[int, str]]
    bad: list[tuple[int, str | None, str]]
    rows: int

    def vectors(self) -> NDArray[Any]:
        return np.load(self.path / "vectors.npy", allow_pickle=False)


class _Parts:
    """The finished parts of a build, in order."""

    def __init__(self, folder: Path, key: dict[str, Any], dim: int) -> None:
        self._folder = folder
        self._dim = dim
        self._open(key)
        for stray in folder.glob("new-*"):
            shutil.rmtree(stray)
        names = sorted(folder.glob("part-*"))
        self._parts = [_read_part(path) for path in names]

    def __iter__(self) -> Iterator[_Part]:
        return iter(self._parts)

    @property
    def done(self) -> int:
        return sum(part.rows for part in self._parts)

    def append(self, chunk: Sequence[Report | BadRow], source: Source, known: _Known) -> int:
        """Embed a stretch of the table and keep it; how many of its rows were bad."""
        bad = [(row.row, row.id, row.reason) for row in chunk if isinstance(row, BadRow)]
        reports = [row for row in chunk if isinstance(row, Report)]
        new = [
            text
            for text in dict.fromkeys(report.text for report in reports)
            if known.get(text) is None
        ]
        embedded = source.embed(new)
        vectors = embedded.vectors.numpy()
        reasons = {new[k]: str(error) for k, error in embedded.failures.items()}
        for position in np.flatnonzero(~np.isfinite(vectors).all(1)).tolist():
            reasons.setdefault(
                new[position], "the encoder returned an embedding that is not finite"
            )
        good = [position for position, text in enumerate(new) if text not in reasons]
        known.extend([new[position] for position in good])
        owners = []
        for report in reports:
            row = known.get(report.text)
            if row is None:
                bad.append((report.row, report.id, reasons[report.text]))
            else:
                owners.append((row, report.id))
        self._keep(vectors[good], [new[position] for position in good], owners, bad, len(chunk))
        return len(bad)

    def _keep(
        self,
        vectors: NDArray[Any],
        texts: list[str],
        owners: list[tuple[int, str]],
        bad: list[tuple[int, str | None, str]],
        rows: int,
    ) -> None:
        new = Path(tempfile.mkdtemp(prefix="new-", dir=self._folder))
        with (new / "vectors.npy").open("wb") as stream:
            np.save(stream, np.ascontiguousarray(vectors, np.float32), allow_pickle=False)
            os.fsync(stream.fileno())
        with atomic_write(new / "part.json") as text_stream:
            json.dump(
                {"texts": texts, "owners": owners, "bad": sorted(bad), "rows": rows}, text_stream
            )
        path = self._folder / f"part-{len(self._parts):06d}"
        os.rename(new, path)
        self._parts.append(_Part(path, texts, owners, sorted(bad), rows))

    def _open(self, key: dict[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / "build.json"
        if not file.exists():
            with atomic_write(file) as stream:
                json.dump(key, stream)
        elif json.loads(file.read_text(encoding="utf-8")) != key:
            raise InvalidSetting(
                f"{self._folder} holds an unfinished build of another table, encoder or policy: "
                "finish that one, or remove the folder"
            )


def _read_part(path: Path) -> _Part:
    try:
        raw = json.loads((path / "part.json").read_text(encoding="utf-8"))
        owners = [(int(row), str(id)) for row, id in raw["owners"]]
        return _Part(path, raw["texts"], owners, [tuple(b) for b in raw["bad"]], raw["rows"])
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidIndex(f"{path} is damaged; remove {path.parent} and build again") from None


def _write_generation(
    out: Path, parts: _Parts, base: Manifest, index: Index | None, origin: dict[str, str]
) -> Manifest:
    """Write the files of the next generation; the index is still the old one."""
    generation = base.generation + 1
    texts = index.texts() if index is not None else []
    ids = index.all_ids() if index is not None else []
    for part in parts:
        texts.extend(part.texts)
        ids.extend([] for _ in part.texts)
        for row, id in part.owners:
            ids[row].append(id)
    vectors = out / f"vectors-{generation}.npy"
    table = out / f"table-{generation}.arrow"
    bad_rows = out / f"bad-rows-{generation}.jsonl"
    _write_vectors(vectors, len(texts), base.dim, parts, index)
    _write_table(table, texts, ids)
    bad_count = _write_bad_rows(bad_rows, parts, index, origin["name"])
    files = {"vectors": vectors, "table": table, "bad_rows": bad_rows}
    if base.approximate is not None:
        files["approximate"] = out / f"approximate-{generation}.faiss"
        build_approximate(np.load(vectors, mmap_mode="r"), base.approximate, files["approximate"])
    return replace(
        base,
        rows=len(texts),
        items=sum(map(len, ids)),
        bad_rows=bad_count,
        sources=[*base.sources, origin],
        files={role: record_file(path) for role, path in files.items()},
        generation=generation,
    )


def _write_vectors(path: Path, rows: int, dim: int, parts: _Parts, index: Index | None) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": (rows, dim)}
    with atomic_write(path, "wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        if index is not None:
            for start in range(0, len(index), _TABLE_ROWS):
                stream.write(index.vectors[start : start + _TABLE_ROWS].tobytes())
        for part in parts:
            stream.write(part.vectors().tobytes())


def _write_table(path: Path, texts: list[str], ids: list[list[str]]) -> None:
    with atomic_write(path, "wb") as stream, pa.ipc.new_file(stream, TABLE_SCHEMA) as writer:
        for start in range(0, len(texts), _TABLE_ROWS):
            rows = slice(start, start + _TABLE_ROWS)
            batch = {"text": texts[rows], "ids": ids[rows]}
            writer.write_table(pa.Table.from_pydict(batch, schema=TABLE_SCHEMA))


def _write_bad_rows(path: Path, parts: _Parts, index: Index | None, table: str) -> int:
    earlier = index.file("bad_rows").read_text(encoding="utf-8") if index is not None else ""
    new = [
        json.dumps({"table": table, "row": row, "id": id, "reason": reason}, ensure_ascii=True)
        for part in parts
        for row, id, reason in part.bad
    ]
    with atomic_write(path) as stream:
        stream.write(earlier)
        stream.writelines(line + "\n" for line in new)
    return len(earlier.splitlines()) + len(new)


def _remove_other_generations(out: Path, manifest: Manifest) -> None:
    """Files of earlier generations; a reader that has them mapped keeps them."""
    current = {record.name for record in manifest.files.values()}
    for pattern in ("vectors-*.npy", "table-*.arrow", "bad-rows-*.jsonl", "approximate-*.faiss"):
        for path in out.glob(pattern):
            if path.name not in current:
                path.unlink()
