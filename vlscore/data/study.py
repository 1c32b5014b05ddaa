"""Studies and reports as plain data, and the meaning of a table's cells.

`Study`, `Report`, `StudyImages` and `BadRow` are what a row becomes. The functions `*_of` read a
cell: an id, a report, paths of images, views. Each takes the cell and the name of its column, and
raises InvalidStudy with what was found and what to give. `SeenIds` finds repeated ids in 40 bytes
an id, however long the ids are.
"""

import ast
import json
import math
import os
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import Any

from vlscore.data.reports import TextPolicy, select, select_from_parts
from vlscore.errors import InvalidStudy, UnreadableImage

# Texts that `str(None)` and the exports of pandas, R and spreadsheets write for a missing value.
_WRITTEN_FOR_MISSING = {"none", "nan", "na", "n/a", "#n/a", "null", "<na>", "nat"}
# Beyond this, a float cannot distinguish an integer from the next one.
_LARGEST_EXACT_INTEGER = 2.0**53
_ITEM = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|None|nan"""
# A list of texts as Python prints it, which pandas writes into a csv. Commas are required: numpy
# prints none, and Python would join two texts that are separated by a blank alone.
_PYTHON_LIST = re.compile(rf"\[\s*(?:(?:{_ITEM})\s*(?:,\s*(?:{_ITEM})\s*)*,?\s*)?\]", re.DOTALL)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
# A name of this form counts as a file's without a look at the disk.
_HAS_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,7}$")


def is_encodable(text: str) -> bool:
    """Return True if the text can be encoded as UTF-8, which half a surrogate pair cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_missing(value: Any) -> bool:
    """Return True for None, nan, or blank text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and not value.strip()


def looks_missing(text: str) -> bool:
    """Return True for a text that software writes for a missing value: "None", "nan", "NA", "null".

    >>> looks_missing(" NaN "), looks_missing("None."), looks_missing("")
    (True, False, False)
    """
    return text.strip().casefold() in _WRITTEN_FOR_MISSING


def id_of(value: Any, column: str) -> str | None:
    """Return an id as text, an integer without a decimal point; None if the cell is empty."""
    value = _decoded(value, column)
    if is_missing(value):
        return None
    if isinstance(value, float | Decimal):
        number = float(value)
        exact = abs(number) <= _LARGEST_EXACT_INTEGER and value == int(value)
        return str(int(value)) if exact else str(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidStudy(f"{_holds(value, column)}, not a text or number")
    return str(value).strip()


def name_of(value: Any, column: str) -> str:
    """Return an id or name as text, an integer without a decimal point; the cell is not empty."""
    name = id_of(value, column)
    if name is None:
        raise InvalidStudy(f'column "{column}" is empty')
    return name


def number_of(value: Any, column: str) -> float | None:
    """Return a finite number; None if the cell is empty."""
    if is_missing(value):
        return None
    try:
        # Python reads "1_0" as 10, which no other program writes.
        if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
            raise ValueError(value)
        number = float(value)
    except (TypeError, ValueError):
        is_comma = isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip())
        hint = "; write a decimal point, no comma" if is_comma else ""
        raise InvalidStudy(f'column "{column}" holds {value!r}, not a number{hint}') from None
    if math.isnan(number):
        return None
    if math.isinf(number):
        raise InvalidStudy(f'column "{column}" holds {value!r}; a finite number is needed')
    return number


def text_of(value: Any, column: str) -> str | None:
    """Return a report unchanged; None if the cell is empty or blank."""
    value = _decoded(value, column)
    if is_missing(value):
        return None
    if not isinstance(value, str):
        raise InvalidStudy(f"{_holds(value, column)}, not a text")
    return value


def paths_of(value: Any, column: str, root: Path) -> tuple[Path, ...]:
    """Return the paths of one or several images, relative to `root`; at least one.

    A folder is replaced by the images in it, in the order of their names.
    """
    names = [name for name in _texts_of(value, column) if name]
    if not names:
        raise InvalidStudy(f'column "{column}" names no image')
    if any("\0" in name for name in names):
        raise InvalidStudy(f'column "{column}" holds a NUL character; no path has one')
    return tuple(path for name in names for path in _images_of(name, root, column))


def views_of(value: Any, count: int, column: str) -> tuple[str | None, ...] | None:
    """Return a view for each image, None for a blank one; None if all are blank."""
    views = _texts_of(value, column)
    if not any(views):
        return None
    if len(views) != count:
        raise InvalidStudy(f'column "{column}" names {len(views)} views for {count} images')
    return tuple(view or None for view in views)


def check_encodable(values: Sequence[Any], column: str) -> None:
    """Raise InvalidStudy if a text (or a text in a list) cannot be encoded as UTF-8."""
    for value in values:
        if isinstance(value, str) and not is_encodable(value):
            raise InvalidStudy(
                f'column "{column}" holds bytes that are not UTF-8, or half a surrogate pair'
            )
        if isinstance(value, list):
            check_encodable(value, column)


def _decoded(value: Any, column: str) -> Any:
    """Decode bytes, because parquet files of some programs hold their texts as bytes."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidStudy(f'column "{column}" holds bytes that are not UTF-8') from None


def _holds(value: Any, column: str) -> str:
    return f'column "{column}" holds a {type(value).__name__}'


