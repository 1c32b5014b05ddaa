"""Correction of a candidate report, and a check of the errors that remain."""

from typing import NamedTuple

from vlscore.findings import Span
from vlscore.metrics.judge.judgement import UNKNOWN, ErrorItem, Judgement, Patient
from vlscore.metrics.judge.rules import RuleJudge

_PASSES = 3


class CorrectedReport(NamedTuple):
    """A corrected candidate, and what the rule judge still finds different from the reference."""

    text: str
    remaining: tuple[ErrorItem, ...]


def apply_corrections(
    candidate: str,
    reference: str,
    judgement: Judgement,
    *,
    patient: Patient = UNKNOWN,
    judge: RuleJudge | None = None,
) -> CorrectedReport:
    """Return the candidate with the corrections of any judge, and what then still differs.

    Corrections of one line are merged where they change different words; else the first counts.
    What differs after that is judged by rules, corrected, and judged again, three times at most.

    Raises: InvalidReport where a report is not a str.

    >>> judgement = RuleJudge().judge("Small left effusion.", "Small right effusion. Edema.")
    >>> apply_corrections("Small left effusion.", "Small right effusion. Edema.", judgement).text
    'Small right effusion. Edema.'
    """
    judge = judge or RuleJudge()
    text = _applied(candidate, judgement)
    left = judge.judge(text, reference, patient)
    for _ in range(_PASSES - 1):
        if not left.errors:
            break
        following = _applied(text, left)
        after = judge.judge(following, reference, patient)
        if after.sum >= left.sum:
            break
        text, left = following, after
    return CorrectedReport(text, left.errors)


def _applied(text: str, judgement: Judgement) -> str:
    """Return the text with the corrections of one judgement; of two that overlap, the first."""
    edits: list[tuple[Span, str]] = []
    added: list[str] = []
    for error in judgement.errors:
        if error.line is None:
            if error.correction and error.correction not in added:
                added.append(error.correction)
            continue
        edit = _smallest(text, error.line, error.correction)
        if not any(edit[0].overlaps(other) or edit[0] == other for other, _ in edits):
            edits.append(edit)
    for span, words in sorted(edits, reverse=True):
        text = text[: span.start] + words + text[span.end :]
    parts = [" ".join(text.split()), *added]
    return " ".join(part for part in parts if part)


def _smallest(text: str, line: Span, correction: str) -> tuple[Span, str]:
    """Return the edit from the line to its correction, without their common begin and end.

    It begins and ends at words, so that two edits of one line do not meet within a word.
    """
    own = line.of(text)
    if not correction:
        return line, ""
    first = 0
    while first < min(len(own), len(correction)) and own[first] == correction[first]:
        first += 1
    while first > 0 and own[first - 1 : first] != " ":
        first -= 1
    last = 0
    while last < min(len(own), len(correction)) - first and own[-1 - last] == correction[-1 - last]:
        last += 1
    while last > 0 and own[len(own) - last] not in " ,.;":
        last -= 1
    end = len(own) - last
    return Span(line.start + first, line.start + end), correction[first : len(correction) - last]
