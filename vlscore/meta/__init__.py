"""Benchmarks of metrics: which changes they notice, and whether they look at the image."""

from vlscore.meta.controlled import (
    CellMean,
    Controlled,
    Sampling,
    Separation,
    controlled_corpora,
)
from vlscore.meta.controlled_run import ControlledRun, run_controlled
from vlscore.meta.embedding import EmbeddedPairs, StudyVectors, embed_pairs
from vlscore.meta.image_swap import SwapResult, image_swap
from vlscore.meta.labelled_sentences import LabelledSentences, label_sentences, read_labelled
from vlscore.meta.pairs import Pair, pair_of, read_pairs, select_pairs
from vlscore.meta.retrieval import Retrieval, evaluate_retrieval
from vlscore.meta.retrieval_run import RetrievalResult, RetrievalRun, retrieve
from vlscore.meta.run import SensitivityRun, run_sensitivity
from vlscore.meta.sensitivity import COMPARISONS, MetricResult, Sensitivity, sensitivity
from vlscore.meta.unmention import Stress, StressResult, unmention_test
from vlscore.meta.values import PairValues

__all__ = [
    "COMPARISONS",
    "CellMean",
    "Controlled",
    "ControlledRun",
    "EmbeddedPairs",
    "LabelledSentences",
    "MetricResult",
    "Pair",
    "PairValues",
    "Retrieval",
    "RetrievalResult",
    "RetrievalRun",
    "Sampling",
    "Sensitivity",
    "SensitivityRun",
    "Separation",
    "Stress",
    "StressResult",
    "StudyVectors",
    "SwapResult",
    "controlled_corpora",
    "embed_pairs",
    "evaluate_retrieval",
    "image_swap",
    "label_sentences",
    "pair_of",
    "read_labelled",
    "read_pairs",
    "retrieve",
    "run_controlled",
    "run_sensitivity",
    "select_pairs",
    "sensitivity",
    "unmention_test",
]
