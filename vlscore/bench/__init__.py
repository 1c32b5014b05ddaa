"""Benchmarks of metrics: which changes they notice, and whether they look at the image."""

from vlscore.bench.embedding import EmbeddedPairs, embed_pairs
from vlscore.bench.image_swap import SwapResult, image_swap
from vlscore.bench.pairs import Pair, pair_of, read_pairs
from vlscore.bench.sensitivity import COMPARISONS, MetricResult, Sensitivity, sensitivity
from vlscore.bench.values import PairValues

__all__ = [
    "COMPARISONS",
    "EmbeddedPairs",
    "MetricResult",
    "Pair",
    "PairValues",
    "Sensitivity",
    "SwapResult",
    "embed_pairs",
    "image_swap",
    "pair_of",
    "read_pairs",
    "sensitivity",
]
