"""Comparing systems that write reports: every metric, paired tests, baselines, in tables."""

from vlscore.comparison.result import Comparison, Measured, Tested, compare_values
from vlscore.comparison.run import ComparisonRun, compare
from vlscore.comparison.systems import Source, Systems, has_images, join, open_sources
from vlscore.comparison.texts import TextFacts, text_facts

__all__ = [
    "Comparison",
    "ComparisonRun",
    "Measured",
    "Source",
    "Systems",
    "Tested",
    "TextFacts",
    "compare",
    "compare_values",
    "has_images",
    "join",
    "open_sources",
    "text_facts",
]
