"""Questions to a language model: prompt files, the conversation about two reports, replies."""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, cast, get_args

from vlscore.core import file_digest
from vlscore.data import is_encodable
from vlscore.errors import InvalidReport, InvalidSetting
from vlscore.metrics.judge.judge_answers import UnusableAnswer, read_answer
from vlscore.metrics.judge.judgement import JudgeCase, Judgement, Patient
from vlscore.text import SentenceSpan, split_sentences

#: Which of the two reports the question shows first.
Order = Literal["candidate-first", "reference-first"]
#: Names of shipped prompts: with examples, and without.
FEW_SHOT, ZERO_SHOT = "few-shot", "zero-shot"
_SHIPPED = Path(__file__).with_name("data") / "prompt.toml"
_SCHEMAS = ("strict", "json", "none")
# What the judge itself writes into a request.
_RESERVED = ("model", "messages", "response_format", "stream", "n", "user")

#: Messages of a conversation, as role and text.
Messages = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class JudgePrompt:
    """Words of the question, with examples and the settings of a request.

    Attributes:
        name: name and version for signatures: "few-shot@1", or file name and digest.
        instructions: what is asked, before any report.
        again: what is asked after an answer that cannot be used, with {error}.
        examples: pairs of question and answer.
        schema: "strict", "json" or "none": how the form of the answer is requested.
        request: further fields of a request, such as temperature.
    """

    name: str
    instructions: str
    again: str
    examples: tuple[tuple[JudgeCase, str], ...] = ()
    schema: str = "strict"
    request: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class JudgeQuestion:
    """Question about one pair of reports, with the answers so far that could not be used.

    Attributes:
        messages: the conversation.
        case: the pair.
        lines, true_lines: numbered lines of candidate and reference.
    """

    messages: Messages
    case: JudgeCase
    lines: tuple[SentenceSpan, ...]
    true_lines: tuple[SentenceSpan, ...]

    def judgement(self, reply: "Reply") -> Judgement:
        """Read a reply; raise UnusableAnswer that says what is wrong with it."""
        if reply.is_cut:
            raise UnusableAnswer("the answer was cut at the limit of tokens; answer more briefly")
        candidate, reference, _ = self.case
        return read_answer(reply.text, candidate, reference, self.lines, self.true_lines)

    def again(self, answer: str, error: UnusableAnswer, prompt: JudgePrompt) -> "JudgeQuestion":
        """Return the question that shows the model its answer and the error."""
        asked = prompt.again.replace("{error}", str(error)).strip()
        # An empty message is refused by some services.
        messages = (*self.messages, ("assistant", answer or "-"), ("user", asked))
        return replace(self, messages=messages)


def question_of(case: JudgeCase, prompt: JudgePrompt, order: Order) -> JudgeQuestion:
    """Return the question about one pair, after the instructions and the examples.

    Reports are JSON strings in a user's message, so no text in a report can end its own string.

    Raises: InvalidReport where a report is not a str, or cannot be encoded as UTF-8.
    """
    for role, text in (("candidate", case.candidate), ("reference", case.reference)):
        if not isinstance(text, str) or not is_encodable(text):
            raise InvalidReport(f"the {role} must be a text that can be encoded as UTF-8")
    lines, true_lines = (tuple(split_sentences(text)) for text in case[:2])
    asked = ("user", _shown(case, lines, true_lines, order))
    return JudgeQuestion((*_begin(prompt, order), asked), case, lines, true_lines)


@lru_cache(maxsize=8)
def _begin(prompt: JudgePrompt, order: Order) -> Messages:
    """Return the instructions and the examples."""
    messages = [("system", prompt.instructions.strip())]
    for example, answer in prompt.examples:
        lines, true_lines = map(split_sentences, example[:2])
        shown = _shown(example, lines, true_lines, order)
        messages += [("user", shown), ("assistant", answer.strip())]
    return tuple(messages)


