"""Metric-oracles over a table of studies: the best report of an index for each."""

from vlscore.oracle.answers import Answer, Hit
from vlscore.oracle.find import OracleResult, find_oracles, serve_oracles
from vlscore.oracle.naming import OracleMetric, oracle_metric
from vlscore.oracle.run import OracleRun
from vlscore.oracle.settings import OracleSettings
from vlscore.oracle.summary import OracleSummary
from vlscore.oracle.text_metrics import TextSearch, best_texts
from vlscore.oracle.texts import answer_text, oracle_text

__all__ = [
    "Answer",
    "Hit",
    "OracleMetric",
    "OracleResult",
    "OracleRun",
    "OracleSettings",
    "OracleSummary",
    "TextSearch",
    "answer_text",
    "best_texts",
    "find_oracles",
    "oracle_metric",
    "oracle_text",
    "serve_oracles",
]
