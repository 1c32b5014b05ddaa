"""Assignment of qualifying words (side, zone, severity, ...) to the mentions of a sentence.

Words inside a mention are its own. Between two mentions, the last joint (comma, "and", a trigger)
parts the words of the earlier one from those of the later one. Places are then shared along a
plain enumeration ("left effusion and atelectasis", "atelectasis or scarring in the left base").
"""

from collections.abc import Sequence

from vlscore.findings.lexicon import Lexicon
from vlscore.findings.mentions import Mention
from vlscore.findings.modifiers import Modifier
from vlscore.findings.tokens import Match, Token
from vlscore.findings.types import Attribute, Axis, Side, Span

#: Signs that end a clause.
_STOPS = frozenset((",", ";"))


def attach(
    text: str,
    tokens: Sequence[Token],
    mentions: Sequence[Mention],
    modifiers: Sequence[Modifier],
    triggers: Sequence[Match],
    subjects: Sequence[Match],
    lexicon: Lexicon,
) -> list[list[Attribute]]:
    """Attributes of each mention; `mentions` in text order.

    `triggers` are the ConText triggers and boundaries: both part one statement from the next, and
    a place may be understood across a trigger ("may represent") but not across a boundary.
    `subjects` are the parts of the chest that are named, with a finding or without.
    """
    if not mentions:
        return []
    linker = _Linker(tokens, mentions, modifiers, triggers, subjects, lexicon)
    linker.share_places()
    for mention, attributes in zip(mentions, linker.attributes, strict=True):
        words = Span(tokens[mention.first].start, tokens[mention.last - 1].end)
        attributes.extend(_implied_side(text, words, attributes, lexicon))
    return linker.attributes


def places_of(attributes: Sequence[Attribute]) -> list[Attribute]:
    """Return the sides and zones among the attributes."""
    return [a for a in attributes if a.axis is Axis.SIDE or a.axis is Axis.ZONE]


def _implied_side(
    text: str, mention: Span, attributes: Sequence[Attribute], lexicon: Lexicon
) -> list[Attribute]:
    """Return both sides if a paired place is plural and has no side: "in the bases"."""
    if any(a.axis is Axis.SIDE for a in attributes):
        return []
    paired, joints = tuple(lexicon.lists["paired"]), lexicon.lists["and"]
    for words in (*(a.span for a in attributes if a.axis is Axis.ZONE), mention):
        written = [word.strip(".,;:()") for word in words.of(text).lower().split()]
        # "The middle and lower lobes" are two lobes of one lung.
        parts = {
            w
            for joint, _, w in zip(written, written[1:], written[2:], strict=False)
            if joint in joints
        }
        if any(word.endswith(paired) and word not in parts for word in written):
            return [Attribute(Axis.SIDE, str(Side.BILATERAL), words, inherited=True)]
    return []


