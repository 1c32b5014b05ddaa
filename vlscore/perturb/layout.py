"""Forms and lists: what of a report's layout no change may harm.

A form answers labels: "Pneumothorax: None.", "[x] Effusion", "| Heart | normal |". Such a report
keeps its labels, boxes and columns through every change, and an answer may only change word for
word. Titles of sections ("FINDINGS:", "LUNGS:") have sentences below them, which may change.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from vlscore.perturb.perturbation import Edit

_LABEL = re.compile(
    r"(?:^|(?<=[.;|\n•*\-])|(?<=\n\s)|(?<=[.;|] )|(?<=  ))[ \t]*(?:\(?\d{1,2}[.)][ \t]*|[-*•][ \t]*)?"
    r"([A-Za-z][A-Za-z0-9 /&()'-]{1,48}?)[ \t]*:(?!\d)[ \t]*([^\n|;]*)"
)
_BOX = re.compile(r"\[[ xX*✓-]?\]|\([ xX✓]\)|[☐☑☒✓✔□■◻◼]|_{3,}\s*(?=yes|no\b)", re.IGNORECASE)
_COLUMN = re.compile(r"\||\t")
_LIST_NUMBER = re.compile(
    r"(?:(?<=^)|(?<=\n)|(?<=[.:;!?]\s)|(?<=[.:;]))[ \t]*\(?(\d{1,2})[.)](?=\s|[A-Za-z])"
)
_ANY_NUMBER = re.compile(r"\d[.)]")
# More than this is a sentence, not an answer.
_LONGEST_ANSWER = 5
_SENTENCES = re.compile(r"[.!?]\s+\S")
# Titles with sentences, of which no answer is expected.
_TITLE = re.compile(
    r"\s*(?:findings?|impressions?|conclusions?|technique|comparison|history|indications?|exam\w*|"
    r"procedure|clinical [\w ]+|reason [\w ]+|recommendations?|summary|opinion|addendum|report|"
    r"diagnosis|views?|study|comments?|notes?|chest|finding[s ]+and impression)\s*",
    re.IGNORECASE,
)


class Answer(NamedTuple):
    """A label and what stands behind it."""

    label: str
    value: str
    start: int
    end: int


def answers(text: str) -> list[Answer]:
    """The labels of a report that are answered in a few words, in text order.

    >>> [(a.label, a.value) for a in answers("Pneumothorax: None. Heart: Normal.")]
    [('Pneumothorax', 'None'), ('Heart', 'Normal')]
    """
    found = []
    if ":" not in text:
        return found
    for match in _LABEL.finditer(text):
        label, value = match.group(1), match.group(2)
        first = _SENTENCES.search(value)
        said = value if first is None else value[: first.start()]
        # A second label on the line ends the answer to the first.
        said = said.strip().rstrip(".").strip()
        is_short = 0 < len(said.split()) <= _LONGEST_ANSWER
        if not _TITLE.fullmatch(label) and is_short:
            start = match.start(2)
            found.append(Answer(label, said, match.start(1), start + len(said)))
    return found


def harm(original: str, perturbed: str, edits: Sequence[Edit]) -> str | None:
    """What a change does to a form or to a numbered list, in words for the user; None if nothing."""
    if _marks(original) != _marks(perturbed):
        return "the change would break the report's form or table"
    before, after = answers(original), answers(perturbed)
    if [answer.label for answer in before] != [answer.label for answer in after]:
        return "the change would break the report's labels"
    for one, other in zip(before, after, strict=True):
        if one.value != other.value and len(one.value.split()) != len(other.value.split()):
            return f"the change would garble the answer to {one.label!r}"
    if any(_breaks_an_answer(answer, edit) for answer in before for edit in edits):
        return "the change would tear an answer from its label"
    if _is_numbered_well(original) and not _is_numbered_well(perturbed):
        return "the change would leave a list with a gap in its numbers"
    return None


def _marks(text: str) -> list[str]:
    """Boxes and columns in text order."""
    if not _BOX.search(text) and not _COLUMN.search(text):
        return []
    return _BOX.findall(text) + _COLUMN.findall(text)


def _breaks_an_answer(answer: Answer, edit: Edit) -> bool:
    """Whether an edit puts something into an answer or takes something out of it."""
    inside = answer.start < edit.end and edit.start <= answer.end
    is_word_for_word = bool(edit.replacement.strip()) and edit.start < edit.end
    return inside and not is_word_for_word


def _is_numbered_well(text: str) -> bool:
    """Whether the list numbers run 1, 2, 3; or start again from 1."""
    last = 0
    if _ANY_NUMBER.search(text) is None:
        return True
    for match in _LIST_NUMBER.finditer(text):
        number = int(match.group(1))
        if number not in (1, last + 1):
            return False
        last = number
    return True
