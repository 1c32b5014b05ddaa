"""Corrected lines of a candidate."""

from collections.abc import Iterable
from typing import Literal

from vlscore.findings import Attribute, Axis, Finding, Lexicon, Polarity, Span, severity_level
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.statement_pairs import StatementPair
from vlscore.metrics.judge.statements import DEGREE, ReportStatements, Statement

Part = Literal["name", "place", "severity", "change", "line"]

#: Changes as adjectives that the extraction reads again.
_CHANGES = {
    "unchanged": "unchanged",
    "worse": "worsening",
    "improved": "improving",
    "new": "new",
    "resolved": "resolving",
}


class LineCorrector:
    """Writer of corrections of single lines of one candidate."""

    def __init__(
        self, candidate: ReportStatements, reference: ReportStatements, tables: JudgeTables
    ) -> None:
        self._candidate, self._reference, self._tables = candidate, reference, tables

    def corrected(self, pair: StatementPair, part: Part) -> tuple[Span, str]:
        """Return the candidate's line, and the line with one part changed as in the reference."""
        line = pair.candidate.line
        edits = self._edits(pair, part)
        if edits is None:
            return line, self._rewritten(pair.candidate, pair.reference)
        return line, _edited(self._candidate.text, line, edits)

    def without(self, statement: Statement) -> tuple[Span, str]:
        """Return the candidate's line, and the line without the statement."""
        return statement.line, self._rewritten(statement, None)

    def restated(self, line: Span) -> str:
        """Return all statements of a candidate's line in plain words."""
        stated = [s for s in self._candidate.statements if s.line == line]
        return self._joined(map(self._described, stated), line)

    def stating(self, statement: Statement) -> str:
        """Return a sentence that states only this finding of the reference."""
        others = [s for s in self._reference.statements if s.line == statement.line]
        if len(others) == 1 and not _denied_in(self._reference, statement.line):
            return _sentence(statement.line.of(self._reference.text))
        return self._described(statement)

    # -- small edits ------------------------------------------------------------------------------

    def _edits(self, pair: StatementPair, part: Part) -> list[tuple[Span, str]] | None:
        """Return replacements within the line; None if the line must be rewritten."""
        stated, true = pair.candidate.finding, pair.reference.finding
        if part == "severity":
            return self._severity_edits(stated, true)
        if part == "place":
            edits = [
                *self._axis_edits(stated, true, Axis.SIDE),
                *self._axis_edits(stated, true, Axis.ZONE),
            ]
            return edits or None
        if part == "change":
            return self._change_edits(pair)
        return None

    def _severity_edits(self, stated: Finding, true: Finding) -> list[tuple[Span, str]] | None:
        axis = Axis.SIZE if stated.on(Axis.SIZE) and true.on(Axis.SIZE) else Axis.SEVERITY
        own, other = _first(stated, axis), _first(true, axis)
        if own is None or other is None:
            return None
        words = other.span.of(self._reference.text)
        if axis is Axis.SEVERITY:
            words = _in_class_of(own.span.of(self._candidate.text), words, self._tables.lexicon)
        return [(own.span, words)]

    def _axis_edits(self, stated: Finding, true: Finding, axis: Axis) -> list[tuple[Span, str]]:
        own = [a for a in stated.on(axis) if not a.inherited]
        others = list(dict.fromkeys(a.value for a in true.on(axis)))
        if not own or not others or {a.value for a in own} == set(others):
            return []
        if len({a.span for a in own}) > 1:
            return []
        return [(own[0].span, " and ".join(others))]

    def _change_edits(self, pair: StatementPair) -> list[tuple[Span, str]] | None:
        own = _first(pair.candidate.finding, Axis.CHANGE)
        words = _change_words(pair.reference)
        if own is not None:
            return [(own.span, words)]
        if pair.candidate.change is not None or not words:
            return None
        start = pair.candidate.quoted.start
        return [(Span(start, start), f"{words} ")]

    # -- rewritten lines --------------------------------------------------------------------------

    def _rewritten(self, wrong: Statement, right: Statement | None) -> str:
        """Return the line's statements in plain words, one of them corrected or left out."""
        described = []
        for statement in self._candidate.statements:
            if statement.line == wrong.line:
                chosen = right if statement is wrong else statement
                if chosen is not None:
                    described.append(self._described(chosen))
        return self._joined(described, wrong.line)

    def _joined(self, described: Iterable[str], line: Span) -> str:
        """Return sentences, and one for each finding that the line denies."""
        denied = _denied_in(self._candidate, line)
        names = dict.fromkeys(f.observation.replace("_", " ") for f in denied)
        return " ".join([*described, *(f"No {name}." for name in names)])

    def _described(self, statement: Statement) -> str:
        """Return one plain sentence with everything that the judge compares."""
        concept = self._tables.concepts[statement.concept]
        text = (
            self._reference.text
            if any(statement is s for s in self._reference.statements)
            else self._candidate.text
        )
        if concept.device:
            return _sentence(statement.line.of(text))
        finding = statement.finding
        sides = "bilateral" if len(statement.sides) == 2 else "".join(statement.sides)
        zones = " and ".join(finding.zones)
        words = [
            _change_words(statement),
            "possible" if statement.doubtful else "",
            "" if statement.size is None else f"{statement.size:g} mm",
            statement.grades[DEGREE].value if DEGREE in statement.grades else "",
            sides,
            zones,
            finding.observation.replace("_", " "),
        ]
        return _sentence(" ".join(word for word in words if word))


def _change_words(statement: Statement) -> str:
    return _CHANGES[statement.change.change] if statement.change else ""


def _first(finding: Finding, axis: Axis) -> Attribute | None:
    """Return the first attribute of an axis whose words belong to the finding itself."""
    return next((a for a in finding.on(axis) if not a.inherited), None)


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


def _edited(text: str, line: Span, edits: Iterable[tuple[Span, str]]) -> str:
    corrected = line.of(text)
    for span, words in sorted(edits, reverse=True):
        start, end = span.start - line.start, span.end - line.start
        if not 0 <= start <= end <= len(corrected):
            continue
        if not words and corrected[end : end + 1] == " ":
            end += 1
        corrected = corrected[:start] + words + corrected[end:]
    return _sentence(corrected)


def _sentence(words: str) -> str:
    words = " ".join(words.split())
    if words and words[-1] not in ".!?":
        words += "."
    return words[:1].upper() + words[1:]
