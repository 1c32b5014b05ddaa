"""The shortlist keeps the smallest keys, however they come."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from vlscore.retrieval.vector_search.exact import _TILE, Shortlist

LENGTHS = [1, _TILE - 1, _TILE, _TILE + 1, 8 * _TILE, 21 * _TILE + 5]


def shortlisted(keys, size, cuts):
    """Keys (q, n) taken in piece by piece, strided as the search has them."""
    shortlist = Shortlist(len(keys), size, torch.device("cpu"))
    for begin, end in zip([0, *cuts], [*cuts, keys.shape[1]], strict=True):
        buffer = torch.full((end - begin, 2 * len(keys)), torch.nan)
        buffer[:, : len(keys)] = torch.from_numpy(keys[:, begin:end].T)
        shortlist.update(buffer.T[: len(keys)], begin)
    return shortlist.sorted()


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    lengths=st.lists(st.sampled_from(LENGTHS), min_size=1, max_size=4),
    queries=st.integers(1, 5),
    size=st.integers(1, 40),
    values=st.sampled_from([3, 50, 10**6]),
    infinite=st.sampled_from([0.0, 0.3, 0.99, 1.0]),
)
def test_the_smallest_keys_are_kept(seed, lengths, queries, size, values, infinite):
    """Many equal keys, many infinite ones, more or fewer than wanted, ends within a tile."""
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    keys = rng.integers(-values, values, size=(queries, n)).astype(np.float32)
    keys[rng.random(keys.shape) < infinite] = np.inf
    found, rows = shortlisted(keys, size, np.cumsum(lengths)[:-1].tolist())
    wanted = np.sort(np.pad(keys, ((0, 0), (0, size)), constant_values=np.inf))[:, :size]
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(rows >= 0, np.isfinite(wanted))
    for query, numbers in enumerate(rows):
        numbers = numbers[numbers >= 0]
        assert len(set(numbers.tolist())) == len(numbers)
        np.testing.assert_array_equal(keys[query, numbers], found[query, : len(numbers)])


def test_queries_are_settled_apart():
    """One query takes all of a chunk, another nothing, a third one key in its last tile."""
    keys = np.full((3, 40 * _TILE), 5, np.float32)
    keys[:, : 20 * _TILE] = np.arange(20 * _TILE) / _TILE
    keys[0, 20 * _TILE :] = -1
    keys[2, -1] = -2
    found, rows = shortlisted(keys, 4, [20 * _TILE])
    assert found[0].tolist() == [-1] * 4
    assert (rows[0] >= 20 * _TILE).all()
    assert rows[1].tolist() == [0, 1, 2, 3]
    assert rows[2].tolist() == [40 * _TILE - 1, 0, 1, 2]
