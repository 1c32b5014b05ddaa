"""Benchmarks of metrics: which changes they notice, and whether they look at the image."""

from vlscore.meta.embedding import EmbeddedPairs, StudyVectors, embed_pairs
from vlscore.meta.image_swap import SwapResult, image_swap
from vlscore.meta.pairs import Pair, pair_of, read_pairs, select_pairs
from vlscore.meta.retrieval import Retrieval, evaluate_retrieval
from vlscore.meta.retrieval_run import RetrievalResult, RetrievalRun, retrieve
from vlscore.meta.run import SensitivityRun, run_sensitivity
from vlscore.meta.sensitivity import COMPARISONS, MetricResult, Sensitivity, sensitivity
from vlscore.meta.values import PairValues

__all__ = [
    "COMPARISONS",
    "EmbeddedPairs",
    "MetricResult",
    "Pair",
    "PairValues",
    "Retrieval",
    "RetrievalResult",
    "RetrievalRun",
    "Sensitivity",
    "SensitivityRun",
    "StudyVectors",
    "SwapResult",
    "embed_pairs",
    "evaluate_retrieval",
    "image_swap",
    "pair_of",
    "read_pairs",
    "retrieve",
    "run_sensitivity",
    "select_pairs",
    "sensitivity",
]
