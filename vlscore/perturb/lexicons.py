"""Lexicons under `perturbations/lexicons/` that only perturbations need, read and checked."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from vlscore.core import resource_path
from vlscore.errors import InvalidLexicon


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
    not_instead: frozenset[str]
    at: str | None
    before: frozenset[str]
    after: frozenset[str]


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


class _LexiconTable(dict[str, Any]):
    """A table of a lexicon; what it lacks is named with its file."""

    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        super().__init__({key: self._with_path(path, value) for key, value in content.items()})
        self._path = path

    @classmethod
    def _with_path(cls, path: Path, value: Any) -> Any:
        if isinstance(value, list):
            return [cls._with_path(path, item) for item in value]
        return cls(path, value) if isinstance(value, dict) else value

    def __missing__(self, key: str) -> Any:
        raise InvalidLexicon(f"{self._path}: an entry lacks {key!r}")


def read_table(name: str) -> dict[str, Any]:
    """Return one file of the folder of lexicons; see `read_file`."""
    return read_file(resource_path("perturbations", "lexicons", f"{name}.toml"))


def read_file(path: Path) -> dict[str, Any]:
    """Return a TOML file whose missing entries are named.

    Raises: InvalidLexicon where it is missing or not TOML, and later where it lacks an entry.
    """
    try:
        with path.open("rb") as stream:
            return _LexiconTable(path, tomllib.load(stream))
    except FileNotFoundError as error:
        raise InvalidLexicon(f"{path}: this lexicon does not exist") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidLexicon(f"{path} is not valid TOML: {error}") from error


@cache
def discourse() -> Discourse:
    """Rules of discourse.toml."""
    table = read_table("discourse")
    return Discourse(
        frozenset(table["anaphors"]),
        frozenset(table["connectives"]),
        _any_of(table["leaning"]),
        frozenset(table["no_pathology"]),
        _relatives(table["families"]),
        _relatives(table["levels"]),
        _relatives(table["kin"]),
        frozenset(table["bones"]),
        {name: frozenset(settled) for name, settled in table["settles"].items()},
        frozenset(table["not_merely_denying"]),
        _any_of(table["interpreting"]),
        frozenset(table["foreign"]),
        frozenset(table["english"]),
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
    rules = table["rules"]
    return LocationMoves(
        table["sides"],
        _options(table["zones"]),
        {name: _options(zones) for name, zones in table["zones_of"].items()},
        frozenset(rules["movable"]),
        frozenset(rules["basal"]),
        tuple(rules["zone_bound"]),
        frozenset(rules["one_sided"]),
        tuple(rules["only_one_side"]),
    )


def _options(table: dict[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {words: tuple(options) for words, options in table.items()}


@cache
def severity_changes() -> SeverityChanges:
    """Rules of severity_changes.toml."""
    table = read_table("severity_changes")
    changes = {}
    for entry in table["change"]:
        words = tuple(entry["to"])
        change = SeverityChange(words, tuple(entry.get("before_adjective", words)))
        changes.update(dict.fromkeys(entry["from"], change))
    rules, amounts = table["rules"], table["amounts"]
    return SeverityChanges(
        changes,
        frozenset(amounts["of"]),
        amounts["to"],
        frozenset(rules["opacity_words"]),
        frozenset(rules["opaque"]),
        frozenset(rules["degrees"]),
        frozenset(rules["no_degree"]),
        tuple(rules["degrees_not_before"]),
        {name: frozenset(signs) for name, signs in table["signs"].items()},
        frozenset(rules["apart"]),
        frozenset(rules["copulas"]),
        tuple(rules["not_beside"]),
        tuple(rules["not_before"]),
        tuple(rules["not_after"]),
        frozenset(rules["adjectives"]),
    )


@cache
def noninformative() -> frozenset[str]:
    """Words without clinical content, from noninformative.toml."""
    return frozenset(read_table("noninformative")["words"])


@cache
def equivalents() -> tuple[Equivalents, ...]:
    """Entry of equivalents.toml."""
    return tuple(
        Equivalents(
            tuple(group["phrases"]),
            frozenset(group.get("not_instead", ())),
            group.get("at"),
            frozenset(group.get("before", ())),
            frozenset(group.get("after", ())),
        )
        for group in read_table("equivalents")["group"]
    )


@cache
def false_findings() -> tuple[FalseFinding, ...]:
    """Entry of false_findings.toml."""
    return tuple(
        FalseFinding(entry["observation"], tuple(entry["sentences"]), tuple(entry["unless"]))
        for entry in read_table("false_findings")["finding"]
    )


@cache
def denials() -> Denials:
    """Entry of statements.toml."""
    table = read_table("statements")["negate"]
    words = (frozenset(table[name]) for name in ("dropped", "kept", "more", "always_there"))
    return Denials(table["openings"], *words)


@cache
def assertions() -> Assertions:
    """Entry of statements.toml."""
    table = read_table("statements")["affirm"]
    words = (frozenset(table[name]) for name in ("dropped", "kept", "uncounted", "tails"))
    return Assertions(table["openings"], *words)


@cache
def comparisons() -> Comparisons:
    """Entry of statements.toml."""
    table = read_table("statements")["compare"]
    return Comparisons(
        tuple(table["invented"]),
        tuple(table["invented_for_lasting"]),
        frozenset(table["lasting"]),
        frozenset(table["old"]),
        frozenset(table["adjectives"]),
        frozenset(table["not_before"]),
        frozenset(table["leading"]),
        table["leading_rest"],
        frozenset(table["besides"]),
        frozenset(table["not_after"]),
        table["shorter"],
        tuple(table["only_openings"]),
        tuple(table["only_without"]),
        table["tails"],
    )
