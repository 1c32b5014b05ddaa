"""Reading tables of studies and of reports."""

from vlscore.studies.rows import count_rows, read_rows
from vlscore.studies.study import BadRow, ColumnNames, Report, Study
from vlscore.studies.tables import read_reports, read_studies

__all__ = [
    "BadRow",
    "ColumnNames",
    "Report",
    "Study",
    "count_rows",
    "read_reports",
    "read_rows",
    "read_studies",
]
