"""Types of extracted findings, immutable with spans in the original text; policy of labels."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, NamedTuple

from vlscore.core import check_settings
from vlscore.text import plain_text


class Span(NamedTuple):
    """Half-open character range [start, end) of the original report."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """Return the characters the span covers.

        >>> Span(3, 8).of("no effusion")
        'effus'
        """
        return text[self.start : self.end]

    def covers(self, other: "Span") -> bool:
        """Return whether `other` lies inside this span."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: "Span") -> bool:
        """Return whether the two spans share a character."""
        return self.start < other.end and other.start < self.end


class Polarity(StrEnum):
    """Polarity: the sentence affirms the observation, denies it, or states it as uncertain."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    UNCERTAIN = "uncertain"


class Status(StrEnum):
    """Status: ConText's temporality and experiencer (whose finding it is, and when) in one axis."""

    CURRENT = "current"
    HISTORICAL = "historical"
    HYPOTHETICAL = "hypothetical"
    OTHER = "other"


class Side(StrEnum):
    """Laterality."""

    LEFT = "left"
    RIGHT = "right"
    BILATERAL = "bilateral"


class TemporalChange(StrEnum):
    """Change of the finding since an earlier examination."""

    UNCHANGED = "unchanged"
    WORSE = "worse"
    IMPROVED = "improved"
    NEW = "new"
    RESOLVED = "resolved"


class Category(StrEnum):
    """Category of a sentence by its purpose."""

    CLINICAL = "clinical"
    TECHNIQUE = "technique"
    COMMUNICATION = "communication"
    HISTORY = "history"
    RECOMMENDATION = "recommendation"
    COMPARISON = "comparison"
    OTHER = "other"


class Layout(StrEnum):
    """Layout of a sentence: prose, or one line of a template."""

    PROSE = "prose"
    LABEL = "label"
    TABLE = "table"
    CHECKBOX = "checkbox"


class Axis(StrEnum):
    """Axis: the kinds of attributes of a finding."""

    SIDE = "side"
    ZONE = "zone"
    SEVERITY = "severity"
    CHANGE = "change"
    SIZE = "size"


class Attribute(NamedTuple):
    """One word or phrase that qualifies a finding.

    `value` is canonical ("left", "base", "mild", "unchanged", or a size in millimetres).
    `inherited` is true where the words stand at another finding of the sentence and are
    understood here too ("left effusion and atelectasis"), or only imply the value (the plural of
    "in the lung bases" implies both sides): never edit them on behalf of this finding.
    """

    axis: Axis
    value: str
    span: Span
    inherited: bool = False


