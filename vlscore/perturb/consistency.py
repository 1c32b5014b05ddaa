"""The check after every change: what else in the report speaks of the changed thing.

It knows what a change means (`Meaning`), and reads the rest of the report in plain words
(`plaintext`, `denial`, `layout`, `effects`), apart from the kinds and from the extractor. What
belies the change, changes along ("No acute abnormality" becomes "No other acute abnormality"), or
the change is refused, and the kind is asked for another.
"""

from typing import NamedTuple

from vlscore.perturb.changed import ChangedReport
from vlscore.perturb.effects import RULES
from vlscore.perturb.layout import harm
from vlscore.perturb.perturbation import Change
from vlscore.perturb.reading import ReadReport


class Verdict(NamedTuple):
    """The change as it may stand, with what changes along; or why there is none."""

    change: Change | None
    reason: str = ""


def consistent(report: ReadReport, change: Change) -> Verdict:
    """Whether, and with which further edits, a change leaves a report that agrees with itself.

    >>> from vlscore.perturb.perturbation import Edit, Effect, Meaning
    >>> report = ReadReport.read("No effusion. No acute disease.")
    >>> edit, meaning = Edit(0, 2, "Large"), Meaning(Effect.STATED, ("pleural_effusion",))
    >>> consistent(report, Change((edit,), "example", meaning)).change.edits[1]
    Edit(start=16, end=16, replacement='other ')
    """
    changed = ChangedReport(report, change)
    reason = harm(report.text, changed.perturbed, change.edits) or changed.said_twice()
    if reason is None and change.meaning is not None:
        reason = next(RULES[change.meaning.effect](changed, change.meaning), None)
    if reason is not None:
        return Verdict(None, reason)
    if not changed.along:
        return Verdict(change)
    edits = tuple(sorted([*change.edits, *changed.along]))
    return Verdict(change._replace(edits=edits))
