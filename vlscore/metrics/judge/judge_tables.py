"""Tables of the rule judge, read from the files under `data/` and checked."""

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, permutations
from pathlib import Path
from typing import Any, Literal, NamedTuple

from vlscore.core import entries_of, entry_of, read_table
from vlscore.errors import InvalidLexicon
from vlscore.findings import Lexicon, MarkedWords, RightDistance, Severity, load_lexicon

FOLDER = Path(__file__).with_name("data")
FILES = ("concepts.toml", "relations.toml", "positions.toml", "words.toml")


class Concept(NamedTuple):
    """What the judge counts as one finding; see `observations.toml`.

    `severity` is of an error about it where its grade is mild, moderate or not stated, or severe.
    `bone` is the one that its name means. A refined concept holds the mentions of the observations
    `of` in which one of the phrases `words` stands.
    """

    name: str
    severity: tuple[Severity, Severity, Severity]
    title: str = ""
    device: bool = False
    after_treatment: bool = False
    old: bool = False
    by_bone: bool = False
    bone: str = ""
    distance: RightDistance | None = None
    of: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


class Relation(NamedTuple):
    """`name` stands for, is a sign of, or follows from each finding `of`; see `relations.toml`.

    In one report, a coarser name in another sentence adds nothing to the exact one: with
    `same_across_sentences` where both name one place, with `same_without_place` where neither names
    one side. With `same_if_placed`, two reports mean one finding only where both name its place.
    """

    name: str
    of: tuple[str, ...]
    credit: float = 0.0
    same_across_sentences: bool = True
    same_without_place: bool = False
    same_if_placed: bool = False

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Return it with each finding."""
        return [(self.name, exact) for exact in self.of]


class Position(NamedTuple):
    """A place of a device's tip, `excepted` the devices that belong there; see `positions.toml`.

    `order` is its rank in that list: of several the first counts.
    """

    order: int
    name: str
    level: Literal["good", "fair", "bad"]
    phrases: tuple[str, ...]
    excepted: tuple[str, ...] = ()


class Distances(NamedTuple):
    """How distances are said, and the position of a tip at a wrong one; see `positions.toml`."""

    measured: tuple[str, ...]
    unnamed: tuple[str, ...]
    otherwise: str


class CorrectedWords(NamedTuple):
    """Words of corrected lines; `changes` are adjectives."""

    denied: str
    doubtful: str
    both_sides: str
    joint: str
    changes: Mapping[str, str]


class _LevelsConfused(NamedTuple):
    bad_good: Severity
    bad_fair: Severity
    fair_good: Severity


class PatientRule(NamedTuple):
    """A change of severity for some findings of some patients; see `concepts.toml`."""

    findings: frozenset[str]
    raised: int
    because: str
    from_age: float | None = None
    to_age: float | None = None
    indication: re.Pattern[str] | None = None

    def applies(self, concept: str, age: float | None, indication: str) -> bool:
        """Return whether every condition of the rule holds."""
        if concept not in self.findings:
            return False
        if self.from_age is not None and (age is None or age < self.from_age):
            return False
        if self.to_age is not None and (age is None or age > self.to_age):
            return False
        return self.indication is None or self.indication.search(indication) is not None


@dataclass(frozen=True, eq=False)
class JudgeTables:
    """All tables of the rule judge.

    Attributes:
        lexicon: of the findings that the judge reads.
        concepts: by name.
        of_observation: observation -> concept.
        titles: observation -> what errors call its concept if a report names it; the first counts.
        refined: observation -> its refined concepts, tried in order.
        coarser: (coarser concept, exact concept) -> how one stands for the other.
        signs: (concept, concept that it is a sign of), in one sentence; all of `coarser` too.
        consequences: (concept, concept that causes it).
        topics: topic of a change -> parts and concepts that change with it.
        corrected: words of corrected lines.
        levels: zone -> its levels, each behind its family: "apex" -> ("level", "upper").
        confusable: pairs of concepts that are taken for each other, in both orders.
        alternatives: pairs of concepts of which "one or the other" is one statement, in both
            orders; all of `confusable`, and of `signs`, too.
        positions: by name; `misplaced` is that of a tip at a wrong distance.
        position_severity: (level, level) -> severity, in both orders.
        extra_severity_if_misplaced: concept -> grades that a wrong position is raised by.
        patients: rules by age and indication.
        digest: of the files, 12 hexadecimal digits, for signatures.
    """

    lexicon: Lexicon
    concepts: Mapping[str, Concept]
    of_observation: Mapping[str, str]
    titles: Mapping[str, str]
    refined: Mapping[str, Sequence[Concept]]
    coarser: Mapping[tuple[str, str], Relation]
    signs: frozenset[tuple[str, str]]
    consequences: frozenset[tuple[str, str]]
    topics: Mapping[str, tuple[str, ...]]
    corrected: CorrectedWords
    levels: Mapping[str, Sequence[tuple[str, str]]]
    confusable: frozenset[tuple[str, str]]
    alternatives: frozenset[tuple[str, str]]
    positions: Mapping[str, Position]
    misplaced: Position
    position_severity: Mapping[tuple[str, str], int]
    extra_severity_if_misplaced: Mapping[str, int]
    patients: tuple[PatientRule, ...]
    digest: str

    def title_of(self, concept: str, observations: Collection[str]) -> str:
        """Return what errors call a concept that a report names by some observations."""
        for name, title in self.titles.items():
            if name in observations and self.of_observation[name] == concept:
                return title
        return self.concepts[concept].title or concept.replace("_", " ")


def _concepts(
    data: Mapping[str, Any], lexicon: Lexicon
) -> tuple[dict[str, Concept], dict[str, str], dict[str, list[Concept]]]:
    known = lexicon.observations.values()
    if missing := sorted(o.name for o in known if o.severity is None and o.concept is None):
        raise InvalidLexicon(
            f"these observations belong to no concept of the judge: {', '.join(missing)}; give the "
            "entry of each a severity, or the concept to which it belongs"
        )
    of_observation = {o.name: o.concept or o.name for o in known}
    concepts = {}
    for own in known:
        if own.severity is not None:
            stated = {k: v for k, v in own._asdict().items() if k in Concept._fields}
            name = stated["name"] = of_observation[own.name]
            if name in concepts:
                raise InvalidLexicon(f"two observations describe the concept {name!r}")
            concepts[name] = Concept(**stated)
    concepts |= {c.name: c for c in entries_of(Concept, data.get("concept", ()), "concepts.toml")}
    for name, concept in of_observation.items():
        _require([concept], concepts, f"observations.toml: {name!r}")
    refined: dict[str, list[Concept]] = {}
    for each in entries_of(Concept, data["refined"], "concepts.toml"):
        concepts.setdefault(each.name, each)
        for name in each.of:
            refined.setdefault(name, []).append(each)
    return concepts, of_observation, refined


def _require(names: Iterable[str], concepts: Mapping[str, Concept], file: str) -> None:
    if unknown := sorted(set(names) - concepts.keys()):
        raise InvalidLexicon(f"{file}: these concepts do not exist: {', '.join(unknown)}")


def _levels(
    families: Mapping[str, Mapping[str, Iterable[str]]],
) -> dict[str, list[tuple[str, str]]]:
    levels: dict[str, list[tuple[str, str]]] = {}
    for family, places in families.items():
        for place, zones in places.items():
            for zone in zones:
                levels.setdefault(zone, []).append((family, place))
    return levels


def _marks(data: Mapping[str, Any], concepts: Mapping[str, Concept]) -> Iterator[MarkedWords]:
    """Return the words besides findings that the judge asks for."""
    places = data["positions.toml"]
    yield from entries_of(MarkedWords, data["words.toml"]["mark"], "words.toml")
    yield MarkedWords("position", None, tuple(places["route"]["phrases"]))
    for layer, file, key, words in (
        ("position", "positions.toml", "position", "phrases"),
        ("concept", "concepts.toml", "refined", "words"),
    ):
        for each in data[file][key]:
            yield MarkedWords(layer, each["name"], tuple(each[words]))
    said = entry_of(Distances, places["distances"], "positions.toml")
    for device, concept in concepts.items():
        if (right := concept.distance) is not None:
            at = [f"{how} {mark}" for how in said.measured for mark in right.landmarks]
            yield MarkedWords("distance", device, (*at, *said.unnamed))


@cache
def load_tables(folder: str | Path = FOLDER) -> JudgeTables:
    """Return the tables of `folder` (ours by default).

    Raises: InvalidLexicon naming file and entry.
    """
    folder = Path(folder)
    lexicon = load_lexicon(further=folder / "words.toml")
    data = {name: read_table(folder / name, "table of the rule judge") for name in FILES}
    concepts, of_observation, refined = _concepts(data["concepts.toml"], lexicon)
    relations = {
        how: entries_of(Relation, data["relations.toml"][how], "relations.toml")
        for how in ("coarser", "sign", "consequence")
    }
    confusable, alternatives = (
        frozenset(
            pair for each in data["relations.toml"][how] for pair in permutations(each["names"], 2)
        )
        for how in ("confusable", "alternative")
    )
    related = [name for each in relations.values() for r in each for name in (r.name, *r.of)]
    _require([*related, *chain(*confusable, *alternatives)], concepts, "relations.toml")
    patients = entries_of(PatientRule, data["concepts.toml"]["patient"], "concepts.toml, patient")
    _require(chain(*(rule.findings for rule in patients)), concepts, "concepts.toml, patient")
    places = data["positions.toml"]
    positions = {
        each["name"]: entry_of(Position, each, "positions.toml", order=order)
        for order, each in enumerate(places["position"])
    }
    graver = places["extra_severity_if_misplaced"]
    excepted = (name for each in positions.values() for name in each.excepted)
    _require([*graver, *excepted], concepts, "positions.toml")
    if (otherwise := places["distances"]["otherwise"]) not in positions:
        raise InvalidLexicon(f"positions.toml: no position is named {otherwise!r}")
    confused = entry_of(_LevelsConfused, places["severity"], "positions.toml, severity")._asdict()
    coarser = relations["coarser"]
    signs = _pairs([*coarser, *relations["sign"]])
    content = b"".join((folder / name).read_bytes() for name in FILES)
    return JudgeTables(
        lexicon=lexicon.marking(_marks(data, concepts)),
        concepts=concepts,
        of_observation=of_observation,
        titles={
            o.name: o.title
            for o in reversed([*lexicon.observations.values()])
            if o.title and o.severity is None
        },
        refined=refined,
        coarser={pair: r for r in coarser for pair in r.pairs},
        signs=signs,
        consequences=_pairs(relations["consequence"]),
        topics={name: tuple(parts) for name, parts in data["relations.toml"]["topics"].items()},
        corrected=entry_of(CorrectedWords, data["words.toml"]["corrected"], "words.toml"),
        levels=_levels(places["levels"]),
        confusable=confusable,
        alternatives=alternatives | confusable | signs | {pair[::-1] for pair in signs},
        positions=positions,
        misplaced=positions[otherwise],
        position_severity={
            pair: severity
            for levels, severity in confused.items()
            for pair in permutations(levels.split("_"), 2)
        },
        extra_severity_if_misplaced=graver,
        patients=tuple(patients),
        digest=hashlib.sha256(content).hexdigest()[:12],
    )


def _pairs(relations: Iterable[Relation]) -> frozenset[tuple[str, str]]:
    return frozenset(pair for relation in relations for pair in relation.pairs)
