"""Reading of a report by its words, for a check that must be independent of the extractor.

It shares only the characters and the ends of sentences with `vlscore.findings`. The meaning of
words comes from the patterns in `perturbations/lexicons/consistency.toml`.

`denial_of` finds sentences that call organs or the whole image normal. `spared` edits them so that
they agree with a finding: "No acute abnormality" -> "No other acute abnormality".
"""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from vlscore.perturb.edits import Edit, with_capital
from vlscore.perturb.lexicons import perturbation_table

Pattern = re.Pattern[str]

_SIDES = {
    "left": re.compile(r"\b(?:left|lt|lll|lul|lingula\w*)\b"),
    "right": re.compile(r"\b(?:right|rt|rll|rul|rml)\b"),
}
_BARE_WORDS = re.compile(r"[a-z]{2,}")
_BOTH = re.compile(r"\b(?:bilateral\w*|both|bibas\w+|biapical|bihilar)\b")
_HEIGHTS = {
    "upper": re.compile(r"\b(?:upper|apex|apic\w+|biapical|apices|suprahilar|[rl]ul)\b"),
    "middle": re.compile(r"\b(?:mid\w*|lingula\w*|hil\w+|perihilar|central\w*|rml|parahilar)\b"),
    "lower": re.compile(
        r"\b(?:lower|bas(?:e|es|al|ilar)|biba\w+|costophrenic|infrahilar|retrocardiac|[rl]ll|sulc\w+)\b"
    ),
}
# "lung base" is a zone; the "base of the neck" or the "upper limits of normal" are not.
_NO_PLACE = re.compile(
    r"\b(?:upper limits?|upper normal|midline|middle[- ]aged?|mid[- ]?thoracic|"
    r"central (?:venous|line|catheter))\b"
)


class Topic(NamedTuple):
    """Words by which reports name one observation."""

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
    text: str
    lead: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


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
    """Return the sentences at the spans, each with the text between it and the previous one."""
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
    """Return the sentence with a semicolon for the blank before a capital in the middle."""
    capitals = [m.start() - 2 for m in _FORGOTTEN_STOP.finditer(sentence)]
    if not capitals or (len(capitals) > 1 and 3 * len(capitals) > sentence.count(" ")):
        return sentence
    characters = list(sentence)
    for place in capitals:
        characters[place] = ";"
    return "".join(characters)


