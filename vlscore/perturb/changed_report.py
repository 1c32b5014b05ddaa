"""Report with one proposed change, in the views that the check of consistency needs."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache

from vlscore.findings import (
    Denial,
    Finding,
    Polarity,
    ReportFindings,
    Sentence,
    Span,
    extract,
    load_lexicon,
)
from vlscore.perturb.edits import Change, Edit, apply_edits, with_capital
from vlscore.perturb.lexicons import matches_in, statements
from vlscore.perturb.parsed_report import ReadReport, bare

_reading = lru_cache(4_096)(extract)
_LONGEST_QUOTE = 70


class ChangedReport:
    """Report with one proposed change.

    Attributes:
        report: the report before the change.
        edits: edits of the change.
        names: observations that it means.
        touched, others: sentences with an edit in them, and those without.
        gone, followers: numbers of the touched sentences, and of those that refer to them.
        affirmed: findings that these state or suspect; `own` are those of `names`.
        elsewhere: findings of the other sentences, each with its sentence; `stated` are those that
            are not denied.
        follow_ups: edits of other sentences, which must change too.
    """

    def __init__(self, report: ReadReport, change: Change) -> None:
        self.report, self.edits = report, change.edits
        self.names = change.meaning.observations if change.meaning else ()
        self.touched = [s for s in report.sentences if any(_is_in(e, s.span) for e in self.edits)]
        self.gone = {sentence.index for sentence in self.touched}
        self.others = [s for s in report.sentences if s.index not in self.gone]
        self.followers = {n for index in self.gone for n in report.followers(index)} - self.gone
        self.follow_ups: list[Edit] = []

    @cached_property
    def affirmed(self) -> list[Finding]:
        return [f for s in self.touched for f in s.findings if f.polarity is not Polarity.NEGATIVE]

    @cached_property
    def own(self) -> list[Finding]:
        return [finding for finding in self.affirmed if finding.observation in self.names]

    @cached_property
    def elsewhere(self) -> list[tuple[Sentence, Finding]]:
        return [(sentence, finding) for sentence in self.others for finding in sentence.findings]

    @cached_property
    def stated(self) -> list[tuple[Sentence, Finding]]:
        return [(s, f) for s, f in self.elsewhere if f.polarity is not Polarity.NEGATIVE]

    def text_after(self, sentence: Sentence) -> str:
        """Return the text of a touched sentence after the change."""
        start, end = sentence.span
        own = [edit for edit in self.edits if _is_in(edit, sentence.span)]
        edits = [
            Edit(max(e.start, start) - start, min(e.end, end) - start, e.replacement)
            if e.start >= start
            else Edit(0, min(e.end, end) - start, "")
            for e in own
        ]
        return apply_edits(self.report.text[start:end], edits)

    def after(self, sentence: Sentence) -> ReportFindings:
        """Return the findings of a touched sentence after the change."""
        return _reading(self.text_after(sentence))

    def calls_normal(self, sentence: Sentence) -> set[int]:
        """Return where words end by which a sentence calls something normal, before the change."""
        tokens, found = matches_in(sentence.span.of(self.report.text))
        ends = (tokens[match.last - 1].end for match in found.get("normal", ()))
        return {sentence.span.start + end for end in ends}

    @cached_property
    def added(self) -> list[Finding]:
        """Return the findings of `names` that the changed words state."""
        readings = [_reading(edit.replacement) for edit in self.edits]
        readings += map(self.after, self.touched)
        return [f for found in readings for f in found.present if f.observation in self.names]

    def saying(self, sentences: Iterable[Sentence], name: str, reason: str) -> Iterator[str]:
        """Yield the reason with each sentence that has a phrase of a list of wording.toml."""
        for sentence in sentences:
            if self.report.says(sentence.index, name):
                yield self.quoting(sentence, reason)

    def quoting(self, sentence: Sentence, reason: str) -> str:
        """Return a reason with the beginning of a sentence."""
        words = " ".join(self.report.words_of(sentence).split())
        quote = words if len(words) <= _LONGEST_QUOTE else f"{words[: _LONGEST_QUOTE - 3]}..."
        return f"{reason}: {quote!r}"

    def repetition(self) -> str | None:
        """Return a message if a changed sentence now duplicates another one, else None."""
        before = self.report.bare
        others = {before[sentence.index] for sentence in self.others}
        for sentence in self.touched:
            words = bare(self.text_after(sentence))
            if words and words != before[sentence.index] and words in others:
                return f"the change would repeat a sentence of the report: {words!r}"
        return None

    def make_room(
        self,
        findings: Iterable[Finding],
        names: Iterable[str],
        of: Callable[[Denial], bool] = lambda denial: True,
        covered: Mapping[str, frozenset[str]] | None = None,
    ) -> Iterator[str]:
        """Edit general denials that belie findings; yield reasons where that is not possible.

        Args:
            findings, names: the findings, and their observations.
            of: which denials count.
            covered: region -> what its denial denies; default: what each denial says.
        """
        sides = {finding.side for finding in findings}
        for sentence in self.others:
            denials = [d for d in sentence.denials if of(d) and belies(d, names, covered)]
            if sentence.normal and len(self.report.bare[sentence.index].split()) == 1:
                # "Negative."
                whole = load_lexicon().coverage.whole
                negative = Denial(whole, sentence.span, False, frozenset(names))
                denials = [negative] if of(negative) else []
            beside = [d for d in sentence.denials if of(d) and _is_beside(d, names)]
            normal = {finding.side for finding in sentence.findings if finding.normal}
            # "The right lung is clear" does not describe the left one.
            are_apart = len(normal) == len(sides) == 1 and normal | sides == {"left", "right"}
            is_after = sentence.span.start >= self.edits[0].start
            has_room = is_after and self.report.says(sentence.index, "rest", "otherwise")
            if not (denials or beside) or are_apart or has_room:
                continue
            edit = with_room(self.report.text, sentence, (denials or beside)[0])
            if edit is not None and is_after:
                self.follow_ups.append(edit)
            elif denials:
                yield self.quoting(sentence, "another sentence would contradict the change")


def _is_in(edit: Edit, span: Span) -> bool:
    if edit.start == edit.end:
        ends_one = edit.replacement.strip().endswith((".", "!", "?"))
        return span.start < edit.start < span.end or (edit.start == span.end and not ends_one)
    return edit.start < span.end and span.start < edit.end


def belies(
    denial: Denial, names: Iterable[str], covered: Mapping[str, frozenset[str]] | None = None
) -> bool:
    """Return whether a denial belies an observation; what is in no region, "normal chest" belies.

    Args: covered: region -> what its denial denies; default: what the denial says.
    """
    coverage = load_lexicon().coverage
    denied = (covered or {denial.scope: denial.observations})[denial.scope]
    is_whole = not denial.acute and denial.scope == coverage.whole
    return any(n in denied if n in coverage.any[coverage.whole] else is_whole for n in names)


def _is_beside(denial: Denial, names: Iterable[str]) -> bool:
    """Return whether "otherwise" reads better: "Pneumothorax. The lungs are otherwise clear."."""
    beside, known = statements().room.beside, load_lexicon().observations
    entries = [known[name] for name in names if name in known]
    regions = [entry.region or "" for entry in entries if not (denial.acute and entry.lasting)]
    return any(denial.scope in beside.get(region, ()) for region in regions)


def with_room(text: str, sentence: Sentence, denial: Denial) -> Edit | None:
    """Return the edit that adds "other" or "otherwise" to a denial after a finding.

    None if the denial has no place for such a word.

    >>> report = "No acute disease. Lungs are clear."
    >>> [with_room(report, s, s.denials[0]) for s in extract(report).sentences]
    [Edit(start=3, end=3, replacement='other '), Edit(start=28, end=28, replacement='otherwise ')]
    """
    room, start = statements().room, denial.span.start
    tokens, found = matches_in(denial.span.of(text))
    state = next((m for m in found.get("normal", ()) if m.entry == "normal"), None)
    denying = next((m for m in found.get("trigger", ()) if m.first == 0), None)
    if denying is not None and (denial.acute or state is None) and denying.last < len(tokens):
        nouns = (k for k, token in enumerate(tokens) if token.form in load_lexicon().coverage.nouns)
        inside = range(denying.last, next(nouns, denying.last))
        # "No radiographic evidence of (other) acute disease"
        first = max((k + 1 for k in inside if tokens[k].form in room.of), default=denying.last)
        if tokens[first].form in room.articles:
            article = tokens[first]
            return Edit(start + article.start, start + article.end, room.another)
        place = start + tokens[first + (tokens[first].form == room.any)].start
        return Edit(place, place, f"{room.other} ")
    if state is None:
        return None
    adverb = state.first > 0 and tokens[state.first - 1].form.endswith(room.adverbs)
    place = start + tokens[state.first - adverb].start
    if place > sentence.span.start:
        return Edit(place, place, f"{room.otherwise} ")
    first_letter = text[place] if text[place : place + 2].isupper() else text[place].lower()
    otherwise = with_capital(room.otherwise, like=text[place])
    return Edit(place, place + 1, f"{otherwise} {first_letter}")
