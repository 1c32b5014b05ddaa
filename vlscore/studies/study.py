"""Studies and reports as plain data, and rows that hold none."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vlscore.reports import TextPolicy, select, select_from_parts
from vlscore.studies.cells import looks_missing


@dataclass(frozen=True)
class Study:
    """One row of a table of studies.

    Attributes:
        id: of the study; the row number where the table has no ids.
        images: paths of its images, at least one; () where no image was asked for.
        reference: reference report; None where none was asked for.
        candidate: generated report, "" where the generator said nothing; None where none was asked
            for.
        row: number of the row, as a person counts.
        views: view position of each image, where the table states them.
        parts: "findings" and "impression" of the reference, where they are columns of their own;
            `reference` is then both, joined by a blank.
        extra: further columns that were asked for, as they stand.
    """

    id: str
    images: tuple[Path, ...]
    reference: str | None
    candidate: str | None
    row: int
    views: tuple[str | None, ...] | None = None
    parts: Mapping[str, str] | None = field(default=None, hash=False)
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def suspicious(self) -> tuple[str, ...]:
        """Which of "reference" and "candidate" is a word for a missing value, such as "nan"."""
        texts = {"reference": self.reference, "candidate": self.candidate}
        return tuple(role for role, text in texts.items() if text and looks_missing(text))

    def selected(self, policy: TextPolicy) -> "Study":
        """The study with what the policy scores of its reports; to be done once.

        Raises: InvalidReport where a report lacks the section.
        """
        reference, candidate = self.reference, self.candidate
        if self.parts is not None:
            reference = select_from_parts(self.parts, policy, role="reference")
        elif reference is not None:
            reference = select(reference, policy, role="reference")
        if candidate is not None:
            candidate = select(candidate, policy, role="candidate")
        return replace(self, reference=reference, candidate=candidate, parts=None)


@dataclass(frozen=True)
class Report:
    """One row of a table of reports.

    Attributes:
        id: of the report; the row number where the table has no ids.
        text: the report.
        row: number of the row.
        parts: its "findings" and "impression", where they are columns of their own; `text` is then
            both, joined by a blank.
    """

    id: str
    text: str
    row: int
    parts: Mapping[str, str] | None = field(default=None, hash=False)

    def selected(self, policy: TextPolicy) -> "Report":
        """The report with what the policy scores of it; to be done once.

        Raises: InvalidReport where it lacks the section.
        """
        if self.parts is not None:
            return replace(self, text=select_from_parts(self.parts, policy), parts=None)
        return replace(self, text=select(self.text, policy))


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
    """What the columns of a table of studies are called.

    Attributes:
        id, image, reference, candidate, view: names of the columns. A table need not have the
            columns "id" and "view"; one that is called otherwise here must be there.
        options: how the caller lets a user name each column, for messages, as in
            {"image": "--image-column"}.
    """

    id: str = "id"
    image: str = "image"
    reference: str = "reference"
    candidate: str = "candidate"
    view: str = "view"
    options: Mapping[str, str] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of_options(cls, **names: str) -> "ColumnNames":
        """The columns that a command lets its user name, as --image-column for the image.

        >>> ColumnNames.of_options(image="path").options
        {'image': '--image-column'}
        """
        return cls(**names, options={role: f"--{role}-column" for role in names})

    def to_dict(self) -> dict[str, str]:
        """Role -> name of the column."""
        return {
            role: getattr(self, role) for role in ("id", "image", "reference", "candidate", "view")
        }
