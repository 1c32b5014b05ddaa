"""Check of consistency after every change: does the rest of the report contradict it?

`consistent` knows what a change means (`Meaning`). It reads the changed sentences again, and looks
at what the others state, deny and compare (`vlscore.findings.Sentence`). A sentence that denies a
new finding in general is changed too ("No acute abnormality" becomes "No other acute abnormality").
If that is not possible, the change is refused, and the kind proposes another.

There is one rule for each `Effect`. A rule yields reasons, and the first one refuses the change. It
may add edits to `ChangedReport.follow_ups` for sentences that must change too.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

from vlscore.findings import (
    Axis,
    Category,
    Finding,
    Polarity,
    Sentence,
    Side,
    load_lexicon,
    tokenize,
)
from vlscore.perturb.changed_report import ChangedReport
from vlscore.perturb.edits import Change, Edit, Effect, Meaning, apply_edits, with_capital
from vlscore.perturb.lexicons import location_moves, phrases_in, statements
from vlscore.perturb.parsed_report import ParsedReport, are_related, heights, may_be_same
from vlscore.perturb.report_forms import harm

_ONE_SIDE = (Side.LEFT, Side.RIGHT)


def _stated(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No other sentence mentions the added finding, and none denies it in general."""
    for sentence, other in check.elsewhere:
        if any(may_be_same(other, finding) for finding in check.added):
            yield check.quoting(sentence, "another sentence mentions the finding")
    is_old = "old" in phrases_in(" ".join(edit.replacement for edit in check.edits))
    yield from check.qualify_denials(acute=False if is_old else None)


