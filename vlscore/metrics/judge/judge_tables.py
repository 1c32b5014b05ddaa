"""Tables of the rule judge, read from the files under `data/` and checked."""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from vlscore.errors import InvalidLexicon
from vlscore.findings import Lexicon, PhraseTrie, load_lexicon, read_lexicon

FOLDER = Path(__file__).with_name("data")
FILES = ("concepts.toml", "relations.toml", "patients.toml", "positions.toml", "words.toml")


@dataclass(frozen=True, slots=True)
class Concept:
    """Concept: what the judge counts as one finding.

    Attributes:
        name: name of the concept.
        severity: severities of an error about it: mild, ungraded or moderate, severe.
        device: whether it is a device, which has a position.
        title: the name in words.
        titles: observation -> more exact name; the first one that the report names is used.
        old: words that mark the finding as old; None if that makes no difference.
        by_bone: whether it is another finding in another bone.
        after_treatment: whether it is still present if the report describes it as past.
    """

    name: str
    severity: tuple[int, int, int]
    device: bool
    after_treatment: bool
    title: str
    titles: Mapping[str, str]
    old: re.Pattern[str] | None = None
    by_bone: bool = False


@dataclass(frozen=True, slots=True)
class Refinement:
    """Concept for those mentions whose words match a pattern."""

    pattern: re.Pattern[str]
    concept: str


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A place of a device's tip.

    Attributes:
        order: rank in the list.
        name: name of the place.
        level: good, fair or bad.
        excepted: devices that belong there.
    """

    order: int
    name: str
    level: str
    excepted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PatientRule:
    """A change of severity for some findings of some patients; see `patients.toml`."""

    findings: frozenset[str]
    from_age: float | None
    to_age: float | None
    indication: re.Pattern[str] | None
    raised: int
    because: str

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
        refined: observation -> refinements, tried in order.
        coarser: (coarser concept, exact concept) -> credit in (0, 1).
        signs: (concept, concept that it is a sign of), in one sentence; all of `coarser` too.
        repeated: (coarser concept, exact concept) that are one finding in two sentences, too.
        anywhere: those that are one finding wherever it is, unless a sentence names a side.
        consequences: (concept, concept that causes it).
        topics: topic of a change -> parts and concepts that change with it.
        levels: zone -> places of families that exclude each other ("level upper").
        kin: pairs of concepts that are taken for each other, in both orders.
        positions: phrases of positions, in the layer "position".
        position_severity: (level, level) -> severity, in both orders.
        grave_devices: concept -> grades that a bad position is raised by.
        patients: rules by age and indication.
        digest: of the files, 12 hexadecimal digits, for signatures.
    """

    lexicon: Lexicon
    concepts: Mapping[str, Concept]
    of_observation: Mapping[str, str]
    refined: Mapping[str, tuple[Refinement, ...]]
    coarser: Mapping[tuple[str, str], float]
    signs: frozenset[tuple[str, str]]
    repeated: frozenset[tuple[str, str]]
    anywhere: frozenset[tuple[str, str]]
    consequences: frozenset[tuple[str, str]]
    topics: Mapping[str, tuple[str, ...]]
    levels: Mapping[str, tuple[str, ...]]
    kin: frozenset[tuple[str, str]]
    positions: PhraseTrie
    position_severity: Mapping[tuple[str, str], int]
    grave_devices: Mapping[str, int]
    patients: tuple[PatientRule, ...]
    digest: str

    def title_of(self, concept: str, observations: Collection[str]) -> str:
        """Return what errors call a concept that a report names by some observations."""
        titles = self.concepts[concept].titles
        exact = (title for name, title in titles.items() if name in observations)
        return next(exact, self.concepts[concept].title)


