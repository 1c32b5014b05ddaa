"""Content of single sentences, so that one can replace another with the same content."""

from typing import NamedTuple

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
from vlscore.perturb import ParsedReport

# Zones at the same height, which reports use as synonyms.
_HEIGHTS = {
    **dict.fromkeys(("apex", "upper lobe", "upper zone"), "upper"),
    **dict.fromkeys(("base", "lower lobe", "lower zone", "costophrenic angle"), "lower"),
}
_DEVICES = "Support Devices"
# Scale of severity -> rank of its middle level.
_MODERATE = {"degree": 4, "amount": 4}
_SIDE_WORDS = frozenset(("left", "right", "bilateral", "sided"))
# Largest number of sentences that are stored for one content.
_MOST_ALIKE = 200

# Facts of one finding: observation, polarity, status, side, heights, grade, change, device.
Fact = tuple[str, str, str, str, tuple[str, ...], str, str, str]
# Content of a sentence: the facts of its findings, and the regions that it describes as normal.
SentenceFacts = tuple[tuple[Fact, ...], tuple[str, ...]]
_OPTIONAL = (3, 4, 5, 6)


class SentencePlace(NamedTuple):
    """Sentence of a report.

    Attributes:
        span: its characters.
        content: number of its content in a `SentenceTable`; -1 if no other may replace it.
    """

    span: Span
    content: int


def content_of(sentence: Sentence, text: str) -> SentenceFacts | None:
    """Return the content of a sentence as extracted; None if it states nothing clinical.

    Severities count as below, at or above moderate, and zones by their height, because readers use
    "small" like "tiny" and "left base" like "left lower lobe". Devices count by their names.

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
    kept = [fact for fact in facts if not any(_is_more_specific(other, fact) for other in facts)]
    return tuple(sorted(kept)), tuple(sorted({denial.scope for denial in sentence.denials}))


def states_one_finding(content: SentenceFacts, with_change: bool = False) -> bool:
    """Return whether a sentence states exactly one finding that the patient has now.

    Args: with_change: whether it may compare the finding with an earlier image.
    """
    facts, scopes = content
    if len(facts) != 1 or scopes:
        return False
    _, polarity, status, _, _, _, change, _ = facts[0]
    stated = polarity == Polarity.POSITIVE and status == Status.CURRENT
    return stated and (with_change or not change)


def differences(one: SentenceFacts, other: SentenceFacts) -> tuple[str, ...]:
    """Return in what two statements of one finding differ: location, severity, comparison."""
    (mine, *_), (theirs, *_) = one[0], other[0]
    found = {"location": mine[3:5] != theirs[3:5], "severity": mine[5] != theirs[5]}
    found["comparison"] = mine[6] != theirs[6]
    return tuple(name for name, differs in found.items() if differs)


def is_device(finding: Finding) -> bool:
    """Return whether a mention is of a present device: a tube, line, pacemaker or similar."""
    return finding.chexpert == _DEVICES and finding.is_present


class SentenceTable:
    """Sentences of a corpus by their content.

    Attributes:
        contents: the distinct contents.
        texts: for each content its distinct sentences, in the order of the corpus.
    """

    def __init__(self) -> None:
        self.contents: list[SentenceFacts] = []
        self.texts: list[list[str]] = []
        self._numbers: dict[SentenceFacts, int] = {}
        self._known: dict[str, SentenceFacts | None] = {}

    def add(self, report: ParsedReport) -> list[SentencePlace]:
        """Add the sentences of a report; return the place of each."""
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
            places.append(SentencePlace(sentence.span, number))
        return places

    def _number(self, content: SentenceFacts) -> int:
        number = self._numbers.setdefault(content, len(self.contents))
        if number == len(self.contents):
            self.contents.append(content)
            self.texts.append([])
        return number

    def _alone(self, text: str) -> SentenceFacts | None:
        """Return a sentence's content without its report; "It is unchanged." then has none."""
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
    """Return below, at or above moderate; the word itself if its scale has no moderate."""
    found = next((each for each in finding.on(Axis.SEVERITY)), None)
    if found is None:
        return ""
    level = severity_level(found.value)
    if level is None or level.scale not in _MODERATE:
        return found.value
    middle = _MODERATE[level.scale]
    return "below" if level.rank < middle else "above" if level.rank > middle else "at"


def _is_more_specific(one: Fact, other: Fact) -> bool:
    """Return whether one mention of an observation has all attributes of the other, and more."""
    if one == other:
        return False
    return all(
        mine == theirs or (place in _OPTIONAL and not theirs)
        for place, (mine, theirs) in enumerate(zip(one, other, strict=True))
    )
