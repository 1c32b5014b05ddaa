"""Lexicons of findings, read from TOML files and checked, and the trie that matches all of them.

Each file under `perturbations/lexicons/` is one axis. Entries have a name, so that every result can
name the entry that fired. A user's own folder with the same files replaces these lexicons, as does
one frozen in a file (`vlscore.findings.lexicon_files`).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

from vlscore.errors import InvalidLexicon
from vlscore.findings.coverage import Coverage, load_coverage, require_known
from vlscore.findings.lexicon_files import our_lexicon, read_lexicon, read_tables
from vlscore.findings.phrases import PhraseTrie
from vlscore.findings.tokens import Spellings, Token, spellings, tokenize
from vlscore.findings.types import Category, Side, TemporalChange

_EFFECTS = {
    *("negated", "uncertain", "probable", "asserted"),
    *("historical", "hypothetical", "other"),
    *("pseudo", "terminate"),
}

CHEXPERT_LABELS = (
    "No Finding",
    "Enlarged Cardiomediastinum",
    "Cardiomegaly",
    "Lung Lesion",
    "Lung Opacity",
    "Edema",
    "Consolidation",
    "Pneumonia",
    "Atelectasis",
    "Pneumothorax",
    "Pleural Effusion",
    "Pleural Other",
    "Fracture",
    "Support Devices",
)


_GRAMMAR = {
    *("gap_fillers", "gap_conjunctions", "gap_adjectives", "adjective_endings", "sides"),
    *("subject_stops", "subject_joints", "said_before_comma", "copulas", "contrasts", "relatives"),
    *("finding_joints", "trailing_openers", "chain", "predicates", "anaphors", "label_stops"),
    *("labels_of_absence", "labels_of_presence", "labels_of_detail", "labels_of_devices"),
    *("labels_of_answers", "clause_joints", "clause_leads", "before_period", "after_period"),
    *("answers_no", "answers_yes", "answer_fillers"),
    *("then", "verbs_of_state", "verbs_of_amount", "verbs_of_appearance", "partly", "becoming"),
    *("adverbs_of_degree", "degrees_of_change", "nouns_of_change", "directions", "parting"),
    *("between_have_and_verb", "openers_of_clause", "clause_openers"),
}


class Observation(NamedTuple):
    """Observation, and the CheXpert label to which it counts.

    A `midline` observation takes no side or zone from a neighbour in an enumeration.
    """

    name: str
    chexpert: str | None
    midline: bool


class Trigger(NamedTuple):
    """A ConText trigger; `scope` 0 means to the end of the clause.

    `ends_scope` marks a pseudo-trigger that also ends the scopes around it.
    """

    effect: str
    forward: bool
    scope: int
    ends_scope: bool


class NamedPlace(NamedTuple):
    """The side, the zone, or both, that a phrase names."""

    side: str | None
    zone: str | None


class SeverityLevel(NamedTuple):
    """Level of a scale of severity, with its words."""

    scale: str
    rank: int
    value: str
    adjectives: tuple[str, ...]
    adverbs: tuple[str, ...]


class SentencePattern(NamedTuple):
    """Pattern of a non-clinical sentence."""

    category: Category
    at_start: bool
    always: bool


@dataclass(frozen=True)
class ChangeWords:
    """Words with which phrases of change are composed; see `change.toml`.

    `excesses` are nouns of abnormality, which "increased" compares as it does diseases.
    `earlier` name an earlier time only behind one of `before`. `wishes` precede a change that has
    not happened, `denials` (with `after_denials` between) one that is none. `moving` are degrees
    of a change. `more_topics` and `more_observations` are better with more of them, if the change
    is stated in `amounts`. The change of one of `lone_topics` is of no finding beside it.
    `presence` says that a finding is still there.
    """

    diseases: frozenset[str]
    predicated: frozenset[str]
    excesses: frozenset[str]
    before: frozenset[str]
    earlier: frozenset[str]
    wishes: frozenset[str]
    denials: frozenset[str]
    after_denials: frozenset[str]
    moving: frozenset[str]
    lone_topics: frozenset[str]
    more_topics: frozenset[str]
    more_observations: frozenset[str]
    amounts: frozenset[str]
    presence: frozenset[str]


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Lexicons of all axes. Compared and hashed by identity: `load_lexicon` loads a folder once.

    `normal_of`: what a subject denies by being "normal", and by being "centred" (in the midline).
    """

    observations: Mapping[str, Observation]
    normal_of: Mapping[str, Mapping[str, tuple[str, ...]]]
    midline: frozenset[str]
    scales: Mapping[str, tuple[SeverityLevel, ...]]
    headings: Mapping[str, Category]
    priority: Mapping[Category, int]
    breaks_before_hedge: frozenset[str]
    grammar: Mapping[str, frozenset[str]]
    coverage: Coverage
    changes: ChangeWords
    trie: PhraseTrie = field(repr=False)
    spelt: Spellings = field(repr=False)

    def tokenize(self, text: str) -> list[Token]:
        """Return the tokens of a text, in the forms of this lexicon."""
        return tokenize(text, self.spelt)

    @cached_property
    def level_of(self) -> Mapping[str, SeverityLevel]:
        """Levels of severity by their values and words; the first scale counts."""
        named = [
            (words.replace("-", " "), level)
            for levels in self.scales.values()
            for level in levels
            for words in (level.value, *level.adjectives, *level.adverbs)
        ]
        return dict(reversed(named))


