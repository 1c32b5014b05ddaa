"""What a sentence is for: clinical content, technique, communication, history and so on."""

import re
from collections.abc import Sequence

from vlscore.findings.lexicon import Lexicon, SentencePattern
from vlscore.findings.phrases import Match
from vlscore.findings.tokens import Token, tokenize
from vlscore.findings.types import Category, Rule, Span

_HEADING = re.compile(r"(?:^|(?<=[\s.)]))([A-Za-z][A-Za-z /&]{2,40}?)\s*:")
_PATTERN_LAYERS = ("opening", "pattern")
_ABOUT_THE_EXAMINATION = (Category.TECHNIQUE, Category.COMPARISON)


def heading(
    text: str, after: int, span: Span, section: Category, lexicon: Lexicon
) -> tuple[Category, bool] | None:
    """Category of the section title before or at the start of a sentence, and whether it governs.

    `after` is where the previous sentence ends. A title in capitals governs the sentences up to
    the next title; any other only its own. A title that names a finding or a part of the chest
    ends a `section` of history or technique.
    """
    between = list(_HEADING.finditer(text, after, span.start))
    title = between[-1] if between else _HEADING.match(text, span.start, span.end)
    if title is None:
        return None
    name = title.group(1)
    category = lexicon.headings.get(name.lower())
    if category is None and section is not Category.CLINICAL:
        found = lexicon.trie.find(tokenize(name))
        if "mention" in found or "subject" in found:
            category = Category.CLINICAL
    return None if category is None else (category, name.isupper())


def last_heading(text: str, lexicon: Lexicon) -> int:
    """Where the last section title of a report begins; -1 where there is none."""
    starts = (m.start() for m in _HEADING.finditer(text) if m.group(1).lower() in lexicon.headings)
    return max(starts, default=-1)


def pattern_category(
    tokens: Sequence[Token],
    found: dict[str, list[Match]],
    states_finding: bool,
    lexicon: Lexicon,
) -> tuple[Category, Rule] | None:
    """The non-clinical category whose pattern applies to a sentence, and the words that match."""
    opening = _first_word(tokens)
    speaks_of_chest = "subject" in found and ("change" in found or "reporting" in found)
    applicable: list[Match] = []
    for layer in _PATTERN_LAYERS:
        for match in found.get(layer, ()):
            pattern: SentencePattern = match.entry
            if pattern.at_start and match.first > opening:
                continue
            if not pattern.always and (
                states_finding or (speaks_of_chest and pattern.category in _ABOUT_THE_EXAMINATION)
            ):
                continue
            applicable.append(match)
    if not applicable:
        return None
    match = min(applicable, key=lambda m: (lexicon.priority[m.entry.category], m.first))
    span = Span(tokens[match.first].start, tokens[match.last - 1].end)
    return match.entry.category, Rule(f"{match.layer}:{match.entry.category}", span)


def _first_word(tokens: Sequence[Token]) -> int:
    """Position of the first token that is no list number or punctuation."""
    for position, token in enumerate(tokens):
        if token.form[0].isalpha() or token.form == "?":
            return position
        following = tokens[position + 1].form if position + 1 < len(tokens) else ""
        if token.form[0].isdecimal() and following not in (".", ")", ":"):
            return position
    return 0
