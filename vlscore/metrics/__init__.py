"""Metrics of generated reports: definitions in `definitions`, computation in `providers`.

from vlscore import metrics
metrics.compute(["bleu-4", "rouge-l"], candidates, references)
"""

from vlscore.metrics.batch import Batch, Computed, MetricValues
from vlscore.metrics.composite import (
    Composite,
    CompositeInput,
    composite_metric,
    digests_of,
    read_composite,
    write_composite,
)
from vlscore.metrics.compute import compute, compute_values, signature
from vlscore.metrics.contract import check_metric
from vlscore.metrics.embeddings import EmbeddingTriples
from vlscore.metrics.metric import EMBEDDINGS, Metric, Output, Parameter
from vlscore.metrics.own import text_metric
from vlscore.metrics.plan import Fit, Plan, corpus_of_sums, lacks, usable_metrics
from vlscore.metrics.providers import Provider, one_column
from vlscore.metrics.registry import METRICS, find_metric, find_metrics, provider_of, register

__all__ = [
    "EMBEDDINGS",
    "METRICS",
    "Batch",
    "Composite",
    "CompositeInput",
    "Computed",
    "EmbeddingTriples",
    "Fit",
    "Metric",
    "MetricValues",
    "Output",
    "Parameter",
    "Plan",
    "Provider",
    "check_metric",
    "composite_metric",
    "compute",
    "compute_values",
    "corpus_of_sums",
    "digests_of",
    "find_metric",
    "find_metrics",
    "lacks",
    "one_column",
    "provider_of",
    "read_composite",
    "register",
    "signature",
    "text_metric",
    "usable_metrics",
    "write_composite",
]
