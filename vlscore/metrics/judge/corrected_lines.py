"""Corrected lines of a candidate."""

from typing import Literal

from vlscore.findings import Attribute, Axis, Finding, Lexicon, Polarity, Span, severity_level
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.statement_pairs import StatementPair
from vlscore.metrics.judge.statements import DEGREE, ReportStatements, Statement

Part = Literal["name", "place", "severity", "change", "line"]
#: The words that are replaced in the line; where there are none, it is written anew.
_AXES: dict[Part, tuple[Axis, ...]] = {
    "place": (Axis.SIDE, Axis.ZONE),
    "severity": (Axis.SIZE, Axis.SEVERITY),
    "change": (Axis.CHANGE,),
}


class LineCorrector:
    """Writer of corrections of single lines of one candidate."""

    def __init__(
        self, candidate: ReportStatements, reference: ReportStatements, tables: JudgeTables
    ) -> None:
        self._candidate, self._reference, self._tables = candidate, reference, tables
        self._words = tables.corrected

    def corrected(self, pair: StatementPair, part: Part) -> str:
        """Return the candidate's line with one part changed as in the reference."""
        found = (self._edit(pair, axis) for axis in _AXES.get(part, ()))
        edits = [edit for edit in found if edit is not None]
        line = pair.candidate.line
        if not edits or not all(line.covers(span) for span, _ in edits):
            return self.rewritten(line, pair.candidate, pair.reference)
        text, end, parts = self._candidate.text, line.start, []
        for span, words in sorted(edits if part == "place" else edits[:1]):
            parts += [text[end : span.start], words]
            end = span.end
        return _sentence("".join((*parts, text[end : line.end])))

    def _edit(self, pair: StatementPair, axis: Axis) -> tuple[Span, str] | None:
        """Return the words of an axis in the candidate, and what stands in their place."""
        own, true = _own(pair.candidate.finding, axis), _own(pair.reference.finding, axis)
        if axis is Axis.CHANGE:
            start, words = pair.candidate.quoted.start, self._change(pair.reference)
            if pair.candidate.change is None:
                return (Span(start, start), f"{words} ") if words else None
            return (own[0].span, words) if own else None
        values = {a.value for a in true}
        if not true or len({a.span for a in own}) != 1 or {a.value for a in own} == values:
            return None
        words = self._words.joint.join(dict.fromkeys(a.span.of(self._reference.text) for a in true))
        if axis is Axis.SEVERITY:
            words = _in_class_of(own[0].span.of(self._candidate.text), words, self._tables.lexicon)
        return own[0].span, words

    def rewritten(
        self, line: Span, wrong: Statement | None = None, right: Statement | None = None
    ) -> str:
        """Return a candidate's line in plain words, one of its statements corrected or left out."""
        stated = [s for s in self._candidate.statements if s.line == line]
        chosen = [right if s is wrong else s for s in stated]
        denied = dict.fromkeys(f.observation for f in _denied_in(self._candidate, line))
        names = (name.replace("_", " ") for name in denied)
        return " ".join(
            (*(self._described(s) for s in chosen if s), *map(self._words.denied.format, names))
        )

    def stating(self, statement: Statement) -> str:
        """Return a sentence that states only this finding of the reference."""
        others = [s for s in self._reference.statements if s.line == statement.line]
        if len(others) == 1 and not _denied_in(self._reference, statement.line):
            return _sentence(statement.line.of(self._reference.text))
        return self._described(statement)

    def _described(self, statement: Statement) -> str:
        """Return one plain sentence with everything that the judge compares."""
        if self._tables.concepts[statement.concept].device:
            is_own = any(statement is s for s in self._candidate.statements)
            return _sentence(
                statement.line.of((self._candidate if is_own else self._reference).text)
            )
        sides = statement.place.sides
        words = [
            self._change(statement),
            self._words.doubtful if statement.doubtful else "",
            "" if statement.size is None else f"{statement.size:g} mm",
            statement.grades[DEGREE].value if DEGREE in statement.grades else "",
            self._words.both_sides if len(sides) == 2 else "".join(sides),
            self._words.joint.join(statement.finding.zones),
            statement.finding.observation.replace("_", " "),
        ]
        return _sentence(" ".join(words))

    def _change(self, statement: Statement) -> str:
        return self._words.changes[statement.change.change] if statement.change else ""


def _own(finding: Finding, axis: Axis) -> list[Attribute]:
    """Return the attributes of an axis whose words belong to the finding itself."""
    return [a for a in finding.on(axis) if not a.inherited]


def _in_class_of(own: str, other: str, lexicon: Lexicon) -> str:
    """Return a severity word in the word class of the one it replaces: "mildly" for "severely"."""
    stated, true = severity_level(own, lexicon), severity_level(other, lexicon)
    if stated is None or true is None:
        return other
    words = " ".join(own.lower().replace("-", " ").split())
    choices = true.adverbs if words in stated.adverbs else true.adjectives
    return other if other.lower() in choices or not choices else choices[0]


def _denied_in(report: ReportStatements, line: Span) -> list[Finding]:
    """Return the findings that a line denies by name."""
    return [
        finding
        for sentence in report.findings.sentences
        if sentence.span == line
        for finding in sentence.findings
        if finding.polarity is Polarity.NEGATIVE and not finding.normal
    ]


def _sentence(words: str) -> str:
    words = " ".join(words.split())
    if words and words[-1] not in ".!?":
        words += "."
    return words[:1].upper() + words[1:]
