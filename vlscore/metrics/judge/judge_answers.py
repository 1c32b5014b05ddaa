"""Answers of a language model: their JSON schema, and the reader that makes judgements of them."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from vlscore.data import is_encodable
from vlscore.errors import VLScoreError
from vlscore.findings import Span
from vlscore.metrics.judge.judgement import SEVERITIES, ErrorItem, Judgement, Quote
from vlscore.perturb import ErrorCategory
from vlscore.text import SentenceSpan

#: Most errors, and most correct findings, of one answer.
MOST = 40
#: Longest name of a finding, correction and reason, in characters.
_NAME, _CORRECTION, _REASON = 80, 1000, 300
_OMITTED = (ErrorCategory.OMITTED_FINDING, ErrorCategory.OMITTED_COMPARISON)
_COMMITTED = tuple(category for category in ErrorCategory if category not in _OMITTED)
# Marks that models put around what they think before they answer.
_THOUGHT = r"(?:\w+:)?(?:think|thinking|thoughts?|reason|reasoning|reflection|analysis|scratchpad)"
_MARK = re.compile(
    rf"[<\[◁]\|?(?P<closes>/\s*|end_of_)?(?:begin_of_)?{_THOUGHT}\|?[>\]▷]", re.IGNORECASE
)
# Channels of OpenAI's open models: the answer is what stands behind the last mark.
_FINAL_CHANNEL = re.compile(r"<\|channel\|>final[^<]*<\|message\|>")
# Signs at which JSON may begin that are tried; text of a model holds few that do not begin it.
_MOST_BEGINNINGS = 200
_BEGINNING = re.compile(r"[{\[]")
_WHOLE_NUMBER = re.compile(r"\s*\d{1,9}\s*")


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
        answer: JSON text; thoughts before it, a code fence and words around it are ignored.
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


class _Object(dict[str, Any]):
    """JSON object of an answer, and a name that it, or an object in it, has twice."""

    twice: str | None = None


def _object_read(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object(pairs)
    names = [name for name, _ in pairs]
    if len(made) < len(pairs):
        made.twice = next(name for name in made if names.count(name) > 1)
    for value in made.values():
        for inner in value if isinstance(value, list) else [value]:
            made.twice = made.twice or getattr(inner, "twice", None)
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_object_read)


def _parsed(answer: str) -> Any:
    """Return the JSON value of an answer; raise UnusableAnswer if there is none, or more than one.

    Python takes the last of two values of one name, and an error would vanish without a word.
    """
    text = answer.replace("\ufeff", "").strip()
    found = _whole(text)
    if found is None:
        found = _only_object(_without_thoughts(text))
    if (name := getattr(found, "twice", None)) is not None:
        known = name if name in (*_FIELDS, "errors", "correct") else "a name"
        raise UnusableAnswer(f"an object of the answer has {known} twice")
    return found


def _whole(text: str) -> Any:
    """Return the value that the whole text is, None if it is no JSON."""
    try:
        return _DECODER.decode(text)
    except ValueError:
        return None
    except RecursionError:
        raise UnusableAnswer("the answer is nested too deeply") from None


def _without_thoughts(text: str) -> str:
    text = _FINAL_CHANNEL.split(text)[-1]
    kept: list[str] = []
    start, is_open = 0, False
    for mark in _MARK.finditer(text):
        if mark["closes"]:
            # A mark without its beginning, which the question holds, ends a thought as well.
            kept = kept if is_open else []
            start, is_open = mark.end(), False
        elif not is_open:
            kept.append(text[start : mark.start()])
            is_open = True
    # A thought without an end is no answer.
    return "".join(kept if is_open else [*kept, text[start:]])


def _only_object(text: str) -> Any:
    """Return the judgement among the words of a text."""
    found: list[Any] = []
    place, failed, first = 0, 0, None
    while (begins := _BEGINNING.search(text, place)) and failed < _MOST_BEGINNINGS:
        try:
            value, place = _DECODER.raw_decode(text, begins.start())
        except json.JSONDecodeError as error:
            # Words may hold brackets, too: a message names the place only where "{" begins an
            # object that breaks off.
            first = error.pos if first is None and begins[0] == "{" else first
            place, failed = begins.end(), failed + 1
            continue
        except RecursionError:
            raise UnusableAnswer("the answer is nested too deeply") from None
        if isinstance(value, dict) and value not in found:
            found.append(value)
    judgements = [each for each in found if "errors" in each or "correct" in each] or found
    if len(judgements) > 1:
        raise UnusableAnswer("the answer holds several JSON objects: give one")
    if not judgements or (first is not None and "errors" not in judgements[0]):
        where = f"; JSON ends at character {first}" if first is not None else ""
        raise UnusableAnswer(f"the answer holds no JSON object that can be read{where}")
    return judgements[0]


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
    severity = _whole_number(value)
    if severity not in list(SEVERITIES):
        raise UnusableAnswer(f"{place} must be an integer from 1 to 5{_found(value)}")
    return int(severity)


def _whole_number(value: Any) -> int | None:
    """Return a whole number, also one that is written as 3.0 or "3"; None for anything else."""
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and value == value // 1 else None


def _text_of(value: Any, place: str, most: int, least: int = 0) -> str:
    if not isinstance(value, str) or not least <= len(value) <= most or not is_encodable(value):
        raise UnusableAnswer(f"{place} must be a text of {least} to {most} characters")
    return " ".join(value.split())


def _line_of(value: Any, place: str, lines: Sequence[SentenceSpan]) -> SentenceSpan | None:
    if value is None:
        return None
    number = _whole_number(value)
    if number is None or not 1 <= number <= len(lines):
        allowed = f"a number from 1 to {len(lines)}, or null" if lines else "null: it has no lines"
        raise UnusableAnswer(f"{place} must be {allowed}{_found(value)}")
    return lines[number - 1]


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
