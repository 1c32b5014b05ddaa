"""Studies and reports as plain data, and rows that hold none."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Study:
    """One row of a table of studies.

    Attributes:
        id: of the study; the row number where the table has no ids.
        images: paths of its images, at least one.
        reference: reference report.
        candidate: generated report.
        row: number of the row, as a person counts.
        views: view position of each image, where the table states them.
    """

    id: str
    images: tuple[Path, ...]
    reference: str
    candidate: str
    row: int
    views: tuple[str | None, ...] | None = None


@dataclass(frozen=True)
class Report:
    """One row of a table of reports.

    Attributes:
        id: of the report; the row number where the table has no ids.
        text: the report.
        row: number of the row.
    """

    id: str
    text: str
    row: int


@dataclass(frozen=True)
class StudyImages:
    """The images of one study, without its reports.

    Attributes:
        id: of the study.
        images: paths, or anything else that a Scorer takes for an image; at least one.
        views: view position of each image, where known.
    """

    id: str
    images: tuple[Any, ...]
    views: tuple[str | None, ...] | None = None


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used.

    Attributes:
        row: number of the row.
        id: where it could be read.
        reason: what is wrong, and where it helps, what to do.
    """

    row: int
    id: str | None
    reason: str


@dataclass(frozen=True)
class ColumnNames:
    """What the columns of a table of studies are called."""

    id: str = "id"
    image: str = "image"
    reference: str = "reference"
    candidate: str = "candidate"
    view: str = "view"
