"""Lexicons under `perturbations/lexicons/` that only perturbations need, read and checked."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from vlscore.core import entries_of, entry_of, read_table, resource_path


class Discourse(NamedTuple):
    """Words by which sentences refer to each other, and families of related observations."""

    anaphors: frozenset[str]
    connectives: frozenset[str]
    leaning: re.Pattern[str]
    no_pathology: frozenset[str]
    families: Mapping[str, frozenset[str]]
    levels: Mapping[str, frozenset[str]]
    kin: Mapping[str, frozenset[str]]
    bones: frozenset[str]
    settles: Mapping[str, frozenset[str]]
    not_merely_denying: frozenset[str]
    interpreting: re.Pattern[str]
    foreign: frozenset[str]
    english: frozenset[str]


class LocationMoves(NamedTuple):
    """Words that locate a finding -> their possible replacements, and for which findings."""

    sides: Mapping[str, str]
    zones: Mapping[str, tuple[str, ...]]
    zones_of: Mapping[str, Mapping[str, tuple[str, ...]]]
    movable: frozenset[str]
    basal: frozenset[str]
    zone_bound: tuple[str, ...]
    one_sided: frozenset[str]
    only_one_side: tuple[str, ...]


class SeverityChange(NamedTuple):
    """Possible replacements of a severity word, alone and before an adjective."""

    words: tuple[str, ...]
    before_adjective: tuple[str, ...]


class SeverityChanges(NamedTuple):
    """Severity words -> their changes; the words they do not grade; adjectives they do."""

    changes: Mapping[str, SeverityChange]
    has_amount: frozenset[str]
    amounts: Mapping[str, str]
    opacity_words: frozenset[str]
    opaque: frozenset[str]
    degrees: frozenset[str]
    no_degree: frozenset[str]
    degrees_not_before: tuple[str, ...]
    signs: Mapping[str, frozenset[str]]
    apart: frozenset[str]
    copulas: frozenset[str]
    not_beside: tuple[str, ...]
    not_before: tuple[str, ...]
    not_after: tuple[str, ...]
    adjectives: frozenset[str]


class Equivalents(NamedTuple):
    """Phrases of one meaning, and the contexts in which they can replace each other."""

    phrases: tuple[str, ...]
    not_instead: frozenset[str] = frozenset()
    at: str | None = None
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()


class FalseFinding(NamedTuple):
    """Finding that can be added, and the observations that the report must not mention."""

    observation: str
    sentences: tuple[str, ...]
    unless: tuple[str, ...]


class Denials(NamedTuple):
    """Phrases that turn a sentence that states a finding into one that denies it."""

    openings: Mapping[str, str]
    dropped: frozenset[str]
    kept: frozenset[str]
    more: frozenset[str]
    always_there: frozenset[str]


class Assertions(NamedTuple):
    """Phrases that turn a sentence that denies a finding into one that states it."""

    openings: Mapping[str, str]
    dropped: frozenset[str]
    kept: frozenset[str]
    uncounted: frozenset[str]
    tails: frozenset[str]


class Comparisons(NamedTuple):
    """Phrases that add or remove a comparison with a prior examination."""

    invented: tuple[str, ...]
    invented_for_lasting: tuple[str, ...]
    lasting: frozenset[str]
    old: frozenset[str]
    adjectives: frozenset[str]
    not_before: frozenset[str]
    leading: frozenset[str]
    leading_rest: str
    besides: frozenset[str]
    not_after: frozenset[str]
    shorter: Mapping[str, str]
    only_openings: tuple[str, ...]
    only_without: tuple[str, ...]
    tails: str


def matching_form(words: str) -> str:
    """Return the form in which the tables are looked up: lower case, hyphens and breaks as spaces.

    >>> matching_form("Mild-to-\\nmoderate")
    'mild to moderate'
    """
    return " ".join(words.lower().replace("-", " ").split())


def perturbation_table(name: str) -> dict[str, Any]:
    """Return one file of the folder of lexicons. Raises: InvalidLexicon."""
    return read_table(resource_path("perturbations", "lexicons", f"{name}.toml"))


@cache
def discourse() -> Discourse:
    """Rules of discourse.toml."""
    table = perturbation_table("discourse")
    return entry_of(
        Discourse,
        table,
        "discourse.toml",
        leaning=_any_of(table["leaning"]),
        families=_relatives(table["families"]),
        levels=_relatives(table["levels"]),
        kin=_relatives(table["kin"]),
        interpreting=_any_of(table["interpreting"]),
    )


def _any_of(phrases: list[str]) -> re.Pattern[str]:
    """Finds a phrase between spaces."""
    return re.compile(f" (?:{'|'.join(map(re.escape, phrases))}) ")


def _relatives(families: list[list[str]]) -> dict[str, frozenset[str]]:
    """Name -> all that share a family with it."""
    found: dict[str, set[str]] = {}
    for family in families:
        for name in family:
            found.setdefault(name, set()).update(family)
    return {name: frozenset(relatives) for name, relatives in found.items()}


@cache
def location_moves() -> LocationMoves:
    """Rules of location_moves.toml."""
    table = perturbation_table("location_moves")
    rules = table.pop("rules")
    return entry_of(LocationMoves, {**table, **rules}, "location_moves.toml")


@cache
def severity_changes() -> SeverityChanges:
    """Rules of severity_changes.toml."""
    table = perturbation_table("severity_changes")
    changes = {}
    for entry in table["change"]:
        words = tuple(entry["to"])
        change = SeverityChange(words, tuple(entry.get("before_adjective", words)))
        changes.update(dict.fromkeys(entry["from"], change))
    amounts = table["amounts"]
    return entry_of(
        SeverityChanges,
        {"signs": table["signs"], **table["rules"]},
        "severity_changes.toml",
        changes=changes,
        has_amount=frozenset(amounts["of"]),
        amounts=amounts["to"],
    )


@cache
def noninformative() -> frozenset[str]:
    """Words without clinical content, from noninformative.toml."""
    return frozenset(perturbation_table("noninformative")["words"])


@cache
def equivalents() -> tuple[Equivalents, ...]:
    """Entries of equivalents.toml."""
    groups = perturbation_table("equivalents")["group"]
    return tuple(entries_of(Equivalents, groups, "equivalents.toml"))


@cache
def false_findings() -> tuple[FalseFinding, ...]:
    """Entries of false_findings.toml."""
    found = perturbation_table("false_findings")["finding"]
    return tuple(entries_of(FalseFinding, found, "false_findings.toml"))


@cache
def denials() -> Denials:
    """Entry of statements.toml."""
    return entry_of(Denials, perturbation_table("statements")["negate"], "statements.toml")


@cache
def assertions() -> Assertions:
    """Entry of statements.toml."""
    return entry_of(Assertions, perturbation_table("statements")["affirm"], "statements.toml")


@cache
def comparisons() -> Comparisons:
    """Entry of statements.toml."""
    return entry_of(Comparisons, perturbation_table("statements")["compare"], "statements.toml")
