"""GREEN's language model: its prompt, its inference, and the parser of its answers.

Ostmeier et al. 2024, EMNLP Findings. A language model reads two reports and lists the errors of the
candidate. It is run as in the released code (github.com/Stanford-AIMI/GREEN, d72c195): the same
question, 300 words of each report, the same chat template, and the most likely token at every step,
up to 2048 tokens with the prompt. As there it runs in 16 bits on a GPU; on a processor, which only
emulates 16 bits, it runs in 32.

The question was written by the authors, who give no licence for it. So it is read from a file in
the model's folder, and is not part of this package.

Answers are parsed as by `compute_green` and `parse_error_counts`, with one difference. That code
takes 0 for every number that it cannot find, so that an answer of noise gets the score 0, and one
whose errors cannot be read gets 1. Here such an answer has no score, but an error with the reason.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from vlscore.encoders import check_device, inference, is_short_of_memory
from vlscore.errors import VLScoreError
from vlscore.metrics.memo import Memo, content_digest, loaded_once
from vlscore.metrics.networks.categories import CATEGORIES
from vlscore.metrics.networks.model_files import (
    QUESTION,
    device_of_annotators,
    files_of_model,
    green_question,
    load_model,
    load_tokenizer,
    read_template,
)

SIGNIFICANT, INSIGNIFICANT = "Clinically Significant Errors", "Clinically Insignificant Errors"
MATCHED = "Matched Findings"
# Words with which a section may begin in place of numbers: "None.", "No errors.".
_NOTHING = "No"
_LETTERS, _NUMBERS = "abcdef", "123456"
_MATCHED_COUNT = re.compile(r"\d{1,9}\b(?=\.)")
_ERROR_COUNT = re.compile(r"(?<=: )\d{1,9}\b(?=\.)")


class UnreadableAnswer(VLScoreError):
    """Error of a language model's answer that has not the requested form."""


@dataclass(frozen=True)
class GreenAnswer:
    """Numbers of an answer.

    Attributes:
        matched: number of findings that both reports have.
        significant: number of clinically significant errors of each of `CATEGORIES`.
        insignificant: the same for clinically insignificant errors; None if they cannot be read.
            The score does not need them.
    """

    matched: int
    significant: tuple[int, ...]
    insignificant: tuple[int, ...] | None

    @property
    def score(self) -> float:
        """Return matched / (matched + significant errors) (paper, eq. 1); 0 if both are 0."""
        if self.matched == 0:
            return 0.0
        return self.matched / (self.matched + sum(self.significant))


