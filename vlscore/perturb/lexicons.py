"""Lexicons under `perturbations/lexicons/` that only perturbations need, read and checked."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from vlscore.core import resource_path
from vlscore.findings import read_lexicon


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


@cache
def read_table(name: str) -> dict[str, Any]:
    """Return one file of the folder of lexicons. Raises: InvalidLexicon."""
    return read_lexicon(resource_path("perturbations", "lexicons", f"{name}.toml"))


Entry = TypeVar("Entry", bound=tuple[Any, ...])


def entry_of(kind: type[Entry], table: Mapping[str, Any], **made: Any) -> Entry:
    """Return a NamedTuple whose fields are entries of a table, converted as their types say.

    Args: made: fields that are made of something else.
    """
    for name, hint in get_type_hints(kind).items():
        if name in table and name not in made:
            made[name] = _of_type(hint, table[name])
    return kind(**made)


def _of_type(hint: Any, value: Any) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Mapping:
        return {key: _of_type(inner[1], each) for key, each in value.items()}
    return origin(value) if origin in (frozenset, tuple) else value


@cache
def discourse() -> Discourse:
    """Rules of discourse.toml."""
    table = read_table("discourse")
    return entry_of(
        Discourse,
        table,
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
    table = read_table("location_moves")
    return entry_of(LocationMoves, {**table, **table["rules"]})


@cache
def severity_changes() -> SeverityChanges:
    """Rules of severity_changes.toml."""
    table = read_table("severity_changes")
    changes = {}
    for entry in table["change"]:
        words = tuple(entry["to"])
        change = SeverityChange(words, tuple(entry.get("before_adjective", words)))
        changes.update(dict.fromkeys(entry["from"], change))
    amounts = table["amounts"]
    return entry_of(
        SeverityChanges,
        {"signs": table["signs"], **table["rules"]},
        changes=changes,
        has_amount=frozenset(amounts["of"]),
        amounts=amounts["to"],
    )


@cache
def noninformative() -> frozenset[str]:
    """Words without clinical content, from noninformative.toml."""
    return frozenset(read_table("noninformative")["words"])


@cache
def equivalents() -> tuple[Equivalents, ...]:
    """Entries of equivalents.toml."""
    return tuple(entry_of(Equivalents, group) for group in read_table("equivalents")["group"])


@cache
def false_findings() -> tuple[FalseFinding, ...]:
    """Entries of false_findings.toml."""
    return tuple(entry_of(FalseFinding, entry) for entry in read_table("false_findings")["finding"])


@cache
def denials() -> Denials:
    """Entry of statements.toml."""
    return entry_of(Denials, read_table("statements")["negate"])


@cache
def assertions() -> Assertions:
    """Entry of statements.toml."""
    return entry_of(Assertions, read_table("statements")["affirm"])


@cache
def comparisons() -> Comparisons:
    """Entry of statements.toml."""
    return entry_of(Comparisons, read_table("statements")["compare"])
