"""How well an encoder finds a study's report among others, and its image: R@k, median rank.

Ties are broken by chance in expectation, so an encoder that maps everything to one point scores
k/n, not 1. Reports with the same text are one report: finding another study's copy of it is right.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vlscore.errors import InvalidSetting
from vlscore.oracle.rows import Array

CUTS = (1, 5, 10)


@dataclass(frozen=True)
class Retrieval:
    """One direction of a retrieval evaluation.

    Attributes:
        recall: k -> expected share of queries with a right answer among the first k.
        median_rank: of the first right answer, 1 the best.
        queries, gallery: how many ask, and among how many they search.
    """

    recall: dict[int, float]
    median_rank: float
    queries: int
    gallery: int


def evaluate_retrieval(
    images: Array, reports: Array, texts: Sequence[str]
) -> tuple[Retrieval, Retrieval]:
    """Image to text and text to image, by cosine in float64.

    Args: images, reports: (n, d) embeddings of the same n studies. texts: the n reports.
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
    similarity = _unit(images) @ _unit(reports[distinct]).T
    # Equal vectors may differ in a product's last bits; those are ties, not an order.
    similarity = np.round(similarity, 12)
    to_text = [
        _counts(similarity[image], np.arange(len(distinct)) == owner[image])
        for image in range(len(texts))
    ]
    to_image = [_counts(similarity[:, report], owner == report) for report in range(len(distinct))]
    return _summary(to_text, len(distinct)), _summary(to_image, len(texts))


def _counts(scores: Array, is_right: Array) -> tuple[int, int, int]:
    """Wrong answers above the best right one, wrong ones level with it, right ones level."""
    best = scores[is_right].max()
    above = int((scores > best).sum())
    level = scores == best
    return above, int((level & ~is_right).sum()), int((level & is_right).sum())


def _summary(counts: list[tuple[int, int, int]], gallery: int) -> Retrieval:
    recall = {k: float(np.mean([_chance(k, *count) for count in counts])) for k in CUTS}
    # The first of p right answers among w wrong ones, all level: (w + p + 1) / (p + 1) on average.
    ranks = [above + (wrong + right + 1) / (right + 1) for above, wrong, right in counts]
    return Retrieval(recall, float(np.median(ranks)), len(counts), gallery)


def _chance(k: int, above: int, wrong: int, right: int) -> float:
    """That a right answer is among the first k, ties in random order."""
    places = min(max(k - above, 0), wrong + right)
    missed = 1.0
    for place in range(places):
        missed *= max(wrong - place, 0) / (wrong + right - place)
    return 1 - missed


def _unit(vectors: Array) -> Array:
    vectors = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)
