"""Parsed report for the kinds of perturbation: its findings, sentences, lists and style."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from vlscore.findings import (
    Axis,
    Category,
    Finding,
    Polarity,
    ReportFindings,
    Sentence,
    Side,
    Status,
    extract,
)
from vlscore.perturb.lexicons import discourse
from vlscore.perturb.plaintext import PlainSentence, bare, sentences_of
from vlscore.perturb.plaintext import words as plain_words

_NUMBER = re.compile(r"(?:\(?\d{1,2}[.)],?|[-*•])\s*$")
_HEADER = re.compile(r"[A-Za-z][A-Za-z /&,()\-]{2,40}?[ \t]*:\s*(?:\(?\d{1,2}[.)]\s*)?$")
_TIED_END = re.compile(r"(?:;|\s\d{1,2}\.)\s*$")
_LABEL_WORDS = re.compile(r"[A-Za-z][\w ]{2,25}:")
_TITLE_WORDS = 2
_SPACED_PERIOD = re.compile(r"\w \.(?:\s|$)")
_PERIOD = re.compile(r"\.(?:\s|$)")
_WORDS = re.compile(r"[a-z']+")

Topic = tuple[str, Side | None, tuple[str, ...]]


@dataclass(frozen=True, eq=False)
class ReadReport:
    """Report, parsed once for all kinds.

    Attributes:
        text: the report.
        findings: its findings, from `vlscore.findings.extract`.
        standard_normal: the text that can replace any normal report, or None.
    """

    text: str
    findings: ReportFindings = field(repr=False)
    standard_normal: str | None = None

    @classmethod
    def read(cls, report: str, standard_normal: str | None = None) -> "ReadReport":
        """Extract the findings of a report. Raises InvalidReport if it is not a text."""
        return cls(report, extract(report), standard_normal)

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        return self.findings.sentences

    def words_of(self, sentence: Sentence) -> str:
        """Return the sentence in lower case."""
        return self._lower[sentence.index]

    @cached_property
    def _lower(self) -> list[str]:
        return [sentence.span.of(self.text).lower() for sentence in self.sentences]

    @cached_property
    def plain(self) -> list[PlainSentence]:
        """Return the sentences for the check that is independent of the extractor."""
        return sentences_of(self.text, [sentence.span for sentence in self.sentences])

    @cached_property
    def plain_counts(self) -> Counter[str]:
        """Return how often each sentence occurs in the report, compared by its words alone."""
        return Counter(bare(sentence.text) for sentence in self.plain)

    @cached_property
    def squeezed(self) -> str:
        """Return the text with one blank for any white space: changes of that alone are none."""
        return " ".join(self.text.split())

    @cached_property
    def is_lower_case(self) -> bool:
        """Return whether it is written without capitals, as tokenised corpora are."""
        return not any(character.isupper() for character in self.text)

    @cached_property
    def is_upper_case(self) -> bool:
        """Return whether it is written in capitals throughout."""
        return self.text.isupper()

    @cached_property
    def is_tokenised(self) -> bool:
        """Return whether punctuation is mostly separated from words ("no effusion .")."""
        return 2 * len(_SPACED_PERIOD.findall(self.text)) > len(_PERIOD.findall(self.text))

    @cached_property
    def is_foreign(self) -> bool:
        """Return whether it is in another language, whose words may look like English ones."""
        words = set(re.findall(r"[^\W\d_]+", self.text.lower()))
        foreign = words & discourse().foreign
        return len(foreign) > 1 and len(foreign) > len(words & discourse().english)

    def styled(self, sentence: str) -> str:
        """Return a generated sentence in the style of the report.

        >>> ReadReport.read("no effusion .").styled("There is edema.")
        'there is edema .'
        """
        if self.is_lower_case:
            sentence = sentence.lower()
        return sentence.replace(".", " .") if self.is_tokenised else sentence

    # ------------------------------------------------------------------ layout

    def before(self, index: int) -> int:
        """Return where the sentence before number `index` ends; 0 for the first."""
        return self.sentences[index - 1].span.end if index else 0

    @cached_property
    def leads(self) -> list[str]:
        """Return the text before each sentence, after the previous one: list number, header."""
        starts = [sentence.span.start for sentence in self.sentences]
        return [self.text[self.before(index) : start] for index, start in enumerate(starts)]

    def number_start(self, index: int) -> int | None:
        """Return the place of a sentence's list number, if it begins a list item."""
        match = _NUMBER.search(self.leads[index])
        return None if match is None else self.before(index) + match.start()

    @cached_property
    def section_openings(self) -> frozenset[int]:
        """Return the sentences that a section header precedes, or nothing at all."""
        headed = (k for k, lead in enumerate(self.leads) if ":" in lead and _HEADER.search(lead))
        return frozenset([0, *headed])

    def opens_paragraph(self, index: int) -> bool:
        """Return whether a sentence begins a section, a list item or a line."""
        return (
            index in self.section_openings
            or self.number_start(index) is not None
            or "\n" in self.leads[index]
        )

    def is_joined(self, index: int) -> bool:
        """Return whether a semicolon, or a list number within a line, joins it to another."""
        ends = [self.sentences[k].span.of(self.text) for k in (index - 1, index) if k >= 0]
        return any(_TIED_END.search(text) for text in ends)

    @cached_property
    def has_labels(self) -> bool:
        """Return whether titles such as "Left knee:" apply to the sentences after them."""
        texts = [(sentence, sentence.span.of(self.text)) for sentence in self.sentences]
        return any(
            _LABEL_WORDS.match(text) is not None
            or (sentence.category is Category.OTHER and len(text.split()) <= _TITLE_WORDS)
            for sentence, text in texts
        )

    # ------------------------------------------------------------------ coherence

    # Every kind asks it of every sentence.
    @cached_property
    def speaks_of_the_one_before(self) -> list[bool]:
        """Return whether each sentence makes no sense without the one before it."""
        found = []
        for index, sentence in enumerate(self.sentences):
            # "Increased." or "Grossly stable."
            is_short = len(self.words_of(sentence).split()) <= _TITLE_WORDS
            merely_compares = bool(sentence.changes) and not sentence.findings and is_short
            refers = not self._openings[index].isdisjoint(discourse().anaphors)
            is_first = index in self.section_openings
            found.append(not is_first and (merely_compares or refers))
        return found

    def keeps_its_place(self, index: int) -> bool:
        """Return whether a sentence reads well only right after the one before it."""
        if index == 0:
            return False
        recommends = self.sentences[index].category is Category.RECOMMENDATION
        if self.goes_on(index) or recommends or self.speaks_of_the_one_before[index]:
            return True
        return not self._openings[index].isdisjoint(discourse().connectives) or self.leans(index)

    def leans(self, index: int) -> bool:
        """Return whether a sentence, if it exists in this section, refers to an earlier one."""
        if index == len(self.sentences) or index in self.section_openings:
            return False
        return discourse().leaning.search(self._words[index]) is not None

    def goes_on(self, index: int) -> bool:
        """Return whether a sentence begins in lower case where others do not."""
        if self.opens_paragraph(index) or self.is_lower_case:
            return False
        return self.text[self.sentences[index].span.start].islower()

    @cached_property
    def _words(self) -> list[str]:
        """Return the words of each sentence, each between two spaces."""
        return [f" {' '.join(_WORDS.findall(said))} " for said in self._lower]

    @cached_property
    def _openings(self) -> list[set[str]]:
        """Return each sentence's first word, first two words, and so on up to five."""
        return [
            {" ".join(words[:count]) for count in range(1, len(words) + 1)}
            for words in (said.split(maxsplit=5)[:5] for said in self._words)
        ]

    def followers(self, index: int) -> list[int]:
        """Return the sentences directly after one that refer to it."""
        found = []
        for following in range(index + 1, len(self.sentences)):
            if not self.speaks_of_the_one_before[following]:
                break
            found.append(following)
        return found

    # ------------------------------------------------------------------ findings

    def merely_denies(self, sentence: Sentence) -> bool:
        """Return True if a sentence only denies findings or calls something normal."""
        words = set(_WORDS.findall(self.words_of(sentence)))
        return (
            sentence.category is Category.CLINICAL
            and sentence.normal
            and words.isdisjoint(discourse().not_merely_denying)
            and plain_words().hedged_normal.search(self.words_of(sentence)) is None
        )

    def says_nothing_clinical(self, sentence: Sentence) -> bool:
        """Return whether a sentence on technique and the like neither finds nor interprets."""
        if sentence.category is Category.CLINICAL or sentence.findings or sentence.changes:
            return False
        return discourse().interpreting.search(self._words[sentence.index]) is None

    def pathologies(self, sentence: Sentence) -> list[Finding]:
        """Return the sentence's positive findings, whose omission would be an error."""
        if sentence.category is not Category.CLINICAL:
            return []
        return [
            finding
            for finding in sentence.findings
            if finding.is_present
            and finding.chexpert != "Support Devices"
            and finding.observation not in discourse().no_pathology
        ]

    def restatements(self, finding: Finding) -> Iterator[Finding]:
        """Yield other affirmed or uncertain mentions of what may be the same finding and place."""
        return (other for other in self._mentions(finding) if other is not finding)

    def sentences_stating(self, finding: Finding) -> frozenset[int]:
        """Return the sentences that state a finding, or state it again."""
        return frozenset([finding.sentence, *(m.sentence for m in self._mentions(finding))])

    def is_bilateral_elsewhere(self, finding: Finding) -> bool:
        """Return whether another mention of what may be the same finding names both sides."""
        both = sum(mention.side is Side.BILATERAL for mention in self._mentions(finding))
        return both > (finding.side is Side.BILATERAL)

    def _mentions(self, finding: Finding) -> tuple[Finding, ...]:
        return tuple(mention for mention in self._stated if may_be_one(mention, finding))

    @cached_property
    def _stated(self) -> tuple[Finding, ...]:
        return tuple(
            finding
            for finding in self.findings
            if finding.polarity is not Polarity.NEGATIVE and finding.status is Status.CURRENT
        )

    @cached_property
    def sides(self) -> dict[str, set[str]]:
        """Return observation -> the sides of all its mentions, with any polarity."""
        found: dict[str, set[str]] = defaultdict(set)
        for finding in self.findings:
            found[finding.observation].update(place.value for place in finding.on(Axis.SIDE))
        return found


def topic_of(finding: Finding) -> Topic:
    """Return the topic of a mention: mentions of one topic have the same restatements."""
    return finding.observation, finding.side, finding.zones


def may_be_one(one: Finding, other: Finding) -> bool:
    """Return whether two mentions may be of one thing: related observations, and no two places."""
    related = discourse().families.get(one.observation, frozenset())
    if one.observation != other.observation and other.observation not in related:
        return False
    if on_two_sides(one, other):
        return False
    same_name = one.observation == other.observation
    return same_name or not one.zones or not other.zones or bool(heights(one) & heights(other))


def on_two_sides(one: Finding, other: Finding) -> bool:
    """Return whether one is on the left and the other on the right."""
    return {one.side, other.side} == {Side.LEFT, Side.RIGHT}


def heights(finding: Finding) -> set[str]:
    """Return the zones of a finding, and those at the same height."""
    levels = discourse().levels
    return set(finding.zones).union(*(levels.get(zone, frozenset()) for zone in finding.zones))
