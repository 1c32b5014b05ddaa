"""Sentences that call something normal, whose normality they state, and how they become right
beside a finding: "No acute abnormality" -> "No other acute abnormality"."""

import re
from typing import NamedTuple

from vlscore.perturb.perturbation import Edit
from vlscore.perturb.plaintext import PlainSentence, Topic, remembered, systems
from vlscore.perturb.wording import with_capital

# Words that may stand between a denial and what it denies without naming a finding.
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


class Denial(NamedTuple):
    """What a sentence calls normal: some systems, or everything where there are none.

    `only_acute` is true where it denies no more than what is acute.
    """

    systems: frozenset[str]
    only_acute: bool

    def covers(self, topic: Topic) -> bool:
        """Whether the denial belies a statement on the topic."""
        if self.only_acute and not topic.acute:
            return False
        return not self.systems or not self.systems.isdisjoint(topic.systems)

    def is_beside(self, topic: Topic) -> bool:
        """Whether it reads better with an "otherwise" after a statement on the topic."""
        return not self.only_acute and not self.systems.isdisjoint(topic.beside)


def denial_of(sentence: PlainSentence, before: PlainSentence | None = None) -> Denial | None:
    """What a sentence denies of whole organs or of the whole film; None where nothing.

    Args:
        before: the sentence before it, which may be its title ("Ribs. Normal.").
    """
    return _denial(sentence.said, None if before is None else before.said)


@remembered
def _denial(said: str, before: str | None) -> Denial | None:
    if before is not None and _ONE_WORD.fullmatch(said) and _TITLE.fullmatch(before):
        whose = _systems_in(before)
        return Denial(whose, only_acute=False) if whose else None
    stated = _DENIES.search(said)
    if stated is not None:
        words = stated.group()
        subject = _SUBJECT.search(said, 0, stated.start())
        whose = _systems_in(words) or _systems_in(subject.group() if subject else "")
        return Denial(whose, _ACUTE.search(words) is not None)
    if _WHOLE.search(said) is not None:
        return Denial(frozenset(), only_acute=False)
    part = _OF_PARTS.search(said)
    if part is None:
        return None
    # "Visualized osseous structures are unremarkable": the adjective says whose structures.
    whose = _systems_in(said[max(0, part.start() - _ADJECTIVES) : part.end()])
    return Denial(whose, only_acute=False) if whose else None


def _systems_in(said: str) -> frozenset[str]:
    return frozenset(name for name, named in systems().items() if named.search(said))


def spared(text: str, sentence: PlainSentence) -> Edit | None:
    """The edit by which a denial makes room for a finding stated before it: "other", "otherwise".

    None where it has no place for such a word. An edit of nothing where it makes room already.

    >>> from vlscore.perturb.plaintext import sentences_of
    >>> report = "No acute disease. Lungs are clear."
    >>> acute, clear = sentences_of(report, [(0, 17), (18, 34)])
    >>> spared(report, acute), spared(report, clear)
    (Edit(start=3, end=3, replacement='other '), Edit(start=28, end=28, replacement='otherwise '))
    """
    said, start = sentence.said, sentence.start
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
