"""Tables of reports: the rules that all commands read them by."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.data.reports import TextPolicy
from vlscore.data.rows import Record
from vlscore.data.study import ColumnNames, Report
from vlscore.data.tables import (
    REPORT_SECTIONS,
    Table,
    check_columns,
    checked_limit,
    columns_found,
    how_to_name,
    listed,
    parts_in,
    path_of,
)
from vlscore.errors import Failure, InvalidReport, InvalidTable

# Names of a report's column, of which the first that exists counts; else the columns to join.
REPORT_COLUMNS = ("report", "text", "reference")


@dataclass(frozen=True)
class ReportTable(Table[Report]):
    """A table of reports; see `open_reports`.

    Attributes:
        sources: columns that are joined to a report.
        by_section: whether they are its findings and its impression.
    """

    sources: tuple[str, ...]
    by_section: bool

    @property
    def key(self) -> dict[str, Any]:
        """Return what results depend on: bytes, columns and rows."""
        return {
            **self.limit_key,
            "table_sha256": self.sha256,
            "columns": [self.id_column, *self.sources],
        }

    def selected(self, policy: TextPolicy) -> Iterator[Report | Failure]:
        """Yield each report with the part that the policy scores; a bad row where it has none."""
        for row in self:
            try:
                yield row if isinstance(row, Failure) else row.selected(policy)
            except InvalidReport as error:
                yield Failure(row.row, row.id, str(error))

    def _wanted(self) -> set[str]:
        return {self.id_column, *self.sources}

    def _made(self, id: str, number: int, record: Record) -> Report:
        parts = parts_in(record, self.sources)
        text = " ".join(parts.values())
        return Report(id, text, number, parts if self.by_section else None)


def open_reports(
    path: str | Path,
    *,
    id_column: str = "id",
    text_column: str | None = None,
    unique: bool = True,
    limit: int | None = None,
) -> ReportTable:
    """Open a table of reports, of the same formats and by the same rules as `open_studies`.

    Args:
        text_column: column of the reports; default: "report", "text" or "reference", the first that
            exists; else "findings" and "impression" joined by a blank.
        unique: treat a row that repeats an earlier id as a bad row.
        limit: read only so many rows, the first ones; None for all.

    Returns: an iterable of a Report or a Failure for every row, in order.

    Raises: InvalidTable if the file cannot be read, holds no row, or has none of the columns.
    """
    path = path_of(path)
    found = columns_found(path)
    named = {"id": id_column} if id_column != ColumnNames.id else {}
    if text_column is not None:
        named["text"] = text_column
        sources = [text_column]
    else:
        sources = [name for name in REPORT_COLUMNS if name in found][:1]
        sources = sources or [name for name in REPORT_SECTIONS if name in found]
    check_columns(path, found, named)
    if not sources:
        wanted = " or ".join((*REPORT_COLUMNS, *REPORT_SECTIONS))
        raise InvalidTable(
            f"{path}: no column {wanted}; found: {listed(found)}. {how_to_name('text')}"
        )
    by_section = text_column is None and sources[0] in REPORT_SECTIONS
    return ReportTable(
        path,
        tuple(found),
        id_column,
        unique,
        tuple(sources),
        by_section,
        limit=checked_limit(limit),
    )


def as_reports(table: str | Path | ReportTable) -> ReportTable:
    """Return a table of reports: what functions do with their argument, a path or an open table.

    Raises: as `open_reports`.
    """
    return table if isinstance(table, ReportTable) else open_reports(table)
