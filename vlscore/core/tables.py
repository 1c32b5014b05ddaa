"""Entries of TOML tables as tuples, fields read as their types say; errors name file and entry."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from vlscore.errors import InvalidLexicon

Entry = TypeVar("Entry", bound=tuple[Any, ...])
_hints_of = cache(get_type_hints)


class TomlTable(dict[str, Any]):
    """The content of a TOML file; an absent key raises InvalidLexicon, which names the file."""

    def __init__(self, content: Mapping[str, Any], where: str) -> None:
        super().__init__(content)
        self._where = where

    def __missing__(self, name: str) -> Any:
        raise InvalidLexicon(f"{self._where} lacks {name}")


def read_table(path: Path, what: str = "lexicon") -> TomlTable:
    """Return the content of a TOML file.

    Args: what: word for the file in messages.
    Raises: InvalidLexicon where it is missing or not TOML.
    """
    try:
        with path.open("rb") as stream:
            return TomlTable(tomllib.load(stream), path.name)
    except FileNotFoundError as error:
        raise InvalidLexicon(f"{path}: this {what} does not exist") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidLexicon(f"{path} is not valid TOML: {error}") from error


def entry_of(kind: type[Entry], table: Mapping[str, Any], where: str, **made: Any) -> Entry:
    """Return a NamedTuple whose fields are the keys of a table, converted as their types say.

    Args:
        where: the file, for messages.
        made: fields that are made of something else.

    Raises: InvalidLexicon where a key is absent or unknown, or its value is of another type.
    """
    where = f"{where}: {table['name']!r}" if "name" in table else where
    hints, defaults = _hints_of(kind), kind._field_defaults  # type: ignore[attr-defined]
    if unknown := sorted(table.keys() - hints.keys()):
        raise InvalidLexicon(
            f"{where} has an unknown key {', '.join(unknown)}; known: {', '.join(hints)}"
        )
    if absent := sorted(hints.keys() - table.keys() - defaults.keys() - made.keys()):
        raise InvalidLexicon(f"{where} lacks {', '.join(absent)}")
    read = {
        name: _of_type(hints[name], value, f"{where}, {name}")
        for name, value in table.items()
        if name not in made
    }
    return kind(**read, **made)


def entries_of(kind: type[Entry], tables: Iterable[Mapping[str, Any]], where: str) -> list[Entry]:
    """Return the entries of an array of tables. Raises: InvalidLexicon, as `entry_of`."""
    return [entry_of(kind, table, where) for table in tables]


def words_pattern(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of the words where a word begins."""
    return re.compile(r"\b(?:" + "|".join(re.escape(word) for word in words) + ")", re.IGNORECASE)


def _of_type(hint: Any, value: Any, where: str) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (hint,) = (each for each in inner if each is not NoneType)
        return _of_type(hint, value, where)
    if origin is Mapping and isinstance(value, dict):
        return {key: _of_type(inner[1], each, f"{where}, {key}") for key, each in value.items()}
    if origin is re.Pattern and isinstance(value, list):
        return words_pattern(value)
    if origin in (tuple, frozenset) and isinstance(value, list):
        if origin is tuple and inner[-1] is not Ellipsis and len(value) != len(inner):
            raise InvalidLexicon(f"{where}: it needs {len(inner)} values, not {value!r}")
        return origin(_of_type(inner[0], each, where) for each in value)
    if origin is Literal:
        if value in inner:
            return value
        known = ", ".join(map(repr, inner))
        raise InvalidLexicon(f"{where}: it is one of {known}, not {value!r}")
    if isinstance(hint, type) and issubclass(hint, Enum):
        try:
            return hint(value)
        except ValueError as error:
            raise InvalidLexicon(f"{where}: {error}") from None
    if hasattr(hint, "_fields") and isinstance(value, dict):
        return entry_of(hint, value, where)
    if hint is Any or type(value) is hint:
        return value
    if hint is float and type(value) is int:
        return float(value)
    raise InvalidLexicon(f"{where}: {value!r} is no {getattr(hint, '__name__', hint)}")
