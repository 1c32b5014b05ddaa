"""A changed report as the check sees it: what was touched, what stands beside it."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from vlscore.perturb.denial import denial_of, spared
from vlscore.perturb.perturbation import Change, Edit, apply_edits
from vlscore.perturb.plaintext import PlainSentence, Topic, bare, sides_in
from vlscore.perturb.reading import ReadReport

# Below so many, looking at each edit is faster than finding those of a sentence.
_MANY_EDITS = 8


class ChangedReport:
    """A report and one change of it, in the views that the rules of `effects` need.

    Attributes:
        perturbed: the text after the change.
        edits: of the change.
        along: edits that the rules add, of sentences that change along.
    """

    def __init__(self, report: ReadReport, change: Change) -> None:
        self.report, self.edits = report, change.edits
        self.perturbed = apply_edits(report.text, change.edits)
        self.along: list[Edit] = []

    @cached_property
    def sentences(self) -> list[PlainSentence]:
        return self.report.plain

    @cached_property
    def touched(self) -> list[PlainSentence]:
        """The sentences with an edit in them."""
        starts = self.report.plain_starts
        found = set()
        for edit in self.edits:
            # Sentences lie end to end, and an edit may end where one ends or begins.
            first = max(0, bisect_right(starts, edit.start) - 2)
            for number in range(first, bisect_right(starts, edit.end)):
                if _is_in(edit, self.sentences[number]):
                    found.add(number)
        return [self.sentences[number] for number in sorted(found)]

    @cached_property
    def others(self) -> list[PlainSentence]:
        touched = {sentence.number for sentence in self.touched}
        return [s for s in self.sentences if s.number not in touched]

    @cached_property
    def after(self) -> list[str]:
        """The touched sentences as they read after the change."""
        return [apply_edits(s.said, self.edits_of(s)).lower() for s in self.touched]

    def edits_of(self, sentence: PlainSentence) -> list[Edit]:
        """The edits of one sentence, in characters of it, with what they do there."""
        edits = self.edits
        if len(edits) > _MANY_EDITS:
            # In text order and without overlap, so that their ends are in order as well.
            last = bisect_right(edits, sentence.end, key=lambda edit: edit.start)
            edits = edits[bisect_left(edits, sentence.start, key=lambda edit: edit.end) : last]
        return [part for edit in edits if (part := clipped(edit, sentence))]

    @cached_property
    def told(self) -> str:
        """What the change says now, in the words around its edits."""
        return " ".join([*self.after, *(edit.replacement.lower() for edit in self.edits)])

    @cached_property
    def place(self) -> str:
        """Where the changed thing is, in the words of the sentences that were changed."""
        return " ".join(sentence.said for sentence in self.touched)

    def said_twice(self) -> str | None:
        """That a changed sentence says what another sentence says already, in words; or None."""
        own = Counter(bare(sentence.said) for sentence in self.touched)
        for sentence, after in zip(self.touched, self.after, strict=True):
            said = bare(after)
            if not said or said == bare(sentence.said):
                continue
            if self.report.plain_counts[said] > own[said]:
                return f"the change would say twice: {said!r}"
        return None

    def make_room(self, topic: Topic | None, place: int) -> Iterator[str]:
        """Denials of organs and of the whole film that the finding now stated at `place` belies."""
        for sentence in self.others:
            before = self.sentences[sentence.number - 1] if sentence.number else None
            denial = denial_of(sentence, before)
            if denial is None:
                continue
            # "The right lung is clear" says nothing of the left one.
            is_of_organs = denial.systems and not denial.only_acute
            sides = sides_in(sentence.said) if is_of_organs else frozenset()
            if len(sides) == 1 and sides != sides_in(self.told):
                continue
            covers = denial.covers(topic) if topic else not (denial.systems or denial.only_acute)
            beside = topic is not None and denial.is_beside(topic)
            if not covers and not (beside and sentence.start >= place):
                continue
            edit = spared(self.report.text, sentence) if sentence.start >= place else None
            if edit is None and not covers:
                continue
            if edit is None:
                yield f"the report says elsewhere: {quoted(sentence)}"
                return
            self.goes_along(edit)

    def goes_along(self, edit: Edit) -> None:
        """Add an edit of a sentence that changes along, once; an empty one is none."""
        if edit not in self.along and (edit.replacement or edit.start < edit.end):
            self.along.append(edit)


def clipped(edit: Edit, sentence: PlainSentence) -> Edit | None:
    """What an edit does to the words of one sentence."""
    start, end = max(edit.start, sentence.start), min(edit.end, sentence.end)
    if start > end:
        return None
    replacement = edit.replacement if edit.start >= sentence.start else ""
    return Edit(start - sentence.start, end - sentence.start, replacement)


def _is_in(edit: Edit, sentence: PlainSentence) -> bool:
    if edit.start == edit.end:
        return sentence.start < edit.start < sentence.end or (
            edit.start == sentence.end and not edit.replacement.strip().endswith((".", "!", "?"))
        )
    return edit.start < sentence.end and sentence.start + sentence.lead < edit.end


def quoted(sentence: PlainSentence) -> str:
    """The beginning of a sentence, for a reason."""
    said = " ".join(sentence.said.split())
    return repr(said if len(said) <= 70 else said[:67] + "...")
