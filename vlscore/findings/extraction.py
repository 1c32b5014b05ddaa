"""Extraction of findings from a report.

`extract` splits a report into sentences, reads each by `read_sentence`, and resolves references
such as "this" to an earlier finding. `read_sentence` reads one sentence on its own: it matches the
lexicons, applies ConText, attaches attributes, and classifies the sentence.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import NamedTuple

from vlscore.errors import InvalidReport
from vlscore.findings import context
from vlscore.findings.attributes import attach, places_of
from vlscore.findings.change_words import WORDS_OF_CHANGE, with_changes
from vlscore.findings.changes import StatedChanges, referred, speaks_of_earlier
from vlscore.findings.context import find_denials
from vlscore.findings.heads import columns_of, head_of, headed, is_next_item, with_answers
from vlscore.findings.layout import divide
from vlscore.findings.lexicon import CHEXPERT_LABELS, Lexicon, load_lexicon
from vlscore.findings.mentions import Mention, find_mentions
from vlscore.findings.modifiers import Modifier, find_modifiers, find_sizes
from vlscore.findings.sentence_categories import Sections, pattern_category
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
    ReportFindings,
    Rule,
    Sentence,
    Span,
    Status,
    TemporalChange,
    shifted,
)
from vlscore.text import plain_text, split_sentences, with_doubts

#: A longer "sentence" (a text without a full stop) is read in pieces, so that time stays linear.
_LONGEST_PIECE = 256
#: Two thirds of the sentences in a corpus of reports occur in it more than once.
_REMEMBERED = 16_384
_LONGEST_REMEMBERED = 400
#: A sentence whose words were looked at is read next, and the one before it.
_AT_ONCE = 4
# Sections whose findings are not of this examination.
_OF_EARLIER = (Category.HISTORY, Category.COMPARISON, Category.TECHNIQUE)


def assert_span(
    sentence: str, span: Span, lexicon: Lexicon | None = None
) -> tuple[Polarity, Status]:
    """Polarity and status that ConText's rules give to any words of one sentence.

    >>> assert_span("The patient denies chest pain.", Span(19, 29))[0].value
    'negative'
    """
    lexicon = lexicon or load_lexicon()
    tokens = lexicon.tokenize(sentence)
    inside = [i for i, t in enumerate(tokens) if t.start < span.end and span.start < t.end]
    if not inside:
        raise InvalidReport(f"the sentence has no word at characters {span}")
    triggers = context.find_triggers(tokens, lexicon.trie.find(tokens), lexicon)
    outside = [t for t in triggers if t.last <= inside[0] or t.first > inside[-1]]
    scopes = context.scopes(tokens, outside, lexicon)
    assertion = context.assess(scopes, inside[0], inside[-1] + 1)
    return assertion.polarity, assertion.status


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
    if head and tokens and not columns and ":" not in text:
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
    """Deny the findings that have resolved, by whatever words."""
    gone = {c.finding: c.span for c in comparisons if c.change is TemporalChange.RESOLVED}
    return tuple(_gone(f, gone[n]) if n in gone else f for n, f in enumerate(findings))


def _deny_gone(sentences: list[Sentence], comparisons: Sequence[Comparison]) -> None:
    """Deny the findings of earlier sentences of which a further one says that they have gone."""
    for topic, change, words, _ in comparisons:
        if change is not TemporalChange.RESOLVED:
            continue
        for finding in referred(sentences, topic, words):
            before = sentences[finding.sentence]
            findings = tuple(_gone(f, words) if f is finding else f for f in before.findings)
            sentences[finding.sentence] = replace(before, findings=findings)


def _gone(finding: Finding, words: Span) -> Finding:
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


# Characters that contain a sentence's first words, which may refer to the previous sentence.
_OPENING = 40


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
        raise InvalidReport(f"a report must be a text, not a {type(report).__name__}")
    lexicon = lexicon or load_lexicon()
    sentences: list[Sentence] = []
    for index, (start, words, category, head) in enumerate(_placed(report, lexicon)):
        sentence = shifted(read_sentence(words, category, lexicon, head), index, start)
        _deny_gone(sentences, sentence.comparisons)
        if sentences and sentences[-1].findings and _opens_with(words, lexicon.lists["anaphors"]):
            sentences[-1] = _with_more(sentence, sentences[-1])
            sentence = _with_antecedent(sentence, sentences[-1], lexicon)
        sentences.append(sentence)
    return ReportFindings(report, tuple(sentences))


def refers_to_earlier(report: str, lexicon: Lexicon | None = None) -> bool:
    """Return what `speaks_of_earlier` says of a report, in less time.

    Only sentences that state a change or name an earlier time are read, up to the first that
    decides, and the one before each.

    >>> [refers_to_earlier(text) for text in ("Stable nodule.", "No prior study. Old fracture.")]
    [True, False]
    """
    lexicon = lexicon or load_lexicon()
    both: list[tuple[str, Category, str]] = []
    for _, words, category, head in _placed(report, lexicon):
        # "This was not there before" is about the sentence before.
        both = [*both[-1:], (words, category, head)]
        if _compares(words, head, lexicon):
            read = (read_sentence(text, of, lexicon, above) for text, of, above in both)
            sentences = tuple(shifted(each, index, 0) for index, each in enumerate(read))
            if speaks_of_earlier(ReportFindings(report, sentences)):
                return True
    return False


@lru_cache(_REMEMBERED)
def _compares(words: str, head: str, lexicon: Lexicon) -> bool:
    """Return whether a sentence states a change, or names an earlier time."""
    return any(statement.compares() for statement in _divided(words, head, lexicon)[1])


def _placed(report: str, lexicon: Lexicon) -> Iterator[tuple[int, str, Category, str]]:
    """Yield where each sentence begins, and its words, section and the head of its list."""
    sections, plain = Sections(report, lexicon), plain_text(report).text
    read, head, above, end = with_doubts(plain), "", "", 0
    for start, stop, label_end in with_answers(
        report, _statements(report, read, lexicon), read, lexicon
    ):
        words = read[start:stop]
        if label_end:
            words = f"{read[start:label_end]}:{read[label_end + 1 : stop]}"
        head = (head_of(above, lexicon) or head) if is_next_item(plain[end:start]) else ""
        yield start, words, sections.category(end, Span(start, stop)), head
        above, end = words, stop


def _statements(report: str, read: str, lexicon: Lexicon) -> list[tuple[int, int]]:
    """Return where sentences begin and end; one with "so too the drain" goes on."""
    statements: list[tuple[int, int]] = []
    for _, start, stop in split_sentences(report):
        if statements and _opens_with(read[start:stop], lexicon.lists["continuing"]):
            start = statements.pop()[0]
        statements.append((start, stop))
    return statements


def _opens_with(words: str, openings: frozenset[str]) -> bool:
    """Return whether a sentence opens with one of certain words, or with two or three of them."""
    opening = words[:_OPENING].lower().split(None, 3)[:3]
    if not opening or opening[0] not in _first_words(openings):
        return False
    return any(" ".join(opening[:count]) in openings for count in (1, 2, 3))


@lru_cache(8)
def _first_words(openings: frozenset[str]) -> frozenset[str]:
    return frozenset(opening.split()[0] for opening in openings)


def _with_more(sentence: Sentence, before: Sentence) -> Sentence:
    """Return the sentence before with what "It measures 9 mm." adds to its last finding."""
    *others, last = before.findings
    known = {a.axis for a in last.attributes}
    new = tuple(a._replace(inherited=True) for a in sentence.loose if a.axis not in known)
    if not new or last.polarity is Polarity.NEGATIVE:
        return before
    last = replace(last, attributes=last.attributes + new)
    return replace(before, findings=(*others, last))


def _with_antecedent(sentence: Sentence, before: Sentence, lexicon: Lexicon) -> Sentence:
    """Return the sentence with findings at the place of the finding to which "this" refers."""
    places = next((p for f in reversed(before.findings) if (p := places_of(f.attributes))), [])
    if not places:
        return sentence
    inherited = tuple(a._replace(inherited=True) for a in places)
    findings = tuple(
        f
        if places_of(f.attributes) or f.normal or f.observation in lexicon.midline
        else replace(f, attributes=(*inherited, *f.attributes))
        for f in sentence.findings
    )
    return replace(sentence, findings=findings)


_OUTSIDE_NO_FINDING = frozenset({"No Finding", "Support Devices"})


def chexpert_labels(report: str | ReportFindings) -> dict[str, int | None]:
    """Return CheXpert's 14 labels: 1 affirmed, -1 uncertain, 0 denied, None not mentioned.

    A label takes the strongest of its mentions: affirmed over uncertain over denied (Irvin et al.
    2019, section 3). A borderline finding is uncertain. "No Finding" is 1 if the report says that
    something is normal or absent, and affirms or suspects nothing but support devices; else None.
    So a report that states nothing, such as an empty one, has no label at all. Only current
    findings of this patient count.

    >>> labels = chexpert_labels("Possible pneumonia. No effusion. PICC line in place.")
    >>> labels["Pneumonia"], labels["Pleural Effusion"], labels["Support Devices"]
    (-1, 0, 1)
    >>> chexpert_labels("Clear lungs.")["No Finding"], chexpert_labels("")["No Finding"]
    (1, None)
    """
    findings = extract(report) if isinstance(report, str) else report
    labels: dict[str, int | None] = dict.fromkeys(CHEXPERT_LABELS)
    for finding in findings:
        if finding.chexpert is None or finding.status is not Status.CURRENT:
            continue
        value = _value(finding)
        known = labels[finding.chexpert]
        if known is None or _STRENGTH[value] > _STRENGTH[known]:
            labels[finding.chexpert] = value
    abnormal = any(labels[name] for name in CHEXPERT_LABELS if name not in _OUTSIDE_NO_FINDING)
    if findings.states_anything and not abnormal:
        labels["No Finding"] = 1
    return labels


_STRENGTH = {0: 0, -1: 1, 1: 2}


def _value(finding: Finding) -> int:
    if finding.polarity is Polarity.NEGATIVE:
        return 0
    borderline = finding.severity == "borderline"
    return -1 if finding.polarity is Polarity.UNCERTAIN or borderline else 1