def _left_out(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No other sentence states the finding, its cause or its sign, or speaks of it unnamed."""
    report = check.report
    for sentence, other in check.stated:
        if any(are_related(other, own) for own in check.affirmed):
            yield check.quoting(sentence, "another sentence states the finding")
    is_any_left = any(map(report.pathologies, check.others))
    after_finding = False
    for sentence in check.others:
        index = sentence.index
        recommends = not is_any_left and sentence.category is Category.RECOMMENDATION
        if recommends or sentence.category is Category.COMMUNICATION:
            yield check.quoting(sentence, "another sentence may speak of the finding")
        is_next = index - 1 in check.touched_indices and index not in report.section_openings
        if index > min(check.touched_indices) and (is_next or not after_finding):
            yield from _without_rest(check, sentence, is_next)
        after_finding = after_finding or any(s is sentence for s, _ in check.stated)


def _without_rest(check: ChangedReport, sentence: Sentence, is_next: bool) -> Iterator[str]:
    """Remove "otherwise" from a sentence that no finding precedes any more."""
    text, start = check.report.text, sentence.span.start
    spans = phrases_in(sentence.span.of(text)).get("otherwise", ())
    if check.report.contains(
        sentence.index, "rest", *["connects_anywhere"] * (is_next and not spans)
    ):
        yield check.quoting(sentence, "a later sentence describes what remains")
    stated = [f.span for s, f in check.stated if s is sentence]
    for span in spans:
        if any(one.end <= start + span.start for one in stated):
            continue
        end = start + span.end
        while end < sentence.span.end and text[end] in ", ":
            end += 1
        if span.start > 0:
            # The blank before it goes, too, where it is the last word.
            is_last = not text[end : end + 1].isalnum()
            check.follow_ups.append(Edit(start + span.start - is_last, end, ""))
        else:
            capital = with_capital(text[end : end + 1], like=text[start])
            check.follow_ups.append(Edit(start, end + 1, capital))


def _denied(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """The sentence denies all that it names."""
    for sentence in check.touched:
        after = check.after(sentence)
        if not after.findings or any(f.polarity is not Polarity.NEGATIVE for f in after):
            yield f"the sentence would not deny the finding: {after.text!r}"
    yield from _left_out(check, meaning)


def _moved(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """The new place exists, and no other words tie the finding to the old one."""
    is_side = meaning.old in _ONE_SIDE
    bound, place = ("one_sided", "side") if is_side else ("zone_bound", "height")
    yield from check.with_words(
        check.touched, bound, f"other words name the {place} of the finding"
    )
    yield from check.with_words(check.touched, "not_there", "the finding may be absent")
    for sentence in check.touched:
        after = check.after(sentence)
        # Only the right lung has a middle lobe.
        if any("middle lobe" in f.zones and f.side in (Side.LEFT, Side.BILATERAL) for f in after):
            yield f"the lungs have no such place: {after.text!r}"
        named = Counter(len(_places(finding)) for finding in sentence.findings)
        if Counter(len(_places(finding)) for finding in after) != named:
            yield f"the sentence would not name the places that it names now: {after.text!r}"
    yield from (_side_moved if is_side else _height_moved)(check, meaning)


def _places(finding: Finding, *axes: Axis) -> set[tuple[Axis, str]]:
    """Return the places that the words at a finding name, not those of another one."""
    own = (a for a in finding.attributes if a.axis in (axes or (Axis.SIDE, Axis.ZONE)))
    return {(a.axis, a.value) for a in own if not a.inherited}


def _side_moved(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No other sentence names the old side, or the finding on the new one."""
    old, new = meaning.old, str(meaning.new)
    moved = [finding for finding in check.affirmed if finding.side == old]
    for sentence, other in check.elsewhere:
        named = any(own.observation == other.observation for own in moved) and new in other.sides
        is_one = other.polarity is not Polarity.NEGATIVE and any(
            may_be_same(f, other) for f in moved
        )
        if named or (is_one and _places(other, Axis.SIDE)):
            yield check.quoting(sentence, "another sentence gives the place of the finding")
        if other.normal and other.side == new:
            yield check.quoting(sentence, "another sentence calls the new side normal")
    for sentence in _of_same_region(check):
        if any(place.side == old for place in check.report.places(sentence.index)):
            yield check.quoting(sentence, "another sentence names the old side")


def _of_same_region(check: ChangedReport) -> Iterator[Sentence]:
    """Find the other sentences about bones, if a touched one is, or about anything else.

    What refers to a touched one may say what it is about: "The density may be a rib fracture."
    """
    spoken_of = (check.report.sentences[index] for index in check.touched_indices | check.followers)
    bones = {bone for sentence in spoken_of for bone in _are_bones(sentence)}
    return (s for s in check.others if not bones.isdisjoint(_are_bones(s)))


def _are_bones(sentence: Sentence) -> set[bool]:
    """Return whether findings are of bones; without one, a sentence may be about either."""
    known = load_lexicon().observations
    return {known[f.observation].region == "bones" for f in sentence.findings} or {True, False}


def _height_moved(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No other sentence names the old height, or places the finding, its cause or sign there."""
    old = location_moves().height([str(meaning.old)]) | {str(meaning.old)}
    for sentence in check.others:
        places = check.report.places(sentence.index) if not sentence.findings else ()
        if any(place.zone in old for place in places):
            yield check.quoting(sentence, "another sentence names the old place")
    moved = [own for own in check.affirmed if meaning.old in own.zones]
    for sentence, other in check.stated:
        is_there = not old.isdisjoint(heights(other))
        if is_there and any(are_related(other, own) for own in moved):
            yield check.quoting(sentence, "another sentence places the finding there")


def _regraded(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No other words grade the finding, and none deny a grave one."""
    report = check.report
    yield from check.with_words(check.touched, "extents", "the sentence also tells the extent")
    for sentence in check.touched:
        others = (f for f in sentence.findings if f in check.affirmed and f not in check.own)
        explains = report.contains(sentence.index, "interprets")
        if any(f.severity and (explains or f.polarity is Polarity.UNCERTAIN) for f in others):
            yield check.quoting(sentence, "the sentence also grades what the finding may be")
    for sentence, other in check.elsewhere:
        is_negative = other.polarity is Polarity.NEGATIVE
        is_graded = is_negative or report.contains(sentence.index, "grades", "extents")
        same = [own for own in check.own if may_be_same(other, own)]
        # "Bilateral effusions, left larger"
        is_of_both = other.side is Side.BILATERAL and any(own.side in _ONE_SIDE for own in same)
        if same and (is_graded or is_of_both):
            yield check.quoting(sentence, "another sentence speaks of the finding")
    if meaning.new in statements().qualify.grave:
        yield from check.qualify_denials(acute=True)


def _compared(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """The report compares nothing yet, and the finding may have changed as the words say."""
    reason = "a sentence speaks of another examination, or of none"
    yield from check.with_words(check.report.sentences, "compares", reason)
    yield from check.with_words(check.touched, "dated", "the words date the finding")
    if meaning.new not in statements().compare.unchanged:
        yield from check.qualify_denials(acute=True)


def _not_compared(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No words compare the finding any more, and the sentence is still a whole one."""
    for sentence in check.touched if meaning.observations else ():
        after = check.text_after(sentence)
        words = tokenize(after.rstrip(" .;"))
        if not words or words[-1].form in statements().compare.not_last:
            yield f"the sentence would be incomplete: {after!r}"
        if "compares" in phrases_in(after):
            yield f"a part of the comparison would remain: {after!r}"
    for sentence, other in check.elsewhere:
        is_negative = other.polarity is Polarity.NEGATIVE
        if is_negative and any(may_be_same(other, own) for own in check.own):
            yield check.quoting(sentence, "another sentence denies the finding")
    for sentence in _of_same_region(check):
        if sentence.changes and not sentence.normal:
            yield check.quoting(sentence, "another sentence compares with a prior examination")


Rule = Callable[[ChangedReport, Meaning], Iterator[str]]
RULES: dict[Effect, Rule] = {
    Effect.STATED: _stated,
    Effect.LEFT_OUT: _left_out,
    Effect.DENIED: _denied,
    Effect.MOVED: _moved,
    Effect.REGRADED: _regraded,
    Effect.COMPARED: _compared,
    Effect.NOT_COMPARED: _not_compared,
}


def consistent(report: ParsedReport, change: Change) -> tuple[Change | None, str]:
    """Check whether a change, with follow-up edits, leaves a report that is consistent.

    Returns: the change with its follow-up edits; or None, and the reason for its refusal.

    >>> from vlscore.perturb.edits import Edit, Effect, Meaning
    >>> report = ParsedReport.read("No effusion. No acute disease.")
    >>> edit, meaning = Edit(0, 2, "Large"), Meaning(Effect.STATED, ("pleural_effusion",))
    >>> consistent(report, Change((edit,), "example", meaning))[0].edits[1]
    Edit(start=16, end=16, replacement='other ')
    """
    change = change._replace(edits=tuple(sorted(set(change.edits))))
    if any(one.end > other.start for one, other in pairwise(change.edits)):
        return None, "two edits of the change overlap"
    changed = ChangedReport(report, change)
    perturbed = apply_edits(report.text, change.edits)
    reason = harm(report, perturbed, change.edits)
    if reason is None and change.meaning is not None:
        reason = next(RULES[change.meaning.effect](changed, change.meaning), None)
    if reason is not None:
        return None, reason
    return change._replace(edits=tuple(sorted({*change.edits, *changed.follow_ups}))), ""
