"""Mentions of observations in one sentence: named outright, or as a subject and its state."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vlscore.findings.compositions import PatternMatcher
from vlscore.findings.lexicon import Lexicon
from vlscore.findings.tokens import Match, Token
from vlscore.findings.types import TemporalChange

_LONGEST_GAP = 9
_LONGEST_JOINT = 5


class Subject(NamedTuple):
    """A part of the chest at tokens [first, last), and the lexicon's names for it."""

    first: int
    last: int
    names: tuple[str, ...]


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
    def cue(self) -> tuple[int, int]:
        """Return the cue, which triggers act upon."""
        return self.cue_first, self.cue_last


# A subject described as normal, one of its names, and the word for normal or well placed.
NormalSubject = tuple[Subject, str, Match]


def find_mentions(
    tokens: Sequence[Token], found: dict[str, list[Match]], lexicon: Lexicon
) -> tuple[list[Mention], list[NormalSubject]]:
    """Return the mentions of a sentence in text order, without those that another contains, and
    the subjects that it calls normal."""
    direct = [
        Mention(m.entry, m.first, m.last, m.first, m.last, f"mention:{m.entry}")
        for m in found.get("mention", ())
    ]
    direct += _taken_up(tokens, found, direct, lexicon)
    direct.sort(key=lambda m: (m.first, m.last, m.observation))
    subjects = found.get("subject", [])
    if not subjects:
        return direct, []
    frames = _Frames(tokens, subjects, found, lexicon)
    framed = frames.abnormal(found.get("state", []), direct)
    framed = [f for f in framed if not any(d.first <= f.first and f.last <= d.last for d in direct)]
    stated = {(f.observation, f.subject) for f in framed}
    normal = frames.called_normal()
    well = [m for w in normal for m in frames.denied_by(w)]
    well = [m for m in well if (m.observation, m.subject) not in stated]
    direct = [d for d in direct if not any(_names_part(d, f) for f in (*framed, *well))]
    # "The *previously widened* mediastinum is normal."
    former = {m.last for m in found.get("earlier", ())}
    now = {(m.observation, m.subject and m.subject[1]) for m in well}
    direct = [d for d in direct if d.first not in former or (d.observation, d.last) not in now]
    mentions = _without_repeats({*direct, *framed, *well})
    mentions.sort(key=lambda m: (m.first, m.last, m.observation))
    return mentions, [well for well in normal if well[2].entry == "normal"]


def _taken_up(
    tokens: Sequence[Token],
    found: dict[str, list[Match]],
    direct: Sequence[Mention],
    lexicon: Lexicon,
) -> list[Mention]:
    """Return mentions of a finding named elsewhere: "... has resolved, *the left one* persists"."""
    if not direct:
        return []
    words = PatternMatcher(tokens, found, lexicon.lists).fitting(lexicon.rules["taken_up"])
    mentions = []
    for first, last, _, rule in words:
        if rule.row.value == "behind":
            named = [m.observation for m in direct if m.first >= last][:1]
        else:
            named = [m.observation for m in direct if m.last <= first][-1:]
        mentions += [
            Mention(name, first, last, first, last, f"mention:{name}")
            for name in named
            if name not in lexicon.midline
        ]
    return mentions


def _without_repeats(mentions: set[Mention]) -> list[Mention]:
    """Return the mentions but those that lie within another of the same observation."""
    return [
        m
        for m in mentions
        if not any(
            m.observation == other.observation
            and m.normal == other.normal
            and other.first <= m.first
            and m.last <= other.last
            and (other.last - other.first, other.cue_last) > (m.last - m.first, m.cue_last)
            for other in mentions
        )
    ]


def _names_part(direct: Mention, frame: Mention) -> bool:
    """Return whether a mention is no more than the subject or the state of a frame."""
    subject_first, subject_last = frame.subject or frame.cue
    return (frame.cue_first <= direct.first and direct.last <= frame.cue_last) or (
        subject_first <= direct.first and direct.last <= subject_last
    )


