"""Metric values that were computed outside vlscore, read from a table.

`align`, `compare` and `sensitivity` take such a table. What a row describes differs between them;
the rest is the same: a cell that is not a number only loses its own value, rows that belong to no
study or pair of the run are counted, and a note names the metrics whose direction was guessed.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from vlscore.core import Signature, file_digest
from vlscore.data import name_of, number_of, read_rows
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable, UnknownName, VLScoreError
from vlscore.metrics.metric import Metric
from vlscore.metrics.registry import metric_from_file


class ValueColumns:
    """Metric columns of a table of values.

    A column named like a metric of vlscore, also with parameters, has that metric's direction. For
    any other column larger values are better, unless `lower_is_better` names it.

    Args:
        path: path of the table.
        names: its metric columns.
        lower_is_better: metrics for which smaller values are better.

    Raises: InvalidSetting if a name in `lower_is_better` is not a column of the table.
    """

    def __init__(
        self, path: Path, names: Sequence[str], lower_is_better: Collection[str] = ()
    ) -> None:
        if unknown := sorted(set(lower_is_better) - set(names)):
            listed = ", ".join(unknown)
            raise InvalidSetting(
                f"{path} has no column {listed}; its metrics are {', '.join(names)}"
            )
        self.path, self.names = path, tuple(names)
        self._lower = frozenset(lower_is_better)
        self._unread: list[str] = []
        self._others = 0

    @property
    def signature(self) -> Signature:
        """Return what the values depend on: the file's name and first digits of its sha256."""
        name = self.path.name.replace("|", "/").replace("\n", " ")
        return Signature("values").plus(file=name, sha256=file_digest(self.path)[:8])

    def is_higher_better(self, name: str) -> bool:
        """Return the direction of a metric: as set, else as vlscore defines it, else True."""
        known = known_metric(name)
        return name not in self._lower and (known is None or known.higher_is_better)

    def value(self, row: int, cell: Any, column: str) -> tuple[float, str | None]:
        """Return (number, None), or (nan, the reason why there is no number).

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
        """Return why a study or pair that the table does not contain has no value."""
        return f"{self.path} has no value"

    def rows(self, *ids: str) -> Iterator[tuple[int, tuple[str, ...], Mapping[str, Any]]]:
        """Yield the number of each row, its ids, and its cells by column.

        Args: ids: the columns of the ids.
        Raises: InvalidTable for a row that cannot be read or lacks an id.
        """
        for number, record in read_rows(self.path):
            if isinstance(record, str):
                raise InvalidTable(f"{self.path}, row {number}: {record}")
            try:
                names = tuple(name_of(record[column], column) for column in ids)
            except InvalidStudy as error:
                raise InvalidTable(f"{self.path}, row {number}: {error}") from None
            yield number, names, record

    def pass_over(self) -> None:
        """Count a row that belongs to no study or pair of this run."""
        self._others += 1

    def notes(self, looked_at: str) -> list[str]:
        """Return what a user should know about the table, after its last row was read.

        Args: looked_at: what a row describes, as in "rated pair".
        """
        found = []
        if self._others:
            rows = "1 row belongs" if self._others == 1 else f"{self._others} rows belong"
            found.append(f"{self.path}: {rows} to no {looked_at}")
        if self._unread:
            count = len(self._unread)
            cells = "1 cell is not a number" if count == 1 else f"{count} cells are not numbers"
            found.append(f"{self.path}: {cells}, the first in {self._unread[0]}")
        guessed = [n for n in self.names if n not in self._lower and known_metric(n) is None]
        if guessed:
            found.append(
                f"{self.path}: larger values of {', '.join(guessed)} are assumed to be better; "
                "--lower-is-better names metrics for which smaller values are better"
            )
        return found


def known_metric(name: str) -> Metric | None:
    """Return the metric of vlscore that a column header names, or None.

    A header must not name modules to be imported, nor files to be opened.
    """
    try:
        return metric_from_file(name, "a header")
    except (UnknownName, VLScoreError):
        return None