def _images_of(name: str, root: Path, column: str) -> tuple[Path, ...]:
    path = root / name
    if _HAS_SUFFIX.search(name) or not os.path.isdir(path):
        return (path,)
    # Imported here: few tables name folders, and this import loads numpy.
    from vlscore.data.images.file_formats import images_in

    try:
        return images_in(path)
    except UnreadableImage as error:
        raise InvalidStudy(f'column "{column}": {error}') from None


def _texts_of(value: Any, column: str) -> list[str]:
    """Read one text, a list of texts, a list written as text, or texts separated by ";" or "|"."""
    value = _decoded(value, column)
    if is_missing(value):
        return []
    if isinstance(value, str):
        is_list = value.lstrip().startswith("[")
        value = _written_list(value, column) if is_list else re.split(r"[;|]", value)
    if not isinstance(value, list) or not all(
        item is None or isinstance(item, str) for item in value
    ):
        raise InvalidStudy(f'column "{column}" must hold a text or a list of texts')
    check_encodable(value, column)
    return [(item or "").strip() for item in value]


def _written_list(text: str, column: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        if _PYTHON_LIST.fullmatch(text.strip()):
            items = re.findall(_ITEM, text, re.DOTALL)
            return [None if item in ("None", "nan") else ast.literal_eval(item) for item in items]
    except (ValueError, SyntaxError):
        pass
    raise InvalidStudy(
        f'column "{column}" begins like a list but is none; give one text, texts separated by ";" '
        'or "|", or a list such as ["a.png", "b.png"]'
    )


_FIRST_SLOTS = 1024


class SeenIds:
    """Ids and the row in which each appeared first.

    An id is compared by 128 bits of its digest: among a billion ids, the chance that two are
    confused is 1 in 10^21. The digests lie in an open hash table of plain numbers, because a set of
    Python texts would take several times the memory, and tables have millions of rows.
    """

    def __init__(self) -> None:
        self._count = 0
        self._make_room(_FIRST_SLOTS)

    def first_row(self, id: str, row: int) -> int:
        """Return the row in which the id appeared first: an earlier one, or `row` itself."""
        digest = blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        high, low = int.from_bytes(digest[:8]), int.from_bytes(digest[8:])
        slot = self._slot(high, low)
        if self._rows[slot]:
            return self._rows[slot]
        self._put(slot, high, low, row)
        self._count += 1
        if 2 * self._count > len(self._rows):
            self._grow()
        return row

    def _slot(self, high: int, low: int) -> int:
        """Return the slot that holds the digest, or the free slot where it belongs."""
        mask = len(self._rows) - 1
        slot = low & mask
        while self._rows[slot] and (self._high[slot], self._low[slot]) != (high, low):
            slot = (slot + 1) & mask
        return slot

    def _put(self, slot: int, high: int, low: int, row: int) -> None:
        self._high[slot], self._low[slot], self._rows[slot] = high, low, row

    def _grow(self) -> None:
        kept = zip(self._high, self._low, self._rows, strict=True)
        self._make_room(2 * len(self._rows))
        for high, low, row in kept:
            if row:
                self._put(self._slot(high, low), high, low, row)

    def _make_room(self, slots: int) -> None:
        """Make empty slots; row 0, which no table has, marks a free one."""
        self._high, self._low = array("Q", bytes(8 * slots)), array("Q", bytes(8 * slots))
        self._rows = array("Q", bytes(8 * slots))


@dataclass(frozen=True)
class Study:
    """One row of a table of studies.

    Attributes:
        id: id of the study; the row number if the table has no ids.
        images: paths of its images, at least one; () if images were not requested.
        reference: reference report; None if it was not requested.
        candidate: generated report, "" if the generator returned nothing; None if it was not
            requested.
        row: number of the row, counted from 1.
        views: view position of each image, if the table has them.
        parts: "findings" and "impression" of the reference, if they are separate columns;
            `reference` is then both, joined by a blank.
        extra: further columns that were requested, unchanged.
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
        """Names of the reports ("reference", "candidate") that are words like "nan" or "None"."""
        texts = {"reference": self.reference, "candidate": self.candidate}
        return tuple(role for role, text in texts.items() if text and looks_missing(text))

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
class StudyImages:
    """The images of one study, without its reports.

    Attributes:
        id: id of the study.
        images: paths, or anything else that a Scorer accepts as an image; at least one.
        views: view position of each image, if known.
    """

    id: str
    images: tuple[Any, ...]
    views: tuple[str | None, ...] | None = None


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used.

    Attributes:
        row: number of the row.
        id: id, if it could be read.
        reason: what is wrong, and what to do about it.
    """

    row: int
    id: str | None
    reason: str


@dataclass(frozen=True)
class ColumnNames:
    """Names of the columns of a table of studies.

    Attributes:
        id, image, reference, candidate, view: names of the columns. A table need not have the
            columns "id" and "view"; a column with another name here must exist.
        options: option by which a user names each column, for messages, as in
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
        """Return names with the options of a command for messages, as --image-column.

        >>> ColumnNames.of_options(image="path").options
        {'image': '--image-column'}
        """
        return cls(**names, options={role: f"--{role}-column" for role in names})

    def to_dict(self) -> dict[str, str]:
        """Return role -> name of the column."""
        return {
            role: getattr(self, role) for role in ("id", "image", "reference", "candidate", "view")
        }