class Rule(NamedTuple):
    """A lexicon entry that fired: its name (`negation:no`, `frame:heart`) and its words."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Finding:
    """One mention of one observation.

    `span` covers the mention; `cue` the words that state the abnormality, which is the same
    unless subject and state stand apart ("the *heart* is mildly **enlarged**"). `chexpert` is the
    CheXpert label the observation counts towards, or None. `rules` lists, in text order, the
    lexicon entry of the mention and the ConText triggers that set polarity and status.
    `normal` marks a denial made by stating normality ("heart size is normal") rather than by
    negating the finding ("no cardiomegaly").
    """

    observation: str
    span: Span
    cue: Span
    polarity: Polarity
    sentence: int
    chexpert: str | None = None
    status: Status = Status.CURRENT
    attributes: tuple[Attribute, ...] = ()
    rules: tuple[Rule, ...] = ()
    normal: bool = False

    def on(self, axis: Axis) -> tuple[Attribute, ...]:
        """Return the attributes on one axis, in text order."""
        return tuple([a for a in self.attributes if a.axis is axis])

    @property
    def side(self) -> Side | None:
        """Left, right, bilateral (also when both sides are named), or None."""
        sides = {a.value for a in self.attributes if a.axis is Axis.SIDE}
        if not sides:
            return None
        return Side(sides.pop()) if len(sides) == 1 else Side.BILATERAL

    @property
    def sides(self) -> tuple[str, ...]:
        """Return "left", "right" or both, in this order; empty where the report names no side."""
        if self.side is None:
            # Only the right lung has a middle lobe.
            return ("right",) if "middle lobe" in self.zones else ()
        return ("left", "right") if self.side is Side.BILATERAL else (str(self.side),)

    @property
    def zones(self) -> tuple[str, ...]:
        """Names of the places, each once, in text order."""
        return tuple(dict.fromkeys(a.value for a in self.on(Axis.ZONE)))

    @property
    def severity(self) -> str | None:
        """Return the first severity word's canonical form."""
        return next((a.value for a in self.on(Axis.SEVERITY)), None)

    @property
    def size(self) -> float | None:
        """Return the size in millimetres, the largest of several diameters; None without one.

        >>> from vlscore.findings import extract
        >>> extract("A 2.8 x 3.2 cm nodule.").findings[0].size
        32.0
        """
        return next((float(a.value) for a in self.on(Axis.SIZE)), None)

    @property
    def change(self) -> TemporalChange | None:
        """Return the first comparison with an earlier examination; "unchanged" if nothing else.

        What had resolved may have come back ("drained last week, it has reaccumulated"), unless it
        is on the other side.
        """
        values = [TemporalChange(a.value) for a in self.on(Axis.CHANGE)]
        real = [v for v in values if v is not TemporalChange.UNCHANGED]
        is_of_one = len(self.on(Axis.SIDE)) < 2
        since = [v for v in real if v is not TemporalChange.RESOLVED and is_of_one]
        return next(iter(since or real or values), None)

    @property
    def is_present(self) -> bool:
        """Return True for a finding that is certain, current, and this patient's."""
        return self.polarity is Polarity.POSITIVE and self.status is Status.CURRENT

    @property
    def is_likely(self) -> bool:
        """Return True for a current finding that is certain or probable ("A versus B")."""
        if self.status is not Status.CURRENT or self.polarity is Polarity.NEGATIVE:
            return False
        return all(rule.name != "context:uncertain" for rule in self.rules)


class Comparison(NamedTuple):
    """Change that a sentence states, by the words at `span`.

    `finding` is the number of the finding in the sentence; None where it is of something else that
    `topic` names. Without a topic it is of the sentence before.
    """

    topic: str | None
    change: TemporalChange
    span: Span
    finding: int | None = None


class Denial(NamedTuple):
    """A statement that a region of the chest is normal, or shows no (acute) disease.

    `scope` is the region: "chest", "cardiopulmonary", "lungs", "pleura", "heart", "mediastinum",
    "vessels", "diaphragm" or "bones". `observations` are the findings that it denies; where
    `acute` is true, those that last (scars, calcifications) are not among them.
    """

    scope: str
    span: Span
    acute: bool
    observations: frozenset[str]


class MarkedSpan(NamedTuple):
    """Words that a reader asked for besides findings, as by `MarkedWords`.

    Attributes:
        layer, name: as asked for.
        span: the words, with a size that stands right before them.
        size: this size in millimetres; None without one.
        is_stated: False where the sentence denies them, or tells them of the past.
    """

    layer: str
    name: str
    span: Span
    size: float | None = None
    is_stated: bool = True


