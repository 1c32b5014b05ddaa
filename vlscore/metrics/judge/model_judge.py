"""Judge by a language model: errors of a candidate report, named by the model's answer."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from vlscore.core import Cache, LRUCache, Namespace, open_cache
from vlscore.errors import VLScoreError
from vlscore.metrics.judge.judge_answers import UnusableAnswer
from vlscore.metrics.judge.judge_endpoint import EndpointModel
from vlscore.metrics.judge.judge_questions import (
    FEW_SHOT,
    JudgePrompt,
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
        model: what answers.
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
        conversation = _Conversation(cases, self.prompt, on_done)
        questions = [question_of(case, self.prompt, self.order) for case in conversation.counts]
        while questions:
            questions = self._round(questions, conversation)
        return [conversation.outcomes[case] for case in cases]

    def _round(
        self, questions: Sequence[JudgeQuestion], conversation: "_Conversation"
    ) -> list[JudgeQuestion]:
        """Ask each question, those of the same words once; return the next questions."""
        asked: dict[Messages, list[JudgeQuestion]] = {}
        for question in questions:
            asked.setdefault(question.messages, []).append(question)
        known = self._answers.known(asked)
        following = [n for m, reply in known.items() for n in conversation.take(asked[m], reply)]
        new = [messages for messages in asked if messages not in known]

        def on_reply(number: int, reply: Reply) -> None:
            self.paid.add(reply.tokens_in, reply.tokens_out)
            stored = self._answers.add(new[number], reply)
            following.extend(conversation.take(asked[new[number]], stored))

        if new:
            firsts = [asked[messages][0] for messages in new]
            for number, error in self.model.ask(firsts, self.prompt, on_reply).items():
                following += conversation.take(asked[new[number]], error)
        return following


class _Conversation:
    """What a model has said of some pairs: the outcomes so far, and the counts of its answers."""

    def __init__(
        self, cases: Iterable[JudgeCase], prompt: JudgePrompt, on_done: Callable[[], None]
    ) -> None:
        self.outcomes: dict[JudgeCase, Outcome] = {}
        self.counts = {case: AnswerCounts() for case in cases}
        self._prompt, self._on_done = prompt, on_done

    def take(
        self, questions: Iterable[JudgeQuestion], reply: Reply | VLScoreError
    ) -> list[JudgeQuestion]:
        """Read a reply to questions; return the next ones where it cannot be used."""
        return [q for question in questions if (q := self._next(question, reply)) is not None]

    def _next(self, question: JudgeQuestion, reply: Reply | VLScoreError) -> JudgeQuestion | None:
        count = self.counts[question.case]
        judgement, failure = None, None
        if isinstance(reply, VLScoreError):
            failure = reply
        else:
            count.add(reply.tokens_in, reply.tokens_out)
            try:
                judgement = question.judgement(reply)
            except UnusableAnswer as error:
                if count.answers < ATTEMPTS:
                    return question.again(reply.text, error, self._prompt)
                message = f"the model gave no usable answer in {ATTEMPTS} attempts: {error}"
                failure = UnusableAnswer(message)
        self.outcomes[question.case] = Outcome(judgement, failure, count)
        self._on_done()
        return None


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

    Raises: those of `EndpointModel` and of `ModelJudge`.
    """
    found = EndpointModel(model, endpoint, send_to=send_to, in_flight=in_flight)
    return ModelJudge(found, prompt=prompt[0], order=prompt[1], cache=cache or False)
