"""Metric-oracles: the best report of a corpus for a study, exactly, and at any size.

The numeric core takes plain arrays: `Oracle(vectors, C=...).search(images, references)`.
"""

from vlscore.oracle.approximate import ApproximateIndex, build_approximate, line_points
from vlscore.oracle.build import BuildResult, add_to_index, build_index
from vlscore.oracle.corpus import Corpus
from vlscore.oracle.exact import Hits, search
from vlscore.oracle.objectives import GUARDS, Cosine, ImageCentredCosine, Line, Objective
from vlscore.oracle.oracle import (
    EXACT_UP_TO,
    METRICS,
    Found,
    Oracle,
    nearer,
    oracle_metric,
    recall,
)
from vlscore.oracle.queries import QueryTable
from vlscore.oracle.retrieval import Retrieval, RetrievalResult, evaluate_retrieval, retrieve
from vlscore.oracle.run import Answer, Hit, OracleRun, OracleSettings
from vlscore.oracle.sharding import Shards
from vlscore.oracle.sources import SourceSettings
from vlscore.oracle.store import Index, Manifest, load_index
from vlscore.oracle.text_metrics import best_texts
from vlscore.oracle.verify import verify_index

__all__ = [
    "EXACT_UP_TO",
    "GUARDS",
    "METRICS",
    "Answer",
    "ApproximateIndex",
    "BuildResult",
    "Corpus",
    "Cosine",
    "Found",
    "Hit",
    "Hits",
    "ImageCentredCosine",
    "Index",
    "Line",
    "Manifest",
    "Objective",
    "Oracle",
    "OracleRun",
    "OracleSettings",
    "QueryTable",
    "Retrieval",
    "RetrievalResult",
    "Shards",
    "SourceSettings",
    "add_to_index",
    "best_texts",
    "build_approximate",
    "build_index",
    "evaluate_retrieval",
    "line_points",
    "load_index",
    "nearer",
    "oracle_metric",
    "recall",
    "retrieve",
    "search",
    "verify_index",
]
