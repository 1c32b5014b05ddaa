"""From a report to its findings: split, match, assert, attach."""

from vlscore.errors import InvalidReport
from vlscore.findings import attributes as attribution
from vlscore.findings import classify, context
from vlscore.findings.lexicon import Lexicon, load_lexicon
from vlscore.findings.mentions import Mention, find_mentions
from vlscore.findings.phrases import Match
from vlscore.findings.tokens import Token, tokenize
from vlscore.findings.types import (
    Attribute,
    Axis,
    Category,
    Finding,
    Polarity,
    ReportFindings,
    Rule,
    Sentence,
    Span,
    Status,
)
from vlscore.reports.sentences import split_sentences


def extract(report: str, lexicon: Lexicon | None = None) -> ReportFindings:
    """Sentences and findings of a report. Never fails on text, of any language or length.

    Time is linear in the length of the report. Raises InvalidReport if `report` is not a str.

    >>> found = extract("Small left pleural effusion. No pneumothorax.")
    >>> [(f.observation, f.polarity.value, f.severity) for f in found]
    [('pleural_effusion', 'positive', 'small'), ('pneumothorax', 'negative', None)]
    >>> found.findings[0].side.value
    'left'
    """
    if not isinstance(report, str):
        raise InvalidReport(f"a report must be a str, not {type(report).__name__}")
    lexicon = lexicon or load_lexicon()
    sentences = []
    section = Category.CLINICAL
    for index, (start, end) in enumerate(split_sentences(report)):
        span = Span(start, end)
        title = classify.heading(report, span, lexicon.headings)
        category = section
        if title is not None:
            category, governs = title
            section = category if governs else Category.CLINICAL
        sentences.append(_read_sentence(report, index, span, category, lexicon))
    return ReportFindings(report, tuple(sentences))


def _read_sentence(
    text: str, index: int, span: Span, section: Category, lexicon: Lexicon
) -> Sentence:
    tokens = tokenize(text, span.start, span.end)
    found = lexicon.trie.find(tokens)
    mentions = find_mentions(tokens, found, lexicon)
    modifiers = attribution.find_modifiers(tokens, found)
    findings = _findings(text, tokens, found, mentions, modifiers, index, lexicon)
    category, rule = section, None
    if section is Category.CLINICAL:
        states = any(f.status is Status.CURRENT for f in findings)
        pattern = classify.pattern_category(tokens, found, states)
        if pattern is not None:
            category, rule = pattern
        elif not (findings or found.get("subject") or found.get("normal")):
            category = Category.OTHER
    if category is Category.HISTORY:
        findings = tuple(_as_history(f) for f in findings)
    return Sentence(
        index,
        span,
        category,
        findings,
        rule,
        _is_normal(category, findings, found),
        tuple(
            a
            for m in modifiers
            if m.values[0][0] is Axis.CHANGE
            for a in attribution.to_attributes(tokens, m)
        ),
    )


def _is_normal(
    category: Category, findings: tuple[Finding, ...], found: dict[str, list[Match]]
) -> bool:
    if category is not Category.CLINICAL:
        return False
    abnormal = any(f.polarity is not Polarity.NEGATIVE for f in findings)
    return not abnormal and (bool(findings) or "normal" in found)


def _as_history(finding: Finding) -> Finding:
    if finding.status is not Status.CURRENT:
        return finding
    return Finding(
        finding.observation,
        finding.span,
        finding.cue,
        finding.polarity,
        finding.sentence,
        finding.chexpert,
        Status.HISTORICAL,
        finding.attributes,
        finding.rules,
        finding.normal,
    )


def _findings(
    text: str,
    tokens: list[Token],
    found: dict[str, list[Match]],
    mentions: list[Mention],
    modifiers: list[attribution.Modifier],
    index: int,
    lexicon: Lexicon,
) -> tuple[Finding, ...]:
    if not mentions:
        return ()
    triggers = sorted(
        (*found.get("trigger", ()), *found.get("boundary", ())), key=lambda m: (m.first, m.last)
    )
    scopes = context.scopes(tokens, triggers, lexicon.breaks_before_hedge)
    in_trigger = {
        position: position == t.first for t in triggers for position in range(t.first, t.last)
    }
    attributes = attribution.attach(text, tokens, mentions, modifiers, in_trigger, lexicon.midline)
    findings = []
    for mention, own in zip(mentions, attributes, strict=True):
        assertion = context.assess(scopes, *mention.core)
        if mention.normal:
            if assertion.polarity is Polarity.NEGATIVE:
                continue
            assertion = context.Assertion(Polarity.NEGATIVE, assertion.status, ())
        findings.append(_finding(tokens, mention, assertion, own, index, lexicon))
    return tuple(findings)


def _finding(
    tokens: list[Token],
    mention: Mention,
    assertion: context.Assertion,
    attributes: list[Attribute],
    index: int,
    lexicon: Lexicon,
) -> Finding:
    span = Span(tokens[mention.first].start, tokens[mention.last - 1].end)
    cue = Span(tokens[mention.cue_first].start, tokens[mention.cue_last - 1].end)
    rules = [Rule(mention.rule, span)]
    for trigger in assertion.triggers:
        words = Span(tokens[trigger.first].start, tokens[trigger.last - 1].end)
        rules.append(Rule(f"context:{trigger.entry.effect}", words))
    return Finding(
        mention.observation,
        span,
        cue,
        assertion.polarity,
        index,
        lexicon.observations[mention.observation].chexpert,
        assertion.status,
        tuple(sorted(attributes, key=lambda a: a.span)),
        tuple(sorted(rules, key=lambda rule: rule.span)),
        mention.normal,
    )
