"""The contract of kinds: `check_kind` raises AssertionError for the first broken promise."""

import json
import re
from itertools import pairwise

from tests.conftest import REPOSITORY
from vlscore.perturb import (
    Expected,
    Kind,
    ParsedReport,
    Perturbation,
    apply_edits,
    default_standard_normal,
    perturbations_of,
    why_nothing,
)

_BUILT = REPOSITORY / "perturbations" / "phantom" / "run.json"
# Kinds of the bundled data set. A kind that is registered and not yet there passes the contract
# alone; once `make perturbations` has added it, it needs a law (`kinds/laws.py`), enough changes of
# phantoms and of real reports, and readers who checked a sample.
BUILT_KINDS: list[str] = json.loads(_BUILT.read_text(encoding="utf-8"))["key"]["kinds"]


def read(report: str) -> ParsedReport:
    return ParsedReport.read(report, default_standard_normal())


def made(
    kind: Kind, report: str | ParsedReport, seed: int = 0, per_report: int = 5, study_id: str = "s"
) -> list[Perturbation]:
    """What a kind, registered or not, makes of a report."""
    source = read(report) if isinstance(report, str) else report
    return list(perturbations_of(source, kind, seed, per_report, study_id))


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


def check_description(kind: Kind) -> None:
    """A kind's name and texts, which `vlscore perturb --list-kinds` and the card show."""
    name = getattr(kind, "name", "")
    assert re.fullmatch(r"[a-z]+(?:-[a-z]+)*", name), (
        "its name must have the form of 'change-location'"
    )
    assert re.fullmatch(r"[A-Z].*\.", kind.description, re.DOTALL), (
        "its description must be a sentence"
    )
    assert kind.origin, "it has no origin, which says where it was published"
    assert re.fullmatch(r".*[^.]", kind.nothing, re.DOTALL), (
        "its attribute `nothing`, the reason why a report allows no such change, must be a text "
        "without a period at the end"
    )
    assert kind.expected in Expected, "`expected` must be significant or insignificant"
    assert kind.category is None or kind.expected is Expected.SIGNIFICANT, (
        "it has an error category and is expected to be insignificant"
    )


def check_report(kind: Kind, report: str, seed: int = 0) -> list[Perturbation]:
    """Return the perturbations that a kind makes of one report."""
    read = ParsedReport.read(report, default_standard_normal())
    found = list(perturbations_of(read, kind, seed, 5, "s"))
    for perturbation in found:
        check_perturbation(perturbation, kind, report)
        check_slips(perturbation)
    texts = [squeezed(perturbation.perturbed) for perturbation in found]
    assert len(set(texts)) == len(texts), "two changes of a report are equal"
    # A report is parsed once for all kinds: a kind that modifies it would change later results.
    fresh = ParsedReport.read(report, default_standard_normal())
    for again in (read, fresh):
        assert list(perturbations_of(again, kind, seed, 5, "s")) == found, (
            "it makes other changes in a second run; only `chance` may be random"
        )
    assert list(perturbations_of(fresh, kind, seed, 1, "s")) == found[:1], (
        "its first change depends on how many are wanted"
    )
    assert found or why_nothing(read, kind), "it changes nothing and gives no reason"
    return found


def check_perturbation(perturbation: Perturbation, kind: Kind, report: str) -> None:
    """The record agrees with the texts, and with the kind that made it."""
    original, perturbed = perturbation.original, perturbation.perturbed
    assert original == report, "it changes the original"
    assert perturbation.edits, "a change without an edit"
    for before, after in pairwise(perturbation.edits):
        assert before.start < after.start, "its edits are out of order"
        assert before.end <= after.start, "its edits overlap"
    for start, end, replacement in perturbation.edits:
        assert 0 <= start <= end <= len(original), "an edit is outside the text"
        assert original[start:end] != replacement, "an edit that changes nothing"
    assert apply_edits(original, perturbation.edits) == perturbed, (
        "its edits do not turn the original into the changed report"
    )
    assert squeezed(perturbed), "its changed report is empty"
    assert squeezed(perturbed) != squeezed(original), "it only changes white space"
    assert perturbation.rule, "a change without a rule"
    told = (perturbation.kind, perturbation.expected, perturbation.category)
    assert told == (kind.name, kind.expected, kind.category), (
        "the record names another kind, expectation or category"
    )


def check_slips(perturbation: Perturbation) -> None:
    """The change added no slip that the report did not have before."""
    original, perturbed = perturbation.original, perturbation.perturbed
    for name, slip in SLIPS.items():
        before = {squeezed(match.group()) for match in slip.finditer(original)}
        after = {squeezed(match.group()) for match in slip.finditer(perturbed)}
        if before and name in ("no capital after a stop", "space before a stop"):
            continue  # The report is written so: in lower case, or in tokens.
        assert after <= before, f"{name}: {sorted(after - before)} in {perturbed!r}"


def squeezed(text: str) -> str:
    """The text with every run of white space as one blank."""
    return " ".join(text.split())
