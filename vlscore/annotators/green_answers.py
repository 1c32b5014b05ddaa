"""What GREEN's language model answers, read as its released code reads it.

Ostmeier et al. 2024, EMNLP Findings; github.com/Stanford-AIMI/GREEN, d72c195, the functions
`compute_green` and `parse_error_counts`. That code takes 0 for every number that it cannot find, so
that an answer of noise gets the score 0, and one whose errors cannot be read gets 1. Here such an
answer has no score, and the reason is said.
"""

import re
from dataclasses import dataclass

from vlscore.errors import VLScoreError

SIGNIFICANT, INSIGNIFICANT = "Clinically Significant Errors", "Clinically Insignificant Errors"
MATCHED = "Matched Findings"
# (a) to (f).
CATEGORIES = (
    "false-finding",
    "missing-finding",
    "location",
    "severity",
    "false-comparison",
    "missing-comparison",
)
# What a section may begin with in place of numbers: "None.", "No errors.".
_NOTHING = "No"
_LETTERS, _NUMBERS = "abcdef", "123456"
_MATCHED_COUNT = re.compile(r"\d{1,9}\b(?=\.)")
_ERROR_COUNT = re.compile(r"(?<=: )\d{1,9}\b(?=\.)")


class UnreadableAnswer(VLScoreError):
    """A language model's answer has not the form that it was asked for."""


@dataclass(frozen=True)
class GreenAnswer:
    """The numbers of an answer.

    Attributes:
        matched: findings that both reports have.
        significant: clinically significant errors of each of `CATEGORIES`.
        insignificant: clinically insignificant ones; None where they cannot be read, which the
            score does not need.
    """

    matched: int
    significant: tuple[int, ...]
    insignificant: tuple[int, ...] | None

    @property
    def score(self) -> float:
        """Matched findings, of those and the significant errors (paper, eq. 1); 0 without any."""
        if self.matched == 0:
            return 0.0
        return self.matched / (self.matched + sum(self.significant))


def read_green_answer(answer: str) -> GreenAnswer:
    """The numbers of an answer.

    Raises: UnreadableAnswer where the score cannot be told, naming the part that is not there.

    >>> read_green_answer(
    ...     "[Clinically Significant Errors]:\\n(b) Missing a finding: 1. Edema.\\n\\n"
    ...     "[Matched Findings]:\\n3. Heart size; Clear lungs; No effusion."
    ... ).score
    0.75
    """
    significant = _errors(answer, SIGNIFICANT)
    text = _section(answer, MATCHED)
    if text.startswith(_NOTHING):
        matched = 0
    elif count := _MATCHED_COUNT.match(text):
        matched = int(count[0])
    else:
        raise UnreadableAnswer(f'its section "{MATCHED}" begins with no number and a full stop')
    try:
        insignificant = _errors(answer, INSIGNIFICANT)
    except UnreadableAnswer:
        insignificant = None
    return GreenAnswer(matched, significant, insignificant)


def explanation_removed(response: str) -> str:
    """What the released code keeps of the model's words: those behind "[Explanation]:"."""
    if "[Explanation]:" in response:
        response = response.rsplit("<|assistant|>", 1)[-1]
        is_form_repeated = "[Explanation]:\n    <Explanation>\n" in response
        parts = response.split("[Explanation]:")
        response = parts[1] if is_form_repeated and len(parts) > 1 else parts[-1]
    response = response.rsplit("<|assistant|>", 1)[-1]
    return response.replace("</s>", "").replace("<unk>", "")


def _section(answer: str, name: str) -> str:
    """The text below a heading, up to the next empty line."""
    found = re.search(rf"\[{name}\]:\s*(.*?)(?:\n\s*\n|\Z)", answer, re.DOTALL)
    if found is None:
        raise UnreadableAnswer(f'it has no section "{name}"')
    return found[1]


def _errors(answer: str, name: str) -> tuple[int, ...]:
    text = _section(answer, name)
    if text.startswith(_NOTHING):
        return (0,) * len(CATEGORIES)
    for marks in (_LETTERS, _NUMBERS):
        # Sorted, so that of two lines of a category the same one counts as in the released code.
        lines = sorted(re.findall(rf"\([{marks}]\) .*", text))
        if lines:
            return tuple(_count(lines, mark, name) for mark in marks)
    raise UnreadableAnswer(f'its section "{name}" has no line that begins with (a) to (f)')


def _count(lines: list[str], mark: str, name: str) -> int:
    """The errors of one category; a category that is not listed has none."""
    own = [line for line in lines if line.startswith(f"({mark}) ")]
    counts = [found[0] for line in own if (found := _ERROR_COUNT.search(line))]
    if own and not counts:
        raise UnreadableAnswer(f'in its section "{name}" ({mark}) names no number of errors')
    return int(counts[-1]) if counts else 0