class _Frames:
    """The subjects of a sentence, and the states and words of normality that belong to them."""

    def __init__(
        self,
        tokens: Sequence[Token],
        subjects: Sequence[Match],
        found: Mapping[str, Sequence[Match]],
        lexicon: Lexicon,
    ) -> None:
        self._forms = [t.form for t in tokens]
        self._subjects = _merge(subjects)
        self._normals, self._likewise = found.get("normal", ()), found.get("likewise", ())
        self._named = found.get("mention", ())
        self._normal_of = lexicon.normal_of
        self._grammar = lexicon.lists
        self._adverb_endings = tuple(lexicon.lists["adverb_endings"])
        self._conjunctions = {",", *lexicon.lists["and"], *lexicon.lists["or"]}
        changes = (m for m in found.get("change", ()) if m.entry == TemporalChange.UNCHANGED)
        self._unchanged = {p for m in changes for p in range(m.first, m.last)}
        triggers = found.get("trigger", ())
        self._doubts = {m.first for m in triggers if m.entry.effect in ("uncertain", "probable")}
        degrees = found.get("severity", ())
        self._degrees = {at for m in degrees if m.entry for at in range(m.first, m.last)}
        self._adjective_endings = tuple(lexicon.lists["adjective_endings"])

    def abnormal(self, states: Sequence[Match], direct: Sequence[Mention]) -> list[Mention]:
        """Subjects in an abnormal state."""
        by_place: dict[tuple[int, int], dict[str, list[str]]] = {}
        for state in states:
            subject_name, observation = state.entry
            wanted = by_place.setdefault((state.first, state.last), {})
            wanted.setdefault(subject_name, []).append(observation)
        in_state = {position for first, last in by_place for position in range(first, last)}
        starts = {d.first for d in direct}
        mentions = []
        for (first, last), wanted in by_place.items():
            if any(d.first < first < d.last for d in direct) or any(
                n.first <= first and last <= n.last for n in self._normals
            ):
                continue
            predicative = self._is_predicate(first, last)
            subject = None if predicative else self._after(last, wanted, in_state)
            if subject is None and last not in starts:
                subject = self._before(first, wanted)
            if subject is None and predicative:
                subject = self._after(last, wanted, in_state)
            if subject is not None:
                name = next(name for name in subject.names if name in wanted)
                for observation in wanted[name]:
                    mentions.append(_framed(observation, subject, first, last, f"frame:{name}"))
        return mentions

    def called_normal(self) -> list[NormalSubject]:
        """Return the subjects that are called normal, once for each of their names."""
        return [
            (subject, name, word)
            for word in self._normals
            # "Free" is part of a name in "free air", and calls nothing normal.
            if not any(name.covers(word) for name in self._named)
            for subject in self._called_normal_by(word)
            for name in subject.names
        ]

    def _called_normal_by(self, word: Match) -> list[Subject]:
        """Return the subjects that one word calls normal.

        In "lungs clear and heart normal" it is of the subject directly before, unless another one
        that nothing else calls normal follows as closely.
        """
        behind = [s.last for s in self._subjects if s.first == word.last]
        is_free = not behind or any(other.first in behind for other in self._normals)
        if is_free and any(subject.last == word.first for subject in self._subjects):
            return self._normal_before(word)
        called = self._normal_after(word) or self._normal_before(word)
        return called + self._called_likewise(word) if self._likewise else called

    def _called_likewise(self, word: Match) -> list[Subject]:
        """Return the subject of which the same is said: "the heart is normal, *as are lungs*"."""
        for match in self._likewise:
            if 0 <= match.first - word.last <= 1:
                return [s for s in self._subjects if 0 <= s.first - match.last <= 1][:1]
        return []

    def denied_by(self, well: NormalSubject) -> list[Mention]:
        """Return the observations that the normality of a subject denies, each as a mention."""
        subject, name, word = well
        return [
            _framed(observation, subject, word.first, word.last, f"normal:{name}", normal=True)
            for observation in self._normal_of[word.entry][name]
        ]

    def _is_predicate(self, first: int, last: int) -> bool:
        """Return whether a state is said of what precedes: "is enlarged", "enlarged with"."""
        before, behind = self._forms[max(0, first - 3) : first], self._forms[last : last + 1]
        is_before = not self._grammar["with"].isdisjoint(behind)
        return is_before or not self._grammar["copulas"].isdisjoint(before)

    def _after(self, last: int, wanted: dict[str, list[str]], in_state: set[int]) -> Subject | None:
        """Return the subject that a preceding state word qualifies: "elevated right hemidiaphragm".

        An adjective ("hilar") gives way to a noun further on ("calcified hilar granulomas").
        """
        best = None
        end = last
        for subject in self._subjects:
            if subject.first < end:
                continue
            gap = range(end, subject.first)
            # "Tortuous, atherosclerotic aorta"
            joined = end > last or any(
                p in in_state or self._forms[p].endswith(self._adjective_endings) for p in gap
            )
            if best is None and end > last and self._forms[end] == ",":
                break  # "lesion of the lung, bones are normal": that state has its subject
            if subject.first - last > _LONGEST_GAP or not all(
                p in in_state or self._fills_gap(self._forms[p], joined) for p in gap
            ):
                break
            if not wanted.keys().isdisjoint(subject.names):
                best = subject
                if not self._forms[subject.last - 1].endswith(self._adjective_endings):
                    break
            end = subject.last
        return best

    def _fills_gap(self, form: str, joined: bool) -> bool:
        return (
            form in self._grammar["gap_fillers"]
            or form[0].isdecimal()
            or (joined and form in self._conjunctions)
        )

    def _before(self, first: int, wanted: dict[str, list[str]]) -> Subject | None:
        """Return the subject that a following state word qualifies: "the aorta is tortuous"."""
        for subject in reversed(self._subjects):
            if subject.last > first:
                continue
            if self._separated(subject.last, first):
                return None
            if any(subject.last <= n.first and n.last <= first for n in self._normals):
                return None  # "normal or mildly enlarged"
            if not wanted.keys().isdisjoint(subject.names):
                return subject
        return None

    def _separated(self, last: int, first: int, is_normal: bool = False) -> bool:
        # "The bones are *without* a lesion."
        between = [f for f in self._forms[last:first] if f not in self._grammar["denying"]]
        if between[:1] == [","] and "," in between[1:]:
            # "The heart, likewise unaltered, is enlarged."
            behind = between[between.index(",", 1) + 1 :]
            verbs = self._grammar["copulas"]
            if is_normal:
                verbs |= self._grammar["verbs_of_clauses"]
            if (is_normal and not behind) or (behind and behind[0] in verbs):
                between = behind
        if len(between) > _LONGEST_GAP:
            return True
        if between[:1] == [","] and not self._grammar["asides"].isdisjoint(between[1:2]):
            # "The heart, though still moderately enlarged, is smaller."
            is_past = not self._grammar["past"].isdisjoint(between)
            return is_past or not self._is_of_state(last + 2, first)
        if "," in between:
            at = first - between[::-1].index(",")
            said = {*range(at, first)}
            opened = self._doubts & said or self._unchanged & {at}
            if opened and self._is_of_state(at, first):
                # "The heart is exaggerated by low volumes, probably mildly enlarged."
                return not {";", ":", "."}.isdisjoint(between)
        if "," in between[1:] and self._is_of_state(last, first):
            return False  # "is stable, mildly enlarged"
        return not self._grammar["subject_stops"].isdisjoint(between)

    def _is_of_state(self, first: int, last: int) -> bool:
        """Return whether all words may stand before a state: "is still, probably mildly"."""
        return all(
            position in self._unchanged
            or position in self._degrees
            or form == ","
            or form in self._grammar["copulas"]
            or form.endswith(self._adverb_endings)
            for position, form in enumerate(self._forms[first:last], start=first)
        )

    def _normal_after(self, word: Match) -> list[Subject]:
        """Subjects that a preceding word calls normal: "normal heart size and aorta"."""
        if word.first > 0 and self._forms[word.first - 1] in self._grammar["copulas"]:
            return []
        group: list[Subject] = []
        end = word.last
        for subject in self._subjects:
            if subject.first < end:
                continue
            if not self._joined(end, subject.first):
                break
            group.append(subject)
            end = subject.last
        if group and end < len(self._forms) and self._forms[end] in self._grammar["copulas"]:
            return []
        return group

    def _normal_before(self, word: Match) -> list[Subject]:
        """Return subjects that a later word calls normal: "heart size and aorta are normal"."""
        group: list[Subject] = []
        start = word.first
        while start > 0 and self._forms[start - 1] in self._grammar["contrasts"]:
            start -= 1
        if start < word.first and start > 0 and self._forms[start - 1] == ",":
            start -= 1
        for subject in reversed(self._subjects):
            if subject.last > start:
                continue
            if (
                self._separated(subject.last, start, is_normal=True)
                if not group
                else not self._joined(subject.last, start)
            ):
                break
            group.append(subject)
            start = subject.first
        return group

    def _joined(self, last: int, first: int) -> bool:
        joints = self._grammar["joints"] | self._conjunctions
        return first - last <= _LONGEST_JOINT and joints.issuperset(self._forms[last:first])


def _merge(subjects: Sequence[Match]) -> list[Subject]:
    """Return one subject for each place, with all its names."""
    names: dict[tuple[int, int], list[str]] = {}
    for match in subjects:
        names.setdefault((match.first, match.last), []).append(match.entry)
    return [Subject(first, last, tuple(entries)) for (first, last), entries in names.items()]


def _framed(
    observation: str, subject: Subject, first: int, last: int, rule: str, normal: bool = False
) -> Mention:
    return Mention(
        observation,
        min(first, subject.first),
        max(last, subject.last),
        first,
        last,
        rule,
        (subject.first, subject.last),
        normal,
    )
