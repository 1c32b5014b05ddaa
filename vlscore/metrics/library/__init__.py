"""Metrics of vlscore, one file for each metric or family of metrics."""
