"""Names of sections by their titles: synonyms, misspelt titles, and titles that name the views."""

import re
from functools import lru_cache

from vlscore.text.tables import text_tables

_WORDS = re.compile(r"[^\W_]+")
_PRELIMINARY = re.compile(r"\b(?:wet ?-?reads?|wet ?-?reading|preliminary|provisional)\b")
# Shorter titles have too many neighbours ("exam", "note").
_SHORTEST_MISSPELT, _LONGEST = 6, 60


@lru_cache(4096)
def section_of_title(title: str) -> str | None:
    """Return the section that a title begins, such as "findings"; None for titles inside sections.

    Only main titles begin a section in lower case. A letter may be wrong.

    >>> [section_of_title(title) for title in ("Impressoin", "NDICATION", "HEART")]
    ['impression', 'indication', None]
    """
    lowered = " ".join(title.lower().split())
    if len(lowered) > _LONGEST:
        return None
    tables = text_tables()
    is_upper = title.isupper()
    if not is_upper:
        if lowered in tables.preliminary:
            return "wet read"
        if any(words in lowered for words in tables.words_on_lines):
            return "indication"
        return _named(lowered, tables.main_titles)
    known = _named(lowered, frozenset(tables.sections))
    # Before the words of titles: a preliminary impression is not the impression.
    if known is None and _PRELIMINARY.search(lowered):
        return "wet read"
    words = tables.title_words
    return known or next((section for word, section in words.items() if word in lowered), None)


def section_of_label(label: str) -> str | None:
    """Return the section of which a label is a title, letter by letter, in any case."""
    return text_tables().sections.get(" ".join(label.lower().split()))


def _named(title: str, titles: frozenset[str]) -> str | None:
    """Return the section of a title among others, with a wrong letter if there is no other way."""
    sections = text_tables().sections
    if title in titles:
        return sections[title]
    if len(title) < _SHORTEST_MISSPELT:
        return None
    near = (each for each in sorted(titles) if len(each) >= _SHORTEST_MISSPELT)
    return next((sections[each] for each in near if _differs_by_one(title, each)), None)


@lru_cache(4096)
def names_views(title: str) -> bool:
    """Return whether a title names the examination or its views, and nothing else.

    >>> names_views("PA and lateral views of the chest"), names_views("Chest"), names_views("CHEST")
    (True, False, True)
    """
    tables = text_tables()
    lowered = " ".join(title.lower().split())
    is_upper = title.isupper()
    if is_upper and any(views in lowered for views in tables.views_in_capitals):
        return True
    words = [word for word in _WORDS.findall(lowered) if not word.isdecimal()]
    if tables.naming_views.isdisjoint(words) or (len(words) < 2 and not is_upper):
        return False
    return all(word in tables.view_words or _is_near(word, tables.view_words) for word in words)


def _is_near(word: str, others: frozenset[str]) -> bool:
    return len(word) >= _SHORTEST_MISSPELT and any(_differs_by_one(word, each) for each in others)


def _differs_by_one(one: str, other: str) -> bool:
    """Return whether one letter is missing, added, wrong, or has changed places with the next."""
    if abs(len(one) - len(other)) > 1:
        return False
    first = 0
    while first < min(len(one), len(other)) and one[first] == other[first]:
        first += 1
    a, b = one[first:], other[first:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
