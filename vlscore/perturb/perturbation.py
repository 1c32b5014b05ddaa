"""One change of one report, as a plain value that can be checked against the original."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple


class Expected(StrEnum):
    """Whether a good metric should notice the change."""

    SIGNIFICANT = "significant"
    INSIGNIFICANT = "insignificant"


class ErrorCategory(StrEnum):
    """The six error categories of ReXVal (Yu et al. 2023)."""

    FALSE_FINDING = "false_finding"
    OMITTED_FINDING = "omitted_finding"
    WRONG_LOCATION = "wrong_location"
    WRONG_SEVERITY = "wrong_severity"
    FALSE_COMPARISON = "false_comparison"
    OMITTED_COMPARISON = "omitted_comparison"


class Effect(StrEnum):
    """What a change does to what the report says; each has its rule in `consistency`."""

    STATED = "stated"
    LEFT_OUT = "left out"
    DENIED = "denied"
    MOVED = "moved"
    REGRADED = "regraded"
    COMPARED = "compared"
    NOT_COMPARED = "not compared"
    NORMALITY_LEFT_OUT = "normality left out"
    NO_CONTENT_LEFT_OUT = "no content left out"
    REORDERED = "reordered"


class Meaning(NamedTuple):
    """What a change is meant to do, for the check that reads the rest of the report.

    Attributes:
        effect: what it does.
        observations: to which, as in `vlscore.findings.Finding.observation`.
        old, new: the side, zone, grade or comparison before and after, where it has one.
    """

    effect: Effect
    observations: tuple[str, ...] = ()
    old: str | None = None
    new: str | None = None


class Edit(NamedTuple):
    """Characters [start, end) of the original, counted in code points, become `replacement`."""

    start: int
    end: int
    replacement: str


class Change(NamedTuple):
    """What a kind proposes: its edits in text order without overlap, and the rule that fired.

    `meaning` says what the rest of the report is checked for. Without one, as where the meaning
    stays the same, only the layout and repetitions are.
    """

    edits: tuple[Edit, ...]
    rule: str
    meaning: Meaning | None = None


def change_of(edits: Iterable[Edit], rule: str, meaning: Meaning | None = None) -> Change | None:
    """A change with its edits in text order; None where there are none, or two overlap."""
    ordered = tuple(sorted(set(edits)))
    if not ordered or any(one.end > other.start for one, other in pairwise(ordered)):
        return None
    return Change(ordered, rule, meaning)


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A report and a changed copy of it.

    Attributes:
        study_id: whose report it is.
        kind: of perturbation, as in "remove-pathology".
        expected: whether a good metric should notice.
        category: ReXVal's error category; None where the change is no error.
        original, perturbed: the report before and after; they differ in more than white space.
        edits: `apply_edits(original, edits)` is `perturbed`.
        rule: what chose the edits, as in "side:left->right pleural_effusion".
    """

    study_id: str
    kind: str
    expected: Expected
    category: ErrorCategory | None
    original: str
    perturbed: str
    edits: tuple[Edit, ...]
    rule: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for json."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        content["edits"] = [edit._asdict() for edit in self.edits]
        return content


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with its edits made.

    Raises ValueError where an edit lies outside the text, overlaps or precedes the one before.

    >>> apply_edits("left effusion", [Edit(0, 4, "right")])
    'right effusion'
    """
    parts = []
    done = 0
    for edit in edits:
        if not done <= edit.start <= edit.end <= len(text):
            raise ValueError(f"{edit} overlaps the edit before it or leaves the text")
        parts += [text[done : edit.start], edit.replacement]
        done = edit.end
    return "".join([*parts, text[done:]])
