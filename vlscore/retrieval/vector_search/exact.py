"""Exact search: one float32 matrix product over the corpus, proven complete, ranked in float64.

The product gives every row a key, and `Shortlist` collects the rows with the smallest keys. Their
costs are computed in float64. The search ends when the bound of the keys shows that no other row
can cost as little as the k-th found. If a shortlist is too short for that (ties, near-duplicates),
a second pass computes the cost of every row in doubt.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vlscore.core import FULL_PRECISION
from vlscore.retrieval.vector_search.corpus import Array, Corpus
from vlscore.retrieval.vector_search.objectives import SearchObjective

_TILE = 32


class Shortlist:
    """Shortlist of the `size` smallest keys of each query and their rows.

    Most chunks contain none of them. The choice among rows with equal keys is undefined: the
    search does not rely on it.
    """

    def __init__(self, queries: int, size: int, device: torch.device) -> None:
        self._keys = torch.full((queries, size), torch.inf, device=device)
        self._rows = torch.full((queries, size), -1, dtype=torch.long, device=device)
        self._limit = torch.full((queries, 1), torch.inf, device=device)
        self._is_empty = True

    def update(self, keys: Tensor, start: int) -> None:
        """Update the shortlist with keys (q, n) of the rows from `start` on."""
        tiled = keys.shape[1] // _TILE * _TILE
        tiles = keys[:, :tiled].T.unflatten(0, (-1, _TILE))
        minima = tiles.amin(1).T.contiguous()
        if self._is_empty and minima.shape[1] > self._keys.shape[1]:
            self._limit = _ceiling(minima, self._keys.shape[1])
        query, column, small = _below(tiles, minima, self._limit)
        if len(query):
            self._add(*_side_by_side(small, column + start, query, len(keys)))
        if tiled < keys.shape[1]:
            rest = keys[:, tiled:]
            rows = torch.arange(start + tiled, start + keys.shape[1], device=keys.device)
            self._add(rest, rows.expand_as(rest))
        self._is_empty = False

    def _add(self, keys: Tensor, rows: Tensor) -> None:
        """Update the shortlist with keys and rows (q, m); an infinite key marks an empty entry."""
        all_keys = torch.cat([self._keys, keys], 1)
        all_rows = torch.cat([self._rows, torch.where(keys < torch.inf, rows, -1)], 1)
        size = self._keys.shape[1]
        self._keys, chosen = all_keys.topk(size, dim=1, largest=False, sorted=False)
        self._rows = all_rows.gather(1, chosen)
        self._limit = self._keys.amax(1, keepdim=True)

    def sorted(self) -> tuple[Array, Array]:
        """Return keys ascending (q, m) float64 and rows (q, m), -1 if there are no more."""
        keys, order = self._keys.sort(1)
        return keys.double().cpu().numpy(), self._rows.gather(1, order).cpu().numpy()


def _side_by_side(keys: Tensor, rows: Tensor, query: Tensor, queries: int) -> tuple[Tensor, Tensor]:
    """Return keys and rows (q, m) of each query from one list that is ordered by query."""
    counts = torch.bincount(query, minlength=queries)
    place = torch.arange(len(query), device=keys.device) - (counts.cumsum(0) - counts)[query]
    width = int(counts.max())
    wide_keys = torch.full((queries, width), torch.inf, device=keys.device)
    wide_rows = torch.full((queries, width), -1, dtype=torch.long, device=keys.device)
    wide_keys[query, place] = keys
    wide_rows[query, place] = rows
    return wide_keys, wide_rows


def _ceiling(minima: Tensor, size: int) -> Tensor:
    """Return limits (q, 1) with at least `size` of the tiles' minima (q, t), so of keys, below."""
    largest = minima.topk(size, dim=1, largest=False, sorted=False)[0].amax(1, keepdim=True)
    return largest.nextafter(torch.full_like(largest, torch.inf))


