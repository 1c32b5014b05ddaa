"""What every kind of perturbation promises, as checks that run on any of them.

>>> from vlscore.perturb import KINDS
>>> from vlscore.perturb.contract import check_kind
>>> check_kind(KINDS["change-location"])
"""

import re
from collections.abc import Iterable
from itertools import pairwise

from vlscore.errors import BrokenContract
from vlscore.perturb.generate import perturbations_of, why_nothing
from vlscore.perturb.kind import Kind
from vlscore.perturb.perturbation import Expected, Perturbation, apply_edits
from vlscore.perturb.reading import ReadReport
from vlscore.perturb.standard import default_standard_normal

REPORTS = (
    "There is a small left pleural effusion, stable. The heart is normal in size.",
    "The heart is normal in size. The lungs are clear. There is no pleural effusion or "
    "pneumothorax. No acute bony abnormality.",
    "PA and lateral views. The heart is moderately enlarged. Mild edema. No pneumothorax.",
    "FINDINGS: There is consolidation in the right lower lobe. No pleural effusion.\n\n"
    "IMPRESSION: Right lower lobe pneumonia.",
    "1. Small left pleural effusion.\n2. Mild cardiomegaly.\n3. No pneumothorax.",
    "the heart is mildly enlarged . there is a small right pleural effusion . no pneumothorax .",
    "THERE IS A LARGE LEFT PLEURAL EFFUSION. THE HEART IS NORMAL IN SIZE. NO PNEUMOTHORAX.",
    "Pneumothorax: None.\nEffusion: Small left.\nHeart: Normal.",
    "XXXX view of the chest. There is XXXX left pleural effusion.",
    "左侧少量胸腔积液。心影不大。",
    " \n\t ",
    "",
)

# Slips of typesetting and grammar that a change must not bring into a report.
SLIPS = {
    "two spaces": re.compile(r"(?<=\S)  +(?=\S)"),
    "space at the end of a line": re.compile(r"[ \t]+$", re.MULTILINE),
    "space at the beginning of a line": re.compile(r"^[ \t]+", re.MULTILINE),
    "space before a stop": re.compile(r"\s[.,;:](?=\s|$)"),
    "two stops": re.compile(r"[.,;]\s*[,;]|[,;]\s*\.|\.\s*\.(?!\w)"),
    "'a' before a vowel": re.compile(r"\ba [aeio](?!ne\b|ne-|u)\w+", re.IGNORECASE),
    "'an' before a consonant": re.compile(r"\ban [bcdgjklpqtvwyz]\w+", re.IGNORECASE),
    "a word twice": re.compile(r"\b([a-z]+) \1\b", re.IGNORECASE),
    "no capital after a stop": re.compile(r"(?:^|[^.\d][.!?]\s+)[a-z]"),
    "an empty list item": re.compile(r"^\s*(?:\d+[.)]|-)\s*$|\d\. \d\. ", re.MULTILINE),
}


def check_kind(kind: Kind, reports: Iterable[str] = REPORTS) -> None:
    """Run every check of this module on a kind, one's own or one of ours.

    Args:
        reports: texts to perturb; add some that the kind has something to change in, for a kind
            that finds nothing is not tested by much.

    Raises: BrokenContract, which lists everything that is wrong.
    """
    problems = _problems(check_description, kind)
    for report in reports:
        problems += _problems(check_report, kind, report)
    if problems:
        raise BrokenContract("\n".join(dict.fromkeys(problems)))


def check_description(kind: Kind) -> None:
    """The kind says what it is, as `--list-kinds` and the data set card show it."""
    name = getattr(kind, "name", "")
    _require(re.fullmatch(r"[a-z]+(?:-[a-z]+)*", name), "its name is not as in 'change-location'")
    _require(
        re.fullmatch(r"[A-Z].*\.", kind.description, re.DOTALL), "its description is no sentence"
    )
    _require(kind.origin, "it does not say where it comes from")
    _require(
        kind.nothing and not kind.nothing.endswith("."),
        "`nothing` says why a report allows no such change, without a period",
    )
    _require(kind.expected in Expected, "`expected` is neither significant nor insignificant")
    _require(
        kind.category is None or kind.expected is Expected.SIGNIFICANT,
        "it has an error category and is expected to be insignificant",
    )


