"""Reports that a study must not find, because they make its oracle trivially perfect."""

from collections.abc import Iterable
from typing import Any, TypeVar

from vlscore.errors import InvalidStudy
from vlscore.index.parts import short_digest
from vlscore.index.store import Index
from vlscore.oracle.queries import Query

Name = TypeVar("Name", str, bytes)


class Exclusions:
    """Rows of an index that a study must not find.

    Args:
        exact: rows that equal its reference, word for word.
        ids_column: column that lists ids, the study's own or its patient's; a row goes when all the
            studies that hold it are listed, for then nobody else wrote that text.
    """

    def __init__(self, index: Index, *, exact: bool = False, ids_column: str | None = None) -> None:
        self._index = index
        self._exact = exact
        self._ids_column = ids_column
        self._rows_of_text = (
            _inverted((_key(text),) for text in index.iter_texts()) if exact else {}
        )
        self._rows_of_id = _inverted(index.all_ids()) if ids_column is not None else {}

    def of(self, query: Query) -> list[int]:
        """Rows, ascending. Raises InvalidStudy where the study has nothing to exclude by."""
        barred: set[int] = set()
        if self._exact:
            if query.reference is None:
                raise InvalidStudy("there is no reference whose copies could be excluded")
            barred.update(self._rows_of_text.get(_key(query.reference), ()))
        if self._ids_column is not None:
            ids = _listed(query.record, self._ids_column)
            touched = {row for id in ids for row in self._rows_of_id.get(id, ())}
            barred.update(row for row in touched if ids.issuperset(self._index.ids(row)))
        return sorted(barred)


def words(text: str) -> str:
    """A text with single blanks: copies of a report differ in their line breaks."""
    return " ".join(text.split())


def _key(text: str) -> bytes:
    return short_digest(words(text))


def _inverted(names_of_rows: Iterable[Iterable[Name]]) -> dict[Name, list[int]]:
    rows: dict[Name, list[int]] = {}
    for row, names in enumerate(names_of_rows):
        for name in names:
            rows.setdefault(name, []).append(row)
    return rows


def _listed(record: Any, column: str) -> set[str]:
    """Ids in a column: one, a list, or several separated by semicolons."""
    if column not in record:
        raise InvalidStudy(f'no column "{column}" to exclude ids by')
    value = record[column]
    if value is None:
        return set()
    values = value if isinstance(value, list) else str(value).split(";")
    return {str(item).strip() for item in values} - {""}
