"""Ranks: R@k and median rank of retrieval by an encoder; rows nearer than a distance.

Ties count as in random order, in expectation: an encoder that maps everything to one point has R@k
= k/n, not 1. Reports with the same text are one report: another study's copy of it is a right hit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from vlscore.core import FULL_PRECISION, unit_rows
from vlscore.errors import InvalidSetting
from vlscore.retrieval.corpus import Array, Corpus, dot, norm, underflow
from vlscore.stats import Interval, bootstrap_mean, bootstrap_median

CUTS = (1, 5, 10)

# Limits the memory of similarities, because there may be as many candidates as rows.
_QUERIES_AT_ONCE = 256

# Numbers of wrong answers above the best right one, of wrong ones tied with it, of right ones tied.
Counts = tuple[int, int, int]


@dataclass(frozen=True)
class Retrieval:
    """Result for one direction of retrieval; intervals are 95 % bootstrap ones over queries.

    Attributes:
        recall: k -> expected share of queries with a right answer among the first k.
        median_rank: of the first right answer, 1 the best.
        queries, candidates: number of queries, and of what each searches among.
    """

    recall: dict[int, Interval]
    median_rank: Interval
    queries: int
    candidates: int


def evaluate_retrieval(
    images: Array, reports: Array, texts: Sequence[str], *, seed: int = 0
) -> tuple[Retrieval, Retrieval]:
    """Evaluate retrieval from image to text and from text to image, by cosine in float64.

    Args:
        images, reports: (n, d) embeddings of the same n studies.
        texts: the n reports.
        seed: of the bootstrap.

    Returns: (image to text, text to image).
    Raises: InvalidSetting where the lengths differ.
    """
    if not len(images) == len(reports) == len(texts) or not len(texts):
        raise InvalidSetting(
            f"needs as many images as reports, at least one; these are {len(images)} images, "
            f"{len(reports)} reports, {len(texts)} texts"
        )
    first = {text: row for row, text in reversed(list(enumerate(texts)))}
    distinct = sorted(first.values())
    column = {texts[row]: position for position, row in enumerate(distinct)}
    owner = np.array([column[text] for text in texts])
    pictures = unit_rows(np.asarray(images, np.float64))
    reports = unit_rows(np.asarray(reports[distinct], np.float64))
    to_text = _ranked(pictures, owner, reports, np.arange(len(distinct)))
    to_image = _ranked(reports, np.arange(len(distinct)), pictures, owner)
    return _summary(to_text, len(distinct), seed), _summary(to_image, len(texts), seed)


def _ranked(queries: Array, wanted: Array, candidates: Array, owners: Array) -> list[Counts]:
    """Return counts for each query; right answers are those of the candidates with its owner."""
    counts: list[Counts] = []
    for start in range(0, len(queries), _QUERIES_AT_ONCE):
        block = slice(start, start + _QUERIES_AT_ONCE)
        # Products of equal vectors may differ in the last bits; these are ties, not an order.
        similarity = np.round(queries[block] @ candidates.T, 12)
        is_right = owners == wanted[block, None]
        best = np.where(is_right, similarity, -np.inf).max(axis=1, keepdims=True)
        level = similarity == best
        found = (similarity > best, level & ~is_right, level & is_right)
        counts += zip(*(each.sum(axis=1).tolist() for each in found), strict=True)
    return counts


def _summary(counts: list[Counts], candidates: int, seed: int) -> Retrieval:
    recall = {k: bootstrap_mean([_chance(k, *count) for count in counts], seed=seed) for k in CUTS}
    # The first of p right answers among w wrong ones, all level: (w + p + 1) / (p + 1) on average.
    ranks = [above + (wrong + right + 1) / (right + 1) for above, wrong, right in counts]
    return Retrieval(recall, bootstrap_median(ranks, seed=seed), len(counts), candidates)


def _chance(k: int, above: int, wrong: int, right: int) -> float:
    """Return the probability of a right answer among the first k, with ties in random order."""
    places = min(max(k - above, 0), wrong + right)
    missed = 1.0
    for place in range(places):
        missed *= max(wrong - place, 0) / (wrong + right - place)
    return 1 - missed


def nearer(
    corpus: Corpus, references: Array, distances: Sequence[Sequence[float]]
) -> list[list[int]]:
    """Count exactly how many rows of the corpus are nearer to each reference than each distance.

    Args: references: (q, d). distances: any number for each of the q references.
    """
    targets = np.asarray(references, np.float64)
    limits = [np.asarray(one, np.float64) for one in distances]
    counts = [np.zeros(len(one), np.int64) for one in limits]
    resident = torch.from_numpy(targets.astype(np.float32)).to(corpus.device)
    slack = 4 * (corpus.dim + 16) * 2.0**-24 * (corpus.largest_norm + norm(targets)) ** 2
    slack += underflow(corpus.dim)
    for rows in corpus.chunks():
        # With fewer bits the error of a product would exceed the slack.
        with FULL_PRECISION:
            products = (resident @ corpus.block(rows).T).double()
        squares = (corpus.squared_norms[rows].double() - 2 * products).cpu().numpy()
        squares += dot(targets, targets)[:, None]
        for query, own_limits in enumerate(limits):
            low, high = own_limits**2 - slack[query], own_limits**2 + slack[query]
            own = squares[query]
            order = np.sort(own)
            sure = np.searchsorted(order, low)
            counts[query] += sure
            if (sure == np.searchsorted(order, high, side="right")).all():
                continue
            # Rows so near a limit that only their exact distance decides.
            in_doubt = (own[:, None] >= low) & (own[:, None] <= high)
            doubtful = np.flatnonzero(in_doubt.any(axis=1))
            exact = norm(corpus.rows(doubtful + rows.start) - targets[query])
            counts[query] += (in_doubt[doubtful] & (exact[:, None] < own_limits)).sum(axis=0)
    return [one.tolist() for one in counts]
