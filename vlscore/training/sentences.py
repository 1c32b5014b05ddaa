"""What single sentences state, so that one can take the place of another that states the same."""

from typing import Any, NamedTuple

from vlscore.findings import (
    Axis,
    Category,
    Finding,
    Layout,
    Polarity,
    Sentence,
    Span,
    Status,
    extract,
    severity_level,
)
from vlscore.perturb import ReadReport

# Zones of one height that reports use for one another.
_HEIGHTS = {
    **dict.fromkeys(("apex", "upper lobe", "upper zone"), "upper"),
    **dict.fromkeys(("base", "lower lobe", "lower zone", "costophrenic angle"), "lower"),
}
_DEVICES = "Support Devices"
# Scale -> the rank of its middle rung.
_MODERATE = {"degree": 4, "amount": 4}
_SIDE_WORDS = frozenset(("left", "right", "bilateral", "sided"))
# Of one content so many sentences are enough.
_MOST_ALIKE = 200

# What one finding is: observation, polarity, status, side, heights, grade, change, device.
Fact = tuple[str, str, str, str, tuple[str, ...], str, str, str]
# The facts of a sentence, and the regions that it says are normal.
Content = tuple[tuple[Fact, ...], tuple[str, ...]]
_OPTIONAL = (3, 4, 5, 6)


class Place(NamedTuple):
    """A sentence of a report.

    Attributes:
        span: its characters.
        content: number of its content in a `SentenceTable`; -1 where no other may take its place.
    """

    span: Span
    content: int


def content_of(sentence: Sentence, text: str) -> Content | None:
    """What a sentence states, as the extractor reads it; None where it states nothing clinical.

    Severities count as below, at or above moderate, and zones by their height: a reader takes
    "small" for "tiny" and "left base" for "left lower lobe". Devices keep their names.

    >>> one, other = (
    ...     content_of(extract(text).sentences[0], text)
    ...     for text in ("Tiny left pleural effusion.", "There is a small effusion on the left.")
    ... )
    >>> one == other
    True
    """
    is_prose = sentence.layout is Layout.PROSE and sentence.category is Category.CLINICAL
    if not is_prose or not (sentence.findings or sentence.denials):
        return None
    facts = {_fact(finding, text) for finding in sentence.findings}
    kept = [fact for fact in facts if not any(_says_more(other, fact) for other in facts)]
    return tuple(sorted(kept)), tuple(sorted({denial.scope for denial in sentence.denials}))


def states_one_finding(content: Content, with_change: bool = False) -> bool:
    """Whether a sentence states one finding that the patient has now.

    Args: with_change: whether it may compare the finding with an earlier film.
    """
    facts, scopes = content
    if len(facts) != 1 or scopes:
        return False
    _, polarity, status, _, _, _, change, _ = facts[0]
    stated = polarity == Polarity.POSITIVE and status == Status.CURRENT
    return stated and (with_change or not change)


def differences(one: Content, other: Content) -> tuple[str, ...]:
    """In what two statements of one finding differ: location, severity, comparison."""
    (mine, *_), (theirs, *_) = one[0], other[0]
    found = {"location": mine[3:5] != theirs[3:5], "severity": mine[5] != theirs[5]}
    found["comparison"] = mine[6] != theirs[6]
    return tuple(name for name, differs in found.items() if differs)


def is_device(finding: Finding) -> bool:
    """Whether a mention is of a tube, a line, a pacemaker and the like that is there."""
    return finding.chexpert == _DEVICES and finding.is_present


class SentenceTable:
    """The sentences of a corpus by what they state.

    Attributes:
        contents: each distinct one.
        texts: the sentences of each, every one once, in the order of the corpus.
    """

    def __init__(self) -> None:
        self.contents: list[Content] = []
        self.texts: list[list[str]] = []
        self._numbers: dict[Content, int] = {}
        self._known: dict[str, Content | None] = {}

    def add(self, report: ReadReport) -> list[Place]:
        """Take the sentences of a report; returns the place of each."""
        places = []
        for sentence in report.sentences:
            content = content_of(sentence, report.text)
            text = " ".join(sentence.span.of(report.text).split())
            number = -1
            if content is not None and self._alone(text) == content:
                number = self._number(content)
                held = self.texts[number]
                if len(held) < _MOST_ALIKE and text not in held:
                    held.append(text)
            places.append(Place(sentence.span, number))
        return places

    def to_plain(self) -> list[Any]:
        """Plain data, ready for json."""
        return [[*pair] for pair in zip(self.contents, self.texts, strict=True)]

    @classmethod
    def of_plain(cls, rows: list[Any]) -> "SentenceTable":
        """The table that `to_plain` gave."""
        table = cls()
        for (facts, scopes), texts in rows:
            content = tuple((*fact[:4], tuple(fact[4]), *fact[5:]) for fact in facts), tuple(scopes)
            table.texts[table._number(content)] = texts
        return table

    def _number(self, content: Content) -> int:
        number = self._numbers.setdefault(content, len(self.contents))
        if number == len(self.contents):
            self.contents.append(content)
            self.texts.append([])
        return number

    def _alone(self, text: str) -> Content | None:
        """What the sentence states without its report; "It is unchanged." then states nothing."""
        if text not in self._known:
            found = extract(text).sentences
            alone = content_of(found[0], text) if len(found) == 1 else None
            self._known[text] = alone
        return self._known[text]


def _fact(finding: Finding, text: str) -> Fact:
    heights = sorted({_HEIGHTS.get(zone, zone) for zone in finding.zones})
    device = ""
    if finding.chexpert == _DEVICES:
        words = finding.span.of(text).lower().replace("-", " ").split()
        device = " ".join(word for word in words if word not in _SIDE_WORDS)
    return (
        finding.observation,
        str(finding.polarity),
        str(finding.status),
        str(finding.side or ""),
        tuple(heights),
        _grade(finding),
        str(finding.change or ""),
        device,
    )


def _grade(finding: Finding) -> str:
    """Below, at or above moderate; the word itself where its scale has no moderate."""
    found = next((each for each in finding.on(Axis.SEVERITY)), None)
    if found is None:
        return ""
    level = severity_level(found.value)
    if level is None or level.scale not in _MODERATE:
        return found.value
    middle = _MODERATE[level.scale]
    return "below" if level.rank < middle else "above" if level.rank > middle else "at"


def _says_more(one: Fact, other: Fact) -> bool:
    """Whether one mention of an observation has all that the other has, and more."""
    if one == other:
        return False
    return all(
        mine == theirs or (place in _OPTIONAL and not theirs)
        for place, (mine, theirs) in enumerate(zip(one, other, strict=True))
    )