def check_report(kind: Kind, report: str, seed: int = 0) -> list[Perturbation]:
    """What the kind makes of one report keeps the promises; returns it."""
    read = ReadReport.read(report, default_standard_normal())
    found = list(perturbations_of(read, kind, seed, 5, "s"))
    for perturbation in found:
        check_perturbation(perturbation, kind, report)
        check_slips(perturbation)
    texts = [squeezed(perturbation.perturbed) for perturbation in found]
    _require(len(set(texts)) == len(texts), "two changes of a report are alike")
    # A report is read once for all kinds: no kind may leave a trace that another, or a rerun, sees.
    fresh = ReadReport.read(report, default_standard_normal())
    for again in (read, fresh):
        _require(
            list(perturbations_of(again, kind, seed, 5, "s")) == found,
            "it makes other changes in a second run; `chance` alone may decide",
        )
    _require(
        list(perturbations_of(fresh, kind, seed, 1, "s")) == found[:1],
        "its first change depends on how many are wanted",
    )
    _require(found or why_nothing(read, kind), "it does not say why it finds nothing")
    return found


def check_perturbation(perturbation: Perturbation, kind: Kind, report: str) -> None:
    """The record is true of the texts, and of the kind that made it."""
    original, perturbed = perturbation.original, perturbation.perturbed
    _require(original == report, "it changes the original")
    _require(perturbation.edits, "a change without an edit")
    for before, after in pairwise(perturbation.edits):
        _require(
            before.start < after.start and before.end <= after.start,
            "its edits overlap or are out of order",
        )
    for start, end, replacement in perturbation.edits:
        _require(0 <= start <= end <= len(original), "an edit leaves the text")
        _require(original[start:end] != replacement, "an edit that changes nothing")
    _require(
        apply_edits(original, perturbation.edits) == perturbed,
        "its edits do not make the changed report of the original",
    )
    _require(squeezed(perturbed), "it leaves no text")
    _require(squeezed(perturbed) != squeezed(original), "it changes no more than white space")
    _require(perturbation.rule, "a change without a rule")
    told = (perturbation.kind, perturbation.expected, perturbation.category)
    _require(told == (kind.name, kind.expected, kind.category), "a record of another kind")


def check_slips(perturbation: Perturbation) -> None:
    """The change brought no slip that the report did not have before."""
    original, perturbed = perturbation.original, perturbation.perturbed
    for name, slip in SLIPS.items():
        before = {squeezed(match.group()) for match in slip.finditer(original)}
        after = {squeezed(match.group()) for match in slip.finditer(perturbed)}
        if before and name in ("no capital after a stop", "space before a stop"):
            continue  # The report is written so: in lower case, or in tokens.
        _require(after <= before, f"{name}: {sorted(after - before)} in {perturbed!r}")


def squeezed(text: str) -> str:
    """The text with every run of white space as one blank."""
    return " ".join(text.split())


def _problems(check: object, kind: Kind, *report: str) -> list[str]:
    where = f" (report: {report[0][:60]!r})" if report else ""
    name = getattr(kind, "name", type(kind).__name__)
    try:
        check(kind, *report)  # type: ignore[operator]
    except BrokenContract as problem:
        return [f"{name}: {problem}{where}"]
    except Exception as error:  # a kind may run into any fault of its own
        return [f"{name}: {type(error).__name__}: {error}{where}"]
    return []


def _require(holds: object, problem: str) -> None:
    if not holds:
        raise BrokenContract(problem)
