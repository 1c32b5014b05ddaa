"""Figures of any finished folder, and the paragraph that a paper's methods section needs of it."""

from collections.abc import Sequence
from pathlib import Path

from vlscore.core import RECORD, reading_result
from vlscore.errors import InvalidTable
from vlscore.evaluation.methods_text import MethodsText
from vlscore.stats import PRESENTATIONS, Result, check_drawable


def draw(folder: str | Path, format: str = "pdf", *, columns: Sequence[str] = ()) -> list[Path]:
    """Draw the figures of a finished folder into it, and return their paths.

    The folder is one of evaluate (how each metric's values are distributed), compare (systems,
    paired differences, ranks; with two systems their studies), align (agreement with raters, the
    best metric against them), sensitivity (drops, normal reports) or train (learning curves).

    Args:
        format: "png", "svg" or "pdf".
        columns: of a comparison, the numbers that are drawn; see `TableSettings`.

    Raises: InvalidTable for a folder without figures; InvalidSetting for an unknown format or
        column; ChecksumMismatch where a result was changed; MissingDependency where matplotlib is
        not installed.
    """
    check_drawable(format)
    result = Result.open(folder)
    figures = result.presentation.figures
    if figures is None:
        raise InvalidTable(f"{folder} has no figures: name a folder of {_having('figures')}")
    with reading_result(result.folder / RECORD):
        return figures(result, format, columns)


def _having(part: str) -> str:
    """Return the commands whose presentation has a part, in words."""
    names = [name for name, each in PRESENTATIONS.items() if getattr(each, part) is not None]
    return f"{', '.join(names[:-1])} or {names[-1]}"


def methods(folder: str | Path) -> MethodsText:
    """Return the paragraph of a finished folder of evaluate, compare or align.

    It names the metrics with their libraries and versions, the encoder, intervals, tests and the
    tests over which p values are adjusted.

    Raises: InvalidTable for another folder; ChecksumMismatch where a result was changed.
    """
    result = Result.open(folder)
    paragraph = result.presentation.paragraph
    if paragraph is None:
        raise InvalidTable(f"{folder}: give a folder of {_having('paragraph')}")
    with reading_result(result.folder / RECORD):
        return MethodsText(paragraph(result))
