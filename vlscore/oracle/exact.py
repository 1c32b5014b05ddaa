"""Exact search: one float32 matrix product over the corpus, proven complete, ranked in float64.

The product gives every row a key. Rows with small keys are costed in float64; the search ends when
the key's bound shows that no row left out can cost as little as the k-th found. Where a shortlist
does not reach so far (ties, near-duplicates), a second pass costs every row in doubt.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vlscore.oracle.corpus import Corpus
from vlscore.oracle.objectives import Objective
from vlscore.oracle.rows import Array

_CPU_QUERIES, _GPU_QUERIES = 64, 512
_SPARE = 22
_COSTED_AT_ONCE = 512

Excluded = Mapping[int, Sequence[int]]


@dataclass
class Hits:
    """The best rows of q queries, best first.

    Attributes:
        rows: (q, k) int64, -1 where fewer qualify.
        costs: (q, k) float64, inf there.
        second_passes: queries whose shortlist left a doubt.
    """

    rows: Array
    costs: Array
    second_passes: int = 0


def search(corpus: Corpus, objective: Objective, k: int, excluded: Excluded | None = None) -> Hits:
    """The k cheapest rows of each query; equal costs in the order of the corpus.

    Args:
        excluded: query -> numbers of rows that it must not find.
    """
    hits = empty_hits(len(objective), k)
    excluded = excluded or {}
    step = _CPU_QUERIES if corpus.device.type == "cpu" else _GPU_QUERIES
    with _full_precision():
        for begin in range(0, len(objective), step):
            queries = slice(begin, min(begin + step, len(objective)))
            _search_batch(corpus, objective, queries, excluded, hits)
    return hits


def empty_hits(queries: int, k: int) -> Hits:
    """No hits yet."""
    return Hits(np.full((queries, k), -1, np.int64), np.full((queries, k), np.inf))


def merge(hits: Hits, query: int, rows: Array, costs: Array) -> None:
    """Take rows (m,) with their costs into one query's hits."""
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
    corpus: Corpus, objective: Objective, queries: slice, excluded: Excluded, hits: Hits
) -> None:
    if not len(corpus):
        return
    k = hits.rows.shape[1]
    shortlist = _Shortlist(queries.stop - queries.start, min(k + _SPARE, len(corpus)), corpus)
    for rows, keys in _keys(corpus, objective, queries, excluded):
        shortlist.update(keys, rows.start)
    shortest, positions = shortlist.sorted()
    bounds = objective.bound(shortest, queries)
    doubtful = []
    for query in range(queries.start, queries.stop):
        bound, rows = bounds[query - queries.start], positions[query - queries.start]
        if objective.constant[query]:
            _first_rows(corpus, query, excluded, hits, objective)
        elif not _settle(corpus, objective, query, rows, bound, hits):
            doubtful.append(query)
    hits.second_passes += len(doubtful)
    for query in doubtful:
        _cost_all_in_doubt(corpus, objective, query, excluded, hits)


def _keys(
    corpus: Corpus, objective: Objective, queries: slice, excluded: Excluded
) -> Iterator[tuple[slice, Tensor]]:
    """Chunk by chunk, the keys of all its rows, inf for excluded ones; one buffer throughout."""
    weights = torch.from_numpy(objective.weights[:, queries]).to(corpus.device)
    columns, count, dim = weights.shape
    weights = weights.reshape(columns * count, dim)
    buffer = torch.empty(len(weights) * min(corpus.chunk, len(corpus)), device=corpus.device)
    barred = {
        query - queries.start: np.array(sorted(excluded[query]), np.int64) - corpus.start
        for query in range(queries.start, queries.stop)
        if excluded.get(query)
    }
    for rows in corpus.chunks():
        width = rows.stop - rows.start
        products = buffer[: len(weights) * width].view(len(weights), width)
        torch.mm(weights, corpus.block(rows).T, out=products)
        keys = objective.keys(
            products.split(count) if columns > 1 else (products,),
            corpus.squared_norms[rows],
            queries,
        )
        for position, numbers in barred.items():
            inside = numbers[(numbers >= rows.start) & (numbers < rows.stop)] - rows.start
            keys[position, torch.from_numpy(inside).to(keys.device)] = torch.inf
        yield rows, keys


