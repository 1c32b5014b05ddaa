"""Scoring: studies to embeddings to similarity to a Score with its signature."""

from vlscore.scorer.result import COLUMNS, Score, ScoreTable
from vlscore.scorer.scorer import EmbeddedItems, Item, Scorer, score
from vlscore.scorer.signature import Signature
from vlscore.scorer.views import VIEW_POLICIES

__all__ = [
    "COLUMNS",
    "VIEW_POLICIES",
    "EmbeddedItems",
    "Item",
    "Score",
    "ScoreTable",
    "Scorer",
    "Signature",
    "score",
]
