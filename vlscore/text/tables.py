"""Words by which the form of an English report is read, from `english.toml`."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple


class TextTables(NamedTuple):
    """Words of `english.toml`, all in lower case.

    Attributes:
        sections: title -> name of the section that it begins.
        main_titles: titles that begin a section in any case.
        preliminary: titles of readings before the final one.
        title_words: word of a title in capitals -> the section that it begins.
        words_on_lines: words by which a title in any case begins a section.
        view_words, naming_views: words of titles that name views; those of which one must be there.
        views_in_capitals: phrases by which a title in capitals names views.
        never_last, often_last, before_number: abbreviations whose period ends no sentence.
        short_words: all of these.
        unfinished, openers: words that end no statement; words that begin one.
        stating: words that begin a statement, never a label.
        answers: words that answer a label behind a dash.
        numbered: names of things that have a number.
        units, between_sizes: of sizes, and what may stand between two of their numbers.
        short_parts: parts of short forms with a slash.
        tags: kind of tag -> the names of its tags.
    """

    sections: Mapping[str, str]
    main_titles: frozenset[str]
    preliminary: frozenset[str]
    title_words: Mapping[str, str]
    words_on_lines: tuple[str, ...]
    view_words: frozenset[str]
    naming_views: frozenset[str]
    views_in_capitals: tuple[str, ...]
    never_last: frozenset[str]
    often_last: frozenset[str]
    before_number: frozenset[str]
    short_words: frozenset[str]
    unfinished: frozenset[str]
    openers: frozenset[str]
    stating: frozenset[str]
    answers: frozenset[str]
    numbered: frozenset[str]
    units: tuple[str, ...]
    between_sizes: tuple[str, ...]
    short_parts: tuple[str, ...]
    tags: Mapping[str, frozenset[str]]


@cache
def text_tables() -> TextTables:
    """Return the words that come with vlscore."""
    path = Path(__file__).with_name("english.toml")
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    lines, shortened = data["lines"], data["abbreviations"]
    return TextTables(
        sections={title: name for name, titles in data["sections"].items() for title in titles},
        main_titles=frozenset(data["titles"]["main"]),
        preliminary=frozenset(data["titles"]["preliminary"]),
        title_words=data["titles"]["words"],
        words_on_lines=tuple(data["titles"]["on_lines"]),
        view_words=frozenset(data["views"]["words"]),
        naming_views=frozenset(data["views"]["named_by"]),
        views_in_capitals=tuple(data["views"]["in_capitals"]),
        never_last=frozenset(shortened["never"]),
        often_last=frozenset(shortened["often"]),
        before_number=frozenset(shortened["before_number"]),
        short_words=frozenset(word for words in shortened.values() for word in words),
        unfinished=frozenset(lines["unfinished"]),
        openers=frozenset(lines["openers"]),
        stating=frozenset(lines["stating"]),
        answers=frozenset(lines["answers"]),
        numbered=frozenset(lines["numbered"]),
        units=tuple(data["sizes"]["units"]),
        between_sizes=tuple(data["sizes"]["between"]),
        short_parts=tuple(data["short"]["parts"]),
        tags={kind: frozenset(names) for kind, names in data["tags"].items()},
    )
