"""Judge by a language model: errors of a candidate report, named by the model's answer."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import Cache, Entry, Recent, Space, open_cache
from vlscore.errors import InvalidSetting, VLScoreError, WeightsNotFound
from vlscore.metrics.judge.judge_answers import UnusableAnswer
from vlscore.metrics.judge.judge_endpoint import DEFAULT_IN_FLIGHT, EndpointModel
from vlscore.metrics.judge.judge_questions import (
    FEW_SHOT,
    AnsweringModel,
    JudgeQuestion,
    Messages,
    Reply,
    check_order,
    find_prompt,
    question_of,
    request_fields,
)
from vlscore.metrics.judge.judgement import (
    UNKNOWN,
    AnswerCounts,
    JudgeCase,
    Judgement,
    Outcome,
    Patient,
    nothing_done,
)

#: How often the model is asked about one pair, if its answers cannot be used.
ATTEMPTS = 3
_REMEMBERED = 10_000


class ModelJudge:
    """Judge that asks a language model about each pair of reports.

    An answer that breaks the schema is asked again with its error, up to three times in all; then
    the pair has an error instead of a judgement.

    Args:
        model: what answers; see `find_judge_model`.
        prompt: "few-shot", "zero-shot", or a .toml file.
        order: which report the question shows first: "candidate-first" or "reference-first".
        cache: where answers are stored between runs, as `open_cache` takes it.

    Attributes:
        paid: counts of the answers that were asked for in this process; answers of the cache are
            not among them.
    """

    def __init__(
        self,
        model: AnsweringModel,
        *,
        prompt: str = FEW_SHOT,
        order: str = "candidate-first",
        cache: Cache | bool | str | None = True,
    ) -> None:
        self.model = model
        self.prompt = find_prompt(prompt)
        self.order = check_order(order)
        self.paid = AnswerCounts()
        self._answers = StoredAnswers(
            {**model.facts(self.prompt), **request_fields(self.prompt)}, open_cache(cache)
        )

    @property
    def facts(self) -> dict[str, str]:
        """Return what a judgement depends on besides the reports, for signatures."""
        facts = self.model.facts(self.prompt)
        return {**facts, "prompt": self.prompt.name, "order": self.order}

    @property
    def name(self) -> str:
        """Return what the numbers depend on, in one line."""
        return " ".join(f"{name}:{value}" for name, value in self.facts.items())

    def judge(self, candidate: str, reference: str, patient: Patient = UNKNOWN) -> Judgement:
        """Return the errors of a candidate report against its reference.

        Raises: UnusableAnswer, QuestionFailed or EndpointFailed where the model gives no answer
            that can be used.
        """
        (outcome,) = self.judge_all([JudgeCase(candidate, reference, patient)])
        if outcome.judgement is None:
            assert outcome.error is not None
            raise outcome.error
        return outcome.judgement

    def judge_all(
        self, cases: Sequence[JudgeCase], on_done: Callable[[], None] = nothing_done
    ) -> list[Outcome]:
        """Judge many pairs, each distinct one once; return their outcomes in order.

        Args: on_done: called after each distinct pair that has its outcome.

        Raises: EndpointFailed if no further question can be answered; answers so far are stored.
            InvalidReport where a report is not a str.
        """
        return _Questioning(self, self._answers, on_done).outcomes(cases)


class _Questioning:
    """One call of `judge_all`: rounds of questions, until each pair has its outcome."""

    def __init__(
        self, judge: ModelJudge, answers: "StoredAnswers", on_done: Callable[[], None]
    ) -> None:
        self._judge, self._answers, self._on_done = judge, answers, on_done
        self._done: dict[JudgeCase, Outcome] = {}
        self._counts: dict[JudgeCase, AnswerCounts] = {}
        # Questions of the next round, and the attempts before it.
        self._next: list[JudgeQuestion] = []
        self._attempts = 0

    def outcomes(self, cases: Sequence[JudgeCase]) -> list[Outcome]:
        distinct = dict.fromkeys(cases)
        self._counts = {case: AnswerCounts() for case in distinct}
        judge = self._judge
        self._next = [question_of(case, judge.prompt, judge.order) for case in distinct]
        while self._next:
            self._attempts += 1
            self._round()
        return [self._done[case] for case in cases]

    def _round(self) -> None:
        """Ask each open question once."""
        asked: dict[Messages, list[JudgeQuestion]] = {}
        for question in self._next:
            asked.setdefault(question.messages, []).append(question)
        self._next = []
        known = self._answers.known(asked)
        for messages, reply in known.items():
            self._take(asked[messages], reply)
        new = [messages for messages in asked if messages not in known]

        def on_reply(number: int, reply: Reply) -> None:
            self._judge.paid.add(reply.tokens_in, reply.tokens_out)
            self._take(asked[new[number]], self._answers.add(new[number], reply))

        firsts = [asked[messages][0] for messages in new]
        if firsts:
            failures = self._judge.model.ask(firsts, self._judge.prompt, on_reply)
            for number, error in failures.items():
                assert isinstance(error, VLScoreError)
                for question in asked[new[number]]:
                    self._end(question.case, None, error)

    def _take(self, questions: Iterable[JudgeQuestion], reply: Reply) -> None:
        """Read one reply for all pairs that share its question."""
        for question in questions:
            self._counts[question.case].add(reply.tokens_in, reply.tokens_out)
            try:
                self._end(question.case, self._read(question, reply), None)
            except UnusableAnswer as error:
                if self._attempts < ATTEMPTS:
                    again = question.again(reply.text, error, self._judge.prompt)
                    self._next.append(again)
                    continue
                message = f"the model gave no usable answer in {ATTEMPTS} attempts: {error}"
                self._end(question.case, None, UnusableAnswer(message))

    def _read(self, question: JudgeQuestion, reply: Reply) -> Judgement:
        if reply.is_cut:
            raise UnusableAnswer("the answer was cut at the limit of tokens; answer more briefly")
        return question.judgement(reply.text)

    def _end(
        self, case: JudgeCase, judgement: Judgement | None, error: VLScoreError | None
    ) -> None:
        self._done[case] = Outcome(judgement, error, self._counts[case])
        self._on_done()


class StoredAnswers:
    """Answers by their question, in memory and in the cache.

    The cache holds no word of a report. An answer repeats words of both, so it is stored masked: by
    a stream of SHAKE-256 that is made from the whole question. Only someone who has both reports
    can read it.

    Args:
        facts: what an answer depends on besides the conversation.
        cache: None stores answers in this process alone.
    """

    def __init__(self, facts: Mapping[str, Any], cache: Cache | None) -> None:
        self._facts = {"holds": "answers", **facts}
        self._space: Space | None = None if cache is None else cache.embeddings.space(self._facts)
        self._recent: Recent[Messages, Reply] = Recent(_REMEMBERED)

    def known(self, questions: Iterable[Messages]) -> dict[Messages, Reply]:
        """Return the answers that are stored."""
        questions = list(questions)
        found = self._recent.known(questions)
        if self._space is not None:
            keys = {q: self._key(q) for q in questions if q not in found}
            entries = self._space.get(keys.values())
            for question, key in keys.items():
                reply = None if key not in entries else self._opened(question, entries[key])
                if reply is not None:
                    found[question] = reply
        return found

    def add(self, question: Messages, reply: Reply) -> Reply:
        """Store an answer; return that of the cache, which another run may have stored first."""
        if self._space is not None:
            key = self._key(question)
            stored = self._space.put({key: self._masked(question, reply)})[key]
            reply = self._opened(question, stored) or reply
        self._recent.add({question: reply})
        return reply

    def _text(self, question: Messages) -> bytes:
        text = json.dumps([self._facts, question], sort_keys=True, ensure_ascii=True)
        return text.encode("ascii")

    def _key(self, question: Messages) -> bytes:
        return hashlib.sha256(b"question of the judge\n" + self._text(question)).digest()

    def _masked(self, question: Messages, reply: Reply) -> Entry:
        fields = [reply.text, reply.is_cut, reply.tokens_in, reply.tokens_out]
        value = self._mask(question, json.dumps(fields, ensure_ascii=True).encode("ascii"))
        return Entry(value, (len(value),))

    def _opened(self, question: Messages, entry: Entry) -> Reply | None:
        try:
            text, is_cut, *tokens = json.loads(self._mask(question, entry.value))
            return Reply(str(text), bool(is_cut), *tokens)
        except (ValueError, TypeError):
            return None

    def _mask(self, question: Messages, value: bytes) -> bytes:
        stream = hashlib.shake_256(b"mask of the judge\n" + self._text(question))
        pad = np.frombuffer(stream.digest(len(value)), np.uint8)
        return (np.frombuffer(value, np.uint8) ^ pad).tobytes()


def find_judge_model(
    model: str | Path,
    *,
    endpoint: str | None = None,
    send_to: Iterable[str] = (),
    in_flight: int = DEFAULT_IN_FLIGHT,
) -> AnsweringModel:
    """Return the language model that a user names.

    Args:
        model: folder of a transformers model on this machine; or, with an endpoint, the name by
            which the endpoint knows it.
        endpoint: address of an OpenAI-compatible service, such as "http://localhost:8000/v1".
        send_to: hosts on other machines that may receive reports.
        in_flight: most requests at once, or the most questions in a batch of a local model.

    Raises: InvalidSetting; WeightsNotFound if there is neither a folder nor an endpoint.
    """
    if endpoint:
        return EndpointModel(str(model), endpoint, send_to=send_to, in_flight=in_flight)
    if not Path(model).expanduser().is_dir():
        raise WeightsNotFound(
            f"{model}: there is no such folder of a language model. If a service runs the model, "
            "name the service as well, as in --endpoint http://localhost:8000/v1"
        )
    if in_flight < 1:
        raise InvalidSetting(
            f"in_flight, the number of questions at once, must be 1 or more, not {in_flight}"
        )
    from vlscore.metrics.judge.judge_local import remembered_local

    return remembered_local(Path(model).expanduser(), in_flight)


def lacks_library(model: AnsweringModel) -> str | None:
    """Return how to install the package that a model needs; None if it is there."""
    if find_spec(model.library) is not None:
        return None
    return f"{model.library} is not installed: pip install 'vlscore[judge]'"


def remembered_judge(
    model: str,
    endpoint: str | None,
    prompt: tuple[str, str],
    send_to: tuple[str, ...],
    in_flight: int,
    cache: Cache | None,
) -> ModelJudge:
    """Return a judge, the same one for the same arguments while no file of a model changes.

    Args: prompt: name of the prompt, and the order of the reports.

    Raises: those of `find_judge_model` and of `ModelJudge`.
    """
    found = find_judge_model(model, endpoint=endpoint, send_to=send_to, in_flight=in_flight)
    if isinstance(found, EndpointModel):
        return _remembered_judge(model, endpoint, prompt, send_to, in_flight, cache)
    return ModelJudge(found, prompt=prompt[0], order=prompt[1], cache=cache or False)


@lru_cache(maxsize=8)
def _remembered_judge(
    model: str,
    endpoint: str,
    prompt: tuple[str, str],
    send_to: tuple[str, ...],
    in_flight: int,
    cache: Cache | None,
) -> ModelJudge:
    found = EndpointModel(model, endpoint, send_to=send_to, in_flight=in_flight)
    return ModelJudge(found, prompt=prompt[0], order=prompt[1], cache=cache or False)
