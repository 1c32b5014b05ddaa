"""Words by which the form of a report is read, from `english.toml`, which explains them."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple


class _Titles(NamedTuple):
    whole: Mapping[str, str]
    neutral: frozenset[str]
    sure: frozenset[str]
    not_alone: frozenset[str]
    in_capitals: frozenset[str]
    always: frozenset[str]
    first_reading: tuple[str, ...]
    version: tuple[str, ...]
    final: tuple[str, ...]


class _Views(NamedTuple):
    words: frozenset[str]
    named_by: frozenset[str]
    in_capitals: tuple[str, ...]


class _ShortForms(NamedTuple):
    never: frozenset[str]
    often: frozenset[str]
    before_number: frozenset[str]


class _Lines(NamedTuple):
    unfinished: frozenset[str]
    stating: frozenset[str]
    answers: tuple[str, ...]
    denying: tuple[str, ...]
    affirming: tuple[str, ...]
    refuting: tuple[str, ...]
    doubting: tuple[str, ...]
    numbered: frozenset[str]


class _Sizes(NamedTuple):
    units: tuple[str, ...]
    between: tuple[str, ...]


class _Dictated(NamedTuple):
    stops: tuple[str, ...]
    pauses: tuple[str, ...]


class _Divided(NamedTuple):
    short: tuple[str, ...]
    contractions: tuple[str, ...]
    negated: tuple[str, str]
    letters: tuple[str, ...]


class _Keys(NamedTuple):
    naming: tuple[str, ...]
    stating: tuple[str, ...]
    describing: tuple[str, ...]
    columns: frozenset[str]
    prefixes: tuple[str, ...]


class _Turns(NamedTuple):
    asking: tuple[str, ...]
    answering: tuple[str, ...]


class _TextTables(NamedTuple):
    """The tables of `english.toml`, all words in lower case."""

    sections: Mapping[str, tuple[str, ...]]
    titles: _Titles
    views: _Views
    abbreviations: _ShortForms
    lines: _Lines
    sizes: _Sizes
    dictated: _Dictated
    divided: _Divided
    keys: _Keys
    turns: _Turns
    tags: Mapping[str, frozenset[str]]


def _read_words() -> _TextTables:
    from vlscore.core import entry_of, read_table

    path = Path(__file__).with_name("english.toml")
    return entry_of(_TextTables, read_table(path), "vlscore/text/english.toml")


WORDS = _read_words()
#: All short answers.
ANSWERS = (
    *WORDS.lines.answers,
    *WORDS.lines.affirming,
    *WORDS.lines.refuting,
    *WORDS.lines.doubting,
)


def any_of(words: Iterable[str]) -> str:
    """Return the pattern of any of the words, the longest first."""
    return "|".join(re.escape(w) for w in sorted(words, key=len, reverse=True))
