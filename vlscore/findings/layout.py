"""Lines of templates in the form of plain sentences: labels, rows of tables and ticked boxes.

"Pneumothorax: None.", "| Pneumothorax | absent |" and "[ ] Pneumothorax" all deny a finding without
a sentence. Here the marks of such a line are replaced by the words they stand for ("pneumothorax
*is* none", "*no* pneumothorax"), each at the characters of its mark, so that one set of rules reads
prose and templates. The forms follow the templates of RSNA's reporting initiative (radreport.org).
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import zip_longest

from vlscore.findings.heads import NAMING, cells_of, verdict_of
from vlscore.findings.lexicon import Lexicon
from vlscore.findings.tokens import Match, Token
from vlscore.findings.types import Layout, Span
from vlscore.text import BLANKS, BOX, BOX_SIGN, box_of

# A text without any of these is prose; most sentences are, so this is asked first.
_MARKS = re.compile(
    r"[:|=→\t?]|\s[-–—]>?\s|\(\s?[\w+-]{1,8}\s?\)|\S[^\S\n]{3,}\S|\.{3}|" + BOX_SIGN
)
# "1:2" is no label; "edema:0" is one.
_RATIO = re.compile(r"\d(?!(?<=[01])(?![\d.:/]))")
_TICKS = frozenset("xX✓✔☑☒■+")
_DASHES, _MIDDLE_DASHES = frozenset("-–—=→?"), frozenset("-–—")
_CLAUSE_ENDS = frozenset((",", ";", "."))
_DEVICES = "Support Devices"
# Signs between two labels with their values: "edema: no / effusion: yes".
_BETWEEN_LABELS = _CLAUSE_ENDS | {"/", "|"}
_BULLETS = frozenset('-–—*•●▪◦·+([>"')
# From here on, characters are no letters but symbols: what stands before a value.
_SYMBOLS = "\u2500"
_LONGEST_LABEL = 8
_FARTHEST = 2 * _LONGEST_LABEL
_LEADER = 3

# Matches in a clause of an answer that say more than yes, no or perhaps.
_SAYING_MORE = frozenset(("mention", "subject", "severity", "place", "change", "size", "normal"))
# Probabilities of a classifier that are a yes and a no.
_LIKELY, _UNLIKELY = 0.8, 0.2

#: Where a label ends, its mark stands and its value begins.
_Cut = tuple[int, int, int]


def divide(
    text: str, tokens: list[Token], lexicon: Lexicon, columns: tuple[str, ...] = ()
) -> tuple[Layout, list[list[Token]]]:
    """Return the layout of a sentence, list item or table row, and the tokens of its statements.

    Args: columns: for what the columns of its table are (`columns_of`).
    """
    if _MARKS.search(text) is None:
        return Layout.PROSE, [tokens]
    if tokens and tokens[-1].form == "|" and "|" not in text[: tokens[-1].start]:
        # The sign behind a statement.
        tokens = tokens[:-1]
    reader = _LayoutReader(text, tokens, lexicon)
    boxes: list[re.Match[str]] = []
    for box in BOX.finditer(text):
        # "❌ (absent)" is one sign.
        if not boxes or box_of(box) is None or text[boxes[-1].end() : box.start()].strip(BLANKS):
            boxes.append(box)
    # One dash at the end parts statements, and is no sign.
    if len(boxes) == 1 and boxes[0]["dash"] and not text[boxes[0].end() :].strip(BLANKS):
        tokens = [token for token in tokens if token.start < boxes[0].start()]
        return divide(text[: boxes[0].start()], tokens, lexicon, columns)
    if boxes and "|" not in text:
        return Layout.CHECKBOX, reader.boxed(boxes)
    if (row := reader.row(cells_of(text), columns)) is not None:
        return Layout.TABLE, [row] if row else []
    statements, labelled = reader.labelled(tokens)
    return Layout.LABEL if labelled else Layout.PROSE, statements


class _LayoutReader:
    """Reader of the layout of one sentence, by the lexicon."""

    def __init__(self, text: str, tokens: list[Token], lexicon: Lexicon) -> None:
        self._text, self._tokens, self._lexicon = text, tokens, lexicon
        self._find = lexicon.trie.find
        self._lists, self._stands_for = lexicon.lists, lexicon.stands_for
        lists = self._lists
        self._clause_joints = _CLAUSE_ENDS.union(
            "(", lists["with"], lists["and"], lists["contrasts"]
        )
        self._answers_of = lists["answers_no"] | lists["answers_yes"]
        self._starts = [token.start for token in tokens]

    def _within(self, start: int, end: int) -> list[Token]:
        return self._tokens[bisect_left(self._starts, start) : bisect_left(self._starts, end)]

    def _word(self, mark: str, at: Sequence[Token]) -> Token:
        """Return the word that a mark or answer stands for, at its characters."""
        return Token(self._stands_for[mark], at[0].start, at[-1].end)

    def _is_label(self, tokens: Sequence[Token], must_name: bool = False) -> bool:
        """Return whether words may be a label, which may have to name a finding or part."""
        words = [t.form for t in tokens if t.form[0].isalnum()]
        if len(tokens) <= _FARTHEST and verdict_of(tokens, self._lexicon):
            return True
        if not words or len(words) > _LONGEST_LABEL or len(tokens) > _FARTHEST:
            return False
        # "Is there a mass: no"
        is_asked = tokens[0].form in self._lists["verbs_of_clauses"]
        if any(map(self._is_of_clause, tokens[is_asked:])):
            return False
        return not must_name or not self._find(tokens).keys().isdisjoint(NAMING)

    def boxed(self, boxes: Sequence[re.Match[str]]) -> list[list[Token]]:
        """Return the statements of a line with boxes.

        Boxes stand before the options of a label, before the findings of a list, or behind them.
        """
        cuts = [0, *(place for box in boxes for place in box.span()), len(self._text)]
        chunks = [self._within(*cut) for cut in zip(cuts[::2], cuts[1::2], strict=True)]
        before, *behind = chunks
        says_more = len(boxes) > 1 or not behind[-1] or box_of(boxes[0]) is not None
        is_last = not self._names(chunks[-1]) or (
            before[-1:] and before[-1].form != ":" and all(map(box_of, boxes))
        )
        if says_more and all(map(self._names, chunks[:-1])) and is_last:
            return self._signed(chunks, boxes)
        listed = not any(token.form[0].isalnum() for token in before)
        stated: list[Token] = []
        parts: list[list[Token]] = []
        for box, words in zip(boxes, behind, strict=True):
            said = box_of(box) or "empty"
            if said == "ticked":
                if listed:
                    parts += self.labelled(words)[0]
                stated += words
            else:
                found = self._find(words)
                if "mention" in found and not ("trigger" in found or "normal" in found):
                    parts.append([Token(self._stands_for[said], *box.span()), *words])
        if listed or not stated:
            # "Lungs clear, -ptx"
            ended = before[-1:] and before[-1].form in _CLAUSE_ENDS and not listed
            return [before[:-1], *parts] if ended else parts
        if self._is_label(before, must_name=True) and before[-1].form != ":":
            before = [*before, Token(":", *boxes[0].span())]
        return [*self.labelled([*before, *stated])[0], *parts]

    def _names(self, words: Sequence[Token]) -> bool:
        return "mention" in self._find(words)

    def _signed(
        self, chunks: Sequence[list[Token]], boxes: Sequence[re.Match[str]]
    ) -> list[list[Token]]:
        """Return the statements of findings with a box behind each."""
        parts: list[list[Token]] = []
        for words, box in zip(chunks, boxes, strict=False):
            ends = [p for p, t in enumerate(words) if t.form in _CLAUSE_ENDS]
            at = next((p + 1 for p in reversed(ends) if self._names(words[p + 1 :])), 0)
            mark = Token(":", *box.span())
            answer = self._word(box_of(box) or "no", [mark])
            label = [t for t in words[at:] if t.form not in (":", "?")]
            parts += [words[:at], [*label, self._word("label", [mark]), answer]]
        *_, rest = chunks
        if self._names(rest):
            parts.append(rest)
        else:
            parts[-1] += rest
        return [part for part in parts if part]

    def row(self, cells: Sequence[Span], columns: Sequence[str]) -> list[Token] | None:
        """Return a row whose first cell names a finding or a part of the chest, else None."""
        if len(cells) < 2:
            return None
        label = self._within(*cells[0])
        if any(t.form == ":" for t in label[:-1]):
            return None
        label = [t for t in label if t.form not in (":", "|", "?")]
        if not self._is_label(label, must_name=True):
            return None
        value: list[Token] = []
        for cell, column in zip_longest(cells[1:], columns[: len(cells) - 1], fillvalue=""):
            words = self._cell(self._within(*cell), column, len(cells) == 2)
            if value and words:
                value.append(Token(",", value[-1].end, words[0].start))
            value += words
        return self._statement(label, Token(":", cells[0].end, cells[1].start), value)

    def _cell(self, words: list[Token], column: str, is_only: bool) -> list[Token]:
        """Return what a cell says behind the name of a row; nothing of a tick without a title."""
        mark = self._text[words[0].start : words[-1].end] if words else ""
        box = BOX.fullmatch(mark)
        signed = box_of(box) if box is not None else None
        said = True if mark in _TICKS else signed and signed != "no"
        if column and len(words) == 1 and words[0].form in self._answers_of:
            said = words[0].form not in self._lists["answers_no"]
        is_side = column in self._lists["sides"]
        if box is not None or said is not None:
            is_known = is_only or (column and (said or column not in self._lists["answers_no"]))
            if said is None or not is_known:
                return []
            if said and column and not is_side:
                return [words[0]._replace(form=column)]
            words = [self._word("ticked" if said else "no", words)]
        return [words[0]._replace(form=column), *words] if is_side and words else words

    def labelled(self, tokens: list[Token]) -> tuple[list[list[Token]], bool]:
        """Return the statements of "label: value, label: value", and whether there are any."""
        cuts = self._colons(tokens) or self._dashes(tokens)
        begins = [first for first, _, _ in cuts]
        parts = [tokens[: (begins or [len(tokens)])[0]]]
        if cuts and not any(t.form[0].isalnum() for t in parts[0]):
            parts = []
        stated: list[list[Token]] = []
        side: list[Token] = []
        for (first, at, after), end in zip(cuts, [*begins[1:], len(tokens)], strict=False):
            label = [*side, *tokens[first:at]]
            # "Right: edema: none"
            is_side = after == end and self._lists["sides"].issuperset(t.form for t in label)
            side = label if is_side else []
            stated.append([] if is_side else self._statement(label, tokens[at], tokens[after:end]))
        return [part for part in (*parts, *stated) if part], any(stated)

    def _colons(self, tokens: Sequence[Token]) -> list[_Cut]:
        """Return the labels that end in a colon."""
        cuts: list[_Cut] = []
        least = 0
        for at, token in enumerate(tokens):
            if token.form != ":" or _RATIO.match(self._text, token.end):
                continue
            first = least
            if cuts or at > _FARTHEST or not self._is_label(tokens[first:at]):
                nearest = range(at - 1, max(least - 1, at - _FARTHEST - 1, 0) - 1, -1)
                first = next((p + 1 for p in nearest if self._parts(tokens[p:at])), at)
            if self._is_label(tokens[first:at], must_name=bool(cuts)):
                cuts.append((first, at, at + 1))
                least = at + 1
        return cuts

    def _parts(self, tokens: Sequence[Token]) -> bool:
        """Return whether a sign parts a label from what stands before ("List: edema: no")."""
        sign, *label = tokens
        if sign.form != ":":
            return sign.form in _BETWEEN_LABELS
        found = self._find(label)
        return any(m.first == 0 for layer in NAMING for m in found.get(layer, ()))

    def _dashes(self, tokens: Sequence[Token]) -> list[_Cut]:
        """Return the one label before a dash, question mark, bracket or line of dots."""
        for at, token in enumerate(tokens[: _LONGEST_LABEL + 1]):
            after = at + 1
            mark = self._text[token.start : token.end]
            if token.form == ".":
                while after < len(tokens) and tokens[after].form == ".":
                    after += 1
                is_mark = after - at >= _LEADER
            elif token.form == "(":
                rest = [t.form for t in tokens[after : after + 2]]
                is_mark = rest[1:] == [")"] and rest[0] in self._lists["answers_no"]
            else:
                is_mark = mark in _DASHES and (
                    token.form not in _MIDDLE_DASHES
                    or self._text[token.start - 1 : token.start].isspace()
                )
            if is_mark:
                # A question is a label with a verb: "Is the heart enlarged? No."
                label = [t for t in tokens[:at] if mark != "?" or not self._is_of_clause(t)]
                named = after < len(tokens) and self._is_label(label, must_name=True)
                return [(0, at, after)] if named else []
        return []

    def _is_of_clause(self, token: Token) -> bool:
        """Return whether a word stands in clauses, and so in no label: "is", "there"."""
        return token.form in self._lists["label_stops"]

    def _statement(self, label: list[Token], mark: Token, value: list[Token]) -> list[Token]:
        """Return what a label with its value says; nothing where it has no value."""
        if mark.form == "(":
            value = [t for t in value if t.form != ")"]
        if "".join(t.form for t in value) in self._lists["answers_doubt"]:
            value = [self._word("doubt", value)]
        while value and value[-1].form in _BETWEEN_LABELS:
            value = value[:-1]
        while len(value) > 1 and (value[0].form in _BULLETS or value[0].form[0] >= _SYMBOLS):
            value = value[1:]
        words = " ".join(t.form for t in label)
        if (verdict := verdict_of(label, self._lexicon)) is not None:
            # "no effusion, cardiomegaly" would deny the first only.
            joint = self._stands_for["joint of absent"] if verdict else ","
            value = [t._replace(form=joint) if t.form in (",", "|") else t for t in value]
            heading = [label[0]._replace(form=verdict, end=label[-1].end)] if verdict else []
            return [*heading, *value]
        if words in self._lists["labels_of_devices"]:
            label = [self._word("devices", label)]
        if not any(t.form[0].isalnum() or t.form in "+-–—?" for t in value):
            return []
        named, said = self._find(label), self._find(value)
        # "Heart enlarged" names a finding by a part of the chest and its state.
        parts = {m.entry for m in named.get("subject", ())}
        is_finding = "mention" in named or any(m.entry[0] in parts for m in named.get("state", ()))
        end = next((p for p, t in enumerate(value) if t.form in self._clause_joints), len(value))
        if any(m.first < end for m in said.get("mention", ())) and not self._denies(value[:end]):
            # The value is a sentence of its own: a label that names a finding is its title,
            # unless it says where or how much.
            if is_finding and {"severity", "place"}.isdisjoint(named):
                return value
            is_part = "subject" in named and not is_finding
            return [*label, self._word("part", [mark]) if is_part else mark, *value]
        if not is_finding and "subject" not in named:
            return [*label, mark, *value]
        if any(m.first == 0 for m in said.get("unanswered", ())):
            return []
        # "ET tube: satisfactory" says that it is there.
        names = [m.entry for m in named.get("mention", ())]
        is_well = names and all(
            self._lexicon.observations[name].chexpert == _DEVICES for name in names
        )
        normal = [] if is_well else [m for m in said.get("normal", ()) if m.first < end]
        sides = [t for t in label if t.form in self._lists["sides"]]
        if is_finding and sides and not self._lists["sides"].isdisjoint(t.form for t in value):
            # "Left: none; right: small" has a side for each answer.
            label = [t for t in label if t not in sides]
            value = [*sides, *value]
        value = self._answers(value, normal) if is_finding else self._predicate(value, said)
        return [*label, self._word("label", [mark]), *value]

    def _denies(self, value: Sequence[Token]) -> bool:
        """Return whether a value is no more than a denial: "no finding"."""
        denial, *rest = (token.form for token in value)
        fillers = self._lists["answer_fillers"]
        return denial in self._lists["denying"] and fillers.issuperset(rest)

    def _predicate(self, value: list[Token], said: dict[str, list[Match]]) -> list[Token]:
        """Return the predicate of a part of the chest; "enlarged, stable" gets an "and"."""
        others = [m.first for layer in ("mention", "subject") for m in said.get(layer, ())]
        end = min(others, default=len(value))
        joint = self._stands_for["joint"]
        words = [t._replace(form=joint) if t.form in (",", ";") else t for t in value[:end]]
        if words and words[0].form in self._lists["denying"]:
            words[0] = self._word("denied", words[:1])
        return [*words, *value[end:]]

    def _answers(self, value: list[Token], normal: Sequence[Match]) -> list[Token]:
        """Return the value with its short answers in the words that triggers know.

        Args: normal: words of its first clause that call a finding's place normal.
        """
        if normal:
            return [self._word("no", value[normal[0].first :][:1])]
        clauses: list[list[Token]] = [[]]
        for token in value:
            if token.form in _CLAUSE_ENDS or token.form in self._lists["contrasts"]:
                clauses.append([])
            elif token.form not in _DASHES | {":"} or len(value) == 1:
                clauses[-1].append(token)
        answers = [self._answer(clause) for clause in clauses if clause]
        if any(has_side for *_, has_side in answers):
            # "Right - none, left - small": what is there counts.
            answers = [each for each in answers if not each[1]] or answers
        joined: list[Token] = []
        for tokens, _, _ in answers:
            if joined:
                joined.append(Token(",", joined[-1].end, max(tokens[0].start, joined[-1].end + 1)))
            joined += tokens
        return joined

    def _answer(self, clause: list[Token]) -> tuple[list[Token], bool, bool]:
        """Return the words of one clause of a value, whether it denies, and whether it has a side.

        It may be no more than "no".
        """
        has_side = not self._lists["sides"].isdisjoint(t.form for t in clause)
        if len(clause) == 1 and clause[0].form.startswith(("0.", "1.0")):
            chance = float(clause[0].form)
            said = "no" if chance <= _UNLIKELY else "ticked" if chance >= _LIKELY else "doubt"
            return [self._word(said, clause)], said == "no", has_side
        found = self._find(clause)
        triggers = [m for layer in ("trigger", "either") for m in found.get(layer, ())]
        effects = {m.entry.effect for m in triggers}
        is_whole = any(m.last - m.first == len(clause) for m in triggers)
        if is_whole or _SAYING_MORE.isdisjoint(found):
            if not effects.isdisjoint(("uncertain", "probable")):
                return [self._word("doubt", clause)], False, has_side
            if "negated" in effects and clause[0].form not in self._answers_of:
                return [self._word("no", clause)], True, has_side
        before = self._lists["answer_fillers"] | self._lists["sides"]
        at = next((p for p, t in enumerate(clause) if t.form not in before), 0)
        answer, *rest = clause[at:]
        if answer.form in self._lists["answers_no"] and (
            answer.form not in self._lists["denying"]
            or self._lists["answer_fillers"].issuperset(t.form for t in rest)
        ):
            rest = [t for t in rest if t.form not in self._lexicon.coverage.nouns]
            return [self._word("no", [answer]), *rest], True, has_side
        return clause, False, has_side
