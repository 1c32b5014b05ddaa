"""Questions to raters about one report, or two: the columns of a sheet and their values."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.data import is_missing, number_of
from vlscore.errors import InvalidLexicon, InvalidSetting, InvalidStudy
from vlscore.evaluation.alignment.rated_sets import CATEGORIES

ERRORS, DIMENSIONS, PREFERENCES = "errors", "dimensions", "preferences"
ASKS = (ERRORS, DIMENSIONS, PREFERENCES)
PREFERRED = "preferred"
FIRST, SECOND, TIE = "A", "B", "tie"
# Column -> category and whether the errors matter clinically.
COUNTS = {
    f"{category}, {'significant' if significant else 'insignificant'}": (category, significant)
    for category in CATEGORIES.values()
    for significant in (True, False)
}
_MOST_ERRORS, _SCALE = 99, (1, 5)
_DIMENSIONS_FILE = Path(__file__).with_name("dimensions.toml")


@dataclass(frozen=True)
class Question:
    """One column of a sheet.

    Attributes:
        name: of the column.
        ask: "errors" (a number of errors), "dimensions" (a rating) or "preferences" (A, B or tie).
        text: the question.
        low, high: smallest and largest number.
        ends: what they mean; empty for numbers of errors.
    """

    name: str
    ask: str
    text: str
    low: int = 0
    high: int = _MOST_ERRORS
    ends: tuple[str, ...] = ()

    def value(self, cell: Any) -> float | None:
        """Return the number in a cell; of a preference 1 for A, -1 for B, 0 for a tie.

        Returns: None for an empty cell.
        Raises: InvalidStudy, naming the column, for any other value.
        """
        if is_missing(cell):
            return None
        if self.ask == PREFERENCES:
            known = {FIRST.casefold(): 1.0, SECOND.casefold(): -1.0, TIE: 0.0}
            found = known.get(str(cell).strip().casefold())
            if found is None:
                raise InvalidStudy(
                    f'column "{self.name}" holds {cell!r}; write {FIRST}, {SECOND} or {TIE}'
                )
            return found
        number = number_of(cell, self.name)
        if number is None or number != int(number) or not self.low <= number <= self.high:
            raise InvalidStudy(
                f'column "{self.name}" holds {cell!r}; write a whole number from {self.low} to '
                f"{self.high}"
            )
        return number


def questions_of(asks: Sequence[str], dimensions: Path | None = None) -> list[Question]:
    """Return the questions of some kinds.

    Args:
        asks: "errors", "dimensions" or both; or "preferences" alone.
        dimensions: file of the dimensions; default: the bundled one.

    Raises: InvalidSetting for other kinds; InvalidLexicon where the file cannot be used.
    """
    if unknown := [ask for ask in asks if ask not in ASKS]:
        raise InvalidSetting(f"raters are asked for {', '.join(ASKS)}, not {unknown[0]!r}")
    if not asks or len(set(asks)) < len(asks):
        raise InvalidSetting(f"name each of {', '.join(ASKS)} at most once, and at least one")
    if PREFERENCES in asks and len(asks) > 1:
        raise InvalidSetting(
            "preferences are about two reports, and other questions about one; make two folders"
        )
    if dimensions is not None and DIMENSIONS not in asks:
        raise InvalidSetting("a file of dimensions needs the question dimensions (--ask)")
    found: list[Question] = []
    for ask in asks:
        if ask == ERRORS:
            found += [Question(name, ERRORS, name) for name in COUNTS]
        elif ask == DIMENSIONS:
            found += read_dimensions(dimensions or _DIMENSIONS_FILE)
        else:
            found.append(Question(PREFERRED, PREFERENCES, "Which report is better?"))
    return found


def read_dimensions(path: Path) -> list[Question]:
    """Return the questions of a file of dimensions. Raises: InvalidLexicon."""
    try:
        with path.open("rb") as stream:
            entries = tomllib.load(stream).get("dimension", [])
        texts = [[entry[field] for field in ("name", "text", "low", "high")] for entry in entries]
    except OSError as error:
        raise InvalidLexicon(f"{path}: cannot be read ({error.strerror})") from None
    except KeyError as error:
        raise InvalidLexicon(f"{path}: a [[dimension]] has no {error}") from None
    except (ValueError, TypeError, UnicodeDecodeError) as error:
        raise InvalidLexicon(f"{path}: {error}") from None
    names = [name for name, *_ in texts]
    if not names or len(set(map(str, names))) < len(names):
        raise InvalidLexicon(f"{path}: it needs [[dimension]] entries of different names")
    if not all(isinstance(text, str) and text.strip() for row in texts for text in row):
        raise InvalidLexicon(f"{path}: name, text, low and high are texts that are not empty")
    return [Question(n, DIMENSIONS, text, *_SCALE, (low, high)) for n, text, low, high in texts]