@dataclass(frozen=True, slots=True)
class Sentence:
    """Sentence of a report: its place, its purpose, and the findings that it mentions.

    `rule` names the pattern that set a non-clinical category. `normal` is true for a clinical
    sentence that states normality or absence and nothing abnormal. `layout` says whether it is
    prose or a line of a template ("Pneumothorax: none"), whose parts cannot be moved as words can.
    `denials` are the regions that it says are normal or free of (acute) disease. `loose` are the
    attributes of a sentence without findings, `comparisons` the changes since an earlier
    examination, which `names_earlier` says whether it names. `marks` are further words, for
    readers that ask for them.
    """

    index: int
    span: Span
    category: Category
    findings: tuple[Finding, ...] = ()
    rule: Rule | None = None
    normal: bool = False
    changes: tuple[Attribute, ...] = ()
    layout: Layout = Layout.PROSE
    denials: tuple[Denial, ...] = ()
    marks: tuple[MarkedSpan, ...] = ()
    loose: tuple[Attribute, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    names_earlier: bool = False

    @property
    def has_positive(self) -> bool:
        """Return whether it states, without doubt, a finding the patient has now."""
        return any(f.is_present for f in self.findings)


def shifted(sentence: Sentence, index: int, offset: int) -> Sentence:
    """Return a sentence as number `index`, with all its spans `offset` characters further on."""
    if not index and not offset:
        return sentence
    new = tuple.__new__

    def at(span: Span) -> Span:
        return new(Span, (span[0] + offset, span[1] + offset))

    def moved(attributes: tuple[Attribute, ...]) -> tuple[Attribute, ...]:
        return attributes and tuple(
            [
                new(Attribute, (axis, value, new(Span, (start + offset, end + offset)), own))
                for axis, value, (start, end), own in attributes
            ]
        )

    def ruled(rule: Rule) -> Rule:
        name, (start, end) = rule
        return new(Rule, (name, new(Span, (start + offset, end + offset))))

    findings = [
        Finding(
            f.observation,
            at(f.span),
            at(f.cue),
            f.polarity,
            index,
            f.chexpert,
            f.status,
            moved(f.attributes),
            tuple([ruled(rule) for rule in f.rules]),
            f.normal,
        )
        for f in sentence.findings
    ]
    return Sentence(
        index,
        at(sentence.span),
        sentence.category,
        tuple(findings),
        sentence.rule and ruled(sentence.rule),
        sentence.normal,
        moved(sentence.changes),
        sentence.layout,
        tuple([new(Denial, (scope, at(s), *rest)) for scope, s, *rest in sentence.denials]),
        tuple(
            [
                new(MarkedSpan, (layer, name, at(s), *rest))
                for layer, name, s, *rest in sentence.marks
            ]
        ),
        moved(sentence.loose),
        tuple([new(Comparison, (t, c, at(s), number)) for t, c, s, number in sentence.comparisons]),
        sentence.names_earlier,
    )


@dataclass(frozen=True, slots=True)
class ReportFindings:
    """Everything extracted from one report. All spans index `text`."""

    text: str
    sentences: tuple[Sentence, ...] = field(default=())

    @property
    def plain(self) -> str:
        """Return the text as it is read, without markup: as many characters as `text`."""
        return plain_text(self.text).text

    def __iter__(self) -> Iterator[Finding]:
        for sentence in self.sentences:
            yield from sentence.findings

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return all findings in text order."""
        return tuple(self)

    def of(self, *observations: str) -> tuple[Finding, ...]:
        """Return the findings of the named observations."""
        return tuple(f for f in self if f.observation in observations)

    @property
    def present(self) -> tuple[Finding, ...]:
        """Return the findings that are certain, current, and this patient's."""
        return tuple(f for f in self if f.is_present)

    @property
    def states_anything(self) -> bool:
        """Return whether it says that anything is there, doubtful, absent or normal.

        >>> from vlscore.findings import extract
        >>> [extract(t).states_anything for t in ("", "Lungs lungs.", "Clear lungs.", "Edema.")]
        [False, False, True, True]
        """
        return any(s.findings or s.denials or s.normal for s in self.sentences)

    @property
    def denials(self) -> tuple[Denial, ...]:
        """Return statements that a region is normal or free of (acute) disease, in text order."""
        return tuple(d for sentence in self.sentences for d in sentence.denials)

    def denying(self, observation: str) -> tuple[Denial, ...]:
        """Return the statements that deny an observation without naming it.

        >>> from vlscore.findings import extract
        >>> [d.scope for d in extract("The heart is normal. Clear lungs.").denying("nodule")]
        ['lungs']
        """
        return tuple(d for d in self.denials if observation in d.observations)


@dataclass(frozen=True)
class LabelPolicy:
    """Policy for writing labels.

    CheXpert's authors (Irvin et al. 2019, section 4) call positive, negative and ignored U-Ones,
    U-Zeros and U-Ignore.

    Attributes:
        uncertain: What an uncertain label becomes: keep (-1), positive, negative, or ignored
            (empty).

    Raises: InvalidSetting for another word.
    """

    uncertain: Literal["keep", "positive", "negative", "ignored"] = "keep"

    def __post_init__(self) -> None:
        check_settings(self)

    def written(self, value: int | None) -> int | None:
        """Return a label as the policy has it written.

        >>> LabelPolicy("positive").written(-1), LabelPolicy("ignored").written(-1)
        (1, None)
        """
        if value != -1:
            return value
        return {"keep": -1, "positive": 1, "negative": 0, "ignored": None}[self.uncertain]
