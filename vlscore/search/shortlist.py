"""The rows with the smallest keys so far, per query."""

import torch
from torch import Tensor

from vlscore.search.kernels import Array

_TILE = 32


class Shortlist:
    """The `size` smallest keys of each query and their rows; chunks mostly hold none of them.

    Which of several rows with equal keys are kept is left open: the search takes no key's word.
    """

    def __init__(self, queries: int, size: int, device: torch.device) -> None:
        self._keys = torch.full((queries, size), torch.inf, device=device)
        self._rows = torch.full((queries, size), -1, dtype=torch.long, device=device)
        self._limit = torch.full((queries, 1), torch.inf, device=device)
        self._is_empty = True

    def update(self, keys: Tensor, start: int) -> None:
        """Take in keys (q, n) of the rows from `start` on."""
        tiled = keys.shape[1] // _TILE * _TILE
        tiles = keys[:, :tiled].T.unflatten(0, (-1, _TILE))
        minima = tiles.amin(1).T.contiguous()
        if self._is_empty and minima.shape[1] > self._keys.shape[1]:
            self._limit = _ceiling(minima, self._keys.shape[1])
        query, column, small = _below(tiles, minima, self._limit)
        if len(query):
            self._keep(*_side_by_side(small, column + start, query, len(keys)))
        if tiled < keys.shape[1]:
            rest = keys[:, tiled:]
            rows = torch.arange(start + tiled, start + keys.shape[1], device=keys.device)
            self._keep(rest, rows.expand_as(rest))
        self._is_empty = False

    def _keep(self, keys: Tensor, rows: Tensor) -> None:
        """Take in keys and rows (q, m); an infinite key is none."""
        all_keys = torch.cat([self._keys, keys], 1)
        all_rows = torch.cat([self._rows, torch.where(keys < torch.inf, rows, -1)], 1)
        size = self._keys.shape[1]
        self._keys, chosen = all_keys.topk(size, dim=1, largest=False, sorted=False)
        self._rows = all_rows.gather(1, chosen)
        self._limit = self._keys.amax(1, keepdim=True)

    def sorted(self) -> tuple[Array, Array]:
        """Keys ascending (q, m) float64 and rows (q, m), -1 where there are no more."""
        keys, order = self._keys.sort(1)
        return keys.double().cpu().numpy(), self._rows.gather(1, order).cpu().numpy()


def _side_by_side(keys: Tensor, rows: Tensor, query: Tensor, queries: int) -> tuple[Tensor, Tensor]:
    """Keys and rows (q, m) of each query from a list over all of them, in order of the queries."""
    counts = torch.bincount(query, minlength=queries)
    place = torch.arange(len(query), device=keys.device) - (counts.cumsum(0) - counts)[query]
    width = int(counts.max())
    wide_keys = torch.full((queries, width), torch.inf, device=keys.device)
    wide_rows = torch.full((queries, width), -1, dtype=torch.long, device=keys.device)
    wide_keys[query, place] = keys
    wide_rows[query, place] = rows
    return wide_keys, wide_rows


def _ceiling(minima: Tensor, size: int) -> Tensor:
    """(q, 1): at least `size` keys lie below, for so many of the tiles' minima (q, t) do."""
    largest = minima.topk(size, dim=1, largest=False, sorted=False)[0].amax(1, keepdim=True)
    return largest.nextafter(torch.full_like(largest, torch.inf))


def _below(tiles: Tensor, minima: Tensor, limits: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, ascending, columns and values of the keys below their query's limit.

    Args: tiles: keys (t, _TILE, q). minima: of the tiles (q, t). limits: (q, 1).
    """
    query, tile = (minima < limits).nonzero(as_tuple=True)
    candidates = tiles[tile, :, query]
    pair, place = (candidates < limits[query]).nonzero(as_tuple=True)
    return query[pair], tile[pair] * _TILE + place, candidates[pair, place]
