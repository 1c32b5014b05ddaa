"""Structured reports in the form of plain sentences: labels, table rows and ticked boxes.

"Pneumothorax: None.", "| Pneumothorax | absent |" and "[ ] Pneumothorax" all deny a finding without
a sentence. Here the marks of such a layout are replaced by the words they stand for ("pneumothorax
*is* none", "*no* pneumothorax"), each at the characters of its mark, so that one set of rules reads
prose and templates. The forms follow the templates of RSNA's reporting initiative (radreport.org).

`Setting` holds the effect of a line of a template on the next ones: lists of absent findings,
titles of columns, and details.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from vlscore.findings.clauses import clauses_of
from vlscore.findings.lexicon import Lexicon
from vlscore.findings.modifiers import find_modifiers
from vlscore.findings.tokens import Match, Token
from vlscore.findings.types import Finding, Layout, Polarity, Rule, Sentence, Span
from vlscore.text import BOX, BOX_SIGN

# A text without any of these is prose; most sentences are, so this is asked first.
_MARKS = re.compile(
    r"[:|=→☐☑☒□■▢✓✔✗✘\t?]|\s[-–—]>?\s|\(\s?[\w+-]{1,8}\s?\)|\S[^\S\n]{3,}\S|\.{4}|" + BOX_SIGN
)
_CELL = re.compile(r"(?<![^\S\t\n])[^\S\t\n]*+[|\t]|(?<=\S)[^\S\n]{3,}(?=\S)")
#: What a question mark is read as that doubts what follows it ("opacity ?pneumonia").
HEDGE = "¿"
_TICKS = frozenset("xX✓✔☑☒■")
_DASHES = frozenset("-–—=→?")
_SIDES = {"r": "right", "l": "left"}
_CLAUSE_ENDS = frozenset((",", ";", "."))
_BULLETS = frozenset('-–—*•●▪◦·+([>"')
_LONGEST_LABEL = 8
_FARTHEST = 2 * _LONGEST_LABEL
_LEADER = 4


class StatementPart(NamedTuple):
    """Tokens to be read as one statement, and the characters of its label if it has one."""

    tokens: list[Token]
    label: Span | None = None


def divide(
    text: str, tokens: list[Token], lexicon: Lexicon, columns: tuple[str, ...] = ()
) -> tuple[Layout, list[StatementPart]]:
    """Return the layout of one sentence, list item or table row, and the statements in it.

    `columns` are the titles of the table that a row belongs to: a tick in a column says its title.
    """
    if _MARKS.search(text) is None:
        return Layout.PROSE, [StatementPart(part) for part in clauses_of(tokens, lexicon)]
    reader = _LayoutReader(text, tokens, lexicon)
    boxes = list(BOX.finditer(text))
    if boxes and "|" not in text:
        return Layout.CHECKBOX, reader.boxed(boxes)
    if (cells := cells_of(text)) is not None and (row := reader.row(cells, columns)) is not None:
        return Layout.TABLE, [row]
    parts = reader.labelled(tokens)
    labelled = any(part.label is not None for part in parts)
    return Layout.LABEL if labelled else Layout.PROSE, parts


def cells_of(text: str) -> list[Span] | None:
    """Return the cells of a table row, at their characters; None where the text is no row."""
    if "\n" in text.strip() or _CELL.search(text) is None:
        return None
    start = len(text) - len(text.lstrip())
    end = len(text.rstrip())
    if text[start] == "|":
        start += 1
    cells = []
    for cut in _CELL.finditer(text, start, end):
        cells.append(Span(start, cut.start()))
        start = cut.end()
    if start < end:
        cells.append(Span(start, end))
    return cells if len(cells) > 1 else None


class _LayoutReader:
    """Reader of the layout of one sentence, by the lexicon."""

    def __init__(self, text: str, tokens: list[Token], lexicon: Lexicon) -> None:
        self._text = text
        self._tokens = tokens
        self._lexicon = lexicon
        self._grammar = lexicon.grammar
        self._starts = [token.start for token in tokens]

    def _within(self, span: Span) -> list[Token]:
        first = bisect_left(self._starts, span.start)
        return self._tokens[first : bisect_left(self._starts, span.end)]

    # -- ticked boxes -------------------------------------------------------------------------

    def boxed(self, boxes: Sequence[re.Match[str]]) -> list[StatementPart]:
        """Return the statements of a line with boxes: options of a label, or a list of findings."""
        before = self._within(Span(0, boxes[0].start()))
        ends = [*(box.start() for box in boxes[1:]), len(self._text)]
        stated: list[Token] = []
        parts: list[StatementPart] = []
        listed = not any(token.form[0].isalnum() for token in before)
        for box, end in zip(boxes, ends, strict=True):
            mark = Span(box.start(), box.end())
            words = self._within(Span(box.end(), end))
            if any(box.groups()):
                if listed:
                    parts += self.labelled(words)
                else:
                    stated += words
            elif self._names_finding(words):
                parts.append(StatementPart([Token("no", *mark), *words]))
        if listed:
            return parts
        return [*(self.labelled([*before, *stated]) if stated else []), *parts]

    def _names_finding(self, words: Sequence[Token]) -> bool:
        """Return whether the words of an empty box name a finding, which is then denied."""
        found = self._lexicon.trie.find(words)
        denied = found.get("trigger", []) or found.get("normal", [])
        return "mention" in found and not denied

    # -- table rows ---------------------------------------------------------------------------

    def row(self, cells: Sequence[Span], columns: tuple[str, ...]) -> StatementPart | None:
        """Return a row whose first cell names a finding or a part of the chest, else None."""
        label = [t for t in self._within(cells[0]) if t.form not in (":", "|")]
        if not self._is_label(label, must_name=True):
            return None
        value: list[Token] = []
        for number, cell in enumerate(cells[1:], start=1):
            words = self._within(cell)
            if not words:
                continue
            mark = Span(words[0].start, words[-1].end)
            box = BOX.fullmatch(mark.of(self._text))
            if box is not None and not any(box.groups()):
                continue
            if box is not None or mark.of(self._text) in _TICKS:
                title = columns[number] if number < len(columns) else "present"
                words = [Token(t.form, *mark) for t in self._lexicon.tokenize(title)]
            if value:
                value.append(Token(",", value[-1].end, words[0].start))
            value += words
        gap = Token(":", cells[0].end, cells[1].start)
        return self._statement(label, gap, value)

    # -- labels -------------------------------------------------------------------------------

    def labelled(self, tokens: list[Token]) -> list[StatementPart]:
        """Return the statements of "label: value, label: value", or the tokens as they are."""
        cuts = self._colons(tokens) or self._dashes(tokens)
        if not cuts:
            return [StatementPart(tokens)] if tokens else []
        parts = []
        if any(t.form[0].isalnum() for t in tokens[: cuts[0][0]]):
            parts.append(StatementPart(tokens[: cuts[0][0]]))
        ends = [*(first for first, _, _ in cuts[1:]), len(tokens)]
        for (first, at, after), end in zip(cuts, ends, strict=True):
            parts.append(self._statement(tokens[first:at], tokens[at], tokens[after:end]))
        return [part for part in parts if part.tokens]

    def _colons(self, tokens: Sequence[Token]) -> list[tuple[int, int, int]]:
        """Return where labels that end in a colon begin and end, and where their values begin."""
        cuts: list[tuple[int, int, int]] = []
        least = 0
        for at, token in enumerate(tokens):
            if token.form != ":" or self._text[token.end : token.end + 1].isdecimal():
                continue
            first = least
            if cuts or at > _FARTHEST or not self._is_label(tokens[first:at]):
                nearest = range(at - 1, max(least, at - _FARTHEST) - 1, -1)
                stop = next((p for p in nearest if tokens[p].form in _CLAUSE_ENDS), None)
                first = self._name_before(tokens, least, at) if stop is None else stop + 1
            if self._is_label(tokens[first:at], must_name=bool(cuts)):
                cuts.append((first, at, at + 1))
                least = at + 1
        return cuts

    def _name_before(self, tokens: Sequence[Token], least: int, at: int) -> int:
        """Return where the name that ends before `at` begins ("effusion: none edema: none")."""
        least = max(least, at - _LONGEST_LABEL)
        found = self._lexicon.trie.find(tokens[least:at])
        named = (*found.get("mention", ()), *found.get("subject", ()))
        return least + min((m.first for m in named if m.last == at - least), default=at - least)

    def _dashes(self, tokens: Sequence[Token]) -> list[tuple[int, int, int]]:
        """Return the one label that ends in a dash, a question mark or a line of dots."""
        for at, token in enumerate(tokens[: _LONGEST_LABEL + 1]):
            after = at + 1
            if self._text[token.start] == HEDGE:
                continue
            if token.form == ".":
                while after < len(tokens) and tokens[after].form == ".":
                    after += 1
                if after - at < _LEADER:
                    continue
            elif token.form == "(":
                if not self._answers_in_brackets(tokens[at:]):
                    continue
            elif self._text[token.start : token.end] not in _DASHES or (
                token.form in "-–—" and not self._text[token.start - 1 : token.start].isspace()
            ):
                continue
            if token.form == "to" and tokens[after : after + 1] and self._is_side(tokens[after]):
                continue  # "trachea deviated → L" says where to
            named = self._is_label(tokens[:at], must_name=True)
            return [(0, at, after)] if named and after < len(tokens) else []
        return []

    def _answers_in_brackets(self, tokens: Sequence[Token]) -> bool:
        """Return whether a bracket holds no more than an answer: "effusion (no)"."""
        _, answer, end, *_ = [*(token.form for token in tokens[:3]), "", ""]
        absent, present = self._grammar["answers_no"], self._grammar["answers_yes"]
        return end == ")" and (answer in absent or answer in present)

    def _is_side(self, token: Token) -> bool:
        return token.form in self._grammar["sides"]

    def _is_label(self, tokens: Sequence[Token], must_name: bool = False) -> bool:
        if len(tokens) > _FARTHEST:
            return False
        words = [t.form for t in tokens if t.form[0].isalnum()]
        if " ".join(words) in self._grammar["labels_of_absence"]:
            return True
        if not words or len(words) > _LONGEST_LABEL:
            return False
        if not self._grammar["label_stops"].isdisjoint(t.form for t in tokens):
            return False
        if not must_name:
            return True
        found = self._lexicon.trie.find(tokens)
        return "mention" in found or "subject" in found

    # -- meaning of a label with its value ------------------------------------------------------

    def _statement(self, label: list[Token], separator: Token, value: list[Token]) -> StatementPart:
        span = Span(label[0].start, label[-1].end)
        if separator.form == "(":
            value = [t for t in value if t.form != ")"]
        # Bullets and brackets before the value.
        while len(value) > 1 and value[0].form in _BULLETS:
            value = value[1:]
        if len(label) > 1 and label[0].form in _SIDES:
            label = [label[0]._replace(form=_SIDES[label[0].form]), *label[1:]]
        words = " ".join(t.form for t in label)
        if words in self._grammar["labels_of_absence"]:
            # "no effusion, cardiomegaly" would deny the first only.
            value = [t._replace(form="or") if t.form == "," else t for t in value]
            return StatementPart([Token("no", *span), *value], span)
        if words in self._grammar["labels_of_presence"]:
            return StatementPart(value, span)
        if words in self._grammar["labels_of_devices"]:
            label = [Token("device", *span)]
        found = self._lexicon.trie.find(label)
        if not any(t.form[0].isalnum() or t.form in "+-?" for t in value):
            # The label has no value, or its value is elsewhere.
            return StatementPart([], span)
        told = self._lexicon.trie.find(value)
        joints = self._grammar["clause_joints"]
        end = next((p for p, t in enumerate(value) if t.form in joints), len(value))
        if any(m.first < end for m in told.get("mention", ())) and not self._denies(value[:end]):
            # The value is a sentence of its own: a label that names a finding is its title.
            if "mention" in found or "subject" not in found:
                is_title = "mention" in found and "severity" not in found
                return StatementPart(value if is_title else [*label, separator, *value], span)
            return StatementPart([*label, separator._replace(form="be"), *value], span)
        if "mention" not in found and "subject" not in found:
            return StatementPart([*label, separator, *value], span)
        if "unanswered" in told and told["unanswered"][0].first == 0:
            return StatementPart([], span)
        if "mention" in found:
            value = self._answered(value, told.get("normal", ()), end)
        else:
            value = self._predicate(value, told)
        return StatementPart([*label, separator._replace(form="is"), *value], span)

    def _denies(self, value: Sequence[Token]) -> bool:
        """Return whether a value is no more than a denial: "no finding"."""
        no, *rest = (token.form for token in value)
        return no == "no" and all(form in self._grammar["answer_fillers"] for form in rest)

    def _predicate(self, value: list[Token], told: dict[str, list[Match]]) -> list[Token]:
        """Return the predicate of a part of the chest; "enlarged, stable" gets an "and"."""
        others = [m.first for layer in ("mention", "subject") for m in told.get(layer, ())]
        end = min(others, default=len(value))
        words = [t._replace(form="and") if t.form in (",", ";") else t for t in value[:end]]
        if words and words[0].form in ("no", "nil"):
            words[0] = words[0]._replace(form="not")
        return [*words, *value[end:]]

    def _answered(self, value: list[Token], normal: Sequence[Match], first_end: int) -> list[Token]:
        """Return the value with its short answers in the words that triggers know."""
        if normal and normal[0].first < first_end:
            return [value[normal[0].first]._replace(form="none")]
        clauses: list[list[Token]] = [[]]
        for token in value:
            if token.form in _CLAUSE_ENDS or token.form == "but":
                clauses.append([])
            elif token.form not in _DASHES or len(value) == 1:
                clauses[-1].append(token)
        answers = [self._answer(clause) for clause in clauses if clause]
        denied = [is_denied for _, is_denied, _ in answers]
        if any(denied) and not all(denied) and any(d and is_sided for _, d, is_sided in answers):
            answers = [answer for answer in answers if not answer[1]]
        joined: list[Token] = []
        for tokens, _, _ in answers:
            if joined:
                joined.append(Token(",", joined[-1].end, max(tokens[0].start, joined[-1].end + 1)))
            joined += tokens
        return joined

    def _answer(self, clause: list[Token]) -> tuple[list[Token], bool, bool]:
        """Return one clause of a value, which may be no more than "no" or "yes".

        Returns: its words, whether it denies, and whether it is of one side.
        """
        forms = [t.form for t in clause]
        hedge = next(iter(self._lexicon.trie.find(clause).get("trigger", ())), None)
        if (
            hedge is not None
            and hedge.last - hedge.first == len(clause)
            and hedge.entry.effect in ("uncertain", "probable")
        ):
            whole = Token("possible", clause[0].start, clause[-1].end)
            return [whole], False, False
        sided = any(form in ("left", "right") for form in forms)
        absent, present = self._grammar["answers_no"], self._grammar["answers_yes"]
        fillers = self._grammar["answer_fillers"]
        for position, form in enumerate(forms):
            before = forms[:position]
            if form in absent and all(b in ("left", "right", "the", "on") for b in before):
                rest = forms[position + 1 :]
                if form != "no" or all(r in fillers for r in rest):
                    token = clause[position]._replace(form="none")
                    return [token, *clause[position + 1 :]], True, sided
        if forms[0] in present:
            return [clause[0]._replace(form="present"), *clause[1:]], False, sided
        return clause, False, sided


_LIST_LABEL = re.compile(r"\s*([A-Za-z ]{3,40}?)[ \t]*:[ \t]*\n")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_BETWEEN_ITEMS = re.compile(r"[ \t\r]*\n[^\n:]*")


def ends_block(between: str) -> bool:
    """Return True if the text has a blank line between two sentences."""
    return _BLANK_LINE.search(between) is not None


class Setting(NamedTuple):
    """Effect of the preceding lines on a sentence.

    `denied`: it is an item of a list headed "Absent:" or the like. `columns`: the titles of the
    table of which it is a row.
    """

    denied: bool = False
    columns: tuple[str, ...] = ()

    def across(self, between: str) -> "Setting":
        """Return the setting after the text between two sentences."""
        if self is PLAIN or ends_block(between):
            return PLAIN
        item = _BETWEEN_ITEMS.fullmatch(between) is not None
        return self if item or self.columns else PLAIN

    def after(self, text: str, has_findings: bool, lexicon: Lexicon) -> "Setting":
        """Return the setting of the next sentence, after `text` was read in this setting."""
        if ("|" in text or "\t" in text) and (cells := cells_of(text)) is not None:
            if self.columns or has_findings:
                return self
            return Setting(columns=tuple(cell.of(text).strip() for cell in cells))
        if ":" in text:
            label = _LIST_LABEL.match(text)
            absent = label and label.group(1).lower() in lexicon.grammar["labels_of_absence"]
            return Setting(denied=True) if absent else PLAIN
        return self if self.denied else PLAIN


PLAIN = Setting()


def is_detail(line: str, lexicon: Lexicon) -> bool:
    """Return True if a line of a template describes the finding above it ("Side: left")."""
    label = line.partition(":")[0].strip().lower()
    grammar = lexicon.grammar
    return label in grammar["labels_of_detail"] or label in grammar["labels_of_answers"]


def with_details(text: str, sentence: Sentence, line: Span, lexicon: Lexicon) -> Sentence:
    """Return the sentence with attributes from a line below ("Location: left base")."""
    words = line.of(text)
    label, _, answer = words.partition(":")
    if label.strip().lower() in lexicon.grammar["labels_of_answers"]:
        forms = [t.form for t in lexicon.tokenize(answer)]
        if not forms or forms[0] not in lexicon.grammar["answers_no"]:
            return sentence
        rule = Rule("context:negated", line)
        denied = (
            replace(f, polarity=Polarity.NEGATIVE, rules=(*f.rules, rule))
            for f in sentence.findings
        )
        return replace(sentence, findings=tuple(denied), normal=True)
    details = [
        attribute.moved(line.start)._replace(inherited=True)
        for part in divide(words, lexicon.tokenize(words), lexicon)[1]
        for modifier in find_modifiers(part.tokens, lexicon.trie.find(part.tokens))
        for attribute in modifier.attributes(part.tokens)
    ]

    def detailed(finding: Finding) -> Finding:
        if finding.polarity is Polarity.NEGATIVE:
            return finding
        known = {a.axis for a in finding.attributes}
        new = tuple(a for a in details if a.axis not in known)
        return replace(finding, attributes=finding.attributes + new) if new else finding

    return replace(sentence, findings=tuple(detailed(f) for f in sentence.findings))
