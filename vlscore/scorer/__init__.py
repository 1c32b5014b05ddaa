"""Scoring: studies to embeddings to metrics to a Score with its signature."""

from vlscore.scorer.once import score
from vlscore.scorer.result import Score, ScoreTable
from vlscore.scorer.running import RunningScores
from vlscore.scorer.scorer import DEFAULT_METRIC, Item, Scorer

__all__ = ["DEFAULT_METRIC", "Item", "RunningScores", "Score", "ScoreTable", "Scorer", "score"]