class _Linker:
    """The mentions of one sentence, in groups whose words overlap, and the words between them."""

    def __init__(
        self,
        tokens: Sequence[Token],
        mentions: Sequence[Mention],
        modifiers: Sequence[Modifier],
        triggers: Sequence[Match],
        subjects: Sequence[Match],
        lexicon: Lexicon,
    ) -> None:
        self._tokens = tokens
        self._mentions = mentions
        self._trigger_starts = {t.first for t in triggers}
        self._in_trigger = {
            position
            for t in triggers
            if t.entry.effect != "terminate"
            for position in range(t.first, t.last)
        }
        # A lobe is a place: "new left lower lobe and lingular consolidation".
        self._places = [m for m in modifiers if m.is_place]
        places = [(m.first, m.last) for m in self._places]
        self._subjects = [
            s
            for s in subjects
            if s.entry != "lungs" or not any(p <= s.first and s.last <= q for p, q in places)
        ]
        self._lexicon = lexicon
        self._groups = self._overlapping()
        self._ends = [max(mentions[i].last for i in group) for group in self._groups]
        self._own = self._assign(modifiers)
        self.attributes: list[list[Attribute]] = [[] for _ in mentions]
        for group, own in zip(self._groups, self._own, strict=True):
            for index in group:
                self.attributes[index] = [a for m in own for a in m.attributes(tokens)]

    def _overlapping(self) -> list[list[int]]:
        groups: list[list[int]] = []
        end = -1
        for index, mention in enumerate(self._mentions):
            if groups and mention.first < end:
                groups[-1].append(index)
            else:
                groups.append([index])
            end = max(end, mention.last)
        return groups

    def _start(self, group: int) -> int:
        return self._mentions[self._groups[group][0]].first

    def _assign(self, modifiers: Sequence[Modifier]) -> list[list[Modifier]]:
        """Return the modifiers of each group."""
        own: list[list[Modifier]] = [[] for _ in self._groups]
        splits = [self._split(i, modifiers) for i in range(len(self._groups) - 1)]
        position = 0
        elsewhere = self._other_clause()
        for modifier in modifiers:
            if self._states_finding(modifier) or self._speaks_of_other(modifier):
                continue
            if modifier.first >= elsewhere:
                continue
            # In "with decrease in edema" the words behind "with" are of the edema.
            first = modifier.first
            first += self._tokens[first].form in self._lexicon.lists["finding_joints"]
            while position < len(splits) and first >= splits[position]:
                position += 1
            # "No pneumothorax after removal of the tube"
            has_object = modifier.is_change and (
                self._tokens[modifier.last - 1].form in self._lexicon.lists["of"]
            )
            ahead = has_object and position < len(splits) and first >= self._ends[position]
            own[position + ahead].append(modifier)
        return own

    def _other_clause(self) -> int:
        """Return the token from which the words are of a part of the chest without a finding.

        "Small left effusion, and the right base has cleared."
        """
        verbs = self._lexicon.lists["verbs_of_clauses"]
        for subject in self._subjects:
            behind = [t.form for t in self._tokens[subject.last : subject.last + 1]]
            forms = [t.form for t in self._tokens[self._ends[-1] : subject.first]]
            joints = [
                p
                for p, form in enumerate(forms, start=self._ends[-1])
                if form in self._lexicon.lists["finding_joints"]
            ]
            if joints and not verbs.isdisjoint(behind):
                return joints[-1]
        return len(self._tokens)

    def _states_finding(self, modifier: Modifier) -> bool:
        """Return whether a change is the finding: "heart size is mildly increased"."""
        return modifier.is_change and any(
            m.cue_first < modifier.last
            and modifier.first < m.cue_last
            # "Collapse of the left lung has re-expanded": that is of the collapse.
            and not (
                m.normal
                and any(not d.normal and d.first <= m.first < d.last for d in self._mentions)
            )
            for m in self._mentions
        )

    def _speaks_of_other(self, modifier: Modifier) -> bool:
        """Return whether it is of a part without a finding: "*stable* mediastinum with ..."."""
        start = self._start(0)
        if modifier.is_change and (
            self._is_of_part(modifier.first)
            # "Persistent effusion with improved aeration"
            or any(s.layer == "topic" and s.first == modifier.last for s in self._subjects)
        ):
            return True
        if modifier.is_place:
            return self._is_of_topic(modifier, start)
        if modifier.last > start:
            return False
        return any(
            any(self._is_joint(p) for p in range(max(subject.last, modifier.last), start))
            for subject in self._subjects
            if modifier.last <= subject.first
            or (modifier.is_change and subject.last == modifier.first)
        )

    def _is_of_topic(self, place: Modifier, start: int) -> bool:
        """Return whether a place is a topic's, not the finding's: "aeration *of both bases*, ...".

        A finding that has no place of its own takes that of the topic.
        """
        joints = [p for p in range(place.last, start) if self._is_joint(p)]
        if not joints or not any(joints[-1] < m.first < self._ends[0] for m in self._places):
            return False
        return any(
            topic.layer == "topic"
            and topic.last < place.first
            and self._tokens[topic.last].form in self._lexicon.lists["of"]
            and not any(self._is_joint(p) for p in range(topic.last + 1, place.first))
            for topic in self._subjects
        )

    def _is_of_part(self, first: int) -> bool:
        """Return whether a change is said of a part in a clause of its own.

        "The tube has been advanced, and the left lung *has come up again*."
        """
        ends = [0, *(m.last for m in self._mentions)]
        for subject in self._subjects:
            if subject.last == first and not any(
                m.first <= subject.first < m.last for m in self._mentions
            ):
                before = max(end for end in ends if end <= subject.first)
                said = [token.form for token in self._tokens[before : subject.first]]
                return before > 0 and not _STOPS.isdisjoint(said)
        return False

    def _is_joint(self, position: int) -> bool:
        return (
            self._tokens[position].form in self._lexicon.lists["finding_joints"]
            or position in self._trigger_starts
        )

    def _split(self, group: int, modifiers: Sequence[Modifier]) -> int:
        """Return the token after `group` at which the words of the next group begin."""
        start, end = self._ends[group], self._start(group + 1)
        grammar = self._lexicon.lists
        joints = [position for position in range(start, end) if self._is_joint(position)]
        if len(joints) > 1 and self._joins_places(joints[-1], modifiers):
            return joints[-2] + 1
        if joints:
            # What follows "no right effusion," may begin with its degree: "small left effusion".
            form = self._tokens[joints[-1]].form
            parts = form in grammar["finding_joints"] or form in grammar["verbs_of_clauses"]
            qualifies = not parts and any(m.first == joints[-1] for m in modifiers)
            return joints[-1] + (not qualifies)
        if start < end and self._tokens[start].form in grammar["trailing_openers"]:
            return end
        return start

    def _joins_places(self, position: int, modifiers: Sequence[Modifier]) -> bool:
        """Return whether "and" at `position` joins two places: "left apical and right basilar".

        Each may have a degree before it: "moderate right and small left effusions".
        """
        if self._tokens[position].form not in self._lexicon.lists["and"]:
            return False
        places = {m.first: m for m in modifiers if m.is_place}
        degrees = {m.first: m for m in modifiers if not m.is_place and not m.is_change}
        before = [m.first for m in places.values() if m.last == position]
        graded = any(m.last in before for m in degrees.values()) and position + 1 in degrees
        after = degrees[position + 1].last if graded else position + 1
        return bool(before) and after in places

    def share_places(self) -> None:
        """Let mentions without a place take that of a neighbour in the same enumeration."""
        linked = [self._enumerated(i) for i in range(len(self._groups) - 1)]
        for i, link in enumerate(linked):
            if link and not any(m.is_place for m in self._own[i + 1]):
                self._inherit(i + 1, places_of(self.attributes[self._groups[i][0]]))
        for i in reversed(range(len(linked))):
            if linked[i] and not places_of(self.attributes[self._groups[i][0]]):
                self._inherit(i, self._places_for_earlier(i + 1))

    def _places_for_earlier(self, group: int) -> list[Attribute]:
        """Return places after a group, or between it and the group before without a joint."""
        joined = any(
            self._tokens[p].form in self._lexicon.lists["finding_joints"]
            for p in range(self._ends[group - 1], self._start(group))
        )
        start = self._ends[group] if joined else self._ends[group - 1]
        from_character = self._tokens[start - 1].end
        return [
            a
            for a in places_of(self.attributes[self._groups[group][0]])
            if a.span.start >= from_character
        ]

    def _inherit(self, group: int, places: Sequence[Attribute]) -> None:
        for index in self._groups[group]:
            if self._mentions[index].observation not in self._lexicon.midline:
                self.attributes[index].extend(a._replace(inherited=True) for a in places)

    def _enumerated(self, group: int) -> bool:
        """Return whether no new statement begins between a group and the next.

        Joints, triggers and qualifying words may stand there, and one predicate ("opacities are
        noted in the bases, compatible with atelectasis") unless a joint precedes it.
        """
        grammar = self._lexicon.lists
        qualified = {
            position
            for own in (self._own[group], self._own[group + 1])
            for modifier in own
            for position in range(modifier.first, modifier.last)
        }
        start, end = self._start(group + 1), self._ends[group + 1]
        if any(token.form in grammar["copulas"] for token in self._tokens[start:end]):
            return False  # "atelectasis, the heart is displaced to the right"
        joined = False
        for position in range(self._ends[group], start):
            form = self._tokens[position].form
            if joined and form in grammar["anaphors"]:
                joined = False
            elif position in qualified or position in self._in_trigger:
                continue
            elif form in grammar["chain"] or form[0].isdecimal():
                joined = joined or form == "," or form in grammar["and"]
            elif joined or form not in grammar["copulas"] | grammar["seen"]:
                return False
        return True
