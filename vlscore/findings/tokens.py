"""Tokens of a sentence in the form that lexicons match, and the matching itself.

`tokenize` returns words with their positions. `PhraseTrie` is a trie of phrases over tokens, which
matches all lexicons in one pass over a sentence. `find_modifiers` returns the phrases that qualify
a finding: side, zone, severity, change and size.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from vlscore.findings.types import Attribute, Axis, Span

_TOKEN = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+(?:\.\d+)?|_{2,}|[^\s\w]")

_IRREGULAR = {
    "pneumothoraces": "pneumothorax",
    "pneumothoracies": "pneumothorax",
    "hemithoraces": "hemithorax",
    "apices": "apex",
    "bases": "base",
    "cicatrices": "cicatrix",
    "vertebrae": "vertebra",
    "hila": "hilum",
    "bullae": "bulla",
    "atelectases": "atelectasis",
    "metastases": "metastasis",
    "diagnoses": "diagnosis",
    "prostheses": "prosthesis",
    "stenoses": "stenosis",
    "scolioses": "scoliosis",
    "sulci": "sulcus",
    "bronchi": "bronchus",
    "foci": "focus",
    "humeri": "humerus",
    "granulomata": "granuloma",
    "series": "series",
    "pancreas": "pancreas",
}
# British spellings, in the singular, and the American ones that the lexicons use.
_SPELLINGS = {
    "oedema": "edema",
    "oedematous": "edematous",
    "haemothorax": "hemothorax",
    "haemothoraces": "hemothorax",
    "haemopneumothorax": "hemopneumothorax",
    "haemopneumothoraces": "hemopneumothorax",
    "haematoma": "hematoma",
    "haemorrhage": "hemorrhage",
    "haemorrhagic": "hemorrhagic",
    "haemodialysis": "hemodialysis",
    "anaemia": "anemia",
    "ischaemic": "ischemic",
    "tumour": "tumor",
    "oesophagus": "esophagus",
    "oesophageal": "esophageal",
    "orthopaedic": "orthopedic",
    "artefact": "artifact",
    "artefactual": "artifactual",
    "centre": "center",
    "centred": "centered",
    "centimetre": "centimeter",
    "millimetre": "millimeter",
    "visualised": "visualized",
    "recognised": "recognized",
    "localised": "localized",
    "generalised": "generalized",
    "organised": "organized",
    "organising": "organizing",
    "demineralised": "demineralized",
    "demineralisation": "demineralization",
    "catheterisation": "catheterization",
    "colour": "color",
    "grey": "gray",
    "fibre": "fiber",
    "calibre": "caliber",
    "favour": "favor",
    "favoured": "favored",
    "favouring": "favoring",
    "labelled": "labeled",
}
_UNCHANGED_ENDINGS = ("ss", "us", "is", "'s")


class Token(NamedTuple):
    """A word, number or punctuation mark: its matching form, and characters [start, end)."""

    form: str
    start: int
    end: int


@lru_cache(50_000)
def _form(word: str) -> str:
    """Return the matching form of a word."""
    form = _singular(word.lower())
    return _SPELLINGS.get(form, form)


def _singular(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) <= 3 or not word.endswith("s") or word.endswith(_UNCHANGED_ENDINGS):
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1]


def tokenize(text: str) -> list[Token]:
    """Tokens of a text, with their places in it.

    Words are lower-cased and brought to the singular and to American spelling; a hyphen or slash
    inside a word ("air-space", "and/or") separates two words and leaves no token of its own; masks
    (`___`) read as `xxxx`.

    >>> [t.form for t in tokenize("No air-space opacities, 2.5 cm.")]
    ['no', 'air', 'space', 'opacity', ',', '2.5', 'cm', '.']
    """
    tokens = []
    for match in _TOKEN.finditer(text):
        word = match[0]
        first, last = match.span()
        initial = word[0]
        if (
            initial in "-/"
            and first > 0
            and last < len(text)
            and text[first - 1].isalnum()
            and text[last].isalnum()
        ):
            continue
        tokens.append(Token("xxxx" if initial == "_" else _form(word), first, last))
    return tokens


_PART = re.compile(r"(?:^|(?<=\s))\(([^()]*)\)(?=\s|$)|([^()]+)")


class Match(NamedTuple):
    """Tokens [first, last) spell a phrase of `layer`, whose lexicon entry is `entry`."""

    first: int
    last: int
    layer: str
    entry: Any


def parse(pattern: str) -> list[list[list[str]]]:
    """Return the parts of a pattern: for each, its alternatives as lists of matching forms.

    >>> parse("(left|) lung bases")
    [[['left'], []], [['lung', 'base']]]

    Raises ValueError where a group does not stand between spaces.
    """
    parts = []
    end = 0
    for match in _PART.finditer(pattern):
        if match.start() != end:
            break
        end = match.end()
        choices = [match.group(2)] if match.group(1) is None else match.group(1).split("|")
        parts.append([[t.form for t in tokenize(choice)] for choice in choices])
    if end != len(pattern):
        raise ValueError(f"pattern {pattern!r} has a group that is only a part of a word")
    return parts


# A node of the trie: form -> the node below it, and at _ENTRIES its entries by layer.
_Node = dict[str, Any]
_ENTRIES = ""


class PhraseTrie:
    """Finds, per layer, the longest phrases from left to right without overlap."""

    def __init__(self) -> None:
        self._root: _Node = {}

    def add(self, layer: str, pattern: str, entry: Any) -> None:
        """Add every phrase of `pattern` to `layer`; several entries may share a phrase.

        Raises ValueError where the pattern is malformed or one of its phrases is empty.
        """
        nodes = [self._root]
        for alternatives in parse(pattern):
            nodes = [_below(node, forms) for node in nodes for forms in alternatives]
        if any(node is self._root for node in nodes):
            raise ValueError(f"pattern {pattern!r} has an empty phrase")
        for node in nodes:
            entries = node.setdefault(_ENTRIES, {}).setdefault(layer, [])
            if entry not in entries:
                entries.append(entry)

    def find(self, tokens: Sequence[Token]) -> dict[str, list[Match]]:
        """Matches by layer, in text order. Time is linear: a phrase has a bounded length."""
        found: dict[str, list[Match]] = {}
        taken: dict[str, int] = {}
        for first in range(len(tokens)):
            node = self._root.get(tokens[first].form)
            longest: dict[str, tuple[int, list[Any]]] = {}
            position = first + 1
            while node is not None:
                for layer, entries in node.get(_ENTRIES, _NO_ENTRIES).items():
                    longest[layer] = (position, entries)
                node = node.get(tokens[position].form) if position < len(tokens) else None
                position += 1
            for layer, (last, entries) in longest.items():
                if first >= taken.get(layer, 0):
                    taken[layer] = last
                    matches = found.setdefault(layer, [])
                    matches.extend(Match(first, last, layer, entry) for entry in entries)
        return found


_NO_ENTRIES: dict[str, list[Any]] = {}


def _below(node: _Node, forms: Sequence[str]) -> _Node:
    """Return the node that the forms lead to, made where it is not there yet."""
    for form in forms:
        found = node.get(form)
        if found is None:
            found = node[form] = {}
        node = found
    return node


_MILLIMETRES = {"mm": 1.0, "millimeter": 1.0, "cm": 10.0, "centimeter": 10.0}


class Modifier(NamedTuple):
    """Qualifying phrase at tokens [first, last), with its (axis, value) pairs."""

    first: int
    last: int
    values: tuple[tuple[Axis, str], ...]

    @property
    def is_place(self) -> bool:
        """Return whether it names a side or a zone."""
        return self.values[0][0] in (Axis.SIDE, Axis.ZONE)

    @property
    def is_change(self) -> bool:
        """Return whether it compares with a prior."""
        return self.values[0][0] is Axis.CHANGE

    def attributes(self, tokens: Sequence[Token]) -> list[Attribute]:
        """Return the phrase as attributes with character spans."""
        span = Span(tokens[self.first].start, tokens[self.last - 1].end)
        return [Attribute(axis, value, span) for axis, value in self.values]


def find_modifiers(tokens: Sequence[Token], found: dict[str, list[Match]]) -> list[Modifier]:
    """Return all qualifying phrases of a sentence, in text order."""
    modifiers = _sizes(tokens)
    for match in found.get("place", ()):
        place = ((Axis.SIDE, match.entry.side), (Axis.ZONE, match.entry.zone))
        values = tuple((axis, value) for axis, value in place if value is not None)
        if values:
            modifiers.append(Modifier(match.first, match.last, values))
    for match in found.get("severity", ()):
        if match.entry is not None:
            value = (Axis.SEVERITY, match.entry.value)
            modifiers.append(Modifier(match.first, match.last, (value,)))
    for match in found.get("change", ()):
        if match.entry is not None:
            modifiers.append(Modifier(match.first, match.last, ((Axis.CHANGE, match.entry),)))
    modifiers.sort()
    return modifiers


def _sizes(tokens: Sequence[Token]) -> list[Modifier]:
    sizes = []
    for i in range(1, len(tokens)):
        factor = _MILLIMETRES.get(tokens[i].form)
        if factor is None:
            continue
        number = tokens[i - 1].form
        if number.isascii() and number[0].isdecimal():
            value = (Axis.SIZE, f"{float(number) * factor:g}")
            sizes.append(Modifier(i - 1, i + 1, (value,)))
    return sizes
