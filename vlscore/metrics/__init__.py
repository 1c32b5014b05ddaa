"""Metrics of generated reports: definitions in `definitions`, computation in `providers`.

from vlscore import metrics
metrics.compute(["bleu-4", "rouge-l"], candidates, references)
"""

from vlscore.metrics.compute import compute, signature
from vlscore.metrics.embeddings import EmbeddingTriples
from vlscore.metrics.metric import Metric, Parameter
from vlscore.metrics.registry import METRICS, find_metric, provider_of

__all__ = [
    "METRICS",
    "EmbeddingTriples",
    "Metric",
    "Parameter",
    "compute",
    "find_metric",
    "provider_of",
    "signature",
]
