"""Lexicons under `perturbations/lexicons/` that only perturbations need, read and checked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple, TypeVar

from vlscore.core import entry_of, read_table, resource_path
from vlscore.findings import FalseFinding, Lexicon, MarkedWords, Match, Span, Token, load_lexicon


class Alike(NamedTuple):
    """Observation -> all that share a family with it; see `observations.toml`."""

    same: Mapping[str, frozenset[str]]
    related: Mapping[str, frozenset[str]]


class LocationMoves(NamedTuple):
    """Words that locate a finding -> their possible replacements."""

    sides: Mapping[str, str]
    zones: Mapping[str, tuple[str, ...]]
    same_height: tuple[frozenset[str], ...]

    def height(self, zones: Iterable[str]) -> frozenset[str]:
        """Return the zones at the height of some; none where they are at no height."""
        own = frozenset(zones)
        return frozenset().union(
            *(level for level in self.same_height if not own.isdisjoint(level))
        )


class SeverityChange(NamedTuple):
    """Severity words and what they become, alone and (where it differs) before an adjective."""

    words: tuple[str, ...]
    to: tuple[str, ...]
    before_adjective: tuple[str, ...] = ()


class SeverityChanges(NamedTuple):
    """Severity words -> their changes; the words they do not grade; adjectives they do."""

    change: tuple[SeverityChange, ...]
    amounts: Mapping[str, str]
    opacity_words: frozenset[str]
    degrees: frozenset[str]
    degrees_not_before: tuple[str, ...]
    apart: frozenset[str]
    copulas: frozenset[str]
    not_before: tuple[str, ...]
    not_after: tuple[str, ...]
    adjectives: frozenset[str]

    def of(self, words: str) -> SeverityChange | None:
        """Return the change of some words, in their matching form."""
        return next((change for change in self.change if words in change.words), None)


class Equivalents(NamedTuple):
    """Phrases of one meaning, and the contexts in which they can replace each other."""

    phrases: tuple[str, ...]
    not_instead: frozenset[str] = frozenset()
    at: str | None = None
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()


class EquivalentTable(NamedTuple):
    """Groups of equivalents, and words that one may bring into a sentence that has them."""

    group: tuple[Equivalents, ...]
    repeatable: frozenset[str]


class DenyingPhrases(NamedTuple):
    """Phrases that turn a sentence that states a finding into one that denies it."""

    denial: str
    negation: str
    copula: str
    naming: str
    openings: Mapping[str, str]
    omitted: frozenset[str]
    retained: frozenset[str]
    says_more: frozenset[str]
    always_there: frozenset[str]


class AffirmingPhrases(NamedTuple):
    """Phrases that turn a sentence that denies a finding into one that states it."""

    openings: Mapping[str, str]
    omitted: frozenset[str]
    retained: frozenset[str]
    there: tuple[str, str]
    verbs: tuple[str, ...]
    negation: str
    plural_endings: tuple[str, ...]
    uncounted: frozenset[str]
    tails: frozenset[str]


class DroppedWords(NamedTuple):
    """Row of patterns that removes words of comparison from a sentence.

    `words` match the words of comparison, `before` and `behind` the text around them. `put`
    replaces all three. `attributive` words stand before the finding. `example` is a sentence, and
    what the row makes of it.
    """

    words: str
    example: tuple[str, str]
    before: str = ""
    behind: str = ""
    put: str = ""
    attributive: bool = False


class ComparingPhrases(NamedTuple):
    """Phrases that add or remove a comparison with a prior examination."""

    invented: tuple[str, ...]
    invented_for_lasting: tuple[str, ...]
    unchanged: frozenset[str]
    adjectives: tuple[str, ...]
    not_before: tuple[str, ...]
    copulas: Mapping[str, str]
    not_last: frozenset[str]
    only_openings: tuple[str, ...]
    tails: str
    drop: tuple[DroppedWords, ...]


class Qualifiers(NamedTuple):
    """Words by which a general denial excepts a finding: "no other acute disease"."""

    other: str
    another: str
    otherwise: str
    of: frozenset[str]
    articles: frozenset[str]
    any: str
    adverbs: str
    neighbours: Mapping[str, tuple[str, ...]]
    grave: frozenset[str]


class Article(NamedTuple):
    """Indefinite article, and patterns of what it stands before."""

    words: str
    of_vowel: str
    of_consonant: str
    vowel: str
    masks: tuple[str, ...]


class Statements(NamedTuple):
    """Tables of statements.toml."""

    article: Article
    negate: DenyingPhrases
    affirm: AffirmingPhrases
    compare: ComparingPhrases
    qualify: Qualifiers
    paraphrase: EquivalentTable


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
def alike() -> Alike:
    """Return which observations share a family."""
    known = load_lexicon().observations
    return Alike(
        _relatives({name: entry.same for name, entry in known.items()}),
        _relatives({name: entry.related for name, entry in known.items()}),
    )


@cache
def false_findings() -> Mapping[str, FalseFinding]:
    """Return what can be added, by observation; in their `order`, wherever their entries stand."""
    added = {o.name: o.added for o in load_lexicon().observations.values() if o.added}
    return dict(sorted(added.items(), key=lambda item: item[1].order))


def _relatives(families: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    return {
        name: frozenset(other for other, others in families.items() if not own.isdisjoint(others))
        for name, own in families.items()
        if own
    }


@cache
def _wording() -> Lexicon:
    """Return the lexicon of findings, with the lists of wording.toml."""
    lists = perturbation_table("wording").items()
    return load_lexicon().marking(MarkedWords(name, name, tuple(words)) for name, words in lists)


@lru_cache(16_384)
def matches_in(text: str) -> tuple[Sequence[Token], Mapping[str, Sequence[Match]]]:
    """Return the tokens of a text, and the phrases of the lexicons in them, by layer."""
    tokens = _wording().tokenize(text)
    return tokens, _wording().trie.find(tokens)


def phrases_in(text: str) -> Mapping[str, Sequence[Span]]:
    """Return where a text has phrases of the lists of wording.toml, by the name of the list.

    >>> phrases_in("Opacity as described above.")["refers_anywhere"]
    [Span(start=8, end=20)]
    """
    tokens, found = matches_in(text)
    return {
        matches[0].entry.name: [
            Span(tokens[m.first].start, tokens[m.last - 1].end) for m in matches
        ]
        for layer, matches in found.items()
        if layer in _wording().marks
    }


Table = TypeVar("Table", bound=tuple[Any, ...])


def _table(kind: type[Table], name: str) -> Callable[[], Table]:
    """Return a function that reads one file once, with the keys that a class names."""
    return cache(lambda: entry_of(kind, perturbation_table(name), f"{name}.toml"))


location_moves = _table(LocationMoves, "location_moves")
severity_changes = _table(SeverityChanges, "severity_changes")
statements = _table(Statements, "statements")
