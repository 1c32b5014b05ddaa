"""Names of sections by their titles: synonyms, misspelt titles, and titles that name the views."""

import re
from collections.abc import Collection
from functools import lru_cache

from vlscore.text.tables import SECTIONS, WORDS, any_of

_WORDS = re.compile(r"[^\W_]+")
_PRELIMINARY = re.compile(rf"\b(?:{any_of(WORDS.titles.preliminary_words)})\b")
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
    titles = WORDS.titles
    if not title.isupper():
        if lowered in titles.preliminary:
            return "wet read"
        if any(words in lowered for words in titles.on_lines):
            return "indication"
        return _named(lowered, titles.main)
    known = _named(lowered, SECTIONS)
    # Before the words of titles: a preliminary impression is not the impression.
    if known is None and _PRELIMINARY.search(lowered):
        return "wet read"
    return known or next((name for word, name in titles.words.items() if word in lowered), None)


def section_of_label(label: str) -> str | None:
    """Return the section of which a label is a title, letter by letter, in any case."""
    return SECTIONS.get(" ".join(label.lower().split()))


def _named(title: str, titles: Collection[str]) -> str | None:
    """Return the section of a title among others, with a wrong letter if there is no other way."""
    if title in titles:
        return SECTIONS[title]
    if len(title) < _SHORTEST_MISSPELT:
        return None
    near = (each for each in sorted(titles) if len(each) >= _SHORTEST_MISSPELT)
    return next((SECTIONS[each] for each in near if _differs_by_one(title, each)), None)


@lru_cache(4096)
def names_views(title: str) -> bool:
    """Return whether a title names the examination or its views, and nothing else.

    >>> names_views("PA and lateral views of the chest"), names_views("Chest"), names_views("CHEST")
    (True, False, True)
    """
    lowered = " ".join(title.lower().split())
    is_upper = title.isupper()
    if is_upper and any(views in lowered for views in WORDS.views.in_capitals):
        return True
    words = [word for word in _WORDS.findall(lowered) if not word.isdecimal()]
    known = WORDS.views.words
    if WORDS.views.named_by.isdisjoint(words) or (len(words) < 2 and not is_upper):
        return False
    return all(word in known or _is_near(word, known) for word in words)


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
