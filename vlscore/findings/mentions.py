"""Mentions of observations in one sentence: named outright, or as a subject and its state."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vlscore.findings.lexicon import Frame, Lexicon
from vlscore.findings.phrases import Match
from vlscore.findings.tokens import Token

_LONGEST_GAP = 9
_FILLERS = frozenset(
    """of the in at a an both to left right bilateral bilaterally posterior anterior lateral medial
    lower mid upper middle thoracic xxxx size appearance contour for this with within along
    involving descending ascending central lung pulmonary cardiac midthoracic multiple multilevel
    some mm cm sided scattered small midlung basilar apical perihilar hilar peripheral""".split()  # noqa: SIM905
)
_CONJUNCTIONS = frozenset((",", "and"))
_STOPS = frozenset(
    """; : but however although though without with no nor except despite which""".split()  # noqa: SIM905
)
_JOINTS = frozenset(
    """and or , the both xxxx also size contour shape & visualized left right upper""".split()  # noqa: SIM905
)
_COPULAS = frozenset("is are was were be appear appears remain remains".split())  # noqa: SIM905
_ADJECTIVE_ENDINGS = ("al", "ar", "ic", "ary")


class Mention(NamedTuple):
    """Tokens [first, last) mention `observation`; [cue_first, cue_last) state it.

    `subject` is the token range of the part of the chest, where that is named apart. `normal`
    marks a subject said to be well, which denies the observation.
    """

    observation: str
    first: int
    last: int
    cue_first: int
    cue_last: int
    rule: str
    subject: tuple[int, int] | None = None
    normal: bool = False

    @property
    def core(self) -> tuple[int, int]:
        """The cue, which triggers act upon."""
        return self.cue_first, self.cue_last


def find_mentions(
    tokens: Sequence[Token], found: dict[str, list[Match]], lexicon: Lexicon
) -> list[Mention]:
    """Every mention of a sentence, in text order, without one that another contains."""
    direct = [
        Mention(m.entry, m.first, m.last, m.first, m.last, f"mention:{m.entry}")
        for m in found.get("mention", ())
    ]
    subjects = found.get("subject", [])
    if not subjects:
        return direct
    states = found.get("state", [])
    normals = found.get("normal", [])
    framed = list(_framed(tokens, subjects, states, normals, direct))
    framed = [f for f in framed if not any(_inside(f, d) for d in direct)]
    well = list(_well(tokens, subjects, normals, lexicon))
    direct = [d for d in direct if not any(_names_part(d, f) for f in (*framed, *well))]
    return sorted({*direct, *framed, *well}, key=lambda m: (m.first, m.last, m.observation))


def _inside(frame: Mention, direct: Mention) -> bool:
    return direct.first <= frame.first and frame.last <= direct.last


def _names_part(direct: Mention, frame: Mention) -> bool:
    """Whether a mention is no more than the subject or the state of a frame."""
    subject_first, subject_last = frame.subject or frame.core
    return (frame.cue_first <= direct.first and direct.last <= frame.cue_last) or (
        subject_first <= direct.first and direct.last <= subject_last
    )


def _framed(
    tokens: Sequence[Token],
    subjects: Sequence[Match],
    states: Sequence[Match],
    normals: Sequence[Match],
    direct: Sequence[Mention],
) -> Iterable[Mention]:
    by_place: dict[tuple[int, int], list[Frame]] = {}
    for state in states:
        by_place.setdefault((state.first, state.last), []).append(state.entry)
    starts = {d.first for d in direct}
    in_state = {position for first, last in by_place for position in range(first, last)}
    for (first, last), frames in by_place.items():
        if any(d.first < first < d.last for d in direct):
            continue
        wanted = {frame.subject: frame.observation for frame in frames}
        subject = None
        predicative = any(t.form in _COPULAS for t in tokens[max(0, first - 3) : first])
        if not predicative:
            subject = _subject_after(tokens, subjects, last, wanted, in_state)
        if subject is None and last not in starts:
            subject = _subject_before(tokens, subjects, normals, first, wanted)
        if subject is None and predicative:
            subject = _subject_after(tokens, subjects, last, wanted, in_state)
        if subject is not None:
            yield Mention(
                wanted[subject.entry],
                min(first, subject.first),
                max(last, subject.last),
                first,
                last,
                f"frame:{subject.entry}",
                (subject.first, subject.last),
            )


def _subject_after(
    tokens: Sequence[Token],
    subjects: Sequence[Match],
    last: int,
    wanted: dict[str, str],
    in_state: set[int],
) -> Match | None:
    """The subject that a preceding state word qualifies: "elevated right hemidiaphragm".

    An adjective ("hilar") gives way to a noun further on ("calcified hilar granulomas").
    """
    best = None
    end = last
    for subject in subjects:
        if subject.first < end:
            continue
        gap = range(end, subject.first)
        joined = any(p in in_state for p in gap) or best is not None
        if subject.first - last > _LONGEST_GAP or not all(
            _fills_gap(tokens[p].form, joined) or p in in_state for p in gap
        ):
            break
        if subject.entry in wanted:
            best = subject
            if not tokens[subject.last - 1].form.endswith(_ADJECTIVE_ENDINGS):
                break
        end = subject.last
    return best


def _fills_gap(form: str, joined: bool) -> bool:
    return form in _FILLERS or form[0].isdecimal() or (joined and form in _CONJUNCTIONS)


def _subject_before(
    tokens: Sequence[Token],
    subjects: Sequence[Match],
    normals: Sequence[Match],
    first: int,
    wanted: dict[str, str],
) -> Match | None:
    """The subject that a following state word qualifies: "the aorta is tortuous"."""
    for subject in reversed(subjects):
        if subject.last > first:
            continue
        if first - subject.last > _LONGEST_GAP:
            return None
        gap = {t.form for t in tokens[subject.last : first]}
        if gap & _STOPS or "," in gap:
            return None
        if any(subject.last <= n.first and n.last <= first for n in normals):
            return None
        if subject.entry in wanted:
            return subject
    return None


def _well(
    tokens: Sequence[Token],
    subjects: Sequence[Match],
    normals: Sequence[Match],
    lexicon: Lexicon,
) -> Iterable[Mention]:
    for normal in normals:
        group = _group_after(tokens, subjects, normal) or _group_before(tokens, subjects, normal)
        for subject in group:
            first, last = min(subject.first, normal.first), max(subject.last, normal.last)
            for observation in lexicon.normal_of[subject.entry]:
                yield Mention(
                    observation,
                    first,
                    last,
                    normal.first,
                    normal.last,
                    f"normal:{subject.entry}",
                    (subject.first, subject.last),
                    normal=True,
                )


def _group_after(tokens: Sequence[Token], subjects: Sequence[Match], normal: Match) -> list[Match]:
    """Subjects that a preceding word calls normal: "normal heart size and aorta"."""
    if normal.first > 0 and tokens[normal.first - 1].form in _COPULAS:
        return []
    group: list[Match] = []
    end = normal.last
    for subject in subjects:
        if subject.first < end:
            continue
        gap = tokens[end : subject.first]
        if len(gap) > 4 or any(t.form not in _JOINTS for t in gap):
            break
        group.append(subject)
        end = subject.last
    if group and end < len(tokens) and tokens[end].form in _COPULAS:
        return []
    return group


def _group_before(tokens: Sequence[Token], subjects: Sequence[Match], normal: Match) -> list[Match]:
    """Subjects said to be normal afterwards: "heart size and aorta are normal"."""
    group: list[Match] = []
    start = normal.first
    for subject in reversed(subjects):
        if subject.last > start:
            continue
        gap = {t.form for t in tokens[subject.last : start]}
        if not group:
            if start - subject.last > _LONGEST_GAP or gap & _STOPS or "," in gap:
                break
        elif not gap <= _JOINTS or start - subject.last > 5:
            break
        group.append(subject)
        start = subject.first
    return group
