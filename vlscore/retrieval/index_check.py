"""Writer and check of an index's files.

`write_generation` writes the next generation of files; it becomes valid only when its manifest is
written. `verify_index` reads an index completely, and checks that its files are whole and agree.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vlscore.core import atomic_write
from vlscore.errors import InvalidIndex
from vlscore.retrieval.index_folder import (
    MANIFEST,
    TABLE_SCHEMA,
    Index,
    Manifest,
    load_index,
    record_file,
)
from vlscore.retrieval.index_parts import IndexParts, KnownTexts
from vlscore.retrieval.vector_search.approximate import (
    FLAT,
    ApproximateIndex,
    build_approximate,
    check_faiss_file,
)
from vlscore.retrieval.vector_search.array_oracle import Oracle, recall
from vlscore.retrieval.vector_search.corpus import Corpus

_ROWS = 10_000
_PATTERNS = (
    "vectors-*.npy",
    "table-*.arrow",
    "bad-rows-*.jsonl",
    "approximate-*.faiss",
    "flat-*.faiss",
)
FAISS_ROLES = {"flat", "approximate"}
# Temporary files that remain if a process is killed while it writes one of them or the manifest.
_STRAYS = (*(f".{pattern}.*.tmp" for pattern in _PATTERNS), f".{MANIFEST}.*.tmp")


def write_generation(
    out: Path,
    parts: IndexParts,
    base: Manifest,
    index: Index | None,
    source: dict[str, str],
    *,
    flat: bool,
) -> Manifest:
    """Write all files of a new generation: the rows of `index`, if any, then those of the parts.

    Args:
        base: manifest of `index`, or one without rows.
        source: entry of the table in the manifest; if the same table was added before in the same
            way, its bad rows are replaced.
        flat: also write a flat FAISS file, if there is no approximate one.

    Returns: the manifest to commit. Raises: InvalidSetting if FAISS cannot build its file.
    """
    generation = base.generation + 1
    ids = _ids(parts, index)
    files = {
        "vectors": out / f"vectors-{generation}.npy",
        "table": out / f"table-{generation}.arrow",
        "bad_rows": out / f"bad-rows-{generation}.jsonl",
    }
    _write_vectors(files["vectors"], len(ids), base.dim, parts, index)
    _write_table(files["table"], _texts(parts, index), ids)
    number = source_number(base, source)
    kept = [] if index is None else index.bad_row_records()
    kept = [record for record in kept if record.get("source") != number]
    bad_rows = _write_bad_rows(files["bad_rows"], kept, parts, source["name"], number)
    if base.approximate is not None:
        files["approximate"] = out / f"approximate-{generation}.faiss"
    elif flat:
        files["flat"] = out / f"flat-{generation}.faiss"
    for role in FAISS_ROLES & files.keys():
        vectors = np.load(files["vectors"], mmap_mode="r")
        build_approximate(vectors, base.approximate or FLAT, files[role])
    return replace(
        base,
        rows=len(ids),
        items=sum(map(len, ids)),
        bad_rows=bad_rows,
        sources=[*base.sources[:number], source, *base.sources[number + 1 :]],
        files={role: record_file(path) for role, path in files.items()},
        generation=generation,
    )


def source_number(manifest: Manifest, source: dict[str, str]) -> int:
    """Return a table's number in `sources`; the next one for a new table or other settings."""
    requests = [known.get("request") for known in manifest.sources]
    request = source["request"]
    return requests.index(request) if request in requests else len(requests)


def remove_other_generations(out: Path, manifest: Manifest) -> None:
    """Remove files of other generations; a reader that has mapped one can still use it."""
    current = {record.name for record in manifest.files.values()}
    for pattern in (*_PATTERNS, *_STRAYS):
        for path in out.glob(pattern):
            if path.name not in current:
                path.unlink()


def _ids(parts: IndexParts, index: Index | None) -> list[list[str]]:
    """Return the ids of every row, each id of a row once."""
    ids = index.all_ids() if index is not None else []
    for part in parts:
        ids.extend([] for _ in part.texts)
        for row, id in part.owners:
            ids[row].append(id)
    return [list(dict.fromkeys(row)) for row in ids]


def _texts(parts: IndexParts, index: Index | None) -> Iterator[str]:
    if index is not None:
        yield from index.iter_texts()
    for part in parts:
        yield from part.texts


