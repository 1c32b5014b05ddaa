"""Tokens of a sentence in the form that lexicons match: words with their positions, and numbers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

from vlscore.findings import lexicon_files
from vlscore.text import JOINER, without_joiners

_TOKEN = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+(?:\.\d+)?|_{2,}|[^\s\w]")


class Token(NamedTuple):
    """A word, number or punctuation mark: its matching form, and characters [start, end)."""

    form: str
    start: int
    end: int


class Match(NamedTuple):
    """Tokens [first, last) spell a phrase of `layer`, whose lexicon entry is `entry`."""

    first: int
    last: int
    layer: str
    entry: Any

    def covers(self, other: "Match") -> bool:
        """Return whether all tokens of another match are among those of this one."""
        return self.first <= other.first and other.last <= self.last


@dataclass(frozen=True, eq=False)
class Spellings:
    """Forms of words, from `spellings.toml` of a lexicon. Compared and hashed by identity.

    Attributes:
        singular: irregular plural -> singular.
        endings: ending of other plurals -> that of the singular; the first one that fits counts.
        last_letters: of these endings.
        american: British spelling or misspelling -> the lexicons' spelling.
        short: first form of an abbreviation -> (its further forms, the forms it stands for),
            longest first.
        opening: abbreviations of one form, and the first two forms of the others.
        no_unit: forms that are a unit behind a number, and an abbreviation elsewhere.
        before_units: words that stand for a number before a unit.
        numbers: words of numbers -> their digits.
        units: of sizes -> millimetres.
        linking: function words that a missing blank may join to another word.
        slashed: short forms that end in a slash.
        never_cut: words that no missing blank has joined.
        known: words met before -> their matching forms.
    """

    singular: Mapping[str, str]
    endings: Mapping[str, str]
    last_letters: frozenset[str]
    american: Mapping[str, str]
    short: Mapping[str, Sequence[tuple[tuple[str, ...], tuple[str, ...]]]]
    opening: frozenset[str | tuple[str, str]]
    no_unit: frozenset[str]
    before_units: frozenset[str]
    numbers: Mapping[str, str]
    units: Mapping[str, float]
    linking: frozenset[str]
    slashed: frozenset[str]
    never_cut: frozenset[str]
    known: dict[str, str] = field(default_factory=dict, repr=False)


@cache
def spellings(source: Path | None = None) -> Spellings:
    """Return the forms of words of a lexicon (default: ours). Raises: InvalidLexicon."""
    if source is None:
        # The lexicon asks by its folder; one key for both, so that no table is read twice.
        return spellings(lexicon_files.our_lexicon())
    data = lexicon_files.read_tables(source)["spellings"]
    short: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    meanings = {**data["abbreviations"], **data["ambiguous"], **data["no_unit"]}
    for phrase, meaning in meanings.items():
        first, *rest = phrase.split()
        short.setdefault(first, []).append((tuple(rest), tuple(meaning.split())))
    for entries in short.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    glue = data["glue"]
    return Spellings(
        data["singular"],
        data["endings"],
        frozenset(plural[-1] for plural in data["endings"]),
        data["american"],
        short,
        frozenset(
            (first, rest[0]) if rest else first
            for first, entries in short.items()
            for rest, _ in entries
        ),
        frozenset(data["no_unit"]),
        frozenset((*data["numbers"], *data["quantities"]["words"])),
        data["numbers"],
        data["units"],
        frozenset(glue["words"]),
        frozenset(glue["slashed"]),
        frozenset(glue["whole"]),
    )


_MOST_KNOWN = 50_000
# Words of so many letters stay as they are.
_LONGEST_SINGULAR = 3
_SEPARATORS = frozenset("-/")


def form_of(word: str, spelt: Spellings) -> str:
    """Return the matching form of a word."""
    if not word.isascii():
        # Ligatures and wide letters: "ﬁbrosis".
        word = normalize("NFKC", word)
    form = _singular(word.lower().replace("’", "'"), spelt)
    return spelt.american.get(form, form)


def _singular(word: str, spelt: Spellings) -> str:
    if (irregular := spelt.singular.get(word)) is not None:
        return irregular
    if len(word) > _LONGEST_SINGULAR and word[-1] in spelt.last_letters:
        for plural, singular in spelt.endings.items():
            if word.endswith(plural):
                return word[: -len(plural)] + singular
    return word


def tokenize(text: str, spelt: Spellings | None = None) -> list[Token]:
    """Tokens of a text, with their places in it.

    Words are lower-cased and brought to the singular and to American spelling; a hyphen or slash
    inside a word ("air-space", "and/or") separates two words and leaves no token of its own; masks
    (`___`) read as `xxxx`. An abbreviation becomes the words that it stands for, each at its
    characters. `spelt` are the forms of a lexicon's words (default: ours).

    >>> [t.form for t in tokenize("No air-space opacities, 2.5 cm. Lg PTX w/o shift")]
    ['no', 'air', 'space', 'opacity', ',', '2.5', 'cm', '.', 'large', 'pneumothorax', 'without', \
'shift']
    """
    if JOINER in text:
        joined, places = without_joiners(text)
        return [
            Token(form, places[start], places[end - 1] + 1)
            for form, start, end in tokenize(joined, spelt)
        ]
    tokens = []
    is_short = False
    spelt = spelt or spellings()
    opening, known, new = spelt.opening, spelt.known, tuple.__new__
    before = ""
    for match in _TOKEN.finditer(text):
        first, last = match.span()
        word = text[first:last]
        form = known.get(word)
        if form is None:
            form = "xxxx" if word[0] == "_" else form_of(word, spelt)
            if len(known) < _MOST_KNOWN:
                known[word] = form
        if (
            form in _SEPARATORS
            and first > 0
            and last < len(text)
            and text[first - 1].isalnum()
            and (text[last].isalnum() or text[first - 1 : last] in spelt.slashed)
        ):
            continue
        if form in opening or (before, form) in opening:
            is_short = True
        before = form
        tokens.append(new(Token, (form, first, last)))
    return _in_full(tokens, spelt) if is_short else tokens


def _in_full(tokens: Sequence[Token], spelt: Spellings) -> list[Token]:
    """Return the tokens with the words that abbreviations stand for."""
    short, no_unit = spelt.short, spelt.no_unit
    full: list[Token] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        for rest, meaning in short.get(token.form, ()):
            before = full[-1].form if full else " "
            if token.form in no_unit and (before[0].isdecimal() or before in spelt.before_units):
                continue
            last = position + len(rest)
            if last < len(tokens) and all(
                tokens[position + 1 + k].form == form for k, form in enumerate(rest)
            ):
                places = _places((token.form, *rest), meaning)
                full += [
                    Token(form, tokens[position + begin].start, tokens[position + end].end)
                    for form, (begin, end) in zip(meaning, places, strict=True)
                ]
                position = last
                break
        else:
            full.append(token)
        position += 1
    return full


@cache
def _places(forms: tuple[str, ...], meaning: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the first and last form of an abbreviation at which each word of its meaning stands.

    In "ET and NG tubes" both words of "endotracheal tube" stand at "ET".
    """
    places: list[tuple[int, int]] = []
    for _, first, last, begin, end in SequenceMatcher(None, forms, meaning, False).get_opcodes():
        if last - first == end - begin:
            places += [(position, position) for position in range(first, last)]
        else:
            # A word that stands for no form of its own stands where the word before it does.
            at = (first, last - 1) if last > first else (max(0, first - 1),) * 2
            places += [at] * (end - begin)
    return places
