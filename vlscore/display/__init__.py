"""Results as people read them."""

from vlscore.display.run import run_text, scores_table

__all__ = ["run_text", "scores_table"]
