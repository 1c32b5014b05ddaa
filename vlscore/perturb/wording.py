"""Edits that keep a sentence a sentence: capitals, articles, spaces."""

import re

from vlscore.perturb.perturbation import Edit

_ARTICLE = re.compile(r"\b(an?)(\s+)$", re.IGNORECASE)
# What de-identification leaves: nobody knows how it is spoken.
_MASK = ("XXXX", "xxxx")
_WORD = re.compile(r"[^\W_]+")
# Written with a consonant but spoken with a vowel, and the other way round. An abbreviation has no
# vowel, or names a lobe; other words may stand in capitals as well.
_SPOKEN_VOWEL = re.compile(
    r"hour|honest|8|1[18]\b|MRI\b|[xX]-?ray|[FHLMNRSX](?:[B-DF-HJ-NP-TV-XZ0-9]+|UL)\b"
)
_SPOKEN_CONSONANT = re.compile(r"(?:uni(?!n)|eu|one\b|use|usual)", re.IGNORECASE)


def in_case_of(word: str, model: str) -> str:
    """`word` with the capitals of `model`: none, a first one, or all.

    >>> in_case_of("right", "Left"), in_case_of("apex", "BASE"), in_case_of("RUL", "rll")
    ('Right', 'APEX', 'rul')
    """
    letters = [character for character in model if character.isalpha()]
    if len(letters) > 1 and all(character.isupper() for character in letters):
        return word.upper()
    lowered = word.lower()
    if letters and letters[0].isupper():
        return lowered[:1].upper() + lowered[1:]
    return lowered


def article_for(words: str) -> str:
    """The indefinite article before some words.

    >>> article_for("apical opacity"), article_for("unilateral effusion"), article_for("RLL mass")
    ('an', 'a', 'an')
    """
    if _SPOKEN_VOWEL.match(words):
        return "an"
    if _SPOKEN_CONSONANT.match(words):
        return "a"
    return "an" if words[:1].lower() in "aeiou" else "a"


def replaced(text: str, start: int, end: int, words: str) -> list[Edit]:
    """Edits that put `words` for text[start:end], with the article before them put right."""
    article = _ARTICLE.search(text, max(0, start - 6), start)
    edits = [Edit(start, end, words)]
    following = f"{words}{text[end : end + 20]}".lstrip()
    if article is None or not _WORD.match(following) or following.startswith(_MASK):
        return edits
    wanted = article_for(following)
    if article.group(1).lower() != wanted:
        place = article.span(1)
        model = "AN" if text.isupper() else f"{article.group(1)[0]}n"
        edits.insert(0, Edit(*place, in_case_of(wanted, model)))
    return edits


def removed(text: str, start: int, end: int, *, opens: bool = False) -> list[Edit]:
    """Edits that take text[start:end] out with one of the spaces around it.

    Args:
        opens: the words open a sentence, so that the next word takes over their capital.
    """
    while end < len(text) and text[end] in " \t":
        end += 1
    if opens and text[start].isupper() and end < len(text):
        return [Edit(start, end + 1, text[end].upper())]
    return replaced(text, start, end, "")


def with_capital(words: str, *, like: str) -> str:
    """`words` with a first letter as large as that of `like`.

    >>> with_capital("no effusion.", like="Small effusion.")
    'No effusion.'
    """
    if not like[:1].isupper():
        return words[:1].lower() + words[1:]
    return words[:1].upper() + words[1:]
