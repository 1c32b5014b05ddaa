"""Values of metrics that were computed elsewhere, as every command reads them.

`align`, `compare` and `sensitivity` take a table of values. They differ in what a row is.
They agree in the rest: a cell that is no number costs its own value, rows of nothing that is looked
at are counted, and a note names the metrics whose direction was guessed.
"""

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from vlscore.core import Signature, file_digest
from vlscore.data import number_of
from vlscore.errors import InvalidSetting, InvalidStudy, UnknownName, VLScoreError
from vlscore.metrics.metric import Metric
from vlscore.metrics.registry import metric_from_file


class ValueColumns:
    """The metrics of a table of values.

    A metric that has the name of one of vlscore, also with parameters, has its direction. Of others
    larger values are better unless they are named.

    Args:
        path: of the table.
        names: its metrics.
        lower_is_better: metrics of which smaller values are better.

    Raises: InvalidSetting where a name in `lower_is_better` is no metric of the table.
    """

    def __init__(
        self, path: Path, names: Sequence[str], lower_is_better: Collection[str] = ()
    ) -> None:
        if unknown := sorted(set(lower_is_better) - set(names)):
            listed = ", ".join(unknown)
            raise InvalidSetting(f"{path}: no column {listed}; found: {', '.join(names)}")
        self.path, self.names = path, tuple(names)
        self._lower = frozenset(lower_is_better)
        self._unread: list[str] = []
        self._others = 0

    @property
    def signature(self) -> Signature:
        """What the values depend on: the file's name and the first digits of its sha256."""
        name = self.path.name.replace("|", "/").replace("\n", " ")
        return Signature("values").plus(file=name, sha256=file_digest(self.path)[:8])

    def is_higher_better(self, name: str) -> bool:
        """The direction of a metric: as named, as vlscore knows it, else larger is better."""
        known = known_metric(name)
        return name not in self._lower and (known is None or known.higher_is_better)

    def value(self, row: int, cell: Any, column: str) -> tuple[float, str | None]:
        """A number and None, or nan and why there is no number.

        Args:
            row: number in the table, for messages.
            column: name in the table, for messages.
        """
        try:
            number = number_of(cell, column)
        except InvalidStudy as error:
            self._unread.append(f"row {row}: {error}")
            return math.nan, f"{self.path}, row {row}: {error}"
        return (math.nan, self.lacking) if number is None else (number, None)

    @property
    def lacking(self) -> str:
        """Why something has no value of which the table has no cell."""
        return f"{self.path} has no value"

    def pass_over(self) -> None:
        """Count a row of something that is not looked at."""
        self._others += 1

    def notes(self, looked_at: str) -> list[str]:
        """What a user should know of the table, after its last row.

        Args: looked_at: what rows are of, as in "rated pair".
        """
        found = []
        if self._others:
            found.append(f"{self.path}: {self._others} rows are of no {looked_at}")
        if self._unread:
            count = len(self._unread)
            cells = "1 cell is" if count == 1 else f"{count} cells are"
            found.append(f"{self.path}: {cells} left out, the first in {self._unread[0]}")
        guessed = [n for n in self.names if n not in self._lower and known_metric(n) is None]
        if guessed:
            found.append(
                f"larger is taken to be better for {', '.join(guessed)} of {self.path}; name those "
                "where it is not with --lower-is-better"
            )
        return found


def known_metric(name: str) -> Metric | None:
    """The metric of vlscore that a header names, None where it names none.

    A header must not name modules to be imported, nor files to be opened.
    """
    try:
        return metric_from_file(name, "a header")
    except (UnknownName, VLScoreError):
        return None
