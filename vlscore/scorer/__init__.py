"""Scoring: studies to embeddings to metrics to a Score with its signature."""

from vlscore.scorer.result import Score, ScoreTable
from vlscore.scorer.scorer import Item, Scorer, score

__all__ = ["Item", "Score", "ScoreTable", "Scorer", "score"]
