"""Answers of a language model: their JSON schema, and the reader that makes judgements of them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from vlscore.data import SentenceSpan, is_encodable
from vlscore.errors import VLScoreError
from vlscore.findings import Span
from vlscore.metrics.judge.judgement import SEVERITIES, ErrorItem, Judgement, Quote
from vlscore.perturb import ErrorCategory

#: Most errors, and most correct findings, of one answer.
MOST = 40
#: Longest name of a finding, correction and reason, in characters.
_NAME, _CORRECTION, _REASON = 80, 1000, 300
_OMITTED = (ErrorCategory.OMITTED_FINDING, ErrorCategory.OMITTED_COMPARISON)
_COMMITTED = tuple(category for category in ErrorCategory if category not in _OMITTED)
_FENCE = re.compile(r"```(?:json)?\s*\n(.*)\n\s*```", re.DOTALL)


class UnusableAnswer(VLScoreError):
    """An answer of a language model does not follow the schema; the message says where."""


def answer_schema() -> dict[str, Any]:
    """Return the JSON schema of an answer.

    An error of omission names a line of the reference, any other error a line of the candidate.
    The schema limits no lengths, because some services refuse one with such limits; `read_answer`
    checks them.
    """
    line = {"type": "integer"}
    line_or_none = {"anyOf": [line, {"type": "null"}]}
    kinds = [
        _error_schema(_COMMITTED, line, line_or_none),
        _error_schema(_OMITTED, line_or_none, line),
    ]
    correct = _object({"finding": _TEXT, "severity": _SEVERITY})
    return _object(
        {
            "errors": {"type": "array", "items": {"anyOf": kinds}},
            "correct": {"type": "array", "items": correct},
        }
    )


def read_answer(
    answer: str,
    candidate: str,
    reference: str,
    lines: Sequence[SentenceSpan],
    true_lines: Sequence[SentenceSpan],
) -> Judgement:
    """Read an answer as a judgement.

    Args:
        answer: JSON text; a code fence around it is removed.
        candidate, reference: the two reports.
        lines, true_lines: their numbered lines, as the question listed them, from 1.

    Raises: UnusableAnswer that names the wrong part, but quotes neither report nor answer.
    """
    content = _object_of(_parsed(answer), "the answer", ("errors", "correct"))
    errors = [
        _error(item, f"errors[{number}]", candidate, reference, lines, true_lines)
        for number, item in enumerate(_list_of(content["errors"], "errors"))
    ]
    found = []
    for number, item in enumerate(_list_of(content["correct"], "correct")):
        place = f"correct[{number}]"
        fields = _object_of(item, place, ("finding", "severity"))
        _text_of(fields["finding"], f"{place}.finding", _NAME, least=1)
        found.append(_severity_of(fields["severity"], f"{place}.severity"))
    errors.sort(key=lambda error: error.candidate.span if error.candidate else _END)
    return Judgement(tuple(errors), tuple(found))


_END = Span(1 << 60, 1 << 60)
_FIELDS = (
    "category",
    "severity",
    "finding",
    "candidate_line",
    "reference_line",
    "correction",
    "reason",
)


def _error(
    item: Any,
    place: str,
    candidate: str,
    reference: str,
    lines: Sequence[SentenceSpan],
    true_lines: Sequence[SentenceSpan],
) -> ErrorItem:
    fields = _object_of(item, place, _FIELDS)
    if fields["category"] not in list(ErrorCategory):
        raise UnusableAnswer(f"{place}.category must be one of {', '.join(ErrorCategory)}")
    category = ErrorCategory(fields["category"])
    line = _line_of(fields["candidate_line"], f"{place}.candidate_line", lines)
    true_line = _line_of(fields["reference_line"], f"{place}.reference_line", true_lines)
    if category in _OMITTED and true_line is None:
        raise UnusableAnswer(f"{place}.reference_line must be a number, because it is {category}")
    if category not in _OMITTED and line is None:
        raise UnusableAnswer(f"{place}.candidate_line must be a number, because it is {category}")
    return ErrorItem(
        category,
        _severity_of(fields["severity"], f"{place}.severity"),
        _text_of(fields["finding"], f"{place}.finding", _NAME, least=1),
        None if line is None else _quote(candidate, line),
        None if true_line is None else _quote(reference, true_line),
        None if line is None else Span(line.start, line.end),
        _text_of(fields["correction"], f"{place}.correction", _CORRECTION),
        _text_of(fields["reason"], f"{place}.reason", _REASON),
    )


def _quote(text: str, line: SentenceSpan) -> Quote:
    return Quote(text[line.start : line.end], Span(line.start, line.end))


# -- parts of the reader --------------------------------------------------------------------------


def _parsed(answer: str) -> Any:
    text = answer.strip()
    if (fenced := _FENCE.fullmatch(text)) is not None:
        text = fenced[1]
    try:
        return json.loads(text)
    except RecursionError:
        raise UnusableAnswer("the answer is nested too deeply") from None
    except ValueError as error:
        where = f", at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise UnusableAnswer(f"the answer is not one JSON object and nothing else{where}") from None


def _object_of(value: Any, place: str, names: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict) or set(value) != set(names):
        raise UnusableAnswer(
            f"{place} must be an object with {', '.join(names)}, and nothing else{_found(value)}"
        )
    return value


def _list_of(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list) or len(value) > MOST:
        raise UnusableAnswer(f"{place} must be a list of at most {MOST}{_found(value)}")
    return value


def _severity_of(value: Any, place: str) -> int:
    if isinstance(value, bool) or value not in list(SEVERITIES):
        raise UnusableAnswer(f"{place} must be an integer from 1 to 5{_found(value)}")
    return int(value)


def _text_of(value: Any, place: str, most: int, least: int = 0) -> str:
    if not isinstance(value, str) or not least <= len(value) <= most or not is_encodable(value):
        raise UnusableAnswer(f"{place} must be a text of {least} to {most} characters")
    return " ".join(value.split())


def _line_of(value: Any, place: str, lines: Sequence[SentenceSpan]) -> SentenceSpan | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= len(lines):
        allowed = f"a number from 1 to {len(lines)}, or null" if lines else "null: it has no lines"
        raise UnusableAnswer(f"{place} must be {allowed}{_found(value)}")
    return lines[value - 1]


def _found(value: Any) -> str:
    """Return what was found, without a word of it: an answer may repeat a report."""
    if isinstance(value, int | float) and abs(value) < 10**9:
        return f", not {value!r}"
    if isinstance(value, list):
        return f", not a list of {len(value)}"
    names = {str: "a text", dict: "an object", type(None): "null"}
    return f"; found {names.get(type(value), 'something else')}"


# -- parts of the schema --------------------------------------------------------------------------

_TEXT = {"type": "string"}
_SEVERITY = {"type": "integer", "enum": list(SEVERITIES)}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _error_schema(
    categories: Sequence[ErrorCategory], line: dict[str, Any], true_line: dict[str, Any]
) -> dict[str, Any]:
    category = {"type": "string", "enum": [str(category) for category in categories]}
    properties = (category, _SEVERITY, _TEXT, line, true_line, _TEXT, _TEXT)
    return _object(dict(zip(_FIELDS, properties, strict=True)))
