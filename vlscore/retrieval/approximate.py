"""Approximate search by FAISS.

It finds candidates near points of each query's line, and computes their exact costs. The distance
to a line is not an inner product, but it is the smallest of the distances to the line's points. A
search around the reference alone can miss the best row. So the search uses points of the line near
which rows of the corpus lie: quantiles of ⟨g, u⟩ over the corpus.
"""

import contextlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import atomic_write
from vlscore.errors import InvalidIndex, InvalidSetting, MissingDependency
from vlscore.retrieval.corpus import Array, Corpus
from vlscore.retrieval.exact import Excluded, Hits
from vlscore.retrieval.objectives import SearchObjective

QUANTILES = (0.001, 0.1, 0.5, 0.9, 0.999)

# Chosen for recall@1 of .99 in every regime of benchmarks/oracle_recall.py.
_IVF_SHARE, _HNSW_BREADTH = 2, 512
_DEPTH, _DEPTH_COMPRESSED = 100, 500

_AT_ONCE = 10_000
_TRAINING_ROWS = 200_000
# Bytes that FAISS may always allocate for one array of a file, however short the file is. FAISS
# counts d_in * d_out numbers for every transformation, also for those that store no matrix.
_ALWAYS_ADMITTED = 256 * 1024 * 1024


def check_factory(factory: str, dim: int) -> None:
    """Raise an error for an index that FAISS cannot build, before hours of embedding.

    Raises: InvalidSetting for a factory string that is unknown or does not fit the dimension;
    MissingDependency without FAISS.
    """
    if importlib.util.find_spec("faiss") is None:
        raise MissingDependency("approximate search needs FAISS: pip install faiss-cpu")
    import faiss

    try:
        faiss.index_factory(dim, factory, faiss.METRIC_L2)
    except RuntimeError as error:
        raise InvalidSetting(
            f"FAISS has no index {factory!r} for {dim} dimensions ({_last_line(error)}); "
            'examples: "IVF1024,Flat", "IVF1024,PQ96x8", "HNSW32"'
        ) from None


def _open_faiss_file(path: Path, rows: int, dim: int) -> Any:
    """Open a FAISS file of (rows, dim) vectors, mapped if FAISS can do so.

    The file may be untrusted: FAISS may not allocate more memory for one of its arrays than the
    file's length, or 256 MiB.

    Raises: InvalidIndex if it is not a FAISS index of L2 distances, or has another shape.
    """
    import faiss

    try:
        with _arrays_no_longer_than(max(path.stat().st_size, _ALWAYS_ADMITTED)):
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
    except (RuntimeError, MemoryError, OSError) as error:
        raise InvalidIndex(f"{path} is no FAISS index: {_last_line(error)}") from None
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


