"""Alignment with radiologists: rated sets in their own layouts, and how well metrics agree."""

from vlscore.alignment.agreement import (
    Alignment,
    Ceiling,
    MeasuredMetric,
    MetricAgreement,
    MetricDifference,
    RaterAgreement,
    align,
)
from vlscore.alignment.composite import CompositeFit, fit_composite
from vlscore.alignment.failure_modes import (
    CategoryMean,
    FailureModes,
    FailureTest,
    failure_modes,
)
from vlscore.alignment.failure_run import FailureRun, run_failure_modes
from vlscore.alignment.layouts import LAYOUTS, layout_of, read_ratings
from vlscore.alignment.pairs import MEANINGS, RatedPairs
from vlscore.alignment.pairwise import RankingAgreement
from vlscore.alignment.reports import with_reports
from vlscore.alignment.run import AlignmentRun, run_alignment
from vlscore.alignment.sheet_run import RatingSheets, make_sheets
from vlscore.alignment.table import RatingColumns
from vlscore.alignment.tables import all_tables
from vlscore.alignment.values import split_values

__all__ = [
    "LAYOUTS",
    "MEANINGS",
    "Alignment",
    "AlignmentRun",
    "CategoryMean",
    "Ceiling",
    "CompositeFit",
    "FailureModes",
    "FailureRun",
    "FailureTest",
    "MeasuredMetric",
    "MetricAgreement",
    "MetricDifference",
    "RankingAgreement",
    "RatedPairs",
    "RaterAgreement",
    "RatingColumns",
    "RatingSheets",
    "align",
    "all_tables",
    "failure_modes",
    "fit_composite",
    "layout_of",
    "make_sheets",
    "read_ratings",
    "run_alignment",
    "run_failure_modes",
    "split_values",
    "with_reports",
]
