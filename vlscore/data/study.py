"""Studies and reports as plain data: what the rows of a table become."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from vlscore.data.cells import looks_listed, looks_missing
from vlscore.data.reports import TextPolicy, select, select_from_parts
from vlscore.errors import Failure, InvalidReport, InvalidSetting


@dataclass(frozen=True)
class Study:
    """The images and the reports of one study, as a row of a table has them.

    Attributes:
        id: id of the study; the row number if the table has no ids.
        images: paths of its images, or anything else that a Scorer accepts as an image; () if
            images were not requested.
        views: view position of each image, if known.
        reference: reference report; None if it was not requested.
        candidate: generated report, "" if the generator returned nothing; None if it was not
            requested.
        row: number of the row, counted from 1; 0 for a study that is not of a table.
        parts: "findings" and "impression" of the reference, if they are separate columns;
            `reference` is then both, joined by a blank.
        extra: further columns that were requested, unchanged.
        prior: path of the patient's earlier frontal image; None without one.
        lacking: "image" or "reference" -> why the row has none, where it need not have one.
    """

    id: str
    images: tuple[Any, ...] = ()
    views: tuple[str | None, ...] | None = None
    reference: str | None = None
    candidate: str | None = None
    row: int = 0
    parts: Mapping[str, str] | None = field(default=None, hash=False)
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    prior: Any | None = None
    lacking: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def files(self) -> tuple[Path, ...]:
        """Paths of its image files, the earlier image included."""
        return tuple(each for each in (*self.images, self.prior) if isinstance(each, Path))

    @property
    def suspicious(self) -> tuple[str, ...]:
        """Names of the reports that are words like "nan", or a list that is written as a text."""
        texts = {"reference": self.reference, "candidate": self.candidate}
        return tuple(
            role
            for role, text in texts.items()
            if text and (looks_missing(text) or looks_listed(text))
        )

    def selected(self, policy: TextPolicy) -> "Study":
        """Return the study with the parts of its reports that the policy scores; apply it once.

        Raises: InvalidReport if a report lacks the section.
        """
        reference, candidate = self.reference, self.candidate
        if self.parts is not None:
            reference = select_from_parts(self.parts, policy, role="reference")
        elif reference is not None:
            reference = select(reference, policy, role="reference")
        if candidate is not None:
            candidate = select(candidate, policy, role="candidate")
        return replace(self, reference=reference, candidate=candidate, parts=None)


def texts_by_role(rows: Iterable[Study | Failure]) -> dict[str, list[str | None]]:
    """Return the "references" and the "candidates" of the rows that can be used."""
    studies = [row for row in rows if isinstance(row, Study)]
    return {
        "references": [study.reference for study in studies],
        "candidates": [study.candidate for study in studies],
    }


@dataclass(frozen=True)
class Report:
    """One row of a table of reports.

    Attributes:
        id: id of the report; the row number if the table has no ids.
        text: the report.
        row: number of the row.
        parts: its "findings" and "impression", if they are separate columns; `text` is then both,
            joined by a blank.
    """

    id: str
    text: str
    row: int
    parts: Mapping[str, str] | None = field(default=None, hash=False)

    def selected(self, policy: TextPolicy) -> "Report":
        """Return the report with the part that the policy scores; apply it once.

        Raises: InvalidReport if it lacks the section.
        """
        if self.parts is not None:
            return replace(self, text=select_from_parts(self.parts, policy), parts=None)
        return replace(self, text=select(self.text, policy))


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns of a table of studies.

    A table need not have the columns "id" and "view"; a column with another name here must exist.
    """

    id: str = "id"
    image: str = "image"
    reference: str = "reference"
    candidate: str = "candidate"
    view: str = "view"

    @classmethod
    def named(cls, columns: "ColumnNames | Mapping[str, str] | None") -> "ColumnNames":
        """Return the names, of which a mapping has those that differ. Raises: InvalidSetting."""
        if isinstance(columns, ColumnNames):
            return columns
        known = [field.name for field in fields(cls)]
        if unknown := sorted(set(columns or {}) - set(known)):
            raise InvalidSetting(f"a study has {', '.join(known)}; not {', '.join(unknown)}")
        return cls(**(columns or {}))


def check_texts(name: str, texts: Any) -> None:
    """Raise InvalidReport unless `texts` may be a list of reports, by its kind.

    Python would read the letters of one text, the keys of a dict, and the names of a table's
    columns; a set has no order.

    Args: name: of the argument, as in "candidates".
    """
    if isinstance(texts, str | bytes | bytearray):
        raise InvalidReport(f"{name} must be a list of reports, not one text")
    is_table = hasattr(texts, "columns") or hasattr(texts, "column_names")
    if isinstance(texts, Mapping | Set) or is_table or getattr(texts, "ndim", 1) != 1:
        raise InvalidReport(
            f"{name} must be a list of reports in the order of the studies, not a "
            f"{type(texts).__name__}; write [reports[id] for id in ids] for a dict, and "
            'table["report"] for a table'
        )
