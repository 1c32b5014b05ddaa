"""Metric-oracles over a table of studies: the best report of an index for each."""

from vlscore.oracle.naming import oracle_metric
from vlscore.oracle.queries import QueryTable
from vlscore.oracle.run import Answer, Hit, OracleRun, OracleSettings
from vlscore.oracle.text_metrics import best_texts

__all__ = [
    "Answer",
    "Hit",
    "OracleRun",
    "OracleSettings",
    "QueryTable",
    "best_texts",
    "oracle_metric",
]
