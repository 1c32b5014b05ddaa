"""Correction of a candidate report, and a check of the errors that remain."""

from collections.abc import Sequence
from itertools import takewhile
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
    added = dict.fromkeys(e.correction for e in judgement.errors if e.line is None)
    for error in judgement.errors:
        if error.line is not None:
            edit = _smallest(text, error.line, error.correction)
            if not any(edit[0].overlaps(other) or edit[0] == other for other, _ in edits):
                edits.append(edit)
    for span, words in sorted(edits, reverse=True):
        text = f"{text[: span.start]}{words}{text[span.end :]}"
    return " ".join(" ".join((text, *added)).split())


def _smallest(text: str, line: Span, correction: str) -> tuple[Span, str]:
    """Return the edit from a line to its correction, without words at which both begin or end."""
    own, new = line.of(text).split(" "), correction.split(" ")
    first = _common(own, new)
    last = _common(own[first:][::-1], new[first:][::-1])
    start = line.start + len(" ".join(own[:first])) + bool(first)
    kept = own[first : len(own) - last]
    words = " ".join(new[first : len(new) - last])
    # Words that are only added end before the next one.
    return Span(start, start + len(" ".join(kept))), words if kept or not last else f"{words} "


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return how many words two texts have in common from their beginning."""
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))
