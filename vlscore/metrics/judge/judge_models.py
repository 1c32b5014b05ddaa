"""What the judge by a language model needs of a model, wherever it runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from vlscore.metrics.judge.judge_questions import JudgePrompt, JudgeQuestion


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


class AnsweringModel(Protocol):
    """Language model that answers questions.

    `str` of it is where the reports go, in words for the user.

    Attributes:
        is_here: whether reports stay on this machine.
        library: package of an extra that it needs, such as "openai".
    """

    is_here: bool
    library: str

    def facts(self, prompt: JudgePrompt) -> Mapping[str, str]:
        """Return what an answer depends on besides the question, for signatures."""

    def ask(
        self, questions: Sequence[JudgeQuestion], prompt: JudgePrompt, on_reply: OnReply
    ) -> Mapping[int, Exception]:
        """Ask all questions; return the errors of those without a reply, by their number.

        Raises: VLScoreError if no further question can be answered.
        """


def request_fields(prompt: JudgePrompt) -> dict[str, Any]:
    """Return the fields of a request that change its answer, besides the conversation."""
    return {**prompt.request, "schema": prompt.schema}
