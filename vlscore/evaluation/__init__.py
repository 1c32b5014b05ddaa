"""Evaluating a table of studies, resumably, into files."""

from vlscore.evaluation.drift import PrecisionCheck, check_drift
from vlscore.evaluation.run import RunResult, evaluate
from vlscore.evaluation.sharing import facts_of, serve_evaluation, when_all_are_ready
from vlscore.evaluation.summary import MetricSummary, Summary, ValueSummary, summarise
from vlscore.evaluation.tables import scores_table, summary_table, summary_text

__all__ = [
    "MetricSummary",
    "PrecisionCheck",
    "RunResult",
    "Summary",
    "ValueSummary",
    "check_drift",
    "evaluate",
    "facts_of",
    "scores_table",
    "serve_evaluation",
    "summarise",
    "summary_table",
    "summary_text",
    "when_all_are_ready",
]
