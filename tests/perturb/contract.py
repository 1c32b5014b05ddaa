"""What every kind of perturbation promises; for the kinds there are and for newcomers."""

import re
from itertools import pairwise

from vlscore.perturb import Kind, Perturbation, apply_edits
from vlscore.perturb.generate import perturbations_of, why_nothing
from vlscore.perturb.reading import ReadReport
from vlscore.perturb.standard import default_standard_normal

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


def read(report: str) -> ReadReport:
    return ReadReport.read(report, default_standard_normal())


def made(
    kind: Kind, report: str | ReadReport, seed: int = 0, per_report: int = 5, study_id: str = "s"
) -> list[Perturbation]:
    """What a kind, registered or not, makes of a report."""
    source = read(report) if isinstance(report, str) else report
    return list(perturbations_of(source, kind, seed, per_report, study_id))


def assert_describes_itself(kind: Kind) -> None:
    assert re.fullmatch(r"[a-z]+(?:-[a-z]+)*", kind.name)
    assert re.fullmatch(r"[A-Z].*\.", kind.description, re.DOTALL)
    assert kind.origin
    assert kind.nothing
    assert not kind.nothing.endswith(".")
    assert kind.expected in ("significant", "insignificant")
    if kind.category is not None:
        assert kind.expected == "significant"


def assert_keeps_contract(kind: Kind, report: str, seed: int = 0) -> list[Perturbation]:
    """Raises AssertionError where one of the kind's changes of a report breaks a promise."""
    source = read(report)
    found = made(kind, source, seed)
    for perturbation in found:
        assert_is_sound(perturbation, kind, report)
        assert_reads_well(perturbation)
    texts = [squeezed(perturbation.perturbed) for perturbation in found]
    assert len(set(texts)) == len(texts), "two alike"
    # A source is read once for all kinds: no kind may leave a trace that another, or a rerun, sees.
    assert made(kind, source, seed) == found
    assert made(kind, report, seed) == found
    assert made(kind, report, seed, per_report=1) == found[:1]
    if not found:
        assert why_nothing(source, kind)
    return found


def assert_is_sound(perturbation: Perturbation, kind: Kind, report: str) -> None:
    """The record is true of the texts, and of the kind that made it."""
    original, perturbed = perturbation.original, perturbation.perturbed
    assert original == report
    assert perturbation.edits
    for before, after in pairwise(perturbation.edits):
        assert before.start < after.start
        assert before.end <= after.start
    for start, end, replacement in perturbation.edits:
        assert 0 <= start <= end <= len(original)
        assert original[start:end] != replacement
    assert apply_edits(original, perturbation.edits) == perturbed
    assert squeezed(perturbed)
    assert squeezed(perturbed) != squeezed(original)
    assert perturbation.rule
    told = (perturbation.kind, perturbation.expected, perturbation.category)
    assert told == (kind.name, kind.expected, kind.category)


def assert_reads_well(perturbation: Perturbation) -> None:
    """The change brought no slip that the report did not have before."""
    original, perturbed = perturbation.original, perturbation.perturbed
    for name, slip in SLIPS.items():
        before = {squeezed(match.group()) for match in slip.finditer(original)}
        after = {squeezed(match.group()) for match in slip.finditer(perturbed)}
        if before and name in ("no capital after a stop", "space before a stop"):
            continue  # The report is written so: in lower case, or in tokens.
        assert after <= before, f"{name}: {sorted(after - before)} in {perturbed!r}"


def squeezed(text: str) -> str:
    return " ".join(text.split())
