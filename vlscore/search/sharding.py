"""A corpus cut over processes that torchrun started; the merged result is the unsharded one.

Costs are float64 and the same bits in any shard, so merging the shards' best k by (cost, row)
gives exactly what one search over everything gives.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from vlscore._torchrun import Place, ProcessLost
from vlscore.search.corpus import Corpus
from vlscore.search.exact import Hits, merge
from vlscore.search.kernels import Array


class Shards:
    """This process's place among `count`; the default is to be alone."""

    def __init__(self, rank: int = 0, count: int = 1, device: str = "cpu") -> None:
        self.rank, self.count = rank, count
        self._device = torch.device(device)

    @classmethod
    def from_torchrun(cls, device: str | None = None) -> "Shards":
        """Join the processes that torchrun started (NCCL on GPUs, else gloo), if it did.

        Args: device: as the user gave it; see `Place.own_device`.
        Raises: InvalidSetting, as `Place.own_device`.
        """
        place = Place.launched()
        if place.count == 1:
            return cls()
        own = place.own_device(device)
        place.join(own)
        return cls(place.rank, place.count, own or "cpu")

    @property
    def device(self) -> str:
        """Where this process's shard lives."""
        return str(self._device)

    def close(self) -> None:
        """Leave the group of processes."""
        Place(self.rank, self.count).leave()

    def range(self, rows: int) -> slice:
        """This process's part of so many rows."""
        return slice(rows * self.rank // self.count, rows * (self.rank + 1) // self.count)

    def broadcast(self, values: Any) -> Any:
        """What the first process has, in every process; arrays, numbers, texts, dicts of them.

        Raises: ProcessLost in the others, where the first has ended.
        """
        if self.count == 1:
            return values
        box = [values]
        try:
            dist.broadcast_object_list(box, src=0, device=self._device)
        except RuntimeError:
            if self.rank == 0:
                raise
            raise ProcessLost("the first process has ended; its own message says why") from None
        return box[0]

    def merge(self, hits: Hits) -> Hits:
        """The best of all shards' hits."""
        if self.count == 1:
            return hits
        rows, costs = self._gather(hits.rows), self._gather(hits.costs)
        merged = Hits(np.full_like(hits.rows, -1), np.full_like(hits.costs, np.inf))
        for shard_rows, shard_costs in zip(rows, costs, strict=True):
            for query in range(len(merged.rows)):
                kept = shard_rows[query] >= 0
                merge(merged, query, shard_rows[query][kept], shard_costs[query][kept])
        return merged

    def gather_vectors(self, corpus: Corpus, rows: Array) -> list[Array]:
        """Float64 vectors of the rows (q, k) that any shard holds, k' of each query."""
        vectors = np.zeros((*rows.shape, corpus.dim))
        mine = (rows >= corpus.start) & (rows < corpus.start + len(corpus))
        vectors[mine] = corpus.rows(rows[mine])
        # Every row lies in one shard and is 0 in the others, so adding up changes no bit.
        total = self._sum(vectors)
        return [total[query][rows[query] >= 0] for query in range(len(rows))]

    def add(self, counts: Sequence[Sequence[int]]) -> list[list[int]]:
        """Counts of the shards, added up."""
        if self.count == 1:
            return [list(row) for row in counts]
        flat = self._sum(np.array([n for row in counts for n in row], np.int64)).tolist()
        numbers = iter(flat)
        return [[next(numbers) for _ in row] for row in counts]

    def _gather(self, values: Array) -> list[Array]:
        mine = torch.from_numpy(values).to(self._device)
        all_values = [torch.empty_like(mine) for _ in range(self.count)]
        dist.all_gather(all_values, mine)
        return [part.cpu().numpy() for part in all_values]

    def _sum(self, values: Array) -> Array:
        if self.count == 1:
            return values
        total = torch.from_numpy(values).to(self._device)
        dist.all_reduce(total)
        return total.cpu().numpy()
