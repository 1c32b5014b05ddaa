"""What summary statements deny without naming it: "normal chest", "no acute bony abnormality".

Extraction gives such a statement one finding at most, yet it speaks of every finding of its
region: a report that says "the lungs are clear" belies a nodule stated elsewhere.
"""

from collections.abc import Iterable, Sequence

from vlscore.findings import context
from vlscore.findings.lexicon import Lexicon
from vlscore.findings.mentions import Well
from vlscore.findings.phrases import Match
from vlscore.findings.tokens import Token
from vlscore.findings.types import Denial, Polarity, Span, Status

# Between a part of the chest and "no": "the pleural spaces (show) no acute abnormality".
_LONGEST_PREDICATE = 3


def find_denials(
    tokens: Sequence[Token],
    found: dict[str, list[Match]],
    scopes: Sequence[context.Scope],
    well: Iterable[Well],
    lexicon: Lexicon,
) -> tuple[Denial, ...]:
    """The denials of one sentence, in text order, each region once a statement."""
    denials: dict[tuple[str, Span], Denial] = {}

    def add(scope: str, first: int, last: int, acute: bool) -> None:
        span = Span(tokens[first].start, tokens[last - 1].end)
        covered = lexicon.coverage.acute if acute else lexicon.coverage.any
        denials[scope, span] = Denial(scope, span, acute, covered[scope])

    for subject, name, word in well:
        scope_names = lexicon.coverage.of_subject.get(name, ())
        if scope_names and _stated(scopes, word.first, word.last):
            first, last = min(subject.first, word.first), max(subject.last, word.last)
            for scope in scope_names:
                add(scope, first, last, acute=False)
    for match in found.get("statement", ()):
        if _stated(scopes, match.first, match.last):
            add(match.entry, match.first, match.last, acute=False)
    sums_up = any(token.form in lexicon.coverage.nouns for token in tokens)
    for governed in scopes if sums_up else ():
        trigger = governed.trigger
        if trigger.entry.effect != "negated" or not trigger.entry.forward:
            continue
        for first, last in _summaries(tokens, governed, lexicon):
            words = {token.form for token in tokens[first:last]}
            acute = not words.isdisjoint(lexicon.coverage.words_of_time)
            named = {s for w in words for s in lexicon.coverage.of_word.get(w, ())}
            for scope in sorted(named) or _subject_scopes(found, trigger.first, lexicon):
                add(scope, trigger.first, last, acute)
    return tuple(sorted(denials.values(), key=lambda d: (d.span, d.scope)))


def _stated(scopes: Sequence[context.Scope], first: int, last: int) -> bool:
    assertion = context.assess(scopes, first, last)
    return assertion.polarity is Polarity.POSITIVE and assertion.status is Status.CURRENT


def _summaries(
    tokens: Sequence[Token], governed: context.Scope, lexicon: Lexicon
) -> list[tuple[int, int]]:
    """Token ranges in a negation's scope that name no finding, only "acute ... abnormality"."""
    coverage = lexicon.coverage
    ranges = []
    end = governed.last
    for last in range(governed.last, governed.first, -1):
        if last > end or tokens[last - 1].form not in coverage.nouns:
            continue
        first = last - 1
        while first > governed.first and tokens[first - 1].form in coverage.run_words:
            first -= 1
        if first == governed.first or tokens[first].form in coverage.joints:
            ranges.append((first, last))
            end = first
    return ranges


def _subject_scopes(found: dict[str, list[Match]], before: int, lexicon: Lexicon) -> Sequence[str]:
    """The regions of the part of the chest that stands right before "no"; else the chest."""
    for subject in reversed(found.get("subject", ())):
        scopes = lexicon.coverage.of_subject.get(subject.entry, ())
        if scopes and 0 <= before - subject.last <= _LONGEST_PREDICATE:
            return scopes
    return ("chest",)
