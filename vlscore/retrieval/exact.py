"""Exact search: one float32 matrix product over the corpus, proven complete, ranked in float64.

The product gives every row a key, and the rows with the smallest keys are the shortlist of a query.
Their costs are computed in float64. The search ends where the bound of the keys shows that no other
row can cost as little as the k-th found. If a shortlist is too short for that (ties,
near-duplicates), a second pass computes the cost of every row in doubt.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vlscore.core import FULL_PRECISION
from vlscore.retrieval.corpus import Array, Corpus
from vlscore.retrieval.objectives import SearchObjective

_CPU_QUERIES, _GPU_QUERIES = 64, 512
# Rows of a shortlist beyond the k that are asked for.
_SPARE = 14
# Rows whose costs are computed at a time: their float64 copies stay in the processor's cache.
_COSTED_AT_ONCE = 64
_TILE = 32
# Larger than every key, whose rows and queries have norms up to 1e18.
_LARGEST = 3e38

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

    @classmethod
    def none(cls, queries: int, k: int) -> "Hits":
        """Return hits to begin with."""
        return cls(np.full((queries, k), -1, np.int64), np.full((queries, k), np.inf))

    def add(self, query: int, rows: Array, costs: Array) -> None:
        """Add rows (m,) with their costs to one query's, which keeps the best."""
        kept = self.rows[query] >= 0
        all_rows = np.concatenate([self.rows[query][kept], rows[np.isfinite(costs)]])
        all_costs = np.concatenate([self.costs[query][kept], costs[np.isfinite(costs)]])
        order = np.lexsort((all_rows, all_costs))[: self.rows.shape[1]]
        self.rows[query, : len(order)] = all_rows[order]
        self.costs[query, : len(order)] = all_costs[order]


def search(
    corpus: Corpus, objective: SearchObjective, k: int, excluded: Excluded | None = None
) -> Hits:
    """Find the k rows of lowest cost for each query; equal costs in the order of the corpus.

    Args:
        excluded: query -> numbers of rows that it must not find.
    """
    hits = Hits.none(len(objective), k)
    step = _CPU_QUERIES if corpus.device.type == "cpu" else _GPU_QUERIES
    # With fewer bits the products would violate the bounds.
    with FULL_PRECISION, torch.inference_mode():
        for begin in range(0, len(objective) if len(corpus) else 0, step):
            queries = np.arange(begin, min(begin + step, len(objective)))
            open_ones = _search_batch(corpus, objective, queries, excluded or {}, hits)
            hits.second_passes += len(open_ones)
            for start in range(0, len(open_ones), _CPU_QUERIES):
                some = open_ones[start : start + _CPU_QUERIES]
                _cost_all_in_doubt(corpus, objective, some, excluded or {}, hits)
    return hits


def _search_batch(
    corpus: Corpus, objective: SearchObjective, queries: Array, excluded: Excluded, hits: Hits
) -> Array:
    """Find the hits of some queries; return those whose best rows may be other ones."""
    size = min(hits.rows.shape[1] + _SPARE, len(corpus))
    keys, rows = _shortlist(corpus, objective, queries, excluded, size)
    bounds, there = objective.bound(keys, queries), np.isfinite(keys)
    costs = np.full(keys.shape, np.inf)
    is_first = there & (np.arange(size) < hits.rows.shape[1])
    for wanted in (is_first, there & ~is_first):
        # Of the other rows only those can be among the best whose bound is below these costs.
        limits = np.where(is_first, costs, -np.inf).max(axis=1, keepdims=True)
        position, column = np.nonzero(wanted & (bounds <= limits))
        costs[position, column] = _costs(
            corpus, objective, queries[position], rows[position, column]
        )
    order = np.lexsort((rows, costs))[:, : hits.rows.shape[1]]
    best = np.take_along_axis(costs, order, axis=1)
    numbers = np.take_along_axis(rows, order, axis=1)
    hits.costs[queries, : order.shape[1]] = best
    hits.rows[queries, : order.shape[1]] = np.where(np.isfinite(best), numbers, -1)
    seen_all = ~there.all(axis=1) | (size == len(corpus))
    open_ones: Array = queries[~(seen_all | (bounds[:, -1] > hits.costs[queries, -1]))]
    return open_ones