def _write_vectors(path: Path, rows: int, dim: int, parts: IndexParts, index: Index | None) -> None:
    header = {"descr": "<f4", "fortran_order": False, "shape": (rows, dim)}
    with atomic_write(path, "wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        if index is not None:
            for start in range(0, len(index), _ROWS):
                stream.write(index.vectors[start : start + _ROWS].tobytes())
        for vectors in parts.vectors():
            stream.write(vectors.astype("<f4", copy=False).tobytes())


def _write_table(path: Path, texts: Iterator[str], ids: list[list[str]]) -> None:
    with atomic_write(path, "wb") as stream, pa.ipc.new_file(stream, TABLE_SCHEMA) as writer:
        for start in range(0, len(ids), _ROWS):
            owners = ids[start : start + _ROWS]
            batch = {"text": list(islice(texts, len(owners))), "ids": owners}
            writer.write_table(pa.Table.from_pydict(batch, schema=TABLE_SCHEMA))


def _write_bad_rows(
    path: Path, kept: list[dict[str, Any]], parts: IndexParts, table: str, number: int
) -> int:
    new = (
        {"table": table, "source": number, "row": row, "id": id, "reason": reason}
        for part in parts
        for row, id, reason in part.bad
    )
    count = 0
    with atomic_write(path) as stream:
        for record in chain(kept, new):
            stream.write(json.dumps(record, ensure_ascii=True) + "\n")
            count += 1
    return count


def verify_index(path: str | Path) -> Index:
    """Open an index and check all of it.

    Every file must have its recorded size and sha256. Every vector must be finite, and every text
    must occur once and have an id. The counts of the manifest must be right, and the rows of the
    FAISS file must equal the vectors.

    Raises: InvalidIndex at the first error.
    """
    index = load_index(path)
    check_vectors(index)
    _check_table(index)
    for role in FAISS_ROLES & index.manifest.files.keys():
        check_faiss_file(index.file(role), index.vectors)
    return index


def _check_table(index: Index) -> None:
    known = KnownTexts()
    for row, text in enumerate(index.iter_texts()):
        if (earlier := known.get(text)) is not None:
            raise InvalidIndex(f"{index.path}: rows {earlier} and {row} hold the same text")
        known.extend([text])
    ids = index.all_ids()
    for row, owners in enumerate(ids):
        if not owners:
            raise InvalidIndex(f"{index.path}: row {row} belongs to no id")
    manifest = index.manifest
    items, bad = sum(map(len, ids)), len(index.bad_rows())
    if (items, bad) != (manifest.items, manifest.bad_rows):
        raise InvalidIndex(
            f"{index.path}: holds {items} ids and {bad} bad rows, its manifest says "
            f"{manifest.items} and {manifest.bad_rows}"
        )


def check_vectors(index: Index) -> None:
    """Raise InvalidIndex at the first vector that is not finite."""
    for start in range(0, len(index), _ROWS):
        finite = np.isfinite(index.vectors[start : start + _ROWS]).all(axis=1)
        if not finite.all():
            row = start + int(np.flatnonzero(~finite)[0])
            raise InvalidIndex(f"{index.path}: row {row} is not finite; build the index again")


def measure_recall(
    index: Index, sample: int, seed: int, effort: int | None = None
) -> dict[int, float]:
    """Measure recall@1 and @10 of the approximate index's line search against exact search.

    Queries are made from the corpus: references are sampled rows, and an image is the midpoint of
    its reference and another sampled row.

    Raises: InvalidIndex if the index has no approximate part.
    """
    path = index.file("approximate")
    corpus = Corpus(index.vectors)
    rng = np.random.default_rng(seed)
    references = index.vectors[rng.integers(len(index), size=sample)].astype(np.float64)
    others = index.vectors[rng.integers(len(index), size=sample)].astype(np.float64)
    approximate = ApproximateIndex(path, corpus, effort=effort)
    oracle = Oracle(corpus, C=1.0, approximate=approximate)
    images = (references + others) / 2 + 1e-3 * rng.standard_normal(references.shape)
    references = references + 1e-3 * rng.standard_normal(references.shape)
    return {k: recall(oracle, images, references, k=k) for k in (1, 10)}