class _Shortlist:
    """The rows with the smallest keys so far, per query; chunks mostly hold none of them."""

    def __init__(self, queries: int, size: int, corpus: Corpus) -> None:
        device = corpus.device
        self._keys = torch.full((queries, size), torch.inf, device=device)
        self._rows = torch.full((queries, size), -1, dtype=torch.long, device=device)
        self._limit = torch.full((queries, 1), torch.inf, device=device)
        self._size = size
        self._is_empty = True

    def update(self, keys: Tensor, start: int) -> None:
        if self._is_empty:
            self._fill(keys, start)
            return
        query, column = _where(keys < self._limit)
        if not len(query):
            return
        counts = torch.bincount(query, minlength=len(keys))
        width = int(counts.max())
        place = torch.arange(len(query), device=keys.device)
        place -= (counts.cumsum(0) - counts)[query]
        new_keys = torch.full((len(keys), width), torch.inf, device=keys.device)
        new_rows = torch.full((len(keys), width), -1, dtype=torch.long, device=keys.device)
        new_keys[query, place] = keys[query, column]
        new_rows[query, place] = column + start
        all_keys = torch.cat([self._keys, new_keys], 1)
        all_rows = torch.cat([self._rows, new_rows], 1)
        self._keys, chosen = all_keys.topk(self._size, dim=1, largest=False, sorted=False)
        self._rows = all_rows.gather(1, chosen)
        self._limit = self._keys.amax(1, keepdim=True)

    def _fill(self, keys: Tensor, start: int) -> None:
        """The first chunk: every row of it is new, so choosing beats collecting."""
        width = min(self._size, keys.shape[1])
        chosen, columns = keys.topk(width, dim=1, largest=False, sorted=False)
        self._keys[:, :width] = chosen
        self._rows[:, :width] = torch.where(chosen < torch.inf, columns + start, -1)
        self._limit = self._keys.amax(1, keepdim=True)
        self._is_empty = False

    def sorted(self) -> tuple[Array, Array]:
        """Keys ascending (q, m) float64 and local rows (q, m), -1 where there are no more."""
        keys, order = self._keys.sort(1)
        return keys.double().cpu().numpy(), self._rows.gather(1, order).cpu().numpy()


def _where(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Rows and columns of the few true elements; numpy skips the false ones faster."""
    if mask.device.type != "cpu":
        rows, columns = mask.nonzero(as_tuple=True)
        return rows, columns
    flat = torch.from_numpy(np.flatnonzero(mask.numpy()))
    return flat // mask.shape[1], flat % mask.shape[1]


def _settle(
    corpus: Corpus, objective: Objective, query: int, rows: Array, bound: Array, hits: Hits
) -> bool:
    """Cost as many of the shortlist as needed; whether no other row can be among the best."""
    k = hits.rows.shape[1]
    present = int((rows >= 0).sum())
    _cost(corpus, objective, query, rows[: min(k, present)], hits)
    # Bounds ascend with keys, so what could still enter follows directly.
    needed = int(np.searchsorted(bound[:present], hits.costs[query, -1], side="right"))
    _cost(corpus, objective, query, rows[k:needed], hits)
    everything_seen = present < len(rows) or present == len(corpus)
    return everything_seen or bool(bound[present - 1] > hits.costs[query, -1])


def _cost(corpus: Corpus, objective: Objective, query: int, rows: Array, hits: Hits) -> None:
    for begin in range(0, len(rows), _COSTED_AT_ONCE):
        numbers = rows[begin : begin + _COSTED_AT_ONCE] + corpus.start
        merge(hits, query, numbers, objective.costs(query, corpus.rows(numbers)))


def _cost_all_in_doubt(
    corpus: Corpus, objective: Objective, query: int, excluded: Excluded, hits: Hits
) -> None:
    known = hits.rows[query].copy()
    only = slice(query, query + 1)
    for rows, keys in _keys(corpus, objective, only, excluded):
        bound = objective.bound(keys.double().cpu().numpy(), only)[0]
        possible = ~(bound > hits.costs[query, -1]) & ~np.isposinf(keys[0].cpu().numpy())
        local = np.flatnonzero(possible) + rows.start
        _cost(corpus, objective, query, np.setdiff1d(local, known - corpus.start), hits)
        known = hits.rows[query].copy()


def _first_rows(
    corpus: Corpus, query: int, excluded: Excluded, hits: Hits, objective: Objective
) -> None:
    """All rows cost the same, so corpus order alone decides."""
    barred = set(excluded.get(query, ()))
    k = hits.rows.shape[1]
    first = range(corpus.start, min(corpus.start + len(corpus), corpus.start + k + len(barred)))
    numbers = np.array([row for row in first if row not in barred][:k], np.int64)
    merge(hits, query, numbers, objective.costs(query, corpus.rows(numbers)))


@contextlib.contextmanager
def _full_precision() -> Iterator[None]:
    """Float32 products in float32: TensorFloat-32 and bfloat16 would break the bounds."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.set_float32_matmul_precision(before)
