"""Reader of ratings in any table with named columns, and the layouts that are known."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vlscore.core import check_names, checked_arguments
from vlscore.data import (
    Study,
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
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation.alignment.rated_pairs import MEANINGS, RatedPairs
from vlscore.evaluation.alignment.rated_sets import FOLDERS, refisco_reader
from vlscore.evaluation.alignment.rating_rows import (
    RATING,
    RatingRow,
    Record,
    count_of,
    rated_pairs,
    rating_rows,
    require_columns,
    yes_or_no,
)
from vlscore.evaluation.ratings.sheet_files import KEY
from vlscore.evaluation.ratings.sheet_reading import read_sheets

# The rater of a table without raters.
ONE_RATER = "rater"
# Of errors that a table counts by significance alone.
ONE_CATEGORY = "errors"
#: Columns of a table of ratings; those after the third may be absent.
COLUMNS = (
    "study_id",
    "candidate_id",
    "rating",
    "rater",
    "category",
    "significant",
    "reference",
    "candidate",
    "image",
)
# Those that only rows which count errors have.
_COUNTED = ("category", "significant")

_FOLDERS = {**FOLDERS, "sheets": (lambda folder: read_sheets(folder)[0], all, (KEY,))}


@checked_arguments
def read_ratings(
    path: str | Path,
    *,
    ratings: Sequence[str] = (RATING,),
    by_rater: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    meaning: str = "errors",
    image_root: str | Path | None = None,
) -> RatedPairs:
    """Read a rated set.

    A table has one row a candidate and rater, with the columns `COLUMNS`; an empty rating means
    that the rater did not rate the candidate. With a column category or significant, a row counts
    errors; a category that a rater does not name for a candidate he or she rates counts 0. Ratings
    of quality and ranks count no errors: these two columns are then not read.

    Args:
        path: a .csv, .tsv, .jsonl, .json or .parquet table; or the folder of ReXVal, RadEvalX or
            RadPref, the table of ReFiSco, or a folder of filled-in sheets.
        ratings: columns of a table with numbers, one a dimension that was rated.
        by_rater: instead, columns of numbers, one a rater, in a table with one row a candidate.
        rename: column in `COLUMNS` -> its name in the table; "" where the table has none.
        meaning: what a table's ratings are: "errors", "quality" or "ranks"; see RatedPairs.
        image_root: folder that image paths of a table start from; default: the table's.

    Raises: InvalidTable, InvalidSetting. Rows that cannot be used are in `bad`.
    """
    check_names("ratings", ratings)
    check_names("by_rater", by_rater)
    path = Path(path)
    if (published := _published(path)) is not None:
        return published(path)
    if meaning not in MEANINGS:
        raise InvalidSetting(f"ratings are {', '.join(MEANINGS)}, not {meaning!r}")
    names = _column_names(path, ratings, by_rater, rename or {})
    notes = []
    for column in _COUNTED:
        if names[column] and meaning != "errors":
            notes.append(f'the column "{column}" is not read: ratings of {meaning} count no errors')
            names[column] = ""
    is_count = bool(names["category"] or names["significant"])
    if is_count and (len(ratings) > 1 or by_rater):
        what = "category" if names["category"] else "significant"
        raise InvalidSetting(
            f'{path}: with the column "{names[what]}" of {what} errors there is one column of '
            'counts; name that one alone, or write that the table has none: rename={"' + what + '":'
            ' ""}'
        )
    root = Path(image_root or path.parent)

    def read_record(row: RatingRow, record: Record) -> None:
        for column, value in record.items():
            check_encodable([value], column)
        _fill_pair(row, record, names, root)
        if is_count:
            category = ONE_CATEGORY
            if names["category"]:
                category = name_of(record.get(names["category"]), names["category"])
            significant = None
            if names["significant"]:
                significant = yes_or_no(record.get(names["significant"]), names["significant"])
            cell = record.get(ratings[0])
            count = None if _is_empty(cell) else count_of(cell, ratings[0])
            row.counts[category, significant] = count
            return
        for column in (RATING,) if by_rater else ratings:
            cell = record.get(column)
            row.scores[column] = None if _is_empty(cell) else number_of(cell, column)

    records: Iterable[tuple[int, Any]] = read_rows(path)
    if by_rater:
        names["rater"] = ONE_RATER
        records = _one_row_a_rater(records, by_rater)
    rows = rating_rows(records, read_record)
    return rated_pairs(rows, [path], meaning=meaning, notes=notes, is_count=is_count, numbered=True)  # type: ignore[arg-type]


def _column_names(
    path: Path, ratings: Sequence[str], by_rater: Sequence[str], rename: Mapping[str, str]
) -> dict[str, str]:
    """Return the name of each column in the table, "" for one that it lacks."""
    if unknown := sorted(set(rename) - set(COLUMNS)):
        raise InvalidSetting(
            f"a table of ratings has no column {', '.join(unknown)} to rename; it has "
            f"{', '.join(COLUMNS)}"
        )
    found = columns_of(path)
    names = {column: rename.get(column, column) for column in COLUMNS}
    if names["rating"] != RATING:
        raise InvalidSetting("`ratings` names the columns of ratings, not `rename`")
    optional = {name for name in COLUMNS[3:] if name not in rename}
    names |= {name: "" for name in optional if name not in found}
    needed = [n for role, n in names.items() if n and role != "rating"]
    require_columns(
        path,
        [*needed, *(by_rater or ratings)],
        ". Name columns with --rename study_id=NAME,rating=NAME, or those of the raters where "
        "each has one (--rater-columns). Capital letters count",
    )
    return names


def _fill_pair(row: RatingRow, record: Record, names: Mapping[str, str], root: Path) -> None:
    """Enter pair, rater, reports and images of a table's row."""
    study, candidate = (name_of(record.get(names[c]), names[c]) for c in COLUMNS[:2])
    row.pair = study, candidate
    row.rater = name_of(record.get(names["rater"]), names["rater"]) if names["rater"] else ONE_RATER
    # An empty report is a report: an empty candidate is scored as well.
    for role, attribute in (("reference", "reference"), ("candidate", "text")):
        if names[role]:
            setattr(row, attribute, text_of(record.get(names[role]), names[role]) or "")
    image = names["image"]
    if image and not is_missing(record.get(image)):
        row.images = Study(study, paths_of(record[image], image, root))


def _one_row_a_rater(
    records: Iterable[tuple[int, Any]], raters: Sequence[str]
) -> Iterator[tuple[int, Any]]:
    for number, record in records:
        if isinstance(record, str):
            yield number, record
            continue
        rest = {name: value for name, value in record.items() if name not in raters}
        for rater in raters:
            yield number, {**rest, ONE_RATER: rater, RATING: record.get(rater)}


def _is_empty(cell: Any) -> bool:
    """Return whether a rating is empty, or has what other software writes for an empty cell."""
    return is_missing(cell) or (isinstance(cell, str) and looks_missing(cell))


def _published(path: Path) -> Callable[[Path], RatedPairs] | None:
    """Return the reader of a published set, or of sheets; None for any other table.

    Raises: InvalidTable for a folder of no known layout, or a file that cannot be read.
    """
    if not path.is_dir():
        return refisco_reader(path)
    for reader, are_enough, files in _FOLDERS.values():
        if are_enough((path / file).exists() for file in files):
            return reader
    known = "; ".join(f"{name}: {', '.join(files)}" for name, (*_, files) in _FOLDERS.items())
    raise InvalidTable(f"{path}: is a folder of no known rated set. Looked for {known}")
