"""GREEN: a language model reads two reports and lists what one of them gets wrong.

Ostmeier et al. 2024, EMNLP Findings. Asked as the released code asks
(github.com/Stanford-AIMI/GREEN, d72c195): its question, 300 words of either report, the form of its
conversation, and the most likely token at every step, up to 2048 tokens with the prompt. It runs in
16 bits on a GPU, as there, and in 32 on a processor, which only emulates 16.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import torch

from vlscore._recent import Recent
from vlscore.annotators.folders import load_model, load_tokenizer
from vlscore.annotators.green_answers import UnreadableAnswer, explanation_removed
from vlscore.annotators.green_question import ReportPair, read_template
from vlscore.encoders.inference import check_device, inference, is_short_of_memory

LONGEST = 2048
_AT_ONCE = 8
_REMEMBERED = 10_000


def green_conversation(prompt: str, end: str) -> str:
    """The question as its chat template writes it, the empty answer and what invites another.

    Args: end: the tokenizer's text for the end of a text, "</s>".
    """
    return f"<|user|>\n{prompt}{end}\n<|assistant|>\n{end}\n<|assistant|>\n"


class GreenJudge:
    """GREEN's language model, ready to compare reports.

    Args:
        model: folder of a causal language model, such as GREEN-radllama2-7b, with the released
            code's question as `green_prompt.txt` beside it.
        device: where it runs.

    Raises: IncompatibleCheckpoint, InvalidSetting, WeightsNotFound.
    """

    def __init__(self, model: Path, *, device: str | torch.device = "cpu") -> None:
        self._template, _ = read_template(model)
        self._device = check_device(device)
        self.precision = precision_on(self._device.type)
        # A Llama tokenizer then ends every text with the mark of its end, the prompt too: so the
        # released code has it.
        self._tokenizer = load_tokenizer(model, add_eos_token=True, padding_side="left")
        self._tokenizer.pad_token = self._tokenizer.eos_token
        kind = torch.float16 if self.precision == "fp16" else torch.float32
        self._model = load_model("AutoModelForCausalLM", model, torch_dtype=kind).to(self._device)
        self._known: Recent[ReportPair, str | UnreadableAnswer] = Recent(_REMEMBERED)
        self._lock = Lock()

    def answers(self, pairs: Sequence[ReportPair]) -> list[str | UnreadableAnswer]:
        """What the model answers about each pair, its explanation included; each pair once.

        An UnreadableAnswer stands where the prompt leaves the model no room to answer.
        """
        with self._lock:
            return self._known.values_of(pairs, self._answered)

    def _answered(self, pairs: Sequence[ReportPair]) -> list[str | UnreadableAnswer]:
        end = self._tokenizer.eos_token
        texts = [green_conversation(self._template.filled(pair), end) for pair in pairs]
        lengths = [len(ids) for ids in self._tokenizer(texts).input_ids]
        found: list[str | UnreadableAnswer] = [
            UnreadableAnswer(
                f"GREEN's prompt with these two reports has {length} tokens, and no more than "
                f"{LONGEST} may be read and answered"
            )
            for length in lengths
        ]
        # Like lengths together: they are padded to the longest, on the left.
        rows = sorted((k for k, n in enumerate(lengths) if n < LONGEST), key=lambda k: lengths[k])
        for start in range(0, len(rows), _AT_ONCE):
            part = rows[start : start + _AT_ONCE]
            answers = self._generated([texts[row] for row in part])
            for row, answer in zip(part, answers, strict=True):
                found[row] = explanation_removed(answer)
        return found

    def _generated(self, texts: Sequence[str]) -> Iterator[str]:
        """The model's words behind each text; half as many at once where memory is short."""
        try:
            yield from self._generate(texts)
            return
        except (MemoryError, RuntimeError) as error:
            if len(texts) == 1 or not is_short_of_memory(error):
                raise
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        middle = len(texts) // 2
        yield from self._generated(texts[:middle])
        yield from self._generated(texts[middle:])

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
    """In what precision a kind of device, such as "cpu" or "cuda", runs the model."""
    return "fp16" if device == "cuda" else "fp32"
