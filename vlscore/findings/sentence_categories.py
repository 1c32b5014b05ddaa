"""Categories of sentences: clinical content, technique, communication, history and others.

`Sections` reads a category from the titles of a report, `pattern_category` from the words of a
sentence.
"""

import re
from collections.abc import Sequence

from vlscore.findings.lexicon import Lexicon, SentencePattern
from vlscore.findings.tokens import Match, Token
from vlscore.findings.types import Category, Rule, Span
from vlscore.text import BLANK_LINE, plain_text, section_of_label, titles_of

_HEADING = re.compile(r"(?:^|(?<=[\s.)]))([^\W\d_](?:[^\W\d_]|[ /&]){2,40}?)\s*:")
# Characters of a line from which it is taken to be full.
_WRAPPED = 60
_STOPS = (".", "!", "?")
# So many sentences behind a reason for the examination, in a text of one line, are the report.
_LEAST_SENTENCES = 3
_PATTERN_LAYERS = ("opening", "pattern")
_ABOUT_THE_EXAMINATION = (Category.TECHNIQUE, Category.COMPARISON)


#: Name of a section -> category of its sentences; the others are clinical.
_OF_SECTION = {
    "indication": Category.HISTORY,
    "history": Category.HISTORY,
    "comparison": Category.COMPARISON,
    "technique": Category.TECHNIQUE,
    "examination": Category.TECHNIQUE,
    "date": Category.TECHNIQUE,
    "recommendations": Category.RECOMMENDATION,
    "notification": Category.COMMUNICATION,
    "disclaimer": Category.OTHER,
}


class Sections:
    """The category of each sentence of a report by the section titles, asked in text order."""

    def __init__(self, report: str, lexicon: Lexicon) -> None:
        self._report = plain_text(report).text
        self._lexicon = lexicon
        self._section = Category.CLINICAL
        self._titles = titles_of(report)
        self._next = 0
        named = (title.start for title in self._titles if title.section is not None)
        self._last_title = max(named, default=-1)
        self._may_have_titles = ":" in report or bool(self._titles)

    def category(self, after: int, span: Span) -> Category:
        """Category of the sentence at `span`; `after` is where the one before ends.

        A title governs the sentences up to the next one if it is written in capitals, or stands
        on a line of a report with a further title. Any other governs its own sentence.
        """
        title = self._title(after, span) if self._may_have_titles else None
        if title is not None:
            category, governs = title
            self._section = category if governs else Category.CLINICAL
            return category
        if self._section is not Category.CLINICAL and self._ends_before(after, span):
            self._section = Category.CLINICAL
        return self._section

    def _title(self, after: int, span: Span) -> tuple[Category, bool] | None:
        """Category of the title before or at the start of a sentence, and whether it governs."""
        title = None
        while self._next < len(self._titles) and self._titles[self._next].start <= span.start:
            title = self._titles[self._next]
            self._next += 1
        if title is None or title.section is None:
            return self._label(after, span)
        governs = title.is_upper or not title.has_colon or title.start < self._last_title
        return _OF_SECTION.get(title.section, Category.CLINICAL), governs

    def _label(self, after: int, span: Span) -> tuple[Category, bool] | None:
        """Category of a title that begins no section of a report, as "LUNGS:"."""
        between = list(_HEADING.finditer(self._report, after, span.start))
        title = between[-1] if between else _HEADING.match(self._report, span.start, span.end)
        if title is None:
            return None
        name = title.group(1)
        category = self._lexicon.headings.get(name.lower())
        if category is None and (section := section_of_label(name)) is not None:
            category = _OF_SECTION.get(section, Category.CLINICAL)
        if category is None and self._section is not Category.CLINICAL:
            # "LUNGS:" ends a section of history or technique as "FINDINGS:" does.
            found = self._lexicon.trie.find(self._lexicon.tokenize(name))
            if "mention" in found or "subject" in found:
                category = Category.CLINICAL
        return None if category is None else (category, name.isupper())

    def _ends_before(self, after: int, span: Span) -> bool:
        """Return whether the section of a title such as "HISTORY:" ends before a sentence.

        The last title of a report applies to its own line; and in a report of one line, to its own
        sentence: "REASON: line placement. A left jugular catheter has been inserted. ...". What
        follows "COMPARISON: None." in one line is read as findings, or by its own words.
        """
        between = self._report[after : span.start]
        if self._section in _ABOUT_THE_EXAMINATION and "\n" not in between:
            return not self._report[:after].endswith(";")
        if self._last_title >= after:
            return False
        if "\n" in between:
            # A full line without a stop was wrapped, and its paragraph continues.
            end = after + between.index("\n")
            line = self._report[self._report.rfind("\n", 0, end) + 1 : end].rstrip()
            is_wrapped = len(line) >= _WRAPPED and not line.endswith(_STOPS)
            return not is_wrapped or BLANK_LINE.search(between) is not None
        rest = self._report[self._last_title :]
        return "\n" not in rest.strip() and self._report.count(".", span.start) >= _LEAST_SENTENCES


def pattern_category(
    tokens: Sequence[Token],
    found: dict[str, list[Match]],
    stated: Sequence[int],
    lexicon: Lexicon,
) -> tuple[Category, Rule] | None:
    """Return the non-clinical category whose pattern matches, and the rule with its words.

    Args: stated: where each current finding of the sentence starts.
    """
    speaks_of_chest = "statement" in found or (
        "subject" in found and (bool(found.get("change")) or "reporting" in found)
    )
    applicable: list[Match] = []
    for layer in _PATTERN_LAYERS:
        for match in found.get(layer, ()):
            pattern: SentencePattern = match.entry
            if pattern.at_start and match.first:
                continue
            # "Consolidation, which fits the clinical history of fever" is no history.
            is_said = stated and ("reporting" in found or min(stated) < tokens[match.first].start)
            if pattern.category is Category.HISTORY and not pattern.at_start and is_said:
                continue
            if not pattern.always and (
                stated or (speaks_of_chest and pattern.category in _ABOUT_THE_EXAMINATION)
            ):
                continue
            applicable.append(match)
    if not applicable:
        return None
    match = min(applicable, key=lambda m: (lexicon.priority[m.entry.category], m.first))
    span = Span(tokens[match.first].start, tokens[match.last - 1].end)
    return match.entry.category, Rule(f"{match.layer}:{match.entry.category}", span)
