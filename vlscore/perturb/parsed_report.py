"""Parsed report for the kinds of perturbation: its findings, sentences, lists and style."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

from vlscore.findings import (
    Category,
    Finding,
    Polarity,
    ReportFindings,
    Sentence,
    Side,
    Span,
    Status,
    extract,
    load_lexicon,
)
from vlscore.perturb.lexicons import alike, location_moves, matches_in, phrases_in

_NUMBER = re.compile(r"(?:\(?\d{1,2}[.)],?|[-*•])\s*$")
_HEADER = re.compile(r"[A-Za-z][A-Za-z /&,()\-]{2,40}?[ \t]*:\s*(?:\(?\d{1,2}[.)]\s*)?$")
_TIED_END = re.compile(r"(?:;|\s\d{1,2}\.)\s*$")
_LABEL_WORDS = re.compile(r"[A-Za-z][\w ]{2,25}:")
_TITLE_WORDS = 2
_SPACED_PERIOD = re.compile(r"\w \.(?:\s|$)")
_PERIOD = re.compile(r"\.(?:\s|$)")
_WORDS = re.compile(r"[a-z]{2,}")


class PlaceWords(NamedTuple):
    """Words of a sentence that name a side, a zone, or both."""

    span: Span
    side: str | None
    zone: str | None


@dataclass(frozen=True, eq=False)
class ParsedReport:
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
    def read(cls, report: str, standard_normal: str | None = None) -> "ParsedReport":
        """Extract the findings of a report. Raises InvalidReport if it is not a text."""
        return cls(report, extract(report), standard_normal)

    @property
    def sentences(self) -> tuple[Sentence, ...]:
        return self.findings.sentences

    def words_of(self, sentence: Sentence) -> str:
        """Return the sentence in lower case."""
        return sentence.span.of(self.text).lower()

    def contains(self, index: int, *names: str) -> bool:
        """Return whether a sentence has a phrase of one of these lists of wording.toml."""
        return any(name in self._phrases[index] for name in names)

    def begins(self, index: int, name: str) -> bool:
        """Return whether a sentence begins with a phrase of a list of wording.toml."""
        spans = self._phrases[index].get(name, ())
        words = self.words_of(self.sentences[index])
        return any(not _WORDS.search(words[: span.start]) for span in spans[:1])

    @cached_property
    def _phrases(self) -> list[Mapping[str, Sequence[Span]]]:
        return [phrases_in(sentence.span.of(self.findings.plain)) for sentence in self.sentences]

    def places(self, index: int) -> list[PlaceWords]:
        """Return the words of a sentence that name places, of findings or of anything else."""
        span = self.sentences[index].span
        tokens, found = matches_in(span.of(self.text))
        return [
            PlaceWords(
                Span(span.start + tokens[m.first].start, span.start + tokens[m.last - 1].end),
                m.entry.side,
                m.entry.zone,
            )
            for m in found.get("place", ())
        ]

    @cached_property
    def is_lower_case(self) -> bool:
        """Return whether it is written without capitals, as tokenised corpora are."""
        return not any(character.isupper() for character in self.text)

    @cached_property
    def is_tokenised(self) -> bool:
        """Return whether punctuation is mostly separated from words ("no effusion .")."""
        return 2 * len(_SPACED_PERIOD.findall(self.text)) > len(_PERIOD.findall(self.text))

    @cached_property
    def is_foreign(self) -> bool:
        """Return whether it is in another language, whose words may look like English ones."""
        words = {
            name: {span.of(self.text).lower() for span in phrases_in(self.text).get(name, ())}
            for name in ("foreign", "english")
        }
        return len(words["foreign"]) > max(1, len(words["english"]))

    def styled(self, sentence: str) -> str:
        """Return a generated sentence in the style of the report.

        >>> ParsedReport.read("no effusion .").styled("There is edema.")
        'there is edema .'
        """
        if self.is_lower_case:
            sentence = sentence.lower()
        return sentence.replace(".", " .") if self.is_tokenised else sentence

    # ------------------------------------------------------------------ layout

    def end_of_previous(self, index: int) -> int:
        """Return where the sentence before number `index` ends; 0 for the first."""
        return self.sentences[index - 1].span.end if index else 0

    @cached_property
    def texts_before(self) -> list[str]:
        """Return the text before each sentence, after the previous one: list number, header."""
        starts = [sentence.span.start for sentence in self.sentences]
        return [
            self.text[self.end_of_previous(index) : start] for index, start in enumerate(starts)
        ]

    def number_start(self, index: int) -> int | None:
        """Return the place of a sentence's list number, if it begins a list item."""
        match = _NUMBER.search(self.texts_before[index])
        return None if match is None else self.end_of_previous(index) + match.start()

    @cached_property
    def section_openings(self) -> frozenset[int]:
        """Return the sentences that a section header precedes, or nothing at all."""
        headed = (
            k for k, lead in enumerate(self.texts_before) if ":" in lead and _HEADER.search(lead)
        )
        return frozenset([0, *headed])

    def opens_paragraph(self, index: int) -> bool:
        """Return whether a sentence begins a section, a list item or a line."""
        is_item = self.number_start(index) is not None or "\n" in self.texts_before[index]
        return is_item or index in self.section_openings

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

    @cached_property
    def refers_to_previous(self) -> list[bool]:
        """Return whether each sentence makes no sense without the one before it."""
        # "Increased." or "Grossly stable."
        compares = [
            bool(s.changes) and not s.findings and len(self.words_of(s).split()) <= _TITLE_WORDS
            for s in self.sentences
        ]
        return [
            index not in self.section_openings and (only_compares or self.begins(index, "refers"))
            for index, only_compares in enumerate(compares)
        ]

    def follows_previous(self, index: int) -> bool:
        """Return whether a sentence reads well only right after the one before it."""
        if index == 0:
            return False
        if self.continues_previous(index) or self.begins(index, "connects"):
            return True
        if self.sentences[index].category is Category.RECOMMENDATION:
            return True
        return index not in self.section_openings and (
            self.refers_to_previous[index]
            or self.contains(index, "connects_anywhere", "refers_anywhere")
        )

    def continues_previous(self, index: int) -> bool:
        """Return whether a sentence begins in lower case where others do not."""
        if self.opens_paragraph(index) or self.is_lower_case:
            return False
        return self.text[self.sentences[index].span.start].islower()

    def followers(self, index: int) -> list[int]:
        """Return the sentences directly after one that refer to it."""
        after = range(index + 1, len(self.sentences))
        return list(takewhile(lambda k: self.refers_to_previous[k], after))

    # ------------------------------------------------------------------ findings

    def merely_denies(self, sentence: Sentence) -> bool:
        """Return True if a sentence only denies findings or calls something normal."""
        is_clinical = sentence.category is Category.CLINICAL
        return is_clinical and sentence.normal and not self.contains(sentence.index, "hedges")

    def says_nothing_clinical(self, sentence: Sentence) -> bool:
        """Return whether a sentence on technique and the like neither finds nor interprets."""
        if sentence.category is Category.CLINICAL or sentence.findings or sentence.changes:
            return False
        return not self.contains(sentence.index, "interprets")

    def pathologies(self, sentence: Sentence) -> list[Finding]:
        """Return the sentence's positive findings, whose omission would be an error."""
        if sentence.category is not Category.CLINICAL:
            return []
        known = load_lexicon().observations
        present = ((f, known[f.observation]) for f in sentence.findings if f.is_present)
        return [f for f, own in present if not own.harmless and own.region != "outside"]

    def restatements(self, finding: Finding) -> list[Finding]:
        """Return other affirmed or uncertain mentions of what may be the same finding and place."""
        current = (f for f in self._stated if f is not finding and f.status is Status.CURRENT)
        return [mention for mention in current if may_be_same(mention, finding)]

    def sentences_stating(self, finding: Finding) -> frozenset[int]:
        """Return the sentences that state a finding, or state it again."""
        again = (mention.sentence for mention in self.restatements(finding))
        return frozenset([finding.sentence, *again])

    @cached_property
    def _stated(self) -> list[Finding]:
        return [f for f in self.findings if f.polarity is not Polarity.NEGATIVE]


def topic_of(finding: Finding) -> tuple[str, Side | None, tuple[str, ...]]:
    """Return what finding a mention is of, and where: equal topics have the same restatements."""
    return finding.observation, finding.side, finding.zones


def may_be_same(one: Finding, other: Finding) -> bool:
    """Return whether two mentions may be of one thing: names for one, and no two places."""
    if one.observation == other.observation:
        return not _on_two_sides(one, other)
    return _are_in(alike().same, one, other)


def are_related(one: Finding, other: Finding) -> bool:
    """Return whether two mentions may be of the same finding or its cause, at the same place."""
    return may_be_same(one, other) or _are_in(alike().related, one, other)


def _are_in(relation: Mapping[str, frozenset[str]], one: Finding, other: Finding) -> bool:
    if other.observation not in relation.get(one.observation, ()) or _on_two_sides(one, other):
        return False
    return not one.zones or not other.zones or not heights(one).isdisjoint(heights(other))


def _on_two_sides(one: Finding, other: Finding) -> bool:
    return {one.side, other.side} == {Side.LEFT, Side.RIGHT}


def heights(finding: Finding) -> set[str]:
    """Return the zones of a finding, and those at the same height."""
    return {*finding.zones, *location_moves().height(finding.zones)}
