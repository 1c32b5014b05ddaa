"""Evaluating a whole table of studies."""

from vlscore.evaluation.run import RunResult, evaluate
from vlscore.evaluation.summary import Summary, summarise

__all__ = ["RunResult", "Summary", "evaluate", "summarise"]