def _add(trie: PhraseTrie, layer: str, phrases: Iterable[str], entry: Any) -> None:
    for phrase in phrases:
        try:
            trie.add(layer, phrase, entry)
        except ValueError as error:
            raise InvalidLexicon(f"{layer} lexicon: {error}") from error


def _add_observation(
    file: str, entry: dict[str, Any], subjects: Collection[str], trie: PhraseTrie
) -> None:
    """Add the phrases that mention an observation, and its states of the known subjects."""
    _add(trie, "mention", entry.get("mentions", ()), entry["name"])
    for frame in entry.get("frames", ()):
        subject = require_known(file, entry["name"], frame["subject"], subjects)
        _add(trie, "state", frame["states"], (subject, entry["name"]))


def _load_observations(
    data: dict[str, Any], trie: PhraseTrie
) -> tuple[dict[str, Observation], dict[str, dict[str, tuple[str, ...]]]]:
    observations: dict[str, Observation] = {}
    denied: dict[str, dict[str, list[str]]] = {
        state: {name: [] for name in data["subjects"]} for state in ("normal", "centred")
    }
    for name, phrases in data["subjects"].items():
        _add(trie, "subject", phrases, name)
    _add(trie, "normal", data["normal_states"], "normal")
    _add(trie, "normal", data["centred_states"], "centred")
    _add(trie, "mention", data["no_findings"], None)
    for entry in data["observation"]:
        name, label = entry["name"], entry.get("chexpert")
        if name in observations:
            raise InvalidLexicon(f"observations.toml: {name!r} is defined twice")
        if label is not None and label not in CHEXPERT_LABELS:
            raise InvalidLexicon(f"observations.toml: {name!r} has an unknown label {label!r}")
        observations[name] = Observation(name, label, entry.get("midline", False))
        _add_observation("observations.toml", entry, data["subjects"], trie)
        for state, known in denied.items():
            for subject in entry.get(state, ()):
                known[require_known("observations.toml", name, subject, known)].append(name)
    return observations, {
        state: {subject: tuple(names) for subject, names in known.items()}
        for state, known in denied.items()
    }


