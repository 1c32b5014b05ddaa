"""Judge by a language model: errors of a candidate report, named by the model's answer."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from vlscore.core import Cache, LRUCache, Namespace, open_cache
from vlscore.errors import MissingDependency, VLScoreError
from vlscore.metrics.judge.judge_answers import UnusableAnswer
from vlscore.metrics.judge.judge_endpoint import DEFAULT_IN_FLIGHT, EndpointModel
from vlscore.metrics.judge.judge_questions import (
    FEW_SHOT,
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
        model: EndpointModel,
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

    Args:
        facts: what an answer depends on besides the conversation.
        cache: None stores answers in this process alone.
    """

    def __init__(self, facts: Mapping[str, Any], cache: Cache | None) -> None:
        self._names: Namespace | None = None
        if cache is not None:
            self._names = cache.namespace({"holds": "answers", **facts})
        self._recent: LRUCache[Messages, Reply] = LRUCache(_REMEMBERED)

    def known(self, questions: Iterable[Messages]) -> dict[Messages, Reply]:
        """Return the answers that are stored."""
        questions = list(questions)
        found = self._recent.known(questions)
        if self._names is not None:
            texts = {json.dumps(q): q for q in questions if q not in found}
            for text, fields in self._names.get(texts).items():
                found[texts[text]] = Reply(*fields)
        return found

    def add(self, question: Messages, reply: Reply) -> Reply:
        """Store an answer; return that of the cache, which another run may have stored first."""
        if self._names is not None:
            text = json.dumps(question)
            fields = [reply.text, reply.is_cut, reply.tokens_in, reply.tokens_out]
            reply = Reply(*self._names.put({text: fields})[text])
        self._recent.add({question: reply})
        return reply


def find_judge_model(
    model: str,
    *,
    endpoint: str | None = None,
    send_to: Iterable[str] = (),
    in_flight: int = DEFAULT_IN_FLIGHT,
) -> EndpointModel:
    """Return the language model of an OpenAI-compatible service, also one on this machine.

    Args:
        model: name by which the service knows it.
        endpoint: address of the service, such as "http://localhost:11434/v1".
        send_to: hosts on other machines that may receive reports.
        in_flight: most requests at once.

    Raises: MissingDependency without an endpoint; InvalidSetting.
    """
    if not endpoint:
        raise MissingDependency(
            f"the model {model} needs the service that runs it: name its address, as in "
            "--endpoint http://localhost:11434/v1 (Ollama, llama.cpp or vLLM on this machine)"
        )
    return EndpointModel(model, endpoint, send_to=send_to, in_flight=in_flight)


@lru_cache(maxsize=8)
def remembered_judge(
    model: str,
    endpoint: str | None,
    prompt: tuple[str, str],
    send_to: tuple[str, ...],
    in_flight: int,
    cache: Cache | None,
) -> ModelJudge:
    """Return a judge, the same one for the same arguments.

    Args: prompt: name of the prompt, and the order of the reports.

    Raises: those of `find_judge_model` and of `ModelJudge`.
    """
    found = find_judge_model(model, endpoint=endpoint, send_to=send_to, in_flight=in_flight)
    return ModelJudge(found, prompt=prompt[0], order=prompt[1], cache=cache or False)
