"""Evaluating a table of studies, resumably, into files."""

from vlscore.evaluation.run import RunResult, evaluate
from vlscore.evaluation.summary import MetricSummary, Summary, ValueSummary, summarise
from vlscore.evaluation.tables import scores_table, summary_table, summary_text

__all__ = [
    "MetricSummary",
    "RunResult",
    "Summary",
    "ValueSummary",
    "evaluate",
    "scores_table",
    "summarise",
    "summary_table",
    "summary_text",
]