def words_pattern(words: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds any of the words where a word begins."""
    return re.compile(r"\b(?:" + "|".join(re.escape(word) for word in words) + ")", re.IGNORECASE)


def _read(folder: Path, name: str) -> dict[str, Any]:
    return read_lexicon(folder / name, "table of the rule judge")


def _concept(entry: Mapping[str, Any]) -> Concept:
    grades = list(entry["severity"])
    if len(grades) != 3 or not all(g in (1, 2, 3, 4, 5) for g in grades):
        raise InvalidLexicon(
            f"concepts.toml: {entry['name']!r} needs three severities of 1 to 5, not {grades}"
        )
    mild, plain, severe = grades
    return Concept(
        entry["name"],
        (mild, plain, severe),
        entry.get("device", False),
        entry.get("after_treatment", False),
        entry.get("title", entry["name"].replace("_", " ")),
        entry.get("titles", {}),
        words_pattern(entry["old"]) if "old" in entry else None,
        entry.get("by_bone", False),
    )


def _concepts(
    data: Mapping[str, Any], lexicon: Lexicon
) -> tuple[dict[str, Concept], dict[str, str], dict[str, list[Refinement]]]:
    concepts: dict[str, Concept] = {}
    of_observation: dict[str, str] = {}
    refined: dict[str, list[Refinement]] = {}
    for entry in data["concept"]:
        concepts[entry["name"]] = _concept(entry)
        for name in entry.get("observations", [entry["name"]]):
            if name in of_observation or name not in lexicon.observations:
                raise InvalidLexicon(
                    f"concepts.toml: observation {name!r} is unknown, or belongs to two concepts"
                )
            of_observation[name] = entry["name"]
    if missing := sorted(lexicon.observations.keys() - of_observation.keys()):
        raise InvalidLexicon(
            f"concepts.toml: these observations belong to no concept: {', '.join(missing)}"
        )
    for entry in data["refined"]:
        concepts.setdefault(entry["name"], _concept(entry))
        for name in entry["of"]:
            refinement = Refinement(words_pattern(entry["words"]), entry["name"])
            refined.setdefault(name, []).append(refinement)
    return concepts, of_observation, refined


def _known(names: Iterable[str], concepts: Mapping[str, Concept], file: str) -> list[str]:
    found = list(names)
    if unknown := sorted(set(found) - concepts.keys()):
        raise InvalidLexicon(f"{file}: these concepts do not exist: {', '.join(unknown)}")
    return found


def _relations(
    data: Mapping[str, Any], concepts: Mapping[str, Concept]
) -> tuple[dict[tuple[str, str], float], set[tuple[str, str]], frozenset[tuple[str, str]]]:
    coarser: dict[tuple[str, str], float] = {}
    for entry in data["coarser"]:
        (name,) = _known([entry["name"]], concepts, "relations.toml")
        for exact in _known(entry["of"], concepts, "relations.toml"):
            coarser[name, exact] = float(entry["credit"])
    signs = {
        (name, exact)
        for entry in data["sign"]
        for name in _known([entry["name"]], concepts, "relations.toml")
        for exact in _known(entry["of"], concepts, "relations.toml")
    }
    kin = {
        (one, other)
        for entry in data["kin"]
        for one in _known(entry["names"], concepts, "relations.toml")
        for other in entry["names"]
        if one != other
    }
    return coarser, signs, frozenset(kin)


def _pairs(entries: Iterable[Mapping[str, Any]]) -> frozenset[tuple[str, str]]:
    return frozenset((entry["name"], exact) for entry in entries for exact in entry["of"])


def _levels(families: Mapping[str, Mapping[str, Iterable[str]]]) -> dict[str, tuple[str, ...]]:
    """Return the places of each zone: its family and its level."""
    levels: dict[str, tuple[str, ...]] = {}
    for family, places in families.items():
        for place, zones in places.items():
            for zone in zones:
                levels[zone] = (*levels.get(zone, ()), f"{family} {place}")
    return levels


def _patients(data: Mapping[str, Any], concepts: Mapping[str, Concept]) -> list[PatientRule]:
    return [
        PatientRule(
            frozenset(_known(entry["findings"], concepts, "patients.toml")),
            entry.get("from_age"),
            entry.get("to_age"),
            words_pattern(entry["indication"]) if "indication" in entry else None,
            int(entry["raise"]),
            entry["because"],
        )
        for entry in data["rule"]
    ]


def _positions(data: Mapping[str, Any]) -> PhraseTrie:
    phrases = PhraseTrie()
    for phrase in data["route"]["phrases"]:
        phrases.add("position", phrase, None)
    for order, entry in enumerate(data["position"]):
        excepted = tuple(entry.get("except", ()))
        position = Position(order, entry["name"], entry["level"], excepted)
        for phrase in entry["phrases"]:
            phrases.add("position", phrase, position)
    return phrases


@cache
def load_tables(folder: Path = FOLDER) -> JudgeTables:
    """Return the tables of `folder` (ours by default).

    Raises: InvalidLexicon naming file and entry.
    """
    lexicon = load_lexicon(further=folder / "words.toml")
    try:
        concepts, of_observation, refined = _concepts(_read(folder, "concepts.toml"), lexicon)
        relations = _read(folder, "relations.toml")
        coarser, signs, kin = _relations(relations, concepts)
        places = _read(folder, "positions.toml")
        levels = places["severity"]
        patients = tuple(_patients(_read(folder, "patients.toml"), concepts))
        grave = _known(places["grave"]["concepts"], concepts, "positions.toml")
        content = b"".join((folder / name).read_bytes() for name in FILES)
        return JudgeTables(
            lexicon=lexicon,
            concepts=concepts,
            of_observation=of_observation,
            refined={name: tuple(each) for name, each in refined.items()},
            coarser=coarser,
            signs=frozenset(signs | coarser.keys()),
            repeated=_pairs(e for e in relations["coarser"] if e.get("across", True)),
            anywhere=_pairs(e for e in relations["coarser"] if e.get("anywhere", False)),
            consequences=_pairs(relations["consequence"]),
            topics={name: tuple(parts) for name, parts in relations["topics"].items()},
            levels=_levels(places["levels"]),
            kin=kin,
            positions=_positions(places),
            position_severity={
                pair: int(levels[f"{one}_{other}"])
                for one, other in (("bad", "good"), ("bad", "fair"), ("fair", "good"))
                for pair in ((one, other), (other, one))
            },
            grave_devices=dict.fromkeys(grave, int(places["grave"]["raise"])),
            patients=patients,
            digest=hashlib.sha256(content).hexdigest()[:12],
        )
    except (KeyError, TypeError) as error:
        raise InvalidLexicon(
            f"{folder}: an entry lacks a key, or one has a wrong value: {error}"
        ) from error
