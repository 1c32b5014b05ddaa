"""Kind of perturbation that changes the severity of a positive finding."""

import re
from collections.abc import Iterator

from vlscore.findings import Attribute, Axis, Category, Finding, Polarity, Side
from vlscore.perturb.changed_sentences import denied_elsewhere, told_elsewhere
from vlscore.perturb.edits import (
    Chance,
    Change,
    Edit,
    Effect,
    ErrorCategory,
    Expected,
    Meaning,
    change_of,
    in_case_of,
    replaced,
)
from vlscore.perturb.lexicons import matching_form, severity_changes
from vlscore.perturb.parsed_report import ReadReport, topic_of
from vlscore.perturb.registry import Kind

_NEXT_WORD = re.compile(r"\s+([^\W\d_]+)")
_RANKED = re.compile(r"\b(?:left|right)\b.{,12}\b(?:greater|larger|more|worse|less|smaller)\b")
_INTERPRETS = re.compile(r"\b(?:represent|suggest|consistent|compatible|reflect|due to|likely)")
_SIZE = re.compile(r"\d\s*(?:mm|cm|millimet|centimet)")


class ChangeSeverity(Kind):
    """Kind that changes the severity of a finding wherever the report states it."""

    name = "change-severity"
    description = "Change a word that grades a positive finding: small to large, mild to severe."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.WRONG_SEVERITY
    origin = "VLScore paper, section 4.2, kind 4 (95 of 979)"
    nothing = "no positive finding has a severity that can be changed"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        grades = [
            (finding, attribute)
            for sentence in source.sentences
            if sentence.category is Category.CLINICAL
            for finding in sentence.findings
            if finding.is_present and not finding.on(Axis.SIZE) and not _is_device(finding)
            for attribute in _own_grades(finding)
        ]
        tried = set()
        for finding, attribute in chance.shuffled(grades):
            grade = topic_of(finding), attribute.value
            if grade in tried:
                continue
            tried.add(grade)
            change = _regraded(source, finding, attribute, chance)
            if change is not None:
                yield change


def _is_device(finding: Finding) -> bool:
    """Return whether its size word is part of a device's name ("large-bore catheter")."""
    return finding.chexpert == "Support Devices"


def _own_grades(finding: Finding) -> list[Attribute]:
    """Return words that grade the finding but do not state it ("borderline heart size" does)."""
    return [grade for grade in _grades(finding) if not grade.span.covers(finding.cue)]


def _grades(finding: Finding) -> list[Attribute]:
    return [grade for grade in finding.on(Axis.SEVERITY) if not grade.inherited]


def _regraded(
    source: ReadReport, finding: Finding, attribute: Attribute, chance: Chance
) -> Change | None:
    if not _can_be_regraded(source, finding, attribute) or _is_belied(source, finding):
        return None
    choice = chance.below(2)
    edits: set[Edit] = set()
    for mention in (finding, *source.restatements(finding)):
        for grade in _grades(mention):
            is_own = grade in _own_grades(mention) and grade.value == attribute.value
            if not is_own or not _can_be_regraded(source, mention, grade):
                return None
            new = in_case_of(
                _other_grade(source, mention, grade, choice), grade.span.of(source.text)
            )
            edits.update(replaced(source.text, *grade.span, new))
    old = matching_form(attribute.span.of(source.text))
    new = _other_grade(source, finding, attribute, choice)
    meaning = Meaning(Effect.REGRADED, (finding.observation,), old, new)
    return change_of(edits, f"severity:{old}->{new} {finding.observation}", meaning)


def _can_be_regraded(source: ReadReport, finding: Finding, grade: Attribute) -> bool:
    """Return whether the word can be replaced by another grade, and grades only this finding."""
    table, text = severity_changes(), source.text
    words = matching_form(grade.span.of(text))
    if words not in table.changes:
        return False
    if words in table.opacity_words and finding.observation not in table.opaque:
        return False
    if words in table.degrees and finding.observation in table.no_degree:
        return False
    following = matching_form(text[grade.span.end : grade.span.end + 30])
    preceding = matching_form(text[: grade.span.start][-30:])
    if words in table.degrees and following.startswith(table.degrees_not_before):
        return False
    if following.startswith(table.not_before) or preceding.endswith(table.not_after):
        return False
    if grade.span.end <= finding.cue.start:
        between = text[grade.span.end : finding.cue.start]
        return "," not in between and table.apart.isdisjoint(between.lower().split())
    between = text[finding.cue.end : grade.span.start]
    return table.copulas.issuperset(between.lower().split())


def _is_belied(source: ReadReport, finding: Finding) -> bool:
    """Return whether the report also expresses the size or grade of the finding differently."""
    table = severity_changes()
    if _is_measured(source, finding) or _is_doubted_too(source, finding):
        return True
    if _is_graded_by_side(source, finding):
        return True
    signs = table.signs.get(finding.observation, ())
    if any(f.observation in signs and f.polarity is not Polarity.NEGATIVE for f in source.findings):
        return True
    stated = source.sentences_stating(finding)
    said = [source.words_of(source.sentences[index]) for index in stated]
    if any(words in sentence for words in table.not_beside for sentence in said):
        return True
    return denied_elsewhere(source, finding, stated) or told_elsewhere(source, finding, stated)


def _is_graded_by_side(source: ReadReport, finding: Finding) -> bool:
    """Return whether left and right are compared, or named both apart and together."""
    if finding.side is Side.BILATERAL:
        return any(
            other.observation == finding.observation and other.side in (Side.LEFT, Side.RIGHT)
            for other in source.findings
        )
    together = any(other.side is Side.BILATERAL for other in source.restatements(finding))
    return together or _RANKED.search(source.text.lower()) is not None


def _other_grade(source: ReadReport, finding: Finding, grade: Attribute, choice: int) -> str:
    table = severity_changes()
    words = matching_form(grade.span.of(source.text))
    change = table.changes[words]
    following = _NEXT_WORD.match(source.text, grade.span.end)
    if following is not None and following.group(1).lower() in table.adjectives:
        return change.before_adjective[choice % len(change.before_adjective)]
    if finding.observation in table.has_amount and words in table.amounts:
        return table.amounts[words]
    return change.words[choice % len(change.words)]


def _is_doubted_too(source: ReadReport, finding: Finding) -> bool:
    """Return whether the sentence also interprets the finding as one that it grades too."""
    sentence = source.sentences[finding.sentence]
    interprets = _INTERPRETS.search(source.words_of(sentence)) is not None
    return any(
        (interprets or other.polarity is Polarity.UNCERTAIN)
        and other is not finding
        and other.polarity is not Polarity.NEGATIVE
        and _grades(other)
        for other in sentence.findings
    )


def _is_measured(source: ReadReport, finding: Finding) -> bool:
    """Return whether a sentence that states it, or one of nothing else, gives a size."""
    stated = source.sentences_stating(finding)
    return any(
        _SIZE.search(source.words_of(sentence))
        for sentence in source.sentences
        if sentence.index in stated or not sentence.findings
    )
