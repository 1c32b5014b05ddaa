"""Reader of ratings in any table with named columns, and the list of layouts with their readers.

A new layout is one file, and one line in `LAYOUTS`.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vlscore.data import (
    BadRow,
    StudyImages,
    check_encodable,
    columns_of,
    is_missing,
    looks_missing,
    name_of,
    number_of,
    paths_of,
    read_rows,
    text_of,
)
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable
from vlscore.evaluation.alignment.radpref_ratings import FOLDER as RADPREF_FOLDER
from vlscore.evaluation.alignment.radpref_ratings import REPORTS as RADPREF_REPORTS
from vlscore.evaluation.alignment.radpref_ratings import read_radpref
from vlscore.evaluation.alignment.rated_pairs import MEANINGS, RatedPairs
from vlscore.evaluation.alignment.rated_sets import (
    COUNTS,
    RADEVALX,
    REPORTS,
    V0,
    V1,
    read_radevalx,
    read_refisco_v0,
    read_refisco_v1,
    read_rexval,
)
from vlscore.evaluation.alignment.rating_builder import (
    Builder,
    Pair,
    count_of,
    missing_columns,
    yes_or_no,
)
from vlscore.evaluation.ratings.sheet_files import KEY
from vlscore.evaluation.ratings.sheet_reading import read_sheets

ONE_RATER = "rater"
# Of errors that a table counts by significance alone.
ONE_CATEGORY = "errors"
# Read where the table has them; required where a user names another column.
_IF_THERE = ("rater", "category", "significant", "reference", "candidate", "image")


@dataclass(frozen=True)
class RatingColumns:
    """Names of the columns of a table of ratings.

    Attributes:
        study: id of the study.
        candidate_id: distinguishes the candidates of a study, such as the name of a generator.
        rater: name of the rater; a table without it has one rater.
        ratings: columns of numbers, one a dimension that was rated; with `category`, one column of
            error counts.
        by_rater: instead, columns of numbers, one a rater, in a table with one row a candidate.
        category, significant: what kind of error a row counts, and whether it matters clinically;
            each may be there without the other.
        reference, candidate, image: the reports, and the path or paths of the image.

    Of these, rater, category, significant, reference, candidate and image may be absent, unless
    they are given another name here; "" says that a column of that name is something else.
    """

    study: str = "study_id"
    candidate_id: str = "candidate_id"
    rater: str = "rater"
    ratings: tuple[str, ...] = ("rating",)
    by_rater: tuple[str, ...] = ()
    category: str = "category"
    significant: str = "significant"
    reference: str = "reference"
    candidate: str = "candidate"
    image: str = "image"

    def to_dict(self) -> dict[str, Any]:
        """Return role -> name of the column, or names."""
        return asdict(self)


def read_table(
    path: str | Path,
    columns: RatingColumns | None = None,
    *,
    meaning: str = "errors",
    image_root: str | Path | None = None,
) -> RatedPairs:
    """Read the ratings of a .csv, .tsv, .jsonl, .json or .parquet table with named columns.

    An empty rating means that the rater did not rate the candidate. Where errors are counted by
    category, a category that a rater does not name for a candidate he or she rates counts 0.

    Args:
        meaning: "errors", "quality" or "ranks"; see RatedPairs.
        image_root: folder that image paths start from; default: the table's.

    Raises:
        InvalidTable: the file cannot be read, lacks columns, or no rating in it can be used.
        InvalidSetting: an unknown meaning.
        A row that cannot be used raises nothing: it is in `bad`, with the reason.
    """
    path = Path(path)
    if meaning not in MEANINGS:
        raise InvalidSetting(f"ratings are {', '.join(MEANINGS)}, not {meaning!r}")
    reader = _Reader(path, columns or RatingColumns(), Path(image_root or path.parent))
    builder = Builder((path,), meaning, reader.notes)
    for number, record in read_rows(path):
        reader.read(builder, number, record)
    return builder.build()


class _Reader:
    def __init__(self, path: Path, columns: RatingColumns, root: Path) -> None:
        found = columns_of(path)
        standard = RatingColumns()
        numbers = columns.by_rater or columns.ratings
        needed = [columns.study, columns.candidate_id, *numbers]
        absent: dict[str, Any] = {}
        self.notes: list[str] = []
        for role in _IF_THERE:
            name = getattr(columns, role)
            if name not in found:
                if name and name != getattr(standard, role):
                    needed.append(name)
                self.notes += [
                    f'column "{other}" is not read, because it is not called "{name}": is it that '
                    f"column? Then give --{role}-column {other}"
                    for other in found
                    if name and other.casefold() == name and other not in columns.by_rater
                ]
                absent[role] = ""
        hint = (
            ". Name the columns of ratings (--rating-columns), or those of the raters where each "
            "has one (--rater-columns); --help-all has the other columns, and --layout. "
            "Capital letters in names count"
        )
        missing_columns(path, found, needed, hint)
        # An empty name is a column that the table lacks.
        self._columns, self._root = replace(columns, **absent), root
        counted = self._columns.category or self._columns.significant
        if counted and (len(columns.ratings) > 1 or columns.by_rater):
            what = "of categories" if self._columns.category else "of the errors' significance"
            raise InvalidSetting(
                f'{path}: with the column "{counted}" {what} there is one column of counts; name '
                "that one alone"
            )

    def read(self, builder: Builder, number: int, record: dict[str, Any] | str) -> None:
        """Give one row to the builder."""
        if isinstance(record, str):
            return builder.refuse(number, record)
        names = self._columns
        pair: Pair | None = None
        # If the rater cannot be read, each rating of the pair may lack this row.
        rater: str | None = None
        try:
            for name, value in record.items():
                check_encodable([value], name)
            pair = (
                name_of(record.get(names.study), names.study),
                name_of(record.get(names.candidate_id), names.candidate_id),
            )
            rater = name_of(record.get(names.rater), names.rater) if names.rater else ONE_RATER
            builder.add_pair(
                pair,
                self._text(record, "reference"),
                self._text(record, "candidate"),
                self._images(pair[0], record),
                row=number,
            )
            if names.by_rater:
                self._scores_by_rater(builder, number, pair, record)
            elif names.category or names.significant:
                self._count(builder, number, pair, rater, record)
            else:
                for column in names.ratings:
                    builder.add_score(pair, rater, column, _rating_of(record.get(column), column))
        except InvalidStudy as error:
            if pair is not None and rater is None and not (names.category or names.significant):
                # The row is one whole rating: those of other raters lack nothing.
                builder.bad.append(BadRow(number, pair[0], str(error)))
            else:
                builder.refuse(number, error, pair, None if names.by_rater else rater)

    def _scores_by_rater(
        self, builder: Builder, number: int, pair: Pair, record: dict[str, Any]
    ) -> None:
        """Add a row with a column for each rater; a cell that cannot be used costs its rating."""
        for column in self._columns.by_rater:
            try:
                value = _rating_of(record.get(column), column)
                builder.add_score(pair, column, "rating", value)
            except InvalidStudy as error:
                builder.refuse(number, error, pair, column)

    def _count(
        self, builder: Builder, number: int, pair: Pair, rater: str, record: dict[str, Any]
    ) -> None:
        names = self._columns
        (column,) = names.ratings
        if _is_empty(record.get(column)):
            return builder.add_empty_count(number, pair, rater, column)
        category = ONE_CATEGORY
        if names.category:
            category = name_of(record.get(names.category), names.category)
        significant = None
        if names.significant:
            significant = yes_or_no(record.get(names.significant), names.significant)
        builder.add_count(pair, rater, category, significant, count_of(record.get(column), column))
        return None

    def _text(self, record: dict[str, Any], role: str) -> str | None:
        """Return a report; "" for an empty cell, because an empty candidate is scored as well."""
        name = getattr(self._columns, role)
        return None if not name else text_of(record.get(name), name) or ""

    def _images(self, study: str, record: dict[str, Any]) -> StudyImages | None:
        name = self._columns.image
        if not name or is_missing(record.get(name)):
            return None
        return StudyImages(study, paths_of(record[name], name, self._root))


def _is_empty(cell: Any) -> bool:
    """Return whether a rating is empty, or has what other software writes for an empty cell."""
    return is_missing(cell) or (isinstance(cell, str) and looks_missing(cell))


def _rating_of(cell: Any, column: str) -> float | None:
    return None if _is_empty(cell) else number_of(cell, column)


TABLE = "table"


@dataclass(frozen=True)
class _RatingLayout:
    """Reader of a layout, and the files of a folder or columns of a table that identify it.

    Attributes:
        read: the reader.
        files: that a folder has, all of them.
        either: that a folder may have, one of them.
        columns: that a table has.
    """

    read: Callable[[Path], RatedPairs]
    files: frozenset[str] = frozenset()
    either: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()

    def fits(self, path: Path) -> bool:
        if path.is_dir():
            if self.either:
                return any((path / name).exists() for name in self.either)
            return bool(self.files) and all((path / name).exists() for name in self.files)
        return bool(self.columns) and self.columns <= set(columns_of(path))


LAYOUTS = {
    "rexval": _RatingLayout(read_rexval, files=frozenset({REPORTS, COUNTS})),
    "radevalx": _RatingLayout(read_radevalx, files=frozenset(RADEVALX)),
    "radpref": _RatingLayout(read_radpref, either=frozenset({RADPREF_FOLDER, RADPREF_REPORTS})),
    "sheets": _RatingLayout(read_sheets, files=frozenset({KEY})),
    "refisco-v0": _RatingLayout(read_refisco_v0, columns=frozenset(V0.columns)),
    "refisco-v1": _RatingLayout(read_refisco_v1, columns=frozenset(V1.columns)),
}


def layout_of(path: str | Path) -> str:
    """Return the name of the layout that a file or folder has; "table" for any other file.

    Raises: InvalidTable for a folder of no known layout, or a file that cannot be read.
    """
    path = Path(path)
    for name, layout in LAYOUTS.items():
        if layout.fits(path):
            return name
    if path.is_dir():
        known = "; ".join(
            f"{name}: {', '.join(sorted(layout.files)) or ' or '.join(sorted(layout.either))}"
            for name, layout in LAYOUTS.items()
            if layout.files or layout.either
        )
        raise InvalidTable(f"{path}: is a folder of no known rated set. Looked for {known}")
    return TABLE


def read_ratings(
    path: str | Path,
    layout: str | None = None,
    *,
    columns: RatingColumns | None = None,
    meaning: str = "errors",
    image_root: str | Path | None = None,
) -> RatedPairs:
    """Read a rated set.

    Args:
        path: a table, or the folder of a published set.
        layout: "rexval", "radevalx", "radpref", "refisco-v0", "refisco-v1", "sheets" or "table";
            None finds out.
        columns, meaning, image_root: of a table; see `read_table`.

    Raises: InvalidTable, InvalidSetting. Rows that cannot be used are in `bad`.
    """
    path = Path(path)
    name = layout_of(path) if layout is None else layout
    if name == TABLE:
        return read_table(path, columns, meaning=meaning, image_root=image_root)
    if name not in LAYOUTS:
        raise InvalidSetting(f"layouts are {', '.join((TABLE, *LAYOUTS))}; not {name!r}")
    return LAYOUTS[name].read(path)
