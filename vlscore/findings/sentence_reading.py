"""Reading of one sentence: the lexicons, ConText, attributes, changes and its category."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from vlscore.findings import context
from vlscore.findings.attributes import attach
from vlscore.findings.change_words import WORDS_OF_CHANGE, with_changes
from vlscore.findings.changes import StatedChanges
from vlscore.findings.context import find_denials
from vlscore.findings.heads import columns_of, headed
from vlscore.findings.layout import divide
from vlscore.findings.lexicon import Lexicon
from vlscore.findings.mentions import Mention, find_mentions
from vlscore.findings.modifiers import Modifier, find_modifiers, find_sizes
from vlscore.findings.sentence_categories import pattern_category
from vlscore.findings.tokens import Match, Token
from vlscore.findings.types import (
    Attribute,
    Axis,
    Category,
    Comparison,
    Denial,
    Finding,
    Layout,
    MarkedSpan,
    Polarity,
    Rule,
    Sentence,
    Span,
    Status,
    TemporalChange,
)

#: A longer "sentence" (a text without a full stop) is read in pieces, so that time stays linear.
_LONGEST_PIECE = 256
#: Two thirds of the sentences in a corpus of reports occur in it more than once.
_REMEMBERED = 16_384
_LONGEST_REMEMBERED = 400
#: A sentence whose words were looked at is read next, and the one before it.
_AT_ONCE = 4
# Sections whose findings are not of this examination.
_OF_EARLIER = (Category.HISTORY, Category.COMPARISON, Category.TECHNIQUE, Category.OTHER)


def read_sentence(text: str, section: Category, lexicon: Lexicon, head: str = "") -> Sentence:
    """Read one sentence in a section of a category; its index is 0, and spans index `text`.

    Args: head: words of the line above a list of which it is an item.
    """
    read = _read if len(text) > _LONGEST_REMEMBERED else _remembered
    return read(text, section, lexicon, head)


def _read(text: str, section: Category, lexicon: Lexicon, head: str) -> Sentence:
    layout, statements = _divided(text, head, lexicon)
    pieces = [_read_piece(text, each.tokens, each.found, lexicon) for each in statements]
    category, rule = section, None
    if section is Category.CLINICAL:
        categories = [_category(piece, lexicon) for piece in pieces]
        pieces = [
            _as_history(piece) if own is Category.HISTORY else piece
            for piece, (own, _) in zip(pieces, categories, strict=True)
        ]
        # A line may begin with the history and go on with the findings.
        clinical = [each for each in categories if each[0] is Category.CLINICAL]
        category, rule = next(iter(clinical or categories), (Category.OTHER, None))
    elif section in _OF_EARLIER:
        pieces = [_as_history(piece) for piece in pieces]
    findings: list[Finding] = []
    comparisons: list[Comparison] = []
    for piece in pieces:
        for each in piece.comparisons:
            number = each.finding
            comparisons.append(
                each if number is None else each._replace(finding=len(findings) + number)
            )
        findings += piece.findings
    is_clinical = category is Category.CLINICAL
    abnormal = any(f.polarity is not Polarity.NEGATIVE for f in findings)
    well = bool(findings) or any("normal" in piece.found for piece in pieces)
    attributes = [a for piece in pieces for a in piece.attributes]
    return Sentence(
        0,
        Span(0, len(text)),
        category,
        tuple(findings),
        rule,
        normal=is_clinical and well and not abnormal,
        changes=tuple(a for a in attributes if a.axis is Axis.CHANGE),
        layout=layout,
        denials=tuple(d for piece in pieces for d in piece.denials) if is_clinical else (),
        loose=() if findings else tuple(a for a in attributes if a.axis is not Axis.CHANGE),
        comparisons=tuple(comparisons),
        names_earlier=any(piece.found.get("earlier") for piece in pieces),
        marks=tuple(m for piece in pieces for m in piece.marks),
    )


_remembered = lru_cache(_REMEMBERED)(_read)


class _SentenceStatement:
    """One statement of a sentence: its tokens, and the matches of the lexicons in it."""

    def __init__(self, tokens: list[Token], lexicon: Lexicon) -> None:
        self.tokens, self._lexicon = tokens, lexicon
        self._simple = lexicon.trie.find(tokens)
        if sizes := find_sizes(tokens, lexicon):
            self._simple["size"] = sizes

    @cached_property
    def found(self) -> dict[str, list[Match]]:
        """Matches by layer, with those that rows for changes make of several words."""
        return with_changes(self.tokens, self._simple, self._lexicon)

    def compares(self) -> bool:
        """Return whether any words compare with an earlier examination, or name one."""
        amounts = max(len(self._simple.get(layer, ())) for layer in ("severity", "size"))
        if amounts < 2 and WORDS_OF_CHANGE.isdisjoint(self._simple):
            return False
        return bool(self.found.get("change") or self.found.get("earlier"))


@lru_cache(_AT_ONCE)
def _divided(text: str, head: str, lexicon: Lexicon) -> tuple[Layout, list[_SentenceStatement]]:
    """Return the layout of a sentence, and its statements."""
    tokens = lexicon.trie.split_joined_words(text, lexicon.tokenize(text))
    columns = columns_of(head, lexicon) if head else ()
    is_of_side = head.strip().lower() in lexicon.lists["sides"]
    if head and tokens and not columns and (":" not in text or is_of_side):
        tokens = headed(head, tokens, lexicon)
    layout, parts = divide(text, tokens, lexicon, columns)
    return layout, [
        _SentenceStatement(part[i : i + _LONGEST_PIECE], lexicon)
        for part in parts
        for i in range(0, max(len(part), 1), _LONGEST_PIECE)
    ]


_ASSERTING = frozenset(("trigger", "boundary", "either"))


class _Piece(NamedTuple):
    """Piece of a sentence, with the matches of the lexicons in it and their meaning."""

    tokens: list[Token]
    found: dict[str, list[Match]]
    findings: tuple[Finding, ...]
    attributes: tuple[Attribute, ...]
    comparisons: tuple[Comparison, ...]
    denials: tuple[Denial, ...]
    marks: tuple[MarkedSpan, ...]


def _read_piece(
    text: str, tokens: list[Token], found: dict[str, list[Match]], lexicon: Lexicon
) -> _Piece:
    modifiers = find_modifiers(found)
    mentions, well = find_mentions(tokens, found, lexicon)
    scopes: list[context.Scope] = []
    triggers: list[Match] = []
    # Rows of context.toml make triggers of other words, too: "effusion -, pneumothorax +".
    if mentions or not _ASSERTING.isdisjoint(found):
        triggers = context.find_triggers(tokens, found, lexicon)
        scopes = context.scopes(tokens, triggers, lexicon)
    if "lookalike" in found:
        scopes = [*scopes, *context.lookalikes(found, triggers, [m.cue for m in mentions])]
    findings = _findings(text, tokens, found, mentions, modifiers, triggers, scopes, lexicon)
    attributes = tuple(a for m in modifiers for a in m.attributes(tokens))
    changes = [a for a in attributes if a.axis is Axis.CHANGE]
    stated = StatedChanges(tokens, found, findings, lexicon)
    comparisons = tuple(stated.of(changes)) if changes else ()
    findings = _without_gone(findings, comparisons)
    denials = find_denials(tokens, found, scopes, well, lexicon)
    asked = [match for layer in lexicon.marks for match in found.get(layer, ())]
    marks = tuple(_marks(text, tokens, asked, scopes, lexicon)) if asked else ()
    return _Piece(tokens, found, findings, attributes, comparisons, denials, marks)


def _without_gone(
    findings: tuple[Finding, ...], comparisons: Sequence[Comparison]
) -> tuple[Finding, ...]:
    """Deny the findings that have resolved, by whatever words.

    Two names one behind the other are of one device ("right IJ Swan-Ganz catheter").
    """
    gone = {c.finding: c.span for c in comparisons if c.change is TemporalChange.RESOLVED}
    for n, (before, finding) in enumerate(pairwise(findings)):
        is_one = finding.observation == before.observation
        if is_one and finding.span.start - before.span.end <= 1 and gone.keys() & {n, n + 1}:
            words = gone.get(n) or gone[n + 1]
            gone |= {n: words, n + 1: words}
    return tuple(as_gone(f, gone[n]) if n in gone else f for n, f in enumerate(findings))


def as_gone(finding: Finding, words: Span) -> Finding:
    """Return a finding that some words say has gone: denied, where it was not already."""
    if not finding.is_present:
        return finding
    rules = sorted((*finding.rules, Rule("context:negated", words)), key=lambda rule: rule.span)
    return replace(finding, polarity=Polarity.NEGATIVE, rules=tuple(rules))


_NOT_STATED = frozenset(("negated", "historical"))


def _marks(
    text: str,
    tokens: list[Token],
    asked: list[Match],
    scopes: list[context.Scope],
    lexicon: Lexicon,
) -> Iterator[MarkedSpan]:
    """Find the words that a reader asked for."""
    before = {size.last: size for size in find_sizes(tokens, lexicon)}
    denying = [s for s in scopes if s.trigger.entry.effect in _NOT_STATED]
    for first, last, _, words in asked:
        if words.name is None or (
            words.as_written
            and any(text[t.start : t.end].lower() != t.form for t in tokens[first:last])
        ):
            continue
        size = before.get(first)
        begin = first if size is None else size.first
        span = Span(tokens[begin].start, tokens[last - 1].end)
        millimetres = None if size is None else size.entry
        outside = [s for s in denying if s.trigger.last <= first or s.trigger.first >= last]
        is_stated = not outside or not context.assess(outside, first, last).triggers
        yield MarkedSpan(words.layer, words.name, span, millimetres, is_stated)


def _as_history(piece: _Piece) -> _Piece:
    """Return a piece of the history: its findings are not of this examination."""
    findings = tuple(
        replace(f, status=Status.HISTORICAL) if f.status is Status.CURRENT else f
        for f in piece.findings
    )
    return piece._replace(findings=findings)


def _category(piece: _Piece, lexicon: Lexicon) -> tuple[Category, Rule | None]:
    stated = [f.span.start for f in piece.findings if f.status is Status.CURRENT]
    pattern = pattern_category(piece.tokens, piece.found, stated, lexicon)
    if pattern is not None:
        return pattern
    if piece.findings or "subject" in piece.found or "normal" in piece.found:
        return Category.CLINICAL, None
    compares = any(a.axis is Axis.CHANGE for a in piece.attributes)
    return (Category.COMPARISON if compares else Category.OTHER), None


def _findings(
    text: str,
    tokens: list[Token],
    found: dict[str, list[Match]],
    mentions: list[Mention],
    modifiers: list[Modifier],
    triggers: list[Match],
    scopes: list[context.Scope],
    lexicon: Lexicon,
) -> tuple[Finding, ...]:
    if not mentions:
        return ()
    topics = found.get("topic", [])
    # "Extubated, effusion": that change is of the tube alone.
    alone = [p for p in topics if p.entry not in lexicon.lists["better_with_more"]]
    of_findings = [
        m
        for m in modifiers
        if not (m.is_change and any(p.first < m.last and m.first < p.last for p in alone))
    ]
    parts = [*found.get("subject", ()), *topics]
    attributes = attach(text, tokens, mentions, of_findings, triggers, parts, lexicon)
    if not lexicon.lists["or"].isdisjoint([token.form for token in tokens]):
        stated = [m for m in mentions if not m.normal]
        scopes += context.alternatives(tokens, [m.cue for m in stated], triggers, lexicon)
    findings = []
    for mention, own in zip(mentions, attributes, strict=True):
        assertion = context.assess(scopes, *mention.cue)
        if mention.normal:
            if assertion.polarity is Polarity.NEGATIVE:
                continue
            assertion = context.Assertion(Polarity.NEGATIVE, assertion.status, ())
        findings.append(_finding(tokens, mention, assertion, own, lexicon))
    return tuple(findings)


def _finding(
    tokens: list[Token],
    mention: Mention,
    assertion: context.Assertion,
    attributes: list[Attribute],
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
        0,
        lexicon.observations[mention.observation].chexpert,
        assertion.status,
        tuple(sorted(attributes, key=lambda a: a.span)),
        tuple(sorted(rules, key=lambda rule: rule.span)),
        mention.normal,
    )


@lru_cache(_REMEMBERED)
def compares(words: str, head: str, lexicon: Lexicon) -> bool:
    """Return whether a sentence states a change, or names an earlier time."""
    return any(statement.compares() for statement in _divided(words, head, lexicon)[1])