def _below(tiles: Tensor, minima: Tensor, limits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return query (ascending), column and value of the keys below their query's limit.

    Args: tiles: keys (t, _TILE, q). minima: of the tiles (q, t). limits: (q, 1).
    """
    query, tile = (minima < limits).nonzero(as_tuple=True)
    candidates = tiles[tile, :, query]
    pair, place = (candidates < limits[query]).nonzero(as_tuple=True)
    return query[pair], tile[pair] * _TILE + place, candidates[pair, place]


_CPU_QUERIES, _GPU_QUERIES = 64, 512
_SPARE = 14
# Number of rows per block, so small that their float64 copies stay in the processor's cache.
_COSTED_AT_ONCE = 64

Excluded = Mapping[int, Sequence[int]]


@dataclass
class Hits:
    """Best rows of q queries, best first.

    Attributes:
        rows: (q, k) int64, -1 if fewer qualify.
        costs: (q, k) float64, inf there.
        second_passes: number of queries whose shortlist was too short.
    """

    rows: Array
    costs: Array
    second_passes: int = 0


def search(
    corpus: Corpus, objective: SearchObjective, k: int, excluded: Excluded | None = None
) -> Hits:
    """Find the k rows of lowest cost for each query; equal costs in the order of the corpus.

    Args:
        excluded: query -> numbers of rows that it must not find.
    """
    hits = empty_hits(len(objective), k)
    excluded = excluded or {}
    if not len(corpus):
        return hits
    for query in np.flatnonzero(objective.constant):
        _first_rows(corpus, int(query), excluded, hits, objective)
    searched = np.flatnonzero(~objective.constant)
    step = _CPU_QUERIES if corpus.device.type == "cpu" else _GPU_QUERIES
    # With fewer bits the products would violate the bounds.
    with FULL_PRECISION, torch.inference_mode():
        for begin in range(0, len(searched), step):
            _search_batch(corpus, objective, searched[begin : begin + step], excluded, hits)
    return hits


def empty_hits(queries: int, k: int) -> Hits:
    """Return empty hits to start with."""
    return Hits(np.full((queries, k), -1, np.int64), np.full((queries, k), np.inf))


def merge(hits: Hits, query: int, rows: Array, costs: Array) -> None:
    """Merge rows (m,) with their costs into one query's hits."""
    kept = hits.rows[query] >= 0
    all_rows = np.concatenate([hits.rows[query][kept], rows])
    all_costs = np.concatenate([hits.costs[query][kept], costs])
    finite = np.isfinite(all_costs)
    all_rows, all_costs = all_rows[finite], all_costs[finite]
    order = np.lexsort((all_rows, all_costs))[: hits.rows.shape[1]]
    hits.rows[query], hits.costs[query] = -1, np.inf
    hits.rows[query, : len(order)] = all_rows[order]
    hits.costs[query, : len(order)] = all_costs[order]


def _search_batch(
    corpus: Corpus, objective: SearchObjective, queries: Array, excluded: Excluded, hits: Hits
) -> None:
    size = min(hits.rows.shape[1] + _SPARE, len(corpus))
    shortlist = Shortlist(len(queries), size, corpus.device)
    for rows, keys in _keys(corpus, objective, queries, excluded):
        shortlist.update(keys, rows.start)
    doubtful = _settle(corpus, objective, queries, shortlist, hits)
    hits.second_passes += len(doubtful)
    for begin in range(0, len(doubtful), _CPU_QUERIES):
        some = doubtful[begin : begin + _CPU_QUERIES]
        _cost_all_in_doubt(corpus, objective, some, excluded, hits)


def _keys(
    corpus: Corpus, objective: SearchObjective, queries: Array, excluded: Excluded
) -> Iterator[tuple[slice, Tensor]]:
    """Yield each chunk's keys (q, n), inf for excluded rows; all chunks share one buffer.

    Rows of the corpus are rows of the product, which BLAS computes faster than its transpose.
    """
    stacked = torch.from_numpy(objective.weights[:, queries].reshape(-1, corpus.dim))
    # Transposed by torch, because its memory alignment is faster for BLAS than numpy's.
    weights = stacked.T.contiguous().to(corpus.device)
    height = min(corpus.chunk, len(corpus))
    buffer = torch.empty(height, weights.shape[1], device=corpus.device)
    barred = {
        position: np.array(sorted(excluded[query]), np.int64) - corpus.start
        for position, query in enumerate(queries.tolist())
        if excluded.get(query)
    }
    for rows in corpus.chunks():
        products = buffer[: rows.stop - rows.start]
        torch.mm(corpus.block(rows), weights, out=products)
        parts = products.T.unflatten(0, (-1, len(queries))).unbind()
        keys = objective.keys(parts, corpus.squared_norms[rows], queries)
        for position, numbers in barred.items():
            inside = numbers[(numbers >= rows.start) & (numbers < rows.stop)] - rows.start
            keys[position, torch.from_numpy(inside).to(keys.device)] = torch.inf
        yield rows, keys


def _settle(
    corpus: Corpus, objective: SearchObjective, queries: Array, shortlist: Shortlist, hits: Hits
) -> Array:
    """Compute costs of a shortlist; return the queries whose best row may be another one."""
    keys, rows = shortlist.sorted()
    bounds = objective.bound(keys, queries)
    present = rows >= 0
    costs = np.full(rows.shape, np.inf)
    k, size = hits.rows.shape[1], rows.shape[1]
    first = min(k, size)
    # An empty entry (-1) indexes the corpus's last row, which does no harm.
    costs[:, :first] = _cost_blocks(corpus, objective, queries, rows[:, :first])
    costs[~present] = np.inf
    # Bounds ascend with keys, so rows that could still qualify follow directly.
    could_enter = present & (bounds <= costs[:, :first].max(axis=1, keepdims=True))
    could_enter[:, :first] = False
    position, column = np.nonzero(could_enter)
    numbers = rows[position, column] + corpus.start
    costs[position, column] = _cost(corpus, objective, queries[position], numbers)
    order = np.lexsort((rows, costs))[:, :k]
    best = np.take_along_axis(costs, order, axis=1)
    numbers = np.take_along_axis(rows, order, axis=1) + corpus.start
    hits.costs[queries, : order.shape[1]] = best
    hits.rows[queries, : order.shape[1]] = np.where(np.isfinite(best), numbers, -1)
    everything_seen = ~present.all(axis=1) | (size == len(corpus))
    open_ones: Array = queries[~(everything_seen | (bounds[:, -1] > hits.costs[queries, -1]))]
    return open_ones


def _cost_blocks(corpus: Corpus, objective: SearchObjective, queries: Array, rows: Array) -> Array:
    """Compute exact costs (q, m) of local rows (q, m), a block for each query."""
    costs = np.empty(rows.shape)
    step = max(1, _COSTED_AT_ONCE // rows.shape[1])
    for begin in range(0, len(rows), step):
        some = slice(begin, begin + step)
        blocks = corpus.rows(rows[some] + corpus.start)
        costs[some] = objective.costs(queries[some, None], blocks)
    return costs


def _cost(corpus: Corpus, objective: SearchObjective, queries: Array, numbers: Array) -> Array:
    """Compute exact costs (m,) of rows by their number, each for its query (m,)."""
    costs = np.empty(len(numbers))
    for begin in range(0, len(numbers), _COSTED_AT_ONCE):
        some = slice(begin, begin + _COSTED_AT_ONCE)
        costs[some] = objective.costs(queries[some], corpus.rows(numbers[some]))
    return costs


def _cost_all_in_doubt(
    corpus: Corpus, objective: SearchObjective, queries: Array, excluded: Excluded, hits: Hits
) -> None:
    for rows, keys in _keys(corpus, objective, queries, excluded):
        found = keys.double().cpu().numpy()
        limits = hits.costs[queries, -1:]
        possible = ~(objective.bound(found, queries) > limits) & ~np.isposinf(found)
        for query, mask in zip(queries, possible, strict=True):
            local = np.flatnonzero(mask) + rows.start + corpus.start
            numbers = np.setdiff1d(local, hits.rows[query], assume_unique=True)
            costs = _cost(corpus, objective, np.full(len(numbers), query), numbers)
            merge(hits, int(query), numbers, costs)


def _first_rows(
    corpus: Corpus, query: int, excluded: Excluded, hits: Hits, objective: SearchObjective
) -> None:
    """Return the first rows for a query under which all rows cost the same."""
    barred = set(excluded.get(query, ()))
    k = hits.rows.shape[1]
    first = range(corpus.start, min(corpus.start + len(corpus), corpus.start + k + len(barred)))
    numbers = np.array([row for row in first if row not in barred][:k], np.int64)
    merge(hits, query, numbers, objective.costs(query, corpus.rows(numbers)))
