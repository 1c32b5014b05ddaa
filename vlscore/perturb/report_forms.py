"""Check that a change damages no form and no list.

A form has rows, which are no prose (`vlscore.findings.Layout`): "Pneumothorax: None.",
"[x] Effusion", "| Heart | normal |". Its labels, boxes, cells and lines stay, and a short answer
changes only word for word. Sentences below titles ("LUNGS: There is ...") may change.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from vlscore.findings import Layout, Sentence, Span, extract
from vlscore.perturb.edits import Edit
from vlscore.perturb.lexicons import phrases_in
from vlscore.perturb.parsed_report import ParsedReport
from vlscore.text import has_marks

_LABEL = re.compile(r"[^\n:?|\t]{1,48}?(?:[:?|\t]|[ \t]+[-–—=][ \t]|\.{3,}|[ ]{3,})")
_ANY_NUMBER = re.compile(r"\d[.)]")
_LIST_NUMBER = re.compile(
    r"(?:(?<=^)|(?<=\n)|(?<=[.:;!?]\s)|(?<=[.:;]))[ \t]*\(?(\d{1,2})[.)](?=\s|[A-Za-z])"
)
_LETTER_OR_BULLET = re.compile(r"^[ \t]*(?:\(?([A-Za-z])[.)](?=\s)|([-*•–+])[ \t])", re.MULTILINE)
# More than this is a sentence, not an answer.
_LONGEST_ANSWER = 5


def harm(report: ParsedReport, perturbed: str, edits: Sequence[Edit]) -> str | None:
    """Return a message on the damage of a change to a form or a list, or None."""
    text = report.text
    if any(has_marks(text, edit.start, edit.end) for edit in edits):
        return "the change would damage the report's markup"
    for row in _rows(report):
        if not all(_leaves(text, row, edit) for edit in edits):
            return f"the change would break a row of the report's form: {row.of(text)!r}"
    labels = _labels(report.sentences, text)
    if labels and labels != _labels(extract(perturbed).sentences, perturbed):
        return "the change would break the report's labels"
    before, after = (_LETTER_OR_BULLET.findall(each) for each in (text, perturbed))
    letters, others = ([one for one, _ in found if one] for found in (before, after))
    if letters != others or (len(before) > 1 and not after):
        return "the change would break the report's list"
    if not _is_numbered_well(perturbed) and _is_numbered_well(text):
        return "the change would leave a gap in the numbers of a list"
    return None


def _rows(report: ParsedReport) -> Iterator[Span]:
    """Yield the parts of a report that may change only word for word: rows, and titles of rows."""
    text = report.text
    # Where "+" means present, "-" means absent.
    signed = any(lead.strip() == "+" for lead in report.texts_before)
    for sentence, following in zip_longest(report.sentences, report.sentences[1:]):
        start, end = sentence.span
        if sentence.layout is Layout.PROSE:
            below = text[end : following.span.start] if following else ""
            is_title = following is not None and following.layout is not Layout.PROSE
            if signed or (is_title and re.fullmatch(r"\n[ \t]+", below)):
                yield sentence.span
            continue
        label = _LABEL.match(text, start, end) if sentence.layout is Layout.LABEL else None
        answer = start if label is None else label.end()
        if label is None or len(text[answer:end].split()) <= _LONGEST_ANSWER:
            yield sentence.span


def _leaves(text: str, row: Span, edit: Edit) -> bool:
    """Return whether an edit is outside a row, or replaces words by words, and states nothing."""
    if edit.end < row.start or edit.start > row.end:
        return True
    if edit.end <= row.start or edit.start >= row.end:
        return edit.start < edit.end
    old, new = text[edit.start : edit.end], edit.replacement
    inside = row.start <= edit.start and edit.end <= row.end
    is_replacement = bool(old.strip()) and bool(new.strip()) and "\n" not in old + new
    return inside and is_replacement and "verdicts" not in phrases_in(new)


def _labels(sentences: Sequence[Sentence], text: str) -> list[str]:
    """Return the labels of a report: of its rows, and before any colon."""
    found = [(s, _LABEL.match(text, *s.span)) for s in sentences]
    labels = [(s, label.group()) for s, label in found if label is not None]
    return [each for s, each in labels if s.layout is not Layout.PROSE or each.endswith(":")]


def _is_numbered_well(text: str) -> bool:
    """Return whether the list numbers run 1, 2, 3; or start again from 1."""
    last = 0
    if _ANY_NUMBER.search(text) is None:
        return True
    for match in _LIST_NUMBER.finditer(text):
        number = int(match.group(1))
        if number not in (1, last + 1):
            return False
        last = number
    return True
