"""Reading tables of studies and of reports."""

from vlscore.studies.rows import count_rows, is_encodable, read_rows
from vlscore.studies.study import BadRow, ColumnNames, Report, Study, StudyImages
from vlscore.studies.tables import read_reports, read_studies, read_study_images

__all__ = [
    "BadRow",
    "ColumnNames",
    "Report",
    "Study",
    "StudyImages",
    "count_rows",
    "is_encodable",
    "read_reports",
    "read_rows",
    "read_studies",
    "read_study_images",
]
