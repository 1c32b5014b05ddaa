"""Check of consistency after every change: does the rest of the report contradict it?

`consistent` knows what a change means (`Meaning`), and reads the rest of the report by its words
(`plaintext`), independently of the kinds and of the extractor. A sentence that contradicts the
change is changed too ("No acute abnormality" becomes "No other acute abnormality"). If that is not
possible, the change is refused, and the kind proposes another.

There is one rule for each `Effect`. A rule yields reasons, and the first one refuses the change. It
may add edits to `ChangedReport.follow_ups` for sentences that must change too.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from vlscore.perturb.changed_sentences import ChangedReport, quoted
from vlscore.perturb.edits import Change, Edit, Effect, Meaning, with_capital
from vlscore.perturb.parsed_report import ReadReport
from vlscore.perturb.plaintext import (
    PlainSentence,
    Topic,
    claims,
    denial_of,
    heights_in,
    is_denied,
    may_be_one_place,
    remembered,
    sides_in,
    topics,
    words,
)
from vlscore.perturb.report_forms import harm

_VAGUE = re.compile(
    r"(?<!\w)(?:changes?|abnormalit\w+|process|findings?|disease|markings?|shadow\w*|prominence|"
    r"thickening|area|lesions?|opacit\w+|densit\w+)(?!\w)"
)
_SITES = re.compile(
    r"(?<!\w)(?:bas\w+|biba\w+|apex|apic\w+|apices|lobes?|lungs?|mid\w*|\w*hil(?:ar|um|a)|costophrenic|"
    r"pleura\w*|hemithorax|lingula\w*|ribs?|hemidiaphragm|clavicle|shoulder|humer\w+)(?!\w)"
)
_WRONG_SIDE = re.compile(
    r"(?<!\w)left(?:[- ]sided)? middle lobe|(?<!\w)right(?:[- ]sided)? lingula\w*"
    r"|(?<!\w)left (?:(?!right)[\w,]+ ){0,4}middle lobes?(?!\w)"
    r"|(?<!\w)right (?:(?!left)[\w,]+ ){0,4}lingula\w*"
    r"|(?<!\w)middle (?:(?!right)[\w,]+ ){0,3}(?:of the |on the )left"
)
_BOTH_SIDES = re.compile(r"\b(?:bilateral|both)\b.*\b(?:left|right)\b")
_SIDE_TWICE = re.compile(r"\b(?:on|to) the (left|right)\b.*\b(?:on|to) the \1\b")
_FOREIGN = re.compile(r"(?<!\w)(?:foreign bod\w+|bullets?|clips?|shrapnel|fragments?)(?!\w)")
_SAME_TWICE = re.compile(
    r"(?<!\w)(upper|lower|middle|apical|basilar|left|right|apex|base|midlung)(?: lobes?| lungs?)?"
    r"(?: and| or|,|/)+ ?(?:the |in the )?\1(?!\w)"
)
_NO_MIDDLE = re.compile(r"(?<!\w)(?:left|bilateral) middle lobes?(?!\w)")
# "Cardiomegaly and mediastinal contour": what is stable of a contour is its being stable.
_HANGING = re.compile(
    r"(?:^\W*(?:and|or|but|with)\b|\b(?:and|or|,) (?:the )?(?:\w+ ){0,2}"
    r"(?:contours?|size|position|silhouettes?|mediastinum|appearance|volumes?|configuration|placement)\W*$"
    r"|\b(?:is|are|remains?|appears?|the|a|an|and|or|with|of|from|in|to|but)\s*$)"
)
_OLD = re.compile(r"\b(?:old|healed|chronic|remote)\b")
_REST = re.compile(r"(?<!\w)(?:remainder|remaining|otherwise|other|others|rest)(?!\w)")
_ILL_DENIED = re.compile(
    r"\bnormal\b.*\bnot\b|\bnot (?:\w+ly )?(?:prominent|large) (?:\w+ )*contour"
)
_CHANGING = re.compile(r"\b(?:increas\w+|decreas\w+|enlarging|worsen\w+|improv\w+|develop\w+)\b")
# "Otherwise" without any finding that it could refer to.
_OTHERWISE = re.compile(r"\b(?:is|are|appears?|lungs) (otherwise )")
_OPENING_OTHERWISE = re.compile(r"otherwise,? (?=\w)")
_FRESH = re.compile(r"\b(?:acute|subacute|recent|healing|unhealed)\b")
_BARE_COMPARISON = re.compile(
    r"\W*(?:similar|unchanged|stable|no change|increased|decreased|improved|worse)"
    r"(?: appearance)?\W*"
)
_SECOND = re.compile(r"\b(?:and|with) (?:a |an |the )?$")
_STEP = re.compile(r"(?<!\w)(?:,|;|and|with|but|or|which|that|without|in|of)(?!\w)")
_SEE = re.compile(r"\b(?:see|below)\b")
_UP = frozenset(("severe", "severely", "marked", "markedly", "large", "dense", "extensive"))


def _topics_of(meaning: Meaning) -> list[Topic]:
    found = (topics().get(name) for name in meaning.observations)
    return list(dict.fromkeys(topic for topic in found if topic is not None))


def _saying(
    sentences: Iterable[PlainSentence], pattern: re.Pattern[str], reason: str
) -> Iterator[str]:
    """Yield the reason with each sentence that the pattern finds something in."""
    for sentence in sentences:
        if pattern.search(sentence.text):
            yield f"{reason}: {quoted(sentence)}"


def _matched(text: str, pattern: re.Pattern[str], reason: str) -> Iterator[str]:
    """Yield the reason with the words that the pattern finds, if any."""
    if (found := pattern.search(text)) is not None:
        yield f"{reason}: {found.group()!r}"


# ---------------------------------------------------------------------------- one rule an effect


def _stated(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """Yield reasons against a finding that the change adds to the report."""
    known = _topics_of(meaning)
    if any(_OLD.search(edit.replacement.lower()) for edit in check.edits):
        known = [topic._replace(acute=False) for topic in known]
    for topic in known:
        for sentence in check.others:
            named = topic.names.search(sentence.text) is not None
            # What denies whole organs may make room; it is no word on the finding itself.
            coarse = topic.coarse if denial_of(sentence) is None else None
            if named or (coarse is not None and coarse.search(sentence.text)):
                yield f"another sentence mentions the finding: {quoted(sentence)}"
    place = check.edits[0].start
    for sentence in check.others:
        is_next = sentence.start <= check.edits[-1].end + 2 and sentence.end > check.edits[-1].end
        if is_next and _BARE_COMPARISON.fullmatch(sentence.text):
            yield f"the next sentence would compare the new finding: {quoted(sentence)}"
    general: list[Topic | None] = [None]
    for each in known or general:
        yield from check.make_room(each, place)


def _left_out(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """Yield reasons against a finding that the report no longer states."""
    yield from _not_there(check)
    foreign = [_FOREIGN.search(sentence.text) is not None for sentence in check.touched]
    if any(foreign) and not all(foreign):
        yield "a device would be removed together with the finding"
    place = check.place
    first = min((sentence.number for sentence in check.touched), default=0)
    is_after_finding = False
    for sentence in check.others:
        if words().pointers.search(sentence.text):
            yield f"another sentence refers to the removed one: {quoted(sentence)}"
        if sentence.number > first and not is_after_finding and _REST.search(sentence.text):
            yield from _without_rest(check, sentence)
        is_after_finding = is_after_finding or _names_finding(sentence.text)
        for topic in _topics_of(meaning):
            if not may_be_one_place(sentence.text, place):
                continue
            if claims(sentence.text, topic.names):
                yield f"another sentence states the finding: {quoted(sentence)}"
            if topic.coarse is not None and claims(sentence.text, topic.coarse):
                yield f"another sentence states the finding less exactly: {quoted(sentence)}"
        if _is_vague_there(sentence, place):
            yield f"another sentence states an abnormality at the same place: {quoted(sentence)}"


@remembered
def _names_finding(said: str) -> bool:
    """Return True if a sentence mentions a finding, so that "otherwise" may follow it."""
    return any(claims(said, topic.names) for topic in dict.fromkeys(topics().values()))


def _without_rest(check: ChangedReport, sentence: PlainSentence) -> Iterator[str]:
    """Remove "otherwise" from a sentence that no finding precedes any more."""
    opening = _OPENING_OTHERWISE.match(sentence.text, sentence.lead)
    word = _OTHERWISE.search(sentence.text, sentence.lead)
    text = check.report.text
    if opening is not None:
        start, end = sentence.start + opening.start(), sentence.start + opening.end()
        check.add_follow_up(Edit(start, end + 1, with_capital(text[end], like=text[start])))
    elif word is not None:
        check.add_follow_up(Edit(sentence.start + word.start(1), sentence.start + word.end(1), ""))
    else:
        yield f"a later sentence describes what remains: {quoted(sentence)}"


def _denied(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """Yield reasons against a denial: it must not compare the finding or state normality too."""
    for after in check.after:
        yield from _matched(after, words().compares, "the denial would contain a comparison")
        if _ILL_DENIED.search(after):
            yield f"the denial would not be a normal sentence: {after.strip()!r}"
    yield from _left_out(check, meaning)


def _is_vague_there(sentence: PlainSentence, place: str) -> bool:
    """Return whether a sentence mentions an unnamed finding at the same place."""
    here, there = sides_in(place), sides_in(sentence.text)
    if not here & there or not heights_in(place) & heights_in(sentence.text):
        return False
    return any(not is_denied(sentence.text, *m.span()) for m in _VAGUE.finditer(sentence.text))


def _moved(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """Yield reasons against another side or height of a finding."""
    yield from _not_there(check)
    for after in check.after:
        wrong = _WRONG_SIDE.search(after) or _NO_MIDDLE.search(after)
        if wrong is not None:
            yield f"the lungs have no such place: {wrong.group()!r}"
        yield from _matched(after, _SAME_TWICE, "the sentence would name one place twice")
    yield from (_side_moved if meaning.old in ("left", "right") else _height_moved)(check, meaning)


def _side_moved(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    old, new = meaning.old, meaning.new
    for sentence in check.touched:
        one_sided = "the sentence names an organ that is only on one side"
        yield from _matched(sentence.text, words().side_bound, one_sided)
        if _BOTH_SIDES.search(sentence.text):
            yield f"the sentence names both sides: {quoted(sentence)}"
    for sentence, after in zip(check.touched, check.after, strict=True):
        yield from _matched(after, _SIDE_TWICE, "the sentence would name one side twice")
        # "The left shoulder and the right shoulder" has one there already.
        for place in set(re.findall(rf"\b{new} \w+", sentence.text)):
            if after.count(place) > sentence.text.count(place):
                yield f"the sentence would name one side twice: {place!r}"
    sites = {site for sentence in check.touched for site in _sites_in(sentence)}
    known = _topics_of(meaning)
    for sentence in check.others:
        sides = sides_in(sentence.text)
        named = any(topic.names.search(sentence.text) for topic in known)
        coarse = any(t.coarse is not None and t.coarse.search(sentence.text) for t in known)
        points = words().pointers.search(sentence.text) is not None
        shared = not sites.isdisjoint(_sites_in(sentence)) and len(sides) == 1
        if old in sides and (named or coarse or points or shared):
            yield f"another sentence names the old side: {quoted(sentence)}"
        if named and sides == {new}:
            yield f"another sentence names the finding on the new side: {quoted(sentence)}"
        stated = any(claims(sentence.text, topic.names) for topic in known)
        if stated and words().pooled.search(sentence.text):
            yield f"another sentence groups the finding with others: {quoted(sentence)}"


def _sites_in(sentence: PlainSentence) -> set[str]:
    """Return the parts of the chest that it names, what lies about the hilum as one."""
    found = {site.group() for site in _SITES.finditer(sentence.text)}
    return {"hilum" if "hil" in site else site for site in found}


def _height_moved(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    for after in check.after:
        reason = "other words name the height of the finding"
        yield from _matched(after, words().height_bound, reason)
        if words().pooled.search(after) and len(heights_in(after)) > 1:
            yield "the sentence names several places together"
    old = heights_in(check.place)
    known = _topics_of(meaning)
    for sentence in check.others:
        patterns = [p for topic in known for p in (topic.names, topic.coarse) if p is not None]
        stated = any(claims(sentence.text, pattern) for pattern in patterns)
        if not stated or not may_be_one_place(sentence.text, check.place):
            continue
        if heights_in(sentence.text) & old or words().pooled.search(sentence.text):
            yield f"another sentence names the old place: {quoted(sentence)}"


def _regraded(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """Yield reasons against another grade of a finding."""
    yield from _not_there(check)
    for sentence in check.touched:
        yield from _graded_twice(sentence, check.edits_of(sentence))
    known = _topics_of(meaning)
    for sentence in check.others:
        graded = words().grades.search(sentence.text) or words().extents.search(sentence.text)
        if graded is None or not may_be_one_place(sentence.text, check.place):
            continue
        if any(claims(sentence.text, topic.names) for topic in known):
            yield f"another sentence grades the finding: {quoted(sentence)}"
    for topic in known if meaning.new in _UP else ():
        yield from check.make_room(topic, check.edits[0].start)


def _graded_twice(sentence: PlainSentence, own: Sequence[Edit]) -> Iterator[str]:
    """Return another grade, a stage or an extent next to the changed word; `own` are its edits."""
    rest = sentence.text
    for start, end, _ in own:
        rest = rest[:start] + "|" * (end - start) + rest[end:]
    yield from _matched(rest, words().extents, "the sentence also names the extent of the finding")
    for start, end, _ in own:
        before = max((m.end() for m in _STEP.finditer(rest, 0, start)), default=0)
        after = min((m.start() for m in _STEP.finditer(rest, end)), default=len(rest))
        again = words().grades.search(rest, before, after)
        if again is not None and again.group() not in ("prominent", "dense"):
            yield f"other words grade the finding as well: {again.group()!r}"


def _compared(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """Yield reasons against a new comparison with a prior examination."""
    yield from _not_there(check)
    reason = "the report states that there is no prior examination"
    yield from _saying(check.sentences, words().no_prior, reason)
    reason = "another sentence compares with a prior examination"
    yield from _saying(check.others, words().priors, reason)
    for sentence in check.touched:
        already = _CHANGING.search(sentence.text) or words().compares.search(sentence.text)
        if already is not None:
            yield f"the sentence already states a change: {already.group()!r}"
        if meaning.new in ("unchanged", "stable") and _FRESH.search(sentence.text):
            yield "the sentence states that the finding is recent"
    for topic in _topics_of(meaning) if meaning.new in ("new", "increased") else ():
        yield from check.make_room(topic._replace(acute=True), check.edits[0].start)


def _not_compared(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """Yield reasons against the removal of a comparison."""
    for after in check.after:
        said = " ".join(after.split()).rstrip(" .;")
        first = _first_part(check)
        # "And stable left effusion" compares a second finding.
        left = [
            m
            for m in words().compares.finditer(said)
            if not _SECOND.search(said[: m.start()]) and not said.startswith(first, m.start())
        ]
        if left and meaning.observations:
            yield f"a part of the comparison would remain: {left[0].group()!r}"
        if said and _HANGING.search(said):
            yield f"the sentence would be incomplete: {said[-60:]!r}"
    for sentence in check.others:
        if words().compares.search(sentence.text) is None:
            continue
        for topic in _topics_of(meaning):
            if topic.names.search(sentence.text):
                yield f"another sentence compares the finding: {quoted(sentence)}"


def _first_part(check: ChangedReport) -> str:
    """Return the text before an "and" that precedes every edit: it is about another finding."""
    sentence = check.touched[0]
    place = check.edits[0].start - sentence.start
    joint = re.search(r" and ", sentence.text[sentence.lead : max(place, sentence.lead)])
    if joint is None:
        return "\0"
    return sentence.text[sentence.lead : sentence.lead + joint.start()]


def _normality_left_out(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """Yield reasons against the removal of sentences that only deny."""
    for sentence in check.touched:
        reason = "a sentence is not completely normal"
        yield from _matched(sentence.text, words().hedged_normal, reason)
    yield from _saying(check.others, words().pointers, "a sentence points at another")


def _no_content_left_out(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """Yield reasons against the removal of a sentence on technique, history or recommendations."""
    for sentence in check.touched:
        said = sentence.text[sentence.lead :]
        if words().recommends.search(said) is None:
            continue
        reason = "the sentence recommends another examination"
        yield from _matched(said, words().examinations, reason)
        # What is recommended answers to the sentence itself, or to those right before it.
        for near in check.sentences[max(0, sentence.number - 2) : sentence.number + 1]:
            if claims(near.text, words().serious):
                yield f"the sentence recommends what to do about a serious finding: {quoted(near)}"
    gone = {sentence.number for sentence in check.touched}
    for sentence in check.others:
        said = sentence.text[sentence.lead :]
        if sentence.number - 1 in gone and re.match(rf"\W*{words().conditions.pattern}", said):
            yield f"the next sentence depends on the removed one: {quoted(sentence)}"
        if words().pointers.search(sentence.text) and _SEE.search(sentence.text):
            yield f"a sentence points at another: {quoted(sentence)}"


def _reordered(check: ChangedReport, meaning: Meaning) -> Iterator[str]:
    """Yield reasons against another order of the sentences."""
    yield from _saying(check.sentences, words().pointers, "a sentence points at another")


def _not_there(check: ChangedReport) -> Iterator[str]:
    """Yield reasons if the changed finding is described as absent, or its denial was lost."""
    for sentence in check.touched:
        yield from _matched(sentence.text, words().not_there, "the finding may be absent")
        garbled = words().garbled.search(sentence.text)
        if garbled is not None and not is_denied(sentence.text, *garbled.span()):
            yield f"a denial may have been lost: {quoted(sentence)}"


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
    reason = harm(report.text, changed.perturbed, change.edits) or changed.repetition()
    if reason is None and change.meaning is not None:
        reason = next(RULES[change.meaning.effect](changed, change.meaning), None)
    if reason is not None:
        return None, reason
    if not changed.follow_ups:
        return change, ""
    return change._replace(edits=tuple(sorted([*change.edits, *changed.follow_ups]))), ""
