"""Results as people read them."""

from vlscore.report.run import run_table, scores_table

__all__ = ["run_table", "scores_table"]