def read_green_answer(answer: str) -> GreenAnswer:
    """Parse the numbers of an answer.

    Raises: UnreadableAnswer if the score cannot be computed; it names the missing part.

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
    """Return the part after "[Explanation]:", the only part that the released code uses."""
    if "[Explanation]:" in response:
        response = response.rsplit("<|assistant|>", 1)[-1]
        is_form_repeated = "[Explanation]:\n    <Explanation>\n" in response
        parts = response.split("[Explanation]:")
        response = parts[1] if is_form_repeated and len(parts) > 1 else parts[-1]
    response = response.rsplit("<|assistant|>", 1)[-1]
    return response.replace("</s>", "").replace("<unk>", "")


def _section(answer: str, name: str) -> str:
    """Return the text below a heading, up to the next empty line."""
    found = re.search(rf"\[{name}\]:\s*(.*?)(?:\n\s*\n|\Z)", answer, re.DOTALL)
    if found is None:
        raise UnreadableAnswer(f'it has no section "{name}"')
    return found[1]


def _errors(answer: str, name: str) -> tuple[int, ...]:
    text = _section(answer, name)
    if text.startswith(_NOTHING):
        return (0,) * len(CATEGORIES)
    for marks in (_LETTERS, _NUMBERS):
        # Sorted, so that of two lines of one category the same line counts as in the released code.
        lines = sorted(re.findall(rf"\([{marks}]\) .*", text))
        if lines:
            return tuple(_count(lines, mark, name) for mark in marks)
    raise UnreadableAnswer(f'its section "{name}" has no line that begins with (a) to (f)')


def _count(lines: list[str], mark: str, name: str) -> int:
    """Return the number of errors of one category; 0 if the category is not listed."""
    own = [line for line in lines if line.startswith(f"({mark}) ")]
    counts = [found[0] for line in own if (found := _ERROR_COUNT.search(line))]
    if own and not counts:
        raise UnreadableAnswer(f'in its section "{name}" ({mark}) names no number of errors')
    return int(counts[-1]) if counts else 0


LONGEST = 2048
_AT_ONCE = 8


def green_conversation(prompt: str, end: str) -> str:
    """Format the question by the released chat template, with its empty answer and next prompt.

    Args: end: the tokenizer's text for the end of a text, "</s>".
    """
    return f"<|user|>\n{prompt}{end}\n<|assistant|>\n{end}\n<|assistant|>\n"


class GreenJudge:
    """GREEN's language model, ready to compare reports.

    Args:
        model: folder of a causal language model, such as GREEN-radllama2-7b, with the released
            code's question as `green_prompt.txt` next to it.
        device: where it runs.

    Raises: IncompatibleCheckpoint, InvalidSetting, WeightsNotFound.
    """

    def __init__(self, model: Path, *, device: str | torch.device = "cpu") -> None:
        self._template, _ = read_template(model)
        self._device = check_device(device)
        self.precision = precision_on(self._device.type)
        # A Llama tokenizer then ends every text, also the prompt, with its end mark; the released
        # code does the same.
        self._tokenizer = load_tokenizer(model, add_eos_token=True, padding_side="left")
        self._tokenizer.pad_token = self._tokenizer.eos_token
        kind = torch.float16 if self.precision == "fp16" else torch.float32
        self._model = load_model("AutoModelForCausalLM", model, torch_dtype=kind).to(self._device)

    def answers(self, pairs: Sequence[tuple[str, str]]) -> list[str | UnreadableAnswer]:
        """Return the model's answer about each pair, with its explanation.

        The entry is an UnreadableAnswer if the prompt leaves the model no room to answer.
        """
        end = self._tokenizer.eos_token
        texts = [green_conversation(green_question(self._template, *p), end) for p in pairs]
        lengths = [len(ids) for ids in self._tokenizer(texts).input_ids]
        found: list[str | UnreadableAnswer] = [
            UnreadableAnswer(
                f"GREEN's prompt with these two reports has {length} tokens; prompt and answer "
                f"together can have at most {LONGEST}"
            )
            for length in lengths
        ]
        # Similar lengths share a batch, because texts are padded to the longest, on the left.
        rows = sorted((k for k, n in enumerate(lengths) if n < LONGEST), key=lambda k: lengths[k])
        for start in range(0, len(rows), _AT_ONCE):
            part = rows[start : start + _AT_ONCE]
            answers = self._halving([texts[row] for row in part])
            for row, answer in zip(part, answers, strict=True):
                found[row] = explanation_removed(answer)
        return found

    def _halving(self, texts: Sequence[str]) -> list[str]:
        """Return what the model writes behind each text; halve the batch if memory is short."""
        try:
            return self._generate(texts)
        except (MemoryError, RuntimeError) as error:
            if len(texts) == 1 or not is_short_of_memory(error):
                raise
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        middle = len(texts) // 2
        return self._halving(texts[:middle]) + self._halving(texts[middle:])

    def _generate(self, texts: Sequence[str]) -> list[str]:
        batch = self._tokenizer(list(texts), return_tensors="pt", padding=True).to(self._device)
        settings: dict[str, Any] = {
            "eos_token_id": self._tokenizer.eos_token_id,
            "pad_token_id": self._tokenizer.pad_token_id,
            "max_length": LONGEST,
            "do_sample": False,
            "temperature": None,
            "top_p": None,
        }
        with inference(self._device, "fp32"):
            tokens = self._model.generate(
                input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], **settings
            )
        behind = tokens[:, batch["input_ids"].shape[1] :]
        decoded: list[str] = self._tokenizer.batch_decode(
            behind, skip_special_tokens=True, clean_up_tokenization_spaces=True
        )
        return decoded


def precision_on(device: str) -> str:
    """Return the precision in which a kind of device, such as "cpu" or "cuda", runs the model."""
    return "fp16" if device == "cuda" else "fp32"


def known_answers(
    memo: Memo, model: Path, pairs: Sequence[tuple[str, str]]
) -> list[str | UnreadableAnswer]:
    """Return the answer about each pair, from memory or cache where it is known.

    The model is loaded only if a pair is new; each answer is stored with those of its batch.
    """
    device = device_of_annotators()
    facts = {
        "holds": "GREEN",
        "model": content_digest(model, files_of_model(model)),
        "prompt": content_digest(model / QUESTION),
        "device": device,
    }
    return memo.annotate(
        facts,
        pairs,
        lambda new: _loaded(model, device).answers(new),
        pack=lambda answer: answer if isinstance(answer, str) else [str(answer)],
        unpack=lambda stored: stored if isinstance(stored, str) else UnreadableAnswer(*stored),
        at_once=_AT_ONCE,
    )


@loaded_once(lambda model, device: (*files_of_model(model), model / QUESTION))
def _loaded(model: Path, device: str) -> GreenJudge:
    return GreenJudge(model, device=device)
