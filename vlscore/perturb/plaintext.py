"""A report in plain words, for the check that must not share the extractor's view of it.

The only things it has in common with `vlscore.findings` are the characters and where sentences end.
What a word means is looked up in `perturbations/lexicons/consistency.toml`, by its own patterns.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, wraps
from typing import Any, NamedTuple, TypeVar, cast

from vlscore.perturb.lexicons import read_table

Pattern = re.Pattern[str]

_SIDES = {
    "left": re.compile(r"\b(?:left|lt|lll|lul|lingula\w*)\b"),
    "right": re.compile(r"\b(?:right|rt|rll|rul|rml)\b"),
}
_REMEMBERED = 16_384
_LONGEST_REMEMBERED = 400
_BARE_WORDS = re.compile(r"[a-z]{2,}")
_BOTH = re.compile(r"\b(?:bilateral\w*|both|bibas\w+|biapical|bihilar)\b")
_HEIGHTS = {
    "upper": re.compile(r"\b(?:upper|apex|apic\w+|biapical|apices|suprahilar|[rl]ul)\b"),
    "middle": re.compile(r"\b(?:mid\w*|lingula\w*|hil\w+|perihilar|central\w*|rml|parahilar)\b"),
    "lower": re.compile(
        r"\b(?:lower|bas(?:e|es|al|ilar)|biba\w+|costophrenic|infrahilar|retrocardiac|[rl]ll|sulc\w+)\b"
    ),
}
# "lung base" says where; the "base of the neck" or the "upper limits of normal" do not.
_NO_PLACE = re.compile(
    r"\b(?:upper limits?|upper normal|midline|middle[- ]aged?|mid[- ]?thoracic|"
    r"central (?:venous|line|catheter))\b"
)


class Topic(NamedTuple):
    """What reports call one thing, by plain words."""

    name: str
    observations: frozenset[str]
    names: Pattern
    coarse: Pattern | None
    systems: frozenset[str]
    beside: frozenset[str]
    acute: bool


class PlainSentence(NamedTuple):
    """A sentence in lower case, with its list number, title or label; `start` is where it begins.

    `lead` is how many characters stand before the sentence proper.
    """

    number: int
    start: int
    said: str
    lead: int

    @property
    def end(self) -> int:
        return self.start + len(self.said)


class Words(NamedTuple):
    """The tables of `[words]`, each as one pattern."""

    negators: Pattern
    negators_after: Pattern
    ends: Pattern
    not_there: Pattern
    garbled: Pattern
    pointers: Pattern
    conditions: Pattern
    pooled: Pattern
    serious: Pattern
    recommends: Pattern
    examinations: Pattern
    hedged_normal: Pattern
    no_prior: Pattern
    priors: Pattern
    compares: Pattern
    grades: Pattern
    extents: Pattern
    side_bound: Pattern
    height_bound: Pattern


def sentences_of(text: str, spans: Sequence[tuple[int, int]]) -> list[PlainSentence]:
    """The sentences at the spans given, each with what stands between it and the one before."""
    found = []
    before = 0
    for number, (start, end) in enumerate(spans):
        said = text[before:start] + _parted(text[start:end])
        found.append(PlainSentence(number, before, _lowered(said), start - before))
        before = end
    return found


# "No infiltrate Emphysema": a period was forgotten.
_FORGOTTEN_STOP = re.compile(r"(?<=[a-z)] [A-Z])(?=[a-z]{2})")


def _parted(sentence: str) -> str:
    """The sentence with a semicolon for the blank before a capital in the middle."""
    capitals = [m.start() - 2 for m in _FORGOTTEN_STOP.finditer(sentence)]
    if not capitals or (len(capitals) > 1 and 3 * len(capitals) > sentence.count(" ")):
        return sentence
    characters = list(sentence)
    for place in capitals:
        characters[place] = ";"
    return "".join(characters)


def _lowered(text: str) -> str:
    """In lower case, character by character, so that places stay what they are."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


Told = TypeVar("Told", bound=Callable[..., Any])


def remembered(told: Told) -> Told:
    """What a sentence tells, remembered: every change of a report asks it, of each sentence.

    Long ones are rare, and would take much memory.
    """
    again = lru_cache(_REMEMBERED)(told)

    @wraps(told)
    def answer(said: str, *rest: Any) -> Any:
        return (told if len(said) > _LONGEST_REMEMBERED else again)(said, *rest)

    return cast("Told", answer)


@remembered
def bare(said: str) -> str:
    """The words alone."""
    return " ".join(_BARE_WORDS.findall(said))


@cache
def topics() -> dict[str, Topic]:
    """Observation -> its topic, from consistency.toml."""
    found = {}
    for entry in read_table("consistency")["topic"]:
        topic = Topic(
            entry["name"],
            frozenset(entry["observations"]),
            any_of(entry["names"]),
            any_of(entry["coarse"]) if entry["coarse"] else None,
            frozenset(entry["systems"]),
            frozenset(entry["beside"]),
            entry["acute"],
        )
        found.update(dict.fromkeys(topic.observations, topic))
    return found


@cache
def words() -> Words:
    """From consistency.toml."""
    table = read_table("consistency")["words"]
    return Words(*(any_of(table[name]) for name in Words._fields))


@cache
def systems() -> dict[str, Pattern]:
    """System -> the words that name it, from consistency.toml."""
    return {name: any_of(said) for name, said in read_table("consistency")["systems"].items()}


def any_of(patterns: list[str]) -> Pattern:
    """Finds one of the patterns, from the beginning of a word to the end of one."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)")


def is_denied(said: str, start: int, end: int) -> bool:
    """Whether a plain negation before or after said[start:end], in its clause, denies it."""
    table = words()
    clause = max(said.rfind(stop, 0, start) for stop in (";", ":", ". ")) + 1
    for negator in table.negators.finditer(said, clause, end):
        if table.ends.search(said, negator.end(), start) is None:
            return True
    stops = [k for k in (said.find(stop, end) for stop in (";", ", ", ". ", " and ")) if k >= 0]
    rest = said[end : min(stops, default=len(said))].rstrip(" .")
    return table.negators_after.search(rest) is not None


@remembered
def claims(said: str, pattern: Pattern) -> bool:
    """Whether a sentence names something without denying it."""
    return any(not is_denied(said, *match.span()) for match in pattern.finditer(said))


@remembered
def sides_in(said: str) -> frozenset[str]:
    """Left and right, as far as the words say so; both where they say both."""
    if _BOTH.search(said):
        return frozenset(_SIDES)
    return frozenset(side for side, pattern in _SIDES.items() if pattern.search(said))


@remembered
def heights_in(said: str) -> frozenset[str]:
    """Upper, middle and lower, as far as the words say so."""
    said = _NO_PLACE.sub(" ", said)
    return frozenset(height for height, pattern in _HEIGHTS.items() if pattern.search(said))


def may_be_one_place(one: str, other: str) -> bool:
    """Whether nothing in two pieces of text says that they speak of two places."""
    a, b = sides_in(one), sides_in(other)
    if a and b and not a & b:
        return False
    a, b = heights_in(one), heights_in(other)
    return not a or not b or bool(a & b)