def _load_triggers(file: str, entries: Iterable[dict[str, Any]], trie: PhraseTrie) -> None:
    for entry in entries:
        effect, direction = entry["effect"], entry.get("direction", "forward")
        if effect not in _EFFECTS or direction not in ("forward", "backward"):
            raise InvalidLexicon(f"{file}: unknown effect or direction: {effect!r}, {direction!r}")
        layer = "boundary" if effect == "terminate" else "trigger"
        trigger = Trigger(
            effect,
            direction == "forward",
            int(entry.get("scope", 0)),
            entry.get("ends_scope", False),
        )
        _add(trie, layer, entry["phrases"], trigger)


def _load_places(data: dict[str, Any], trie: PhraseTrie) -> None:
    for entry in data["combined"]:
        place = NamedPlace(str(Side(entry["side"])), entry["zone"])
        _add(trie, "place", entry["phrases"], place)
    combined = {p for entry in data["combined"] for p in entry["phrases"]}
    for entry in data["side"]:
        phrases = [p for p in entry["phrases"] if p not in combined]
        _add(trie, "place", phrases, NamedPlace(str(Side(entry["value"])), None))
    for entry in data["zone"]:
        _add(trie, "place", entry["phrases"], NamedPlace(None, entry["value"]))
    for entry in data["neutral"]:
        _add(trie, "place", entry["phrases"], NamedPlace(None, None))


def _load_levels(
    data: Iterable[dict[str, Any]], trie: PhraseTrie
) -> dict[str, tuple[SeverityLevel, ...]]:
    scales = {}
    for scale in data:
        levels = []
        for entry in scale["level"]:
            level = SeverityLevel(
                scale["name"],
                entry["rank"],
                entry["value"],
                tuple(entry["adjectives"]),
                tuple(entry["adverbs"]),
            )
            levels.append(level)
            _add(trie, "severity", (*level.adjectives, *level.adverbs), level)
        scales[scale["name"]] = tuple(sorted(levels, key=lambda level: level.rank))
    return scales


def _load_changes(data: dict[str, Any], trie: PhraseTrie) -> ChangeWords:
    for layer in ("change", "comparative", "event", "disease"):
        for entry in data[layer]:
            _add(trie, layer, entry["phrases"], str(TemporalChange(entry["value"])))
    _add(trie, "change", data["neutral"]["phrases"], None)
    for layer in ("earlier", "unseen"):
        _add(trie, layer, data[layer]["phrases"], layer)
    for name, phrases in data["topic"].items():
        _add(trie, "topic", phrases, name)
    more = data["more"]
    return ChangeWords(
        diseases=frozenset(name for each in data["disease"] for name in each["observations"]),
        predicated=frozenset(data["predicate"]["observations"]),
        excesses=frozenset(data["excess"]["words"]),
        before=frozenset(data["earlier"]["before"]),
        earlier=frozenset(data["earlier"]["after"]),
        wishes=frozenset(data["wish"]["words"]),
        denials=frozenset(data["denial"]["words"]),
        after_denials=frozenset(data["denial"]["between"]),
        moving=frozenset(data["moving"]["words"]),
        lone_topics=frozenset(data["lone"]["topics"]),
        more_topics=frozenset(more["topics"]),
        more_observations=frozenset(more["observations"]),
        amounts=frozenset(more["words"]),
        presence=frozenset(data["presence"]["words"]),
    )


def _load_sentences(
    data: dict[str, Any], trie: PhraseTrie
) -> tuple[dict[str, Category], dict[Category, int]]:
    _add(trie, "reporting", data["reporting"], "reporting")
    for entry in data["pattern"]:
        category, always = Category(entry["category"]), entry.get("always", False)
        _add(trie, "opening", entry["starts"], SentencePattern(category, True, always))
        _add(trie, "pattern", entry["contains"], SentencePattern(category, False, always))
    headings = {
        title: Category(category)
        for category, titles in data["headings"].items()
        for title in titles
    }
    return headings, {Category(name): rank for rank, name in enumerate(data["priority"])}


