"""Forms and lists in a report, and the check that a change does not damage them.

A form answers its labels: "Pneumothorax: None.", "[x] Effusion", "| Heart | normal |",
"Effusion? Yes". A change must not alter its labels, boxes, columns and lines, and may change an
answer only word for word. Sentences below titles of sections ("FINDINGS:") and organs ("LUNGS:")
may change; those of organs must not move.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from vlscore.perturb.edits import Edit
from vlscore.text import BOX_SIGN, has_marks, names_views, section_of_title

# A label is at the beginning of a line or item, or after the previous label's value.
_LABEL = re.compile(
    r"(?:^|(?<=\n)|(?<=[.;|:] )|(?<=\n ))[ \t]*"
    r"(?:\(?\d{1,2}[.)][ \t]*|[-*•+–][ \t]*|\[.\][ \t]*)*"
    r"([A-Za-z][A-Za-z0-9 /&()'-]{1,48}?)[ \t]*"
    r"(:(?!\d)|\?(?=[ \t]*(?i:yes|no|none|nil|present|absent)\b))"
)
# At the beginning of a line alone, and in two lines at least: "Effusion - none", "Heart....normal".
_COLUMNED = re.compile(
    r"^[ \t]*(?:[-*•][ \t]*)?([A-Za-z][A-Za-z0-9 /&()']{1,48}?)"
    r"(?:[ \t]+([-–—=])[ \t]+|(\.{3,})[ \t]*|([ ]{3,}|\t+))(?=\S)",
    re.MULTILINE,
)
# Without one of these signs a text has no columns.
_MAY_BE_COLUMNED = re.compile(r"[ \t][-–—=][ \t]|\.{3}| {3}|\t")
# A line with one of these is a row of a form: a box, a cell, a sign of present or absent.
_ROW = re.compile(rf"^[^\n]*(?:{BOX_SIGN}|\||\t)[^\n]*$|^[ \t]*\+[ \t][^\n]*$", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*[-*•–+][ \t]", re.MULTILINE)
# Without one of these signs a report is plain prose in one paragraph.
_MAY_BE_A_FORM = re.compile(
    r"[:|\t\n?=•☐☑☒✓✔□■◻◼\[(]|\.{3}|   |^[ \t]*(?:[-*–+]|[A-Za-z][.)])[ \t]"
)
# Headings of a list of present, or of absent, findings.
_POLAR = re.compile(
    r"^[ \t]*(?:present|absent|positives?(?: for)?|negatives?(?: for)?|yes|no|none|not present|"
    r"abnormal|normal)[ \t]*:[ \t]*\n((?:[ \t]*[-*•+–]?[ \t]*[^\n:]+(?:\n|$))+)",
    re.MULTILINE | re.IGNORECASE,
)
# A row shows by its sign, box or heading whether a finding is present.
_VERDICT = re.compile(r"\b(?:no|not|there (?:is|are))\b", re.IGNORECASE)
# A title above lines that belong to it: "Effusion", and below it "  Present: yes".
_ABOVE = re.compile(r"^[ \t]*[^\n:.]+(?=\n[ \t]+[A-Za-z][^\n:]{0,30}:)", re.MULTILINE)
# Items with letters are not renumbered, so none of them may be removed.
_LETTER = re.compile(r"^[ \t]*\(?([A-Za-z])[.)](?=\s)", re.MULTILINE)
_ANY_NUMBER = re.compile(r"\d[.)]")
_LIST_NUMBER = re.compile(
    r"(?:(?<=^)|(?<=\n)|(?<=[.:;!?]\s)|(?<=[.:;]))[ \t]*\(?(\d{1,2})[.)](?=\s|[A-Za-z])"
)
# More than this is a sentence, not an answer.
_LONGEST_ANSWER = 5
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n|;")


class FormAnswer(NamedTuple):
    """Label and the few words after it; `start` and `end` are the character positions of these."""

    label: str
    value: str
    start: int
    end: int


@lru_cache(256)
def labels(text: str) -> tuple[str, ...]:
    """Return the labels of a report, in text order, without the titles of its sections."""
    return tuple(match.group(1) for match in _labels(text))


def _labels(text: str) -> list[re.Match[str]]:
    found: list[re.Match[str]] = []
    # Most reports have none, and to look for the signs is many times faster.
    if ":" in text or "?" in text:
        found = [m for m in _LABEL.finditer(text) if not _is_title(m.group(1))]
    if _MAY_BE_COLUMNED.search(text) is not None:
        columned = list(_COLUMNED.finditer(text))
        found += columned if len(columned) > 1 else ()
    return found


def _is_title(label: str) -> bool:
    """Return whether a label is the title of a section, of which no answer is expected."""
    title = label.upper()
    return section_of_title(title) is not None or names_views(title)


@lru_cache(256)
def answers(text: str) -> tuple[FormAnswer, ...]:
    """Return the labels of a report that are answered in a few words.

    >>> [(a.label, a.value) for a in answers("Pneumothorax: None. Heart: Normal.")]
    [('Pneumothorax', 'None'), ('Heart', 'Normal')]
    """
    found = []
    for match in _labels(text):
        start = match.end()
        while start < len(text) and text[start].isspace():
            start += 1
        stop = _SENTENCE_END.search(text, start)
        end = len(text) if stop is None else stop.start()
        value = text[start:end]
        if 0 < len(value.split()) <= _LONGEST_ANSWER and ":" not in value:
            found.append(FormAnswer(match.group(1), value, start, end))
    return tuple(found)


def harm(original: str, perturbed: str, edits: Sequence[Edit]) -> str | None:
    """Return a message on the damage of a change to a form or a list, or None."""
    if any(has_marks(original, edit.start, edit.end) for edit in edits):
        return "the change would damage the report's markup"
    if _MAY_BE_A_FORM.search(original) is not None:
        reason = _harm_to_a_form(original, perturbed, edits)
        if reason is not None:
            return reason
    if not _is_numbered_well(perturbed) and _is_numbered_well(original):
        return "the change would leave a gap in the numbers of a list"
    return None


def _harm_to_a_form(original: str, perturbed: str, edits: Sequence[Edit]) -> str | None:
    rows = sorted(_rows(original))
    for edit, (start, end) in _meeting(edits, rows):
        if not _is_word_for_word(original, edit, start, end):
            return "the change would break a row of the report's form"
    answered = {(a.start, a.end + 1): a for a in answers(original)}
    for edit, span in _meeting(edits, sorted(answered)):
        answer = answered[span]
        if not _is_word_for_word(original, edit, answer.start, answer.end):
            return f"the change would damage the answer to {answer.label!r}"
    if labels(original) != labels(perturbed):
        return "the change would break the report's labels"
    if _LETTER.findall(original) != _LETTER.findall(perturbed):
        return "the change would break the report's list"
    if len(_BULLET.findall(original)) > 1 and not _BULLET.search(perturbed):
        return "the change would break the report's list"
    return None


@lru_cache(256)
def _rows(text: str) -> tuple[tuple[int, int], ...]:
    """Lines of a form that have no label: with boxes or cells, or below "Present:"."""
    below = (match.span(1) for match in _POLAR.finditer(text))
    above = (match.span() for match in _ABOVE.finditer(text))
    lines = (match.span() for match in _ROW.finditer(text))
    rows: Iterator[tuple[int, int]] = chain(lines, below, above)
    found = tuple(rows)
    if any(text[start:end].lstrip().startswith("+") for start, end in found):
        # Where "+" means present, "-" means absent.
        return found + tuple(m.span() for m in re.finditer(r"^[ \t]*-[ \t][^\n]*", text, re.M))
    return found


def _meeting(
    edits: Sequence[Edit], spans: Sequence[tuple[int, int]]
) -> Iterator[tuple[Edit, tuple[int, int]]]:
    """Yield each edit with each span it touches, the last one first."""
    for edit in edits:
        for start, end in reversed(spans):
            if start <= edit.end and edit.start <= end:
                yield edit, (start, end)


def _is_word_for_word(text: str, edit: Edit, start: int, end: int) -> bool:
    """Return whether an edit in [start, end) replaces words by words, in one line, no verdict."""
    if edit.start == end + 1 or edit.end < start:
        return edit.start < edit.end
    inside = start <= edit.start and edit.end <= end
    old, new = text[edit.start : edit.end], edit.replacement
    is_replacement = bool(old.strip()) and bool(new.strip()) and "\n" not in old + new
    return inside and is_replacement and _VERDICT.search(new) is None


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
