"""Marks in reports: what the judge and the finding extraction read, and what a change changed."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from vlscore.findings import Polarity, extract
from vlscore.metrics import RuleJudge, load_tables, statements_of
from vlscore.pages.page_parts import Block, Mark, pieces_of

#: Category of the judge -> class of its mark on the page.
KINDS: Mapping[str, str] = {
    "false_finding": "invented",
    "omitted_finding": "missed",
    "wrong_location": "place",
    "wrong_severity": "severity",
    "false_comparison": "comparison",
    "omitted_comparison": "comparison",
}
_POLARITIES = {
    Polarity.POSITIVE: "positive",
    Polarity.NEGATIVE: "denied",
    Polarity.UNCERTAIN: "uncertain",
}
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")


@cache
def _judge() -> RuleJudge:
    return RuleJudge()


def judged_block(
    candidate: str,
    reference: str,
    errors: Iterable[Mapping[str, Any]] | None = None,
    title: str = "",
) -> Block:
    """Return both texts with their errors and the findings on which they agree marked.

    Args:
        candidate, reference: one report each.
        errors: of the candidate, as `ErrorItem.to_dict` writes them; default: what the judge by
            rules finds, without the patient's age.
        title: of the block.
    """
    if errors is None:
        errors = (each.to_dict() for each in _judge().judge(candidate, reference).errors)
    sides: dict[str, list[Mark]] = {"candidate": [], "reference": []}
    listed: list[list[Any]] = []
    for number, error in enumerate(errors, start=1):
        kind = KINDS[error["category"]]
        listed.append(
            [kind, error["severity"], error["finding"], error["reason"], error["correction"]]
        )
        for side, marks in sides.items():
            if (quote := error[side]) is not None:
                marks.append(Mark(quote["start"], quote["end"], kind, number))
    texts = []
    for side, text in (("candidate", candidate), ("reference", reference)):
        agreed = _agreed(text, sides[side])
        texts.append((side, pieces_of(text, [*sides[side], *agreed])))
    return Block(title, texts, listed)


def _agreed(text: str, wrong: Sequence[Mark]) -> list[Mark]:
    """Return marks of the statements that no error quotes."""
    found = []
    for statement in statements_of(text, load_tables()).statements:
        start, end = statement.quote(text)
        if not any(mark.start < end and start < mark.end for mark in wrong):
            found.append(Mark(start, end, "agreed"))
    return found


def findings_block(report: str) -> Block:
    """Return a report with its findings marked as positive, denied or uncertain."""
    marks = [Mark(*each.span, _POLARITIES[each.polarity]) for each in extract(report)]
    return Block("", [("report", pieces_of(report, marks))])


def changed_block(original: str, changed: str) -> Block:
    """Return two versions of a report with the words that differ marked.

    >>> changed_block("No edema.", "Mild edema.").texts[1]
    ('changed', [['Mild', 'added', []], ' edema.'])
    """
    one, other = _WORDS.findall(original), _WORDS.findall(changed)
    removed: list[Mark] = []
    added: list[Mark] = []
    starts, ends = _starts(one), _starts(other)
    for tag, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag != "equal":
            removed.append(Mark(starts[a], starts[b], "removed"))
            added.append(Mark(ends[c], ends[d], "added"))
    return Block(
        "",
        [("original", pieces_of(original, removed)), ("changed", pieces_of(changed, added))],
    )


def _starts(words: Sequence[str]) -> list[int]:
    """Return the position of each word, and the end of the text."""
    found = [0]
    for word in words:
        found.append(found[-1] + len(word))
    return found