def _shown(
    case: JudgeCase,
    lines: Sequence[SentenceSpan],
    true_lines: Sequence[SentenceSpan],
    order: Order,
) -> str:
    """Return both reports, as numbered lines, and the patient as one JSON object."""
    reports = {
        role: {str(number): " ".join(line.text.split()) for number, line in enumerate(each, 1)}
        for role, each in (("candidate", lines), ("reference", true_lines))
    }
    if order == "reference-first":
        reports = dict(reversed(reports.items()))
    patient: dict[str, Any] = {}
    if case.patient.age is not None:
        patient["age"] = round(case.patient.age, 2)
    if case.patient.indication:
        patient["indication"] = case.patient.indication
    content = {**reports, **({"patient": patient} if patient else {})}
    return json.dumps(content, ensure_ascii=False, indent=1)


def check_order(order: str) -> Order:
    """Return the order; raise InvalidSetting for an unknown one."""
    if order not in get_args(Order):
        raise InvalidSetting(f"order must be {' or '.join(get_args(Order))}, not {order!r}")
    return cast("Order", order)


def find_prompt(name: str) -> JudgePrompt:
    """Return a shipped prompt, or that of a user's file.

    Args: name: "few-shot", "zero-shot", or the path of a .toml file like the shipped one.

    Raises: InvalidSetting that names the file and its wrong entry.
    """
    path = _SHIPPED if name in (FEW_SHOT, ZERO_SHOT) else Path(name).expanduser()
    try:
        digest = file_digest(path)
    except OSError:
        raise InvalidSetting(
            f"there is no prompt {name!r}: use {FEW_SHOT}, {ZERO_SHOT}, or the path of a .toml file"
        ) from None
    return _read_prompt(path, name, digest)


@lru_cache(maxsize=8)
def _read_prompt(path: Path, name: str, digest: str) -> JudgePrompt:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        request = dict(data.get("request", {}))
        schema = str(request.pop("schema", "strict"))
        examples = tuple(map(_example, data.get("example", [])))
        prompt = JudgePrompt(
            f"{name}@{data['version']}",
            str(data["instructions"]),
            str(data["again"]),
            () if name == ZERO_SHOT else examples,
            schema,
            request,
        )
    except (OSError, ValueError) as error:
        raise InvalidSetting(f"{path} is not valid TOML: {error}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidSetting(
            f"{path}: the prompt lacks a key, or one has a wrong value: {error}"
        ) from None
    if schema not in _SCHEMAS:
        raise InvalidSetting(f"{path}: schema must be one of {', '.join(_SCHEMAS)}, not {schema!r}")
    if "{error}" not in prompt.again:
        raise InvalidSetting(
            f"{path}: the text again must contain {{error}}, which becomes the reason for a second "
            "question"
        )
    if wrong := sorted(set(request) & set(_RESERVED)):
        raise InvalidSetting(
            f"{path}: remove {', '.join(wrong)} from [request], because the judge sets it itself"
        )
    for number, (case, answer) in enumerate(prompt.examples, 1):
        try:
            question_of(case, prompt, "candidate-first").judgement(Reply(answer))
        except UnusableAnswer as error:
            raise InvalidSetting(f"{path}: example {number}: {error}") from None
    if path == _SHIPPED:
        return prompt
    return replace(prompt, name=f"{path.name.replace('|', '_')}@{digest[:12]}")


def _example(entry: Mapping[str, Any]) -> tuple[JudgeCase, str]:
    candidate, reference = ("\n".join(entry[name]) for name in ("candidate", "reference"))
    patient = Patient(entry.get("age"), str(entry.get("indication", "")))
    return JudgeCase(candidate, reference, patient), str(entry["answer"])


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer of a language model.

    Attributes:
        text: the answer.
        is_cut: whether it ends at the limit of tokens.
        tokens_in, tokens_out: tokens of the question and of the answer, as the model's server
            counts them; None if it does not count.
    """

    text: str
    is_cut: bool = False
    tokens_in: int | None = None
    tokens_out: int | None = None


# Function that takes the number of a question and the model's reply, as soon as it is there.
OnReply = Callable[[int, Reply], None]


def request_fields(prompt: JudgePrompt) -> dict[str, Any]:
    """Return the fields of a request that change its answer, besides the conversation."""
    return {**prompt.request, "schema": prompt.schema}
