"""Report with one proposed change, in the views that the check of consistency needs."""

from collections.abc import Iterable, Iterator
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
from vlscore.perturb.parsed_report import ParsedReport

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

    def __init__(self, report: ParsedReport, change: Change) -> None:
        self.report, self.edits = report, change.edits
        self.names = change.meaning.observations if change.meaning else ()
        self.touched = [s for s in report.sentences if any(_is_in(e, s.span) for e in self.edits)]
        self.touched_indices = {sentence.index for sentence in self.touched}
        self.others = [s for s in report.sentences if s.index not in self.touched_indices]
        self.followers = {
            n for index in self.touched_indices for n in report.followers(index)
        } - self.touched_indices
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

    @cached_property
    def added(self) -> list[Finding]:
        """Return the findings of `names` that the changed words state."""
        readings = [_reading(edit.replacement) for edit in self.edits]
        readings += map(self.after, self.touched)
        return [f for found in readings for f in found.present if f.observation in self.names]

    def with_words(self, sentences: Iterable[Sentence], name: str, reason: str) -> Iterator[str]:
        """Yield the reason with each sentence that has a phrase of a list of wording.toml."""
        for sentence in sentences:
            if self.report.contains(sentence.index, name):
                yield self.quoting(sentence, reason)

    def quoting(self, sentence: Sentence, reason: str) -> str:
        """Return a reason with the beginning of a sentence."""
        words = " ".join(self.report.words_of(sentence).split())
        quote = words if len(words) <= _LONGEST_QUOTE else f"{words[: _LONGEST_QUOTE - 3]}..."
        return f"{reason}: {quote!r}"

    def qualify_denials(self, *, acute: bool | None = None) -> Iterator[str]:
        """Except `names` from general denials; yield reasons where that is not possible.

        Args: acute: only denials of acute disease, or only others; default: all.
        """
        for sentence in self.others:
            general = [d for d in sentence.denials if acute in (None, d.acute)]
            words = self.report.words_of(sentence).strip(" .").split()
            if sentence.normal and len(words) == 1 and not acute:
                # "Negative."
                whole = load_lexicon().coverage.whole
                general = [Denial(whole, sentence.span, False, frozenset(self.names))]
            denying = [d for d in general if _denies(d, self.names)]
            near = [d for d in general if _is_near(d, self.names)]
            is_after = sentence.span.start >= self.edits[0].start
            is_qualified = is_after and self.report.contains(sentence.index, "rest", "otherwise")
            if not (denying or near) or is_qualified:
                continue
            edit = qualified(self.report.text, sentence, (denying or near)[0])
            if edit is not None and is_after:
                self.follow_ups.append(edit)
            elif denying:
                yield self.quoting(sentence, "another sentence would contradict the change")


def _is_in(edit: Edit, span: Span) -> bool:
    if edit.start == edit.end:
        ends_one = edit.replacement.strip().endswith((".", "!", "?"))
        return span.start < edit.start < span.end or (edit.start == span.end and not ends_one)
    return edit.start < span.end and span.start < edit.end


def _denies(denial: Denial, names: Iterable[str]) -> bool:
    """Return whether a denial denies an observation; "normal chest" denies those of no region."""
    coverage = load_lexicon().coverage
    is_whole = not denial.acute and denial.scope == coverage.whole
    in_regions = coverage.any[coverage.whole]
    return any(n in denial.observations if n in in_regions else is_whole for n in names)


def _is_near(denial: Denial, names: Iterable[str]) -> bool:
    """Return whether "otherwise" reads better: "Pneumothorax. The lungs are otherwise clear."."""
    neighbours, known = statements().qualify.neighbours, load_lexicon().observations
    entries = [known[name] for name in names if name in known]
    regions = [entry.region or "" for entry in entries if not (denial.acute and entry.lasting)]
    return any(denial.scope in neighbours.get(region, ()) for region in regions)


def qualified(text: str, sentence: Sentence, denial: Denial) -> Edit | None:
    """Return the edit that adds "other" or "otherwise" to a denial after a finding.

    None if the denial has no place for such a word.

    >>> report = "No acute disease. Lungs are clear."
    >>> [qualified(report, s, s.denials[0]) for s in extract(report).sentences]
    [Edit(start=3, end=3, replacement='other '), Edit(start=28, end=28, replacement='otherwise ')]
    """
    table, start = statements().qualify, denial.span.start
    tokens, found = matches_in(denial.span.of(text))
    state = next((m for m in found.get("normal", ()) if m.entry == "normal"), None)
    denying = next((m for m in found.get("trigger", ()) if m.first == 0), None)
    if denying is not None and (denial.acute or state is None) and denying.last < len(tokens):
        nouns = (k for k, token in enumerate(tokens) if token.form in load_lexicon().coverage.nouns)
        inside = range(denying.last, next(nouns, denying.last))
        # "No radiographic evidence of (other) acute disease"
        first = max((k + 1 for k in inside if tokens[k].form in table.of), default=denying.last)
        if tokens[first].form in table.articles:
            article = tokens[first]
            return Edit(start + article.start, start + article.end, table.another)
        place = start + tokens[first + (tokens[first].form == table.any)].start
        return Edit(place, place, f"{table.other} ")
    if state is None:
        return None
    adverb = state.first > 0 and tokens[state.first - 1].form.endswith(table.adverbs)
    place = start + tokens[state.first - adverb].start
    if place > sentence.span.start:
        return Edit(place, place, f"{table.otherwise} ")
    first_letter = text[place] if text[place : place + 2].isupper() else text[place].lower()
    otherwise = with_capital(table.otherwise, like=text[place])
    return Edit(place, place + 1, f"{otherwise} {first_letter}")
