"""Lexicons of findings, read from TOML files and checked, and the trie that matches all of them.

Each file under `perturbations/lexicons/` is one axis. Entries have a name, so that every result can
name the entry that fired. A user's own folder with the same files replaces these lexicons, as does
one frozen in a file (`vlscore.findings.lexicon_files`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from vlscore.core import entries_of, entry_of, read_table
from vlscore.errors import InvalidLexicon
from vlscore.findings.compositions import Composition, PatternRule, pattern_rules, written_out
from vlscore.findings.coverage import Coverage, load_coverage, require_known
from vlscore.findings.lexicon_files import our_lexicon, read_tables
from vlscore.findings.phrases import PhraseTrie
from vlscore.findings.tokens import Spellings, Token, spellings, tokenize
from vlscore.findings.types import Category, TemporalChange

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


Severity = Literal[1, 2, 3, 4, 5]


class Frame(NamedTuple):
    """States that say an observation of a part of the chest, or of one of "spine|ribs"."""

    subject: str
    states: tuple[str, ...]


class RightDistance(NamedTuple):
    """Distance of a device's tip from a landmark, in millimetres: from the first to below the
    second number it lies well."""

    landmarks: tuple[str, ...]
    good: tuple[float, float]


class FalseFinding(NamedTuple):
    """Sentences by which perturbations add a finding to a report that mentions none `unless`."""

    order: int
    sentences: tuple[str, ...]
    unless: frozenset[str] = frozenset()


class Observation(NamedTuple):
    """Entry of a finding or device; `observations.toml` explains the keys.

    A `midline` observation takes no side or zone from a neighbour in an enumeration.
    """

    name: str
    chexpert: str | None = None
    midline: bool = False
    mentions: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    normal: tuple[str, ...] = ()
    centred: tuple[str, ...] = ()
    region: str | None = None
    lasting: bool = False
    changing: bool = False
    compared: Literal["beside", "behind"] | None = None
    concept: str | None = None
    severity: tuple[Severity, Severity, Severity] | None = None
    title: str = ""
    after_treatment: bool = False
    old: bool = False
    by_bone: bool = False
    bone: str = ""
    same: frozenset[str] = frozenset()
    related: frozenset[str] = frozenset()
    serious: bool = False
    generic: bool = False
    harmless: bool = False
    moves: bool | None = None
    zones: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    basal: bool = False
    one_sided: bool = False
    opaque: bool = False
    amount: bool = False
    degree: bool = True
    device: bool = False
    shown: tuple[float, ...] = ()
    distance: RightDistance | None = None
    added: FalseFinding | None = None


Effect = Literal[
    "negated",
    "uncertain",
    "probable",
    "asserted",
    "historical",
    "hypothetical",
    "other",
    "pseudo",
    "terminate",
]


class Trigger(NamedTuple):
    """A ConText trigger; `scope` 0 means to the end of the clause.

    `ends_scope` marks a pseudo-trigger that also ends the scopes around it.
    """

    effect: Effect
    forward: bool = True
    scope: int = 0
    ends_scope: bool = False


class NamedPlace(NamedTuple):
    """The side, the zone, or both, that a phrase names.

    A side may be the same as, or opposite to, that of the place named before.
    """

    side: Literal["left", "right", "bilateral", "same", "opposite"] | None = None
    zone: str | None = None


class SeverityLevel(NamedTuple):
    """Level of a scale of severity, with its words.

    Of a `graded` scale, one level may be more or less than another.
    """

    scale: str
    rank: int
    value: str
    adjectives: tuple[str, ...]
    adverbs: tuple[str, ...]
    graded: bool = False


class MarkedWords(NamedTuple):
    """Words that a reader asks for besides findings; of one layer, the longest words count.

    Words without a name are none, and hide the words in them. `as_written`: inflected words do not
    count ("nodule", but not "nodules").
    """

    layer: str
    name: str | None
    phrases: tuple[str, ...]
    as_written: bool = False


class SentencePattern(NamedTuple):
    """Pattern of a non-clinical sentence."""

    category: Category
    at_start: bool
    always: bool = False


@dataclass(frozen=True, eq=False)
class Lexicon:
    """Lexicons of all axes. Compared and hashed by identity: `load_lexicon` loads a folder once.

    `normal_of`: what a subject denies by being "normal", and by being "centred" (in the midline).
    `rules` are the rows by the names of their tables and heads; `lists` the words that these and
    rules in Python read, `stands_for` words that marks of templates stand for.
    `marks` are the layers of further words that a reader asked for.
    """

    observations: Mapping[str, Observation]
    normal_of: Mapping[str, Mapping[str, tuple[str, ...]]]
    midline: frozenset[str]
    scales: Mapping[str, tuple[SeverityLevel, ...]]
    headings: Mapping[str, Category]
    priority: Mapping[Category, int]
    breaks_before_hedge: frozenset[str]
    lists: Mapping[str, frozenset[str]]
    coverage: Coverage
    stands_for: Mapping[str, str]
    rules: Mapping[str, Mapping[str, Sequence[PatternRule]]]
    trie: PhraseTrie = field(repr=False)
    spelt: Spellings = field(repr=False)
    marks: tuple[str, ...] = ()

    def tokenize(self, text: str) -> list[Token]:
        """Return the tokens of a text, in the forms of this lexicon."""
        return tokenize(text, self.spelt)

    def marking(self, words: Iterable[MarkedWords]) -> "Lexicon":
        """Return the lexicon with which sentences carry further words. Raises: InvalidLexicon."""
        trie, layers = self.trie.copied(), dict[str, None]()
        for each in words:
            layers[layer := f"mark {each.layer}"] = None
            trie.add_all(layer, each.phrases, each, is_known=False)
        return replace(self, trie=trie, marks=tuple(layers))

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


def _add_entries(
    trie: PhraseTrie, layer: str, kind: type[Any], entries: Iterable[Mapping[str, Any]], file: str
) -> None:
    """Add the `phrases` of each entry of a table, with the rest of the entry."""
    for entry in entries:
        if "phrases" not in entry:
            raise InvalidLexicon(f"{file}: {dict(entry)} lacks phrases")
        rest = {key: value for key, value in entry.items() if key != "phrases"}
        trie.add_all(layer, entry["phrases"], entry_of(kind, rest, file))


def _add_observation(
    observation: Observation, subjects: Collection[str], trie: PhraseTrie, file: str
) -> None:
    """Add the phrases that mention an observation, and its states of the known subjects."""
    name = observation.name
    trie.add_all("mention", observation.mentions, name)
    for frame in observation.frames:
        for subject in frame.subject.split("|"):
            require_known(file, name, subject, subjects)
            trie.add_all("state", frame.states, (subject, name))


def _load_observations(
    data: Mapping[str, Any], trie: PhraseTrie
) -> tuple[dict[str, Observation], dict[str, dict[str, tuple[str, ...]]]]:
    file, subjects = "observations.toml", data["subjects"]
    for name, phrases in subjects.items():
        trie.add_all("subject", phrases, name)
    trie.add_all("normal", data["normal_states"], "normal")
    trie.add_all("normal", data["centred_states"], "centred")
    trie.add_all("mention", data["no_findings"], None)
    known: dict[str, Observation] = {}
    for each in entries_of(Observation, data["observation"], file):
        if each.name in known:
            raise InvalidLexicon(f"{file}: {each.name!r} is defined twice")
        if each.chexpert not in (None, *CHEXPERT_LABELS):
            raise InvalidLexicon(f"{file}: {each.name!r} has an unknown label {each.chexpert!r}")
        known[each.name] = each
        _add_observation(each, subjects, trie, file)
        for subject in (*each.normal, *each.centred):
            require_known(file, each.name, subject, subjects)
    return known, {
        "normal": {s: tuple(o.name for o in known.values() if s in o.normal) for s in subjects},
        "centred": {s: tuple(o.name for o in known.values() if s in o.centred) for s in subjects},
    }


def _add_triggers(trie: PhraseTrie, data: Mapping[str, Any], file: str) -> None:
    """Add the triggers of a file; in their phrases, "{seen}" stands for its alternatives."""
    names = data.get("alternatives", {})
    for kind in ("trigger", "either"):
        for entry in data.get(kind, ()):
            layer = "boundary" if entry.get("effect") == "terminate" else kind
            phrases = [phrase.format_map(names) for phrase in entry["phrases"]]
            _add_entries(trie, layer, Trigger, [{**entry, "phrases": phrases}], file)


def _load_places(data: Mapping[str, Any], trie: PhraseTrie) -> None:
    file = "location.toml"
    combined = {p for entry in data["combined"] for p in entry["phrases"]}
    sides = [
        {**entry, "phrases": [p for p in entry["phrases"] if p not in combined]}
        for entry in data["side"]
    ]
    for entries in (data["combined"], sides, data["zone"], data["neutral"]):
        _add_entries(trie, "place", NamedPlace, entries, file)


def _load_levels(
    scales: Iterable[Mapping[str, Any]], trie: PhraseTrie, file: str
) -> dict[str, tuple[SeverityLevel, ...]]:
    found = {}
    for scale in scales:
        of = {"scale": scale["name"], "graded": scale.get("graded", False)}
        levels = [entry_of(SeverityLevel, e, file, **of) for e in scale["level"]]
        for level in levels:
            trie.add_all("severity", (*level.adjectives, *level.adverbs), level)
        found[scale["name"]] = tuple(sorted(levels, key=lambda level: level.rank))
    return found


#: Numbers that are years, behind a word such as "since".
_YEARS = range(1900, 2100)


def _load_changes(data: Mapping[str, Any], trie: PhraseTrie) -> None:
    for layer in ("change", "comparative", "event", "disease"):
        for entry in data[layer]:
            trie.add_all(layer, entry["phrases"], str(TemporalChange(entry["value"])))
    trie.add_all("change", data["neutral"]["phrases"], None)
    for layer in ("earlier", "time", "unseen", "clause_end"):
        trie.add_all(layer, data[layer]["phrases"], layer)
    trie.add_all("time", map(str, _YEARS), "time")
    if "likewise" in data:  # a lexicon that was frozen earlier lacks it
        trie.add_all("likewise", data["likewise"]["phrases"], "likewise")
    for name, phrases in data["topic"].items():
        trie.add_all("topic", phrases, name)


def _load_sentences(data: Mapping[str, Any], trie: PhraseTrie) -> dict[str, Category]:
    trie.add_all("reporting", data["reporting"], "reporting")
    for entry in data["pattern"]:
        category, always = Category(entry["category"]), entry.get("always", False)
        trie.add_all("opening", entry["starts"], SentencePattern(category, True, always))
        trie.add_all("pattern", entry["contains"], SentencePattern(category, False, always))
    return {t: Category(name) for name, titles in data.get("headings", {}).items() for t in titles}


def _load_further(
    file: str,
    data: Mapping[str, Any],
    observations: dict[str, Observation],
    subjects: Collection[str],
    scales: dict[str, tuple[SeverityLevel, ...]],
    trie: PhraseTrie,
) -> None:
    """Add the findings, phrases, triggers, places and scales of one more file."""
    _add_triggers(trie, data, file)
    for name, phrases in data.get("subjects", {}).items():
        trie.add_all("subject", phrases, require_known(file, "subjects", name, subjects))
    _add_entries(trie, "place", NamedPlace, data.get("zone", ()), file)
    scales |= _load_levels(data.get("scale", ()), trie, file)
    for each in entries_of(Observation, data["observation"], file):
        observations.setdefault(each.name, each._replace(chexpert=None))
        _add_observation(each, subjects, trie, file)


#: What rows of change.toml may state: no change, and which of two amounts is of today, too.
_VALUES = (*TemporalChange, "none", "before", "behind")


def _rules(
    table: Mapping[str, Any],
    lists: Collection[str],
    file: str,
    values: Collection[str],
    runs: Mapping[str, str],
) -> dict[str, dict[str, list[PatternRule]]]:
    """Return the rules of each array of rows in a table."""
    return {
        name: pattern_rules(entries_of(Composition, table.get(name, ()), file), lists, values, runs)
        for name in ("compose", "compose_time", "revise", "amount", "degree", "taken_up")
    }


@cache
def load_lexicon(folder: str | Path | None = None, further: str | Path | None = None) -> Lexicon:
    """Return the lexicons of `folder` (default: ours), with those of a further file of findings.

    Args:
        folder: holds one .toml file an axis; or a file that `freeze` wrote.
        further: a .toml file with [[observation]] entries as in observations.toml: `name`,
            `mentions`, `frames`, `midline`; [[trigger]] entries as in context.toml, [[zone]]
            entries as in location.toml, [[scale]] entries as in severity.toml, and phrases of
            [subjects]. New names count towards no CheXpert label.

    Raises: InvalidLexicon naming file and entry.
    """
    folder = our_lexicon() if folder is None else Path(folder)
    further = None if further is None else Path(further)
    tables = read_tables(folder)
    try:
        trie = PhraseTrie(spelt := spellings(folder))
        observations, normal_of = _load_observations(tables["observations"], trie)
        context, changes, sentences = (tables[t] for t in ("context", "change", "sentences"))
        _add_triggers(trie, context, "context.toml")
        for layer in ("lookalike", "unanswered"):
            trie.add_all(layer, context[layer]["phrases"], layer)
        _load_places(tables["location"], trie)
        scales = _load_levels(tables["severity"]["scale"], trie, "severity.toml")
        trie.add_all("severity", tables["severity"]["neutral"]["phrases"], None)
        _load_changes(changes, trie)
        headings = _load_sentences(sentences, trie)
        known = observations.values()
        lists = {
            "compared": frozenset(o.name for o in known if o.compared == "beside"),
            "compared_behind": frozenset(o.name for o in known if o.compared == "behind"),
            "still_there": frozenset(o.name for o in known if o.device or o.after_treatment),
        } | {
            name: frozenset(words)
            for table in ("grammar", "change", "context")
            for name, words in tables[table]["words"].items()
        }
        # Rules in Python read the lists of grammar.toml; rows name the others.
        ours = read_table(our_lexicon() / "grammar.toml")["words"].keys()
        if folder.is_file():
            # What was frozen reads as it did: a list that came later is empty.
            lists = dict.fromkeys(ours, frozenset[str]()) | lists
        if missing := sorted(ours - lists.keys()):
            raise InvalidLexicon(f"grammar.toml lacks {', '.join(missing)}")
        regions = {name: o.region for name, o in observations.items() if o.region}
        lasting = frozenset(name for name, o in observations.items() if o.lasting)
        coverage = load_coverage(
            tables["coverage"], observations, normal_of["normal"], regions, lasting
        )
        # A lexicon that was frozen earlier has a second table of words.
        further_tables = {name: tables[name] for name in ("synonyms",) if name in tables}
        if further is not None:
            further_tables[further.name] = read_table(further)
        for file, data in further_tables.items():
            _load_further(file, data, observations, normal_of["normal"], scales, trie)
        for entry in tables["coverage"]["statement"]:
            trie.add_all("statement", entry["phrases"], entry["scope"])
        runs: dict[str, str] = {}
        for table in (changes, context):
            for name, pattern in table.get("runs", {}).items():
                runs[name] = written_out(pattern, runs)
        of_context = _rules(context, lists, "context.toml", (*get_args(Effect), "behind"), runs)
        return Lexicon(
            observations=observations,
            normal_of=normal_of,
            midline=frozenset(name for name, o in observations.items() if o.midline),
            scales=scales,
            headings=headings,
            priority={Category(name): rank for rank, name in enumerate(sentences["priority"])},
            breaks_before_hedge=frozenset(context["breaks"]["before_hedge"]),
            lists=lists,
            coverage=coverage,
            stands_for=tables["grammar"]["stands_for"],
            rules={
                **_rules(changes, lists, "change.toml", _VALUES, runs),
                "context": of_context["compose"],
                "taken_up": of_context["taken_up"],
            },
            trie=trie,
            spelt=spelt,
        )
    except (KeyError, TypeError) as error:
        raise InvalidLexicon(f"{folder}: an entry lacks {error}, or has a wrong form") from error
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
