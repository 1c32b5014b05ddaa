"""Results as people read them."""

from vlscore.display.run import run_table, scores_table

__all__ = ["run_table", "scores_table"]
