"""Options of commands that read a rated set, so that they read the same in each."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlscore.cli.options import TABLE
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    from vlscore.alignment import RatingColumns

RATINGS_HELP = (
    "Table of ratings, or the folder of a published set: ReXVal, RadEvalX, RadPref; "
    "or of filled-in sheets of vlscore rating-sheets."
)


def _column(name: str, help: str) -> Any:
    return typer.Option(name, metavar="NAME", help=help, rich_help_panel=TABLE)


LayoutOption = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="NAME",
        help="rexval, radevalx, radpref, refisco-v0, refisco-v1, sheets or table. Default: found "
        "out.",
        show_default=False,
    ),
]
ResamplesOption = Annotated[
    int, typer.Option("--resamples", min=10, metavar="N", help="Resamples of the bootstrap.")
]
SeedOption = Annotated[int, typer.Option("--seed", metavar="N", help="Of the bootstrap.")]
StudyColumnOption = Annotated[str, _column("--study-column", "Column with the study.")]
CandidateIdColumnOption = Annotated[
    str, _column("--candidate-id-column", "Column that tells candidates of a study apart.")
]
RaterColumnOption = Annotated[str, _column("--rater-column", "Column with the rater.")]
RatingColumnsOption = Annotated[
    str,
    typer.Option(
        "--rating-columns",
        metavar="NAMES",
        help="Columns of ratings, with commas: one, or one a dimension.",
        rich_help_panel=TABLE,
    ),
]
RaterColumnsOption = Annotated[
    str,
    typer.Option(
        "--rater-columns",
        metavar="NAMES",
        help="Instead, one column of ratings a rater, in a table with one row a candidate.",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]
CategoryColumnOption = Annotated[
    str, _column("--category-column", "Column with the kind of error that a row counts.")
]
SignificantColumnOption = Annotated[
    str, _column("--significant-column", "Column that says whether these errors matter.")
]


def rating_columns(ratings: str, by_rater: str, **names: str) -> "RatingColumns":
    """RatingColumns from parsed options.

    Args:
        ratings, by_rater: names with commas between them.
        names: the other roles, each one column.
    """
    from vlscore.alignment import RatingColumns

    return RatingColumns(ratings=names_of(ratings), by_rater=names_of(by_rater), **names)


def named_path(text: str) -> tuple[str, Path]:
    """Name and path of an option such as "ours=reports.jsonl"; raises InvalidSetting otherwise."""
    name, separator, path = text.partition("=")
    if not (separator and name and path):
        raise InvalidSetting(f"write NAME=TABLE, as in ours=ours.jsonl, not {text!r}")
    return name, Path(path)


def names_of(text: str) -> tuple[str, ...]:
    """The names in an option with commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())
