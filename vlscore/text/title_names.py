"""Names of sections by their titles: by the words that name them, and by views of the chest."""

import re
from functools import lru_cache

from vlscore.text.tables import WORDS

_WORDS = re.compile(r"[^\W_]+")
# Words, also of "AdmittingDiagnoses".
_LETTERS = re.compile(r"[^\W\d_]+?(?:(?<=[a-z])(?=[A-Z])|(?![^\W\d_]))")
_STOP = re.compile(r"[^\W\d_]{5}[.!?] ")
_MOST_WORDS = 8
# Shorter words have too many neighbours ("exam", "note").
_SHORTEST_MISSPELT, _LONGEST = 6, 60
_SECTION_OF = {word: name for name, words in WORDS.sections.items() for word in words}
_ORDER = {name: place for place, name in enumerate(WORDS.sections)}
_BOTH = "findings and impression"
#: Names of all sections.
SECTION_NAMES = frozenset((*WORDS.sections, *WORDS.titles.whole.values(), _BOTH))


@lru_cache(4096)
def section_of_title(title: str) -> str | None:
    """Return the section that a title begins, such as "findings"; None for titles inside sections.

    In lower case, one word alone must be a sure one. A letter may be wrong.

    >>> [section_of_title(title) for title in ("Impressoin", "NDICATION", "Why ordered", "HEART")]
    ['impression', 'indication', 'indication', None]
    """
    naming, is_all, section = _read_title(title)
    if section is None or title.isupper():
        is_section = is_all or not naming.isdisjoint(WORDS.titles.in_capitals)
    elif is_all:
        is_section = " " in title.strip() or not naming.isdisjoint(WORDS.titles.sure)
    else:
        is_section = not naming.isdisjoint(WORDS.titles.always)
    return section if is_section else None


def is_sure_title(title: str) -> bool:
    """Return whether a title can do without a colon: its words are known, and one is sure.

    >>> is_sure_title("Clinical history"), is_sure_title("History of")
    (True, False)
    """
    naming, is_all, section = _read_title(title)
    if section is None or not is_all or naming.isdisjoint(WORDS.titles.sure):
        return False
    return WORDS.lines.unfinished.isdisjoint(_WORDS.findall(title.lower())[-1:])


def section_of_label(label: str) -> str | None:
    """Return the section that all words of a label name, in any case."""
    _, is_all, section = _read_title(label)
    return section if is_all else None


@lru_cache(4096)
def _read_title(title: str) -> tuple[frozenset[str], bool, str | None]:
    """Return the words of a title that name sections, whether there is no other, and its section.

    The section is the one that stands first in the table.
    """
    lowered = " ".join(title.lower().split())
    words = [_spelt(word.lower()) for word in _LETTERS.findall(title)]
    # "As in the preliminary report: ..." is a sentence.
    is_sentence = _STOP.search(lowered) is not None or not WORDS.lines.unfinished.isdisjoint(
        words[:1]
    )
    if is_sentence or len(lowered) > _LONGEST or len(words) > _MOST_WORDS:
        return frozenset(), False, None
    alone = WORDS.titles.not_alone if len(words) == 1 else ()
    naming = frozenset(word for word in words if word in _SECTION_OF and word not in alone)
    is_all = all(word in naming or word in WORDS.titles.neutral for word in words)
    if (whole := WORDS.titles.whole.get(lowered)) is not None:
        return frozenset((lowered,)), True, whole
    named = sorted({_SECTION_OF[word] for word in naming}, key=_ORDER.__getitem__)
    section = _BOTH if named == ["findings", "impression"] else next(iter(named), None)
    # A report is one of findings, whatever else stands in its title.
    return naming, is_all, WORDS.titles.whole.get(section or "", section)


def _spelt(word: str) -> str:
    """Return a word of titles that may have a wrong letter."""
    if word in _SECTION_OF or word in WORDS.titles.neutral or len(word) < _SHORTEST_MISSPELT:
        return word
    return next((each for each in _LONG_NAMES if _differs_by_one(word, each)), word)


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


_LONG_NAMES = sorted(word for word in _SECTION_OF if len(word) >= _SHORTEST_MISSPELT)


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
