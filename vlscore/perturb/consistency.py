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
    Span,
    find_sizes,
    load_lexicon,
    speaks_of_earlier,
    tokenize,
)
from vlscore.perturb.changed_report import ChangedReport, belies
from vlscore.perturb.edits import Change, Edit, Effect, Meaning, apply_edits, with_capital
from vlscore.perturb.lexicons import (
    begins_with,
    location_moves,
    phrases_in,
    severity_changes,
    statements,
)
from vlscore.perturb.parsed_report import ReadReport, are_kin, heights, may_be_one
from vlscore.perturb.report_forms import harm


def _stated(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No other sentence mentions the added finding, and none denies it in general."""
    names, known = meaning.observations, load_lexicon().observations
    if not check.added and not known.keys().isdisjoint(names):
        yield "the changed sentence would not state the finding"
    for sentence, other in check.elsewhere:
        # "The lungs are clear" may become "otherwise clear", "the heart is normal" may not.
        is_general = other.observation not in names and (
            other.normal or known[other.observation].generic
        )
        is_general = is_general and any(belies(denial, names) for denial in sentence.denials)
        if not is_general and any(may_be_one(other, finding) for finding in check.added):
            yield check.quoting(sentence, "another sentence mentions the finding")
    behind = [s for s in check.others if s.span.start >= check.edits[-1].end]
    if behind and check.report.speaks_of_the_one_before[behind[0].index]:
        yield check.quoting(behind[0], "the next sentence would speak of the new finding")
    is_old = "old" in phrases_in(" ".join(edit.replacement for edit in check.edits))
    yield from check.make_room(check.added, names, lambda denial: not (is_old and denial.acute))


def _left_out(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No other sentence states the finding, its cause or its sign, or speaks of it unnamed."""
    report = check.report
    yield from _not_there(check)
    foreign = [report.says(index, "foreign_bodies") for index in check.gone]
    if any(foreign) and not all(foreign):
        yield "a device would be removed together with the finding"
    for sentence, other in check.stated:
        if any(are_kin(other, own) for own in check.affirmed):
            yield check.quoting(sentence, "another sentence states the finding")
    for sentence, other in check.elsewhere:
        # "The heart is at the upper limits of normal."
        is_hedged = other.normal and report.says(sentence.index, "hedges")
        if is_hedged and any(may_be_one(other, own) for own in check.affirmed):
            yield check.quoting(sentence, "another sentence nearly states the finding")
    yield from check.saying(check.others, "points", "another sentence points at the removed one")
    is_any_left = any(map(report.pathologies, check.others))
    zones_gone = set[str | None]().union(*map(heights, check.affirmed))
    after_finding = False
    for sentence in check.others:
        index, stated = sentence.index, any(s is sentence for s, _ in check.stated)
        recommends = not is_any_left and sentence.category is Category.RECOMMENDATION
        is_on_it = recommends or sentence.category is Category.COMMUNICATION
        zones = {place.zone for place in report.places(index)} - {None} if not stated else set()
        is_there = bool(zones) and not (zones_gone and zones_gone.isdisjoint(zones))
        is_vague = is_there and not sentence.normal and report.says(index, "vague")
        if index in check.followers or is_on_it or is_vague:
            yield check.quoting(sentence, "another sentence may speak of the finding")
        is_next = index - 1 in check.gone and index not in report.section_openings
        if index > min(check.gone) and (is_next or not after_finding):
            yield from _without_rest(check, sentence, is_next)
        after_finding = after_finding or stated


def _without_rest(check: ChangedReport, sentence: Sentence, is_next: bool) -> Iterator[str]:
    """Remove "otherwise" from a sentence that no finding precedes any more."""
    text, start = check.report.text, sentence.span.start
    spans = phrases_in(sentence.span.of(text)).get("otherwise", ())
    if check.report.says(sentence.index, "rest", *["leans"] * (is_next and not spans)):
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
    """The sentence denies all that it names, compares nothing, and calls nothing normal."""
    for sentence in check.touched:
        after = check.after(sentence)
        if not after.findings or any(f.polarity is not Polarity.NEGATIVE for f in after):
            yield f"the sentence would not deny the finding: {after.text!r}"
        if check.calls_normal(sentence):
            yield f"the denial would call something normal, too: {after.text!r}"
        if speaks_of_earlier(after) or any(part.changes for part in after.sentences):
            yield f"the denial would contain a comparison: {after.text!r}"
    yield from _left_out(check, meaning)


def _moved(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """The new place exists, and no other words tie the finding to the old one."""
    yield from _not_there(check)
    is_side = meaning.old in (Side.LEFT, Side.RIGHT)
    bound, place = ("one_sided", "side") if is_side else ("zone_bound", "height")
    yield from check.saying(check.touched, bound, f"other words name the {place} of the finding")
    for sentence in check.touched:
        after = check.after(sentence)
        # Only the right lung has a middle lobe.
        if any("middle lobe" in f.zones and f.side in (Side.LEFT, Side.BILATERAL) for f in after):
            yield f"the lungs have no such place: {after.text!r}"
        named = Counter(len(_places(finding)) for finding in sentence.findings)
        if Counter(len(_places(finding)) for finding in after) != named:
            yield f"the sentence would not name the places that it names now: {after.text!r}"
    for index in check.followers:
        # "Less on the right."
        if check.report.places(index) and not check.report.sentences[index].findings:
            yield "a sentence that refers to the finding names its place"
    yield from (_side_moved if is_side else _height_moved)(check, meaning)


def _places(finding: Finding, *axes: Axis) -> set[tuple[Axis, str]]:
    """Return the places that the words at a finding name, not those of another one."""
    own = (a for a in finding.attributes if a.axis in (axes or (Axis.SIDE, Axis.ZONE)))
    return {(a.axis, a.value) for a in own if not a.inherited}


def _side_moved(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No other sentence names the old side, or the finding on the new one."""
    report, old, new = check.report, meaning.old, str(meaning.new)
    for sentence in check.touched:
        for place in report.places(sentence.index):
            behind = report.text[place.span.end : sentence.span.end].lstrip(" -")
            is_name = begins_with(behind, "named_by_side")
            if place.side == Side.BILATERAL or (place.side == old and is_name):
                yield check.quoting(
                    sentence, "the sentence names both sides, or a part by its side"
                )
    moved = [finding for finding in check.affirmed if finding.side == old]
    for sentence, other in check.elsewhere:
        named = any(own.observation == other.observation for own in moved) and new in other.sides
        is_one = other.polarity is not Polarity.NEGATIVE and any(
            may_be_one(f, other) for f in moved
        )
        pools = report.says(sentence.index, "pooled")
        if named or (is_one and (pools or _places(other, Axis.SIDE))):
            yield check.quoting(sentence, "another sentence gives the place of the finding")
        if other.normal and other.side == new:
            yield check.quoting(sentence, "another sentence calls the new side normal")
    for sentence in _of_same_region(check):
        is_silent = report.merely_denies(sentence) or sentence.category is Category.TECHNIQUE
        if not is_silent and any(p.side == old for p in report.places(sentence.index)):
            yield check.quoting(sentence, "another sentence names the old side")


def _of_same_region(check: ChangedReport) -> Iterator[Sentence]:
    """Find the other sentences about bones, if a touched one is, or about anything else.

    What refers to a touched one may say what it is about: "The density may be a rib fracture."
    """
    report = check.report
    spoken_of = (report.sentences[index] for index in check.gone | check.followers)
    bones = {bone for sentence in spoken_of for bone in report.is_of_bones(sentence)}
    return (s for s in check.others if not bones.isdisjoint(report.is_of_bones(s)))


def _height_moved(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No other sentence names the old height, or places the finding, its cause or sign there."""
    report = check.report
    old = location_moves().height([str(meaning.old)]) | {str(meaning.old)}
    for sentence in check.others:
        if not sentence.findings and any(p.zone in old for p in report.places(sentence.index)):
            yield check.quoting(sentence, "another sentence names the old place")
    for sentence, other in check.stated:
        is_there = not old.isdisjoint(heights(other)) or report.says(sentence.index, "pooled")
        moved = (own for own in check.affirmed if meaning.old in own.zones)
        if is_there and any(are_kin(other, own) for own in moved):
            yield check.quoting(sentence, "another sentence places the finding there")


def _regraded(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No other words grade the finding, and none deny a grave one."""
    report = check.report
    yield from check.saying(check.touched, "extents", "the sentence also tells the extent")
    for sentence in check.touched:
        yield from _graded_twice(check, sentence)
        if find_sizes(tokenize(report.words_of(sentence)), load_lexicon()):
            yield check.quoting(sentence, "the sentence tells the size")
        others = (f for f in sentence.findings if f in check.affirmed and f not in check.own)
        explains = report.says(sentence.index, "interprets")
        if any(f.severity and (explains or f.polarity is Polarity.UNCERTAIN) for f in others):
            yield check.quoting(sentence, "the sentence also grades what the finding may be")
    for sentence, other in check.elsewhere:
        same = any(may_be_one(other, own) for own in check.own)
        kin = any(are_kin(other, own) for own in check.own)
        is_negative = other.polarity is Polarity.NEGATIVE
        is_graded = is_negative or report.says(sentence.index, "grades", "extents")
        if is_graded if same else kin and not is_negative:
            yield check.quoting(sentence, "another sentence speaks of the finding")
        one_side = {own.side for own in check.own} & {Side.LEFT, Side.RIGHT}
        if same and one_side and other.side is Side.BILATERAL:
            yield check.quoting(sentence, "another sentence names both sides together")
    if meaning.new in statements().room.grave:
        yield from check.make_room(check.own, meaning.observations, lambda denial: denial.acute)


def _graded_twice(check: ChangedReport, sentence: Sentence) -> Iterator[str]:
    """Yield reasons if another grade stands beside a changed one."""
    text, steps = check.report.text, severity_changes().steps
    edits = [Span(edit.start, edit.end) for edit in check.edits]
    for span in phrases_in(sentence.span.of(text)).get("grades", ()):
        grade = Span(span.start + sentence.span.start, span.end + sentence.span.start)
        if any(grade.overlaps(edit) for edit in edits):
            continue
        for edit in (edit for edit in edits if edit.overlaps(sentence.span)):
            between = text[min(grade.end, edit.end) : max(grade.start, edit.start)]
            if not any(token.form in steps for token in tokenize(between)):
                yield f"other words grade the finding as well: {grade.of(text)!r}"


def _compared(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """The report compares nothing yet, and the finding may have changed as the words say."""
    yield from _not_there(check)
    report = check.report
    reason = "a sentence speaks of another examination, or of none"
    yield from check.saying(report.sentences, "compares", reason)
    if speaks_of_earlier(report.findings):
        yield "the report compares with a prior examination"
    yield from check.saying(check.touched, "dated", "the words date the finding")
    if meaning.new not in statements().compare.unchanged:
        covered, names = load_lexicon().coverage.any, meaning.observations
        yield from check.make_room(check.own, names, lambda denial: denial.acute, covered)


def _not_compared(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No words compare the finding any more, and the sentence is still a whole one."""
    for sentence in check.touched if meaning.observations else ():
        after = check.after(sentence)
        words = tokenize(after.text.rstrip(" .;"))
        refers = begins_with(after.text, "refers")
        if not words or words[-1].form in statements().compare.hanging or refers:
            yield f"the sentence would be incomplete: {after.text!r}"
        own = [f for f in after if any(are_kin(f, one) for one in check.own)]
        others = [f for f in after if f not in own and f.on(Axis.CHANGE)]
        still = any(f.on(Axis.CHANGE) for f in own)
        speaks = speaks_of_earlier(after) or "compares" in phrases_in(after.text)
        if still or (speaks and not others):
            yield f"a part of the comparison would remain: {after.text!r}"
    for sentence, other in check.elsewhere:
        is_negative = other.polarity is Polarity.NEGATIVE
        if is_negative and any(may_be_one(other, own) for own in check.own):
            yield check.quoting(sentence, "another sentence denies the finding")
    for sentence in _of_same_region(check):
        if sentence.changes and not sentence.normal:
            yield check.quoting(sentence, "another sentence compares with a prior examination")


def _normality_left_out(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No sentence points at another."""
    yield from check.saying(check.others, "points", "a sentence points at another")


def _no_content_left_out(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """The removed sentence asks for no other examination, and for none of a serious finding."""
    reason = "the sentence recommends another examination"
    yield from check.saying(check.touched, "examinations", reason)
    for sentence in check.touched:
        if sentence.category is not Category.RECOMMENDATION:
            continue
        # What is recommended answers to the sentence itself, or to those right before it.
        for near in check.report.sentences[max(0, sentence.index - 2) : sentence.index + 1]:
            stated = (f for f in near.findings if f.polarity is not Polarity.NEGATIVE)
            known = load_lexicon().observations
            if any(known[finding.observation].serious for finding in stated):
                yield check.quoting(near, "it may recommend what to do about a serious finding")


def _reordered(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """No sentence points at another."""
    yield from check.saying(check.report.sentences, "points", "a sentence points at another")


def _not_there(check: ChangedReport) -> Iterator[str]:
    """The finding is there: it is not described as absent, and its denial was not lost."""
    yield from check.saying(check.touched, "not_there", "the finding may be absent")
    text, known = check.report.text, load_lexicon().observations
    for sentence in check.touched:
        normal = check.calls_normal(sentence)
        for finding, following in pairwise((*sentence.findings, None)):
            if finding is None or not finding.is_present:
                continue
            # "The lungs are clear airspace disease", "narrow pneumothorax, consolidation or edema"
            is_lost = (
                known[finding.observation].region == "lungs" and finding.span.start - 1 in normal
            )
            if following is not None and following.polarity is Polarity.UNCERTAIN:
                is_lost |= text[finding.span.end : following.span.start].strip() == ","
            if is_lost:
                yield check.quoting(sentence, "a denial may have been lost")


Rule = Callable[[ChangedReport, Meaning], Iterator[str]]
RULES: dict[Effect, Rule] = {
    Effect.STATED: _stated,
    Effect.LEFT_OUT: _left_out,
    Effect.DENIED: _denied,
    Effect.MOVED: _moved,
    Effect.REGRADED: _regraded,
    Effect.COMPARED: _compared,
    Effect.NOT_COMPARED: _not_compared,
    Effect.NORMALITY_LEFT_OUT: _normality_left_out,
    Effect.NO_CONTENT_LEFT_OUT: _no_content_left_out,
    Effect.REORDERED: _reordered,
}


def consistent(report: ReadReport, change: Change) -> tuple[Change | None, str]:
    """Check whether a change, with follow-up edits, leaves a report that is consistent.

    Returns: the change with its follow-up edits; or None, and the reason for its refusal.

    >>> from vlscore.perturb.edits import Edit, Effect, Meaning
    >>> report = ReadReport.read("No effusion. No acute disease.")
    >>> edit, meaning = Edit(0, 2, "Large"), Meaning(Effect.STATED, ("pleural_effusion",))
    >>> consistent(report, Change((edit,), "example", meaning))[0].edits[1]
    Edit(start=16, end=16, replacement='other ')
    """
    changed = ChangedReport(report, change)
    perturbed = apply_edits(report.text, change.edits)
    reason = harm(report, perturbed, change.edits) or changed.repetition()
    if reason is None and change.meaning is not None:
        reason = next(RULES[change.meaning.effect](changed, change.meaning), None)
    if reason is not None:
        return None, reason
    return change._replace(edits=tuple(sorted({*change.edits, *changed.follow_ups}))), ""