def _shortlist(
    corpus: Corpus, objective: SearchObjective, queries: Array, excluded: Excluded, size: int
) -> tuple[Array, Array]:
    """Return the smallest keys (q, size) float64, ascending, inf if there are fewer, and rows.

    The choice among rows with equal keys is undefined: the search does not rely on it.
    """
    best = torch.full((len(queries), size), torch.inf, device=corpus.device)
    numbers = torch.zeros((len(queries), size), dtype=torch.long, device=corpus.device)
    limits = torch.full((len(queries),), _LARGEST, device=corpus.device)
    for part, keys in _keys(corpus, objective, queries, excluded):
        if part.start == 0 and len(keys) // _TILE >= size:
            # As many tiles have a key that is no larger, so that most rows can be left out.
            tiles = keys[: len(keys) // _TILE * _TILE].unflatten(0, (-1, _TILE)).amin(1)
            least = tiles.T.contiguous().topk(size, largest=False).values.amax(1)
            limits = least.nextafter(torch.full_like(least, torch.inf)).clamp_(max=_LARGEST)
        # After the first chunk few rows are near any of the queries. A difference is negative
        # exactly where a key is smaller, and cheaper to reduce than a comparison.
        near = ((keys - limits).amin(1) < 0).nonzero()[:, 0]
        if len(near):
            offered = torch.cat([best, keys[near].T], 1)
            best, chosen = offered.topk(size, largest=False)
            rows = (near + part.start).expand(len(queries), -1)
            numbers = torch.cat([numbers, rows], 1).gather(1, chosen)
            limits = best[:, -1].clamp(max=_LARGEST)
    return best.double().cpu().numpy(), numbers.cpu().numpy()


def _keys(
    corpus: Corpus, objective: SearchObjective, queries: Array, excluded: Excluded
) -> Iterator[tuple[slice, Tensor]]:
    """Yield each chunk's keys (n, q), inf for excluded rows; all chunks share one buffer."""
    stacked = torch.from_numpy(objective.weights[:, queries].reshape(-1, corpus.dim))
    # Transposed by torch, because its memory alignment is faster for BLAS than numpy's.
    weights = stacked.T.contiguous().to(corpus.device)
    buffer = torch.empty(min(corpus.chunk, len(corpus)), weights.shape[1], device=corpus.device)
    barred = {
        position: np.array(sorted(excluded[query]), np.int64)
        for position, query in enumerate(queries.tolist())
        if excluded.get(query)
    }
    for rows in corpus.chunks():
        products = buffer[: rows.stop - rows.start]
        torch.mm(corpus.block(rows), weights, out=products)
        parts = products.unflatten(1, (-1, len(queries))).unbind(1)
        keys = objective.keys(parts, corpus.squared_norms[rows, None], queries)
        for position, numbers in barred.items():
            inside = numbers[(numbers >= rows.start) & (numbers < rows.stop)] - rows.start
            keys[torch.from_numpy(inside).to(keys.device), position] = torch.inf
        yield rows, keys


def _costs(corpus: Corpus, objective: SearchObjective, queries: Array, numbers: Array) -> Array:
    """Compute exact costs (m,) of rows by their number, each for its query (m,)."""
    costs = np.empty(len(numbers))
    for begin in range(0, len(numbers), _COSTED_AT_ONCE):
        some = slice(begin, begin + _COSTED_AT_ONCE)
        costs[some] = objective.costs(queries[some], corpus.rows(numbers[some]))
    return costs


def _cost_all_in_doubt(
    corpus: Corpus, objective: SearchObjective, queries: Array, excluded: Excluded, hits: Hits
) -> None:
    """Find the hits of some queries among all rows whose bound does not rule them out."""
    for part, keys in _keys(corpus, objective, queries, excluded):
        found = keys.T.double().cpu().numpy()
        limits = hits.costs[queries, -1:]
        possible = ~(objective.bound(found, queries) > limits) & ~np.isposinf(found)
        for query, mask in zip(queries, possible, strict=True):
            numbers = np.setdiff1d(
                np.flatnonzero(mask) + part.start, hits.rows[query], assume_unique=True
            )
            costs = _costs(corpus, objective, np.full(len(numbers), query), numbers)
            hits.add(int(query), numbers, costs)
