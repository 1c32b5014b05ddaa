"""Reading tables of studies and of reports."""

from vlscore.studies.cells import is_encodable, looks_missing
from vlscore.studies.rows import columns_of, count_rows, read_rows
from vlscore.studies.study import BadRow, ColumnNames, Report, Study, StudyImages
from vlscore.studies.tables import (
    ReportTable,
    StudyTable,
    open_reports,
    open_studies,
    read_reports,
    read_studies,
    read_study_images,
)

__all__ = [
    "BadRow",
    "ColumnNames",
    "Report",
    "ReportTable",
    "Study",
    "StudyImages",
    "StudyTable",
    "columns_of",
    "count_rows",
    "is_encodable",
    "looks_missing",
    "open_reports",
    "open_studies",
    "read_reports",
    "read_rows",
    "read_studies",
    "read_study_images",
]
