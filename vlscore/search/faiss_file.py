"""The FAISS file of an index: a flat copy of the vectors, or an approximate index over them.

Both hold the rows in the order of the vectors. Exact search maps the vectors and opens neither.
"""

import contextlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.errors import InvalidIndex, InvalidSetting, MissingDependency
from vlscore.search.kernels import Array

FLAT = "Flat"

_ROWS = 10_000
_SAMPLE = 1_000


def has_faiss() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("faiss") is not None


def check_factory(factory: str, dim: int) -> None:
    """Raises, before hours are spent on embedding, for what FAISS cannot build.

    Raises: InvalidSetting for a factory string that is unknown or does not fit the dimension;
    MissingDependency without FAISS.
    """
    if not has_faiss():
        raise MissingDependency("approximate search needs FAISS: pip install faiss-cpu")
    import faiss

    try:
        faiss.index_factory(dim, factory, faiss.METRIC_L2)
    except RuntimeError as error:
        raise InvalidSetting(
            f"FAISS has no index {factory!r} for {dim} dimensions ({last_line(error)}); "
            'examples: "IVF1024,Flat", "IVF1024,PQ96x8", "HNSW32"'
        ) from None


def open_faiss_file(path: Path, rows: int, dim: int) -> Any:
    """Open a FAISS file of (rows, dim) vectors, mapped where FAISS can.

    The file may come from elsewhere: FAISS may not take more memory for one of its arrays than the
    file is long.

    Raises: InvalidIndex where it is no FAISS index of L2 distances, or of another shape.
    """
    import faiss

    try:
        with _arrays_no_longer_than(path.stat().st_size):
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    except (RuntimeError, MemoryError, OSError) as error:
        raise InvalidIndex(f"{path} is no FAISS index: {last_line(error)}") from None
    if (index.ntotal, index.d) != (rows, dim):
        raise InvalidIndex(
            f"{path} holds {index.ntotal} rows of {index.d}, the vectors are {(rows, dim)}; "
            "build the index again"
        )
    if index.metric_type != faiss.METRIC_L2:
        raise InvalidIndex(f"{path} is not of L2 distances; build the index again")
    return index


@contextlib.contextmanager
def _arrays_no_longer_than(size: int) -> Iterator[None]:
    import faiss

    if not hasattr(faiss, "set_deserialization_vector_byte_limit"):  # older versions of FAISS
        yield
        return
    before = faiss.get_deserialization_vector_byte_limit()
    faiss.set_deserialization_vector_byte_limit(min(size, before) if before else size)
    try:
        yield
    finally:
        faiss.set_deserialization_vector_byte_limit(before)


def check_faiss_file(path: Path, vectors: Array, *, seed: int = 0) -> None:
    """Compare a FAISS file with the vectors (n, d): their number, order and values.

    Files that hold vectors as they are must hold the same bits in every row (flat), or in a
    thousand sampled rows. Compressed ones must lie nearer to their own vectors than to others.

    Raises: InvalidIndex.
    """
    import faiss

    index = open_faiss_file(path, *vectors.shape)
    try:
        if isinstance(index, faiss.IndexFlat):
            _check_flat(path, index, vectors)
        else:
            _check_sample(path, index, vectors, np.random.default_rng(seed))
    except (RuntimeError, MemoryError) as error:
        raise InvalidIndex(f"{path} is damaged: {last_line(error)}") from None


def _check_flat(path: Path, index: Any, vectors: Array) -> None:
    for start in range(0, len(vectors), _ROWS):
        rows = vectors[start : start + _ROWS]
        held = index.reconstruct_n(start, len(rows))
        differing = np.flatnonzero((held.view(np.uint32) != _bits(rows)).any(axis=1))
        if len(differing):
            raise InvalidIndex(
                f"{path}: row {start + int(differing[0])} is not the vector of that row; "
                "build the index again"
            )


def _check_sample(path: Path, index: Any, vectors: Array, rng: np.random.Generator) -> None:
    import faiss

    with_map = faiss.try_extract_index_ivf(index)
    if with_map is not None:
        with_map.make_direct_map()
    rows = np.sort(rng.choice(len(vectors), size=min(_SAMPLE, len(vectors)), replace=False))
    try:
        held = np.stack([index.reconstruct(int(row)) for row in rows])
    except RuntimeError:  # a kind of index that cannot give its vectors back
        return
    own = vectors[rows]
    if np.array_equal(held, own):
        return
    other = vectors[rng.permutation(rows)]
    near, far = (np.square(held - x).sum(axis=1, dtype=np.float64).mean() for x in (own, other))
    if len(rows) > 1 and not near < far / 2:
        raise InvalidIndex(
            f"{path}: its rows are not those of the vectors (mean squared distance {near:.3g}, "
            f"{far:.3g} to other rows); build the index again"
        )


def _bits(rows: Array) -> Array:
    return np.ascontiguousarray(rows).view(np.uint32)


def last_line(error: Exception) -> str:
    """What FAISS says, without the place in its sources."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].rpartition(": ")[2]