def _load_further(
    file: str,
    data: dict[str, Any],
    observations: dict[str, Observation],
    subjects: Collection[str],
    scales: dict[str, tuple[SeverityLevel, ...]],
    trie: PhraseTrie,
) -> None:
    """Add the findings, phrases, triggers, places and scales of one more file."""
    _load_triggers(file, data.get("trigger", ()), trie)
    for name, phrases in data.get("subjects", {}).items():
        _add(trie, "subject", phrases, require_known(file, "subjects", name, subjects))
    for entry in data.get("zone", ()):
        _add(trie, "place", entry["phrases"], NamedPlace(None, entry["value"]))
    scales |= _load_levels(data.get("scale", ()), trie)
    for entry in data["observation"]:
        own = Observation(entry["name"], None, entry.get("midline", False))
        observations.setdefault(own.name, own)
        _add_observation(file, entry, subjects, trie)


@cache
def load_lexicon(folder: Path | None = None, further: Path | None = None) -> Lexicon:
    """Return the lexicons of `folder` (default: ours), with those of a further file of findings.

    Args:
        folder: holds one .toml file an axis; or a file that `freeze` wrote.
        further: a .toml file with [[observation]] entries as in observations.toml: `name`,
            `mentions`, `frames`, `midline`; [[trigger]] entries as in context.toml, [[zone]]
            entries as in location.toml, [[scale]] entries as in severity.toml, and phrases of
            [subjects]. New names count towards no CheXpert label.

    Raises: InvalidLexicon naming file and entry.
    """
    folder = folder or our_lexicon()
    tables = read_tables(folder)
    try:
        trie = PhraseTrie(spelt := spellings(folder))
        observations, normal_of = _load_observations(tables["observations"], trie)
        context = tables["context"]
        _load_triggers("context.toml", context["trigger"], trie)
        for layer in ("lookalike", "unanswered"):
            _add(trie, layer, context[layer]["phrases"], layer)
        _load_places(tables["location"], trie)
        severity = tables["severity"]
        scales = _load_levels(severity["scale"], trie)
        _add(trie, "severity", severity["neutral"]["phrases"], None)
        changes = _load_changes(tables["change"], trie)
        headings, priority = _load_sentences(tables["sentences"], trie)
        grammar = {name: frozenset(words) for name, words in tables["grammar"].items()}
        if missing := _GRAMMAR - grammar.keys():
            raise InvalidLexicon(f"grammar.toml lacks {', '.join(sorted(missing))}")
        statements = tables["coverage"]
        coverage = load_coverage(statements, observations, normal_of["normal"])
        more = {"synonyms.toml": tables["synonyms"]}
        if further is not None:
            more[further.name] = read_lexicon(further)
        for file, data in more.items():
            _load_further(file, data, observations, normal_of["normal"], scales, trie)
        for entry in statements["statement"]:
            _add(trie, "statement", entry["phrases"], entry["scope"])
        return Lexicon(
            observations=observations,
            normal_of=normal_of,
            midline=frozenset(name for name, o in observations.items() if o.midline),
            scales=scales,
            headings=headings,
            priority=priority,
            breaks_before_hedge=frozenset(context["breaks"]["before_hedge"]),
            grammar=grammar,
            coverage=coverage,
            changes=changes,
            trie=trie,
            spelt=spelt,
        )
    except (KeyError, TypeError) as error:
        raise InvalidLexicon(
            f"{folder}: an entry lacks a key, or one has a wrong value: {error}"
        ) from error
    except ValueError as error:
        raise InvalidLexicon(f"{folder}: {error}") from error


def severity_level(words: str, lexicon: Lexicon | None = None) -> SeverityLevel | None:
    """Return the severity level of a word, or None.

    >>> severity_level("mildly").value
    'mild'
    """
    lexicon = lexicon or load_lexicon()
    words = " ".join(words.lower().replace("-", " ").split())
    return lexicon.level_of.get(words)
