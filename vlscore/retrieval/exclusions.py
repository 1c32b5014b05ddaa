"""Rows of an index that a study must not find, because its oracle would be trivially perfect."""

from collections.abc import Iterable
from functools import cached_property
from typing import TypeVar

from vlscore.core import text_digest
from vlscore.data import Study
from vlscore.errors import InvalidStudy
from vlscore.retrieval.index import Index
from vlscore.retrieval.oracle_settings import OracleSettings

Name = TypeVar("Name", str, bytes)


class Exclusions:
    """Rows of an index that a study must not find, as the settings say.

    A copy of the reference is excluded word for word. Ids are those of a column, the study's own or
    its patient's; a row is excluded if all the studies with this text are listed, because then no
    other study has it.

    Attributes:
        printed: as printed in signatures; None if nothing is excluded.
    """

    def __init__(self, index: Index, settings: OracleSettings) -> None:
        self._index, self._exact, self._column = index, settings.exclude_exact, settings.exclude_ids
        names = ["exact"] if self._exact else []
        names += [f"ids({self._column})"] if self._column is not None else []
        self.printed = "+".join(names) or None

    @cached_property
    def _rows_of_text(self) -> dict[bytes, list[int]]:
        return _inverted((text_digest(words(text)),) for text in self._index.texts())

    @cached_property
    def _rows_of_id(self) -> dict[str, list[int]]:
        return _inverted(self._index.all_ids())

    def of(self, study: Study) -> list[int]:
        """Return excluded rows, ascending; raise InvalidStudy if the study lacks what is needed."""
        barred: set[int] = set()
        if self._exact:
            if study.reference is None:
                raise InvalidStudy("there is no reference whose copies could be excluded")
            barred.update(self._rows_of_text.get(text_digest(words(study.reference)), ()))
        if self._column is not None:
            if self._column not in study.extra:
                raise InvalidStudy(f'no column "{self._column}" to exclude ids by')
            value = study.extra[self._column]
            value = "" if value is None else value
            several = value if isinstance(value, list) else str(value).split(";")
            ids = {str(each).strip() for each in several} - {""}
            touched = {row for id in ids for row in self._rows_of_id.get(id, ())}
            barred.update(row for row in touched if ids.issuperset(self._index.ids(row)))
        return sorted(barred)


def words(text: str) -> str:
    """Return a text with single blanks, because copies of a report differ in line breaks."""
    return " ".join(text.split())


def _inverted(names_of_rows: Iterable[Iterable[Name]]) -> dict[Name, list[int]]:
    rows: dict[Name, list[int]] = {}
    for row, names in enumerate(names_of_rows):
        for name in names:
            rows.setdefault(name, []).append(row)
    return rows
