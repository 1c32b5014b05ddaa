"""What one line of a template makes of the next: lists of absent findings, columns, details."""

import re
from dataclasses import replace
from typing import NamedTuple

from vlscore.findings.layout import cells_of, divide
from vlscore.findings.lexicon import Lexicon
from vlscore.findings.modifiers import find_modifiers
from vlscore.findings.tokens import tokenize
from vlscore.findings.types import Finding, Polarity, Rule, Sentence, Span

_LIST_LABEL = re.compile(r"\s*([A-Za-z ]{3,40}?)[ \t]*:[ \t]*\n")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
_BETWEEN_ITEMS = re.compile(r"[ \t\r]*\n[^\n:]*")


def ends_block(between: str) -> bool:
    """Whether a blank line stands in the text between two sentences."""
    return _BLANK_LINE.search(between) is not None


class Setting(NamedTuple):
    """What the lines before a sentence make of it.

    `denied`: it is an item of a list headed "Absent:" or the like. `columns`: the titles of the
    table of which it is a row.
    """

    denied: bool = False
    columns: tuple[str, ...] = ()

    def across(self, between: str) -> "Setting":
        """What is left of it after the text between two sentences."""
        if self is PLAIN or ends_block(between):
            return PLAIN
        item = _BETWEEN_ITEMS.fullmatch(between) is not None
        return self if item or self.columns else PLAIN

    def after(self, text: str, has_findings: bool, lexicon: Lexicon) -> "Setting":
        """What the sentence `text`, read in this setting, makes of the next."""
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
    """Whether a line of a template says more of the finding above it ("Side: left")."""
    label = line.partition(":")[0].strip().lower()
    grammar = lexicon.grammar
    return label in grammar["labels_of_detail"] or label in grammar["labels_of_answers"]


def with_details(text: str, sentence: Sentence, line: Span, lexicon: Lexicon) -> Sentence:
    """The sentence with what a line below says of its findings ("Location: left base")."""
    words = line.of(text)
    label, _, answer = words.partition(":")
    if label.strip().lower() in lexicon.grammar["labels_of_answers"]:
        forms = [t.form for t in tokenize(answer)]
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
        for part in divide(words, tokenize(words), lexicon).parts
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