def _lowered(text: str) -> str:
    """Convert to lower case, character by character, so that positions do not change."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


# Every change of a report asks the same of each of its sentences.
remembered = lru_cache(maxsize=16_384)


@remembered
def bare(said: str) -> str:
    """Return the words alone."""
    return " ".join(_BARE_WORDS.findall(said))


@cache
def topics() -> dict[str, Topic]:
    """Observation -> its topic, from consistency.toml."""
    found = {}
    for entry in perturbation_table("consistency")["topic"]:
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
    """Rules of consistency.toml."""
    table = perturbation_table("consistency")["words"]
    return Words(*(any_of(table[name]) for name in Words._fields))


@cache
def systems() -> dict[str, Pattern]:
    """System -> the words that name it, from consistency.toml."""
    return {
        name: any_of(said) for name, said in perturbation_table("consistency")["systems"].items()
    }


def any_of(patterns: list[str]) -> Pattern:
    """Finds one of the patterns, from the beginning of a word to the end of one."""
    return re.compile(rf"(?<!\w)(?:{'|'.join(patterns)})(?!\w)")


def is_denied(said: str, start: int, end: int) -> bool:
    """Return whether a plain negation before or after said[start:end], in its clause, denies it."""
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
    """Return whether a sentence names something without denying it."""
    return any(not is_denied(said, *match.span()) for match in pattern.finditer(said))


@remembered
def sides_in(said: str) -> frozenset[str]:
    """Return the sides that the words name: left, right or both."""
    if _BOTH.search(said):
        return frozenset(_SIDES)
    return frozenset(side for side, pattern in _SIDES.items() if pattern.search(said))


@remembered
def heights_in(said: str) -> frozenset[str]:
    """Return the zones that the words name: upper, middle, lower."""
    said = _NO_PLACE.sub(" ", said)
    return frozenset(height for height, pattern in _HEIGHTS.items() if pattern.search(said))


def may_be_one_place(one: str, other: str) -> bool:
    """Return True if two pieces of text may mean one place: they name no different ones."""
    a, b = sides_in(one), sides_in(other)
    if a and b and not a & b:
        return False
    a, b = heights_in(one), heights_in(other)
    return not a or not b or bool(a & b)


# Words that may come between a denial and its object without naming a finding.
_FILL = (
    r"(?:acute|active|evidence|radiographic|radiographically|of|for|an?|any|the|significant|definite|"
    r"visible|obvious|identifiable|gross|convincing|appreciable|xxxx|or|and|new|suspicious|"
    r"cardio-?\s?pulmonary|cardio-?thoracic|cardio-?vascular|intra-?thoracic|thoracic|chest|cardiac|"
    r"pulmonary|pleural|lung|parenchymal|bony|bone|osseous|osseus|skeletal|soft tissue|mediastinal|"
    r"preoperative|interval|focal|other|additional|findings?|/)"
)
_DENIES = re.compile(
    rf"(?<!\w)(?:no|without|negative for|free of)(?:[\s,/-]+{_FILL})*?[\s,/-]+"
    r"(?:abnormalit\w+|disease|process\w*|patholog\w+|"
    r"findings?(?! (?:of|for|to|suggest\w+|concerning|compatible|consistent)\b)|"
    r"(?<=cardiopulmonary )[a-z]+|(?<=acute )xxxx|(?<=active )xxxx|(?<=thoracic )xxxx)(?!\w)"
)
_ONE_WORD = re.compile(r"\W*(?:normal|negative|unremarkable|clear)\W*")
_TITLE = re.compile(r"\W*(?:\d+\W+)?\w+(?: \w+)?\W*")
# "The lungs show no acute abnormality."
_SUBJECT = re.compile(
    r"^[^,;:]*?(?=\s(?:show|shows|demonstrates?|reveals?|are|is|appears?|have|has)(?: \w+ly)?\s*$)"
)
_ACUTE = re.compile(r"\b(?:acute|active|new)\b")
_NORMAL = (
    r"(?:clear|normal|negative|unremarkable|intact|within normal|within limits|well[- ]aerated)"
)
_FILM = r"(?:chest(?! (?:wall|tube))|exam\w*|study|film|radiographs?|x-?\s?(?:ray|xxxx)|views?)"
_WHOLE = re.compile(
    rf"(?<!\w)(?:normal|negative|unremarkable|clear) (?:\w+ ){{0,2}}{_FILM}"
    rf"|(?<!\w){_FILM}(?: (?:is|are|appears?|looks?|remains?))?(?: (?:\w+ly|otherwise))? "
    r"(?:normal|negative|unremarkable|within normal)"
    r"|^\W*(?:otherwise,? )?(?:normal|negative|unremarkable)\W*$"
)
_OF_PARTS = re.compile(
    rf"(?<!\w)(?:{_NORMAL}|normally|well[- ]expanded) (?:\w+ ){{0,3}}(?:lungs?|pleura\w*|bon\w+|"
    r"osseous|skelet\w+|mediastin\w+|vascul\w+|heart|cardi\w+)"
    r"|(?:lungs?|lung fields|spaces?|surfaces?|bon\w+|structures?|skelet\w+|thorax|spine|ribs?|"
    r"parenchyma|mediastin\w+|silhouettes?|contours?|vascul\w+|heart|size|hil[ai]r?|hilum|xxxx)\b"
    r"(?:[^.;]{0,30}?(?:is|are|appears?|looks?|remains?|being|but|but are)| )\s?"
    rf"(?:\w+ly |well )*(?:and \w+ |\w+ and )?{_NORMAL}"
)
_ADJECTIVES = 24
_SPARED = re.compile(
    r"\b(?:other|otherwise|besides|except|apart from|aside from|remainder|remaining)\b"
)

_BEFORE_ACUTE = re.compile(
    r"(?<!\w)(?:no|without|negative for|free of)((?:[\s]+[\w-]+){0,6}?\s+(?:of|for))?\s+"
)
_ARTICLE = re.compile(r"(an?|any)\s+")
_ADVERBIAL = (
    re.compile(r"\b(?:is|are|was|were|appears?|looks?|remains?)\s+"),
    re.compile(r"\bbut\s+"),
    re.compile(r"\b(?:lungs?|chest|exam\w*|study|film|radiographs?|spaces|structures|thorax)\s+"),
)
_STATE = re.compile(rf"(?:\w+ly )?(?:well[- ]\w+ (?:and )?)?(?:expanded (?:and )?)?{_NORMAL}")
_FIRST = re.compile(rf"(?:\w+ly |well[- ]\w+ and )?{_NORMAL}\b")
_WITHIN = re.compile(rf"(?:\band|\bwith)\s+(?=(?:\w+ly )?{_NORMAL})")


class DeniedSystems(NamedTuple):
    """Denial of a sentence: the systems it calls normal, or everything if there are none.

    `only_acute` is True if it denies only acute findings.
    """

    systems: frozenset[str]
    only_acute: bool

    def covers(self, topic: Topic) -> bool:
        """Return whether the denial belies a statement on the topic."""
        if self.only_acute and not topic.acute:
            return False
        return not self.systems or not self.systems.isdisjoint(topic.systems)

    def wants_otherwise(self, topic: Topic) -> bool:
        """Return whether it reads better with an "otherwise" after a statement on the topic."""
        return not self.only_acute and not self.systems.isdisjoint(topic.beside)


def denial_of(sentence: PlainSentence, before: PlainSentence | None = None) -> DeniedSystems | None:
    """Return the denial of whole organs, or of the whole image, by a sentence, or None.

    Args:
        before: the sentence before it, which may be its title ("Ribs. Normal.").
    """
    return _denial(sentence.text, None if before is None else before.text)


@remembered
def _denial(said: str, before: str | None) -> DeniedSystems | None:
    if before is not None and _ONE_WORD.fullmatch(said) and _TITLE.fullmatch(before):
        whose = _systems_in(before)
        return DeniedSystems(whose, only_acute=False) if whose else None
    stated = _DENIES.search(said)
    if stated is not None:
        words = stated.group()
        subject = _SUBJECT.search(said, 0, stated.start())
        whose = _systems_in(words) or _systems_in(subject.group() if subject else "")
        return DeniedSystems(whose, _ACUTE.search(words) is not None)
    if _WHOLE.search(said) is not None:
        return DeniedSystems(frozenset(), only_acute=False)
    part = _OF_PARTS.search(said)
    if part is None:
        return None
    # "Visualized osseous structures are unremarkable": the adjective belongs to the structures.
    whose = _systems_in(said[max(0, part.start() - _ADJECTIVES) : part.end()])
    return DeniedSystems(whose, only_acute=False) if whose else None


def _systems_in(said: str) -> frozenset[str]:
    return frozenset(name for name, named in systems().items() if named.search(said))


def spared(text: str, sentence: PlainSentence) -> Edit | None:
    """Return the edit that adds "other" or "otherwise" to a denial after a finding.

    None if the denial has no place for such a word; an empty edit if it has one already.

    >>> from vlscore.perturb.plaintext import sentences_of
    >>> report = "No acute disease. Lungs are clear."
    >>> acute, clear = sentences_of(report, [(0, 17), (18, 34)])
    >>> spared(report, acute), spared(report, clear)
    (Edit(start=3, end=3, replacement='other '), Edit(start=28, end=28, replacement='otherwise '))
    """
    said, start = sentence.text, sentence.start
    if _SPARED.search(said):
        return Edit(start, start, "")
    stated = _DENIES.search(said)
    if stated is not None:
        word = _BEFORE_ACUTE.match(said, *stated.span())
        if word is None:
            return None
        article = _ARTICLE.match(said, word.end())
        if article is not None and article.group(1) != "any":
            return Edit(start + article.start(), start + article.end(1), "another")
        place = start + (word.end() if article is None else article.end())
        return Edit(place, place, "other ")
    for before in _ADVERBIAL:
        for word in before.finditer(said, sentence.lead):
            if _STATE.match(said, word.end()):
                return Edit(start + word.end(), start + word.end(), "otherwise ")
    if _FIRST.match(said, sentence.lead):
        first = start + sentence.lead
        otherwise = with_capital("otherwise ", like=text[first])
        lowered = text[first] if text[first : first + 2].isupper() else text[first].lower()
        return Edit(first, first + 1, otherwise + lowered)
    within = _WITHIN.search(said, sentence.lead)
    if within is not None:
        return Edit(start + within.end(), start + within.end(), "otherwise ")
    return None