def _last_line(error: Exception) -> str:
    """Return the message of FAISS, without the position in its source code."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].rpartition(": ")[2]


def build_approximate(vectors: Array, factory: str, path: Path, *, seed: int = 0) -> None:
    """Train a FAISS index (L2) on vectors (n, d), add them all, and write it.

    The written file is opened and searched once, so that an index that cannot be used is refused
    now and not by the first search.

    Raises: InvalidSetting if FAISS does not know the factory string, if the corpus is too small
    to train it, or if FAISS cannot read or search what it wrote.
    """
    import faiss

    try:
        index = faiss.index_factory(vectors.shape[1], factory, faiss.METRIC_L2)
        if not index.is_trained:
            chosen = np.random.default_rng(seed).permutation(len(vectors))[:_TRAINING_ROWS]
            index.train(np.ascontiguousarray(vectors[np.sort(chosen)]))
        for start in range(0, len(vectors), _AT_ONCE):
            index.add(np.ascontiguousarray(vectors[start : start + _AT_ONCE]))
    except RuntimeError as error:
        raise InvalidSetting(
            f"FAISS cannot build {factory!r} over {len(vectors)} rows of {vectors.shape[1]}: "
            f"{_last_line(error)}"
        ) from None
    with atomic_write(path, "wb") as stream:
        writer = faiss.PyCallbackIOWriter(stream.write)  # type: ignore[attr-defined]
        try:
            faiss.write_index(index, writer)
        except RuntimeError as error:
            raise InvalidSetting(
                f"FAISS cannot store an index {factory!r}: {_last_line(error)}"
            ) from None
    try:
        _try_index(path, vectors)
    except InvalidIndex as error:
        path.unlink(missing_ok=True)
        raise InvalidSetting(
            f"FAISS builds an index {factory!r} and cannot use it: {error}. Give another factory "
            'string, such as "IVF1024,Flat", "IVF1024,PQ96x8" or "HNSW32"'
        ) from None


def _try_index(path: Path, vectors: Array) -> None:
    """Open an index and search it for its first vector. Raises: InvalidIndex."""
    index = _open_faiss_file(path, *vectors.shape)
    try:
        _bytes_a_vector(index)
        _set_effort(index, None)
        index.search(np.ascontiguousarray(vectors[:1]), 1)
    except (RuntimeError, MemoryError) as error:
        raise InvalidIndex(f"{path.name}: {_last_line(error)}") from None


class ApproximateIndex:
    """FAISS index over the rows of a corpus.

    Args:
        path: file of `build_approximate`; mapped if FAISS can do so.
        corpus: the same rows, for exact costs.
        depth: candidates per point of the line; default: 100, or 500 if the FAISS index holds
            compressed vectors.
        effort: lists visited (IVF) or breadth of the graph search (HNSW); default: half the lists,
            or 512. Less is faster and finds less.

    Raises: InvalidIndex if the file is not a FAISS index of this corpus.
    """

    def __init__(
        self, path: Path, corpus: Corpus, *, depth: int | None = None, effort: int | None = None
    ) -> None:
        self._path = path
        self._index = _open_faiss_file(path, len(corpus), corpus.dim)
        self._corpus = corpus
        is_compressed = _bytes_a_vector(self._index) < 4 * corpus.dim
        self._depth = depth or (_DEPTH_COMPRESSED if is_compressed else _DEPTH)
        _set_effort(self._index, effort)
        step = max(1, len(corpus) // _AT_ONCE)
        self._sample = corpus.vectors[::step].astype(np.float64)

    def search(self, objective: SearchObjective, k: int, excluded: Excluded | None = None) -> Hits:
        """Return the k candidates of lowest cost; arguments are those of `exact.search`."""
        excluded = excluded or {}
        hits = Hits.none(len(objective), k)
        points = line_points(objective, self._sample)
        # As deep again as the query excludes rows, so that those cannot crowd out the others.
        deepest = max((len(rows) for rows in excluded.values()), default=0)
        depth = min(max(self._depth, k) + deepest, len(self._corpus))
        flat = np.ascontiguousarray(points.reshape(-1, points.shape[-1]), dtype=np.float32)
        found = self._nearest(flat, depth).reshape(len(objective), -1)
        for query in range(len(objective)):
            barred = [-1, *excluded.get(query, ())]
            rows = np.setdiff1d(found[query], np.array(barred, np.int64))
            hits.add(query, rows, objective.costs(query, self._corpus.rows(rows)))
        return hits

    def _nearest(self, points: Array, depth: int) -> Array:
        """Return (n, depth) rows near each point, -1 if there are fewer."""
        try:
            found: Array = self._index.search(points, depth)[1]
        except (RuntimeError, MemoryError) as error:
            raise InvalidIndex(
                f"{self._path} is damaged, FAISS cannot search it: {_last_line(error)}"
            ) from None
        if found.min(initial=0) < -1 or found.max(initial=0) >= len(self._corpus):
            raise InvalidIndex(f"{self._path} is damaged: it names rows that the corpus has not")
        return found


def line_points(objective: SearchObjective, sample: Array) -> Array:
    """Return (q, 5, d) points of each query's line at quantiles of ⟨g, u⟩ over sampled rows g."""
    along = sample @ objective.directions.T
    positions = np.quantile(along, QUANTILES, axis=0).T
    steps: Array = positions[:, :, None] * objective.directions[:, None]
    return objective.origins[:, None] + steps


def _set_effort(index: Any, effort: int | None) -> None:
    import faiss

    space, inner = faiss.ParameterSpace(), _innermost(index)
    if isinstance(inner, faiss.IndexIVF):
        half = -(-inner.nlist // _IVF_SHARE)
        space.set_index_parameter(index, "nprobe", min(effort or half, inner.nlist))
    elif isinstance(inner, faiss.IndexHNSW):
        space.set_index_parameter(index, "efSearch", effort or _HNSW_BREADTH)


def _bytes_a_vector(index: Any) -> int:
    import faiss

    inner = _innermost(index)
    # Graphs keep their vectors in another index.
    while (storage := getattr(inner, "storage", None)) is not None:
        inner = faiss.downcast_index(storage)
    return int(inner.sa_code_size())


def _innermost(index: Any) -> Any:
    """Return the index inside transformations and refinements."""
    import faiss

    inner = faiss.downcast_index(index)
    while isinstance(inner, faiss.IndexPreTransform | faiss.IndexRefine):
        nested = inner.index if isinstance(inner, faiss.IndexPreTransform) else inner.base_index
        inner = faiss.downcast_index(nested)
    return inner
