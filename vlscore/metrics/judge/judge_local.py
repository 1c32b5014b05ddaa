"""Language models of transformers on this machine, whose answers are constrained to the schema."""

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import torch

from vlscore.core import __version__
from vlscore.encoders import inference
from vlscore.errors import IncompatibleCheckpoint, InvalidSetting, MissingDependency
from vlscore.metrics.judge.judge_answers import answer_schema
from vlscore.metrics.judge.judge_endpoint import QuestionFailed
from vlscore.metrics.judge.judge_questions import JudgePrompt, JudgeQuestion, OnReply, Reply
from vlscore.metrics.networks.green_model import halving, precision_on
from vlscore.metrics.networks.model_files import (
    check_model_folder,
    device_of_annotators,
    files_of_model,
    load_model,
    load_tokenizer,
    loaded_once,
)
from vlscore.metrics.provider import name_and_digest

# Fields of a request that a local model obeys; others would silently do nothing.
_OBEYED = {"temperature", "max_tokens", "max_completion_tokens"}


class LocalModel:
    """Causal language model of transformers, from a folder on this machine.

    At every step, only tokens that continue an answer of the schema can be chosen; of these, the
    most likely one is. It runs in 16 bits on a GPU, in 32 on a processor.

    Args:
        folder: model and tokenizer, as transformers saves them. Nothing is downloaded.
        at_once: most questions in one batch.

    The model is loaded with the first question.

    Raises: WeightsNotFound if the folder holds no model.
    """

    library, is_here = "llguidance", True

    def __init__(self, folder: Path, at_once: int) -> None:
        self._folder = check_model_folder(folder)
        self._at_once = at_once
        self._lock = Lock()
        self._device = torch.device(device_of_annotators())

    def __str__(self) -> str:
        """Return the folder."""
        return f"{self._folder} (a model on this machine)"

    @cached_property
    def _guidance(self) -> Any:
        try:
            import llguidance
            import llguidance.hf
            import llguidance.numpy
        except ImportError:
            raise MissingDependency(
                "a local model needs llguidance, which restricts its answers to the schema: "
                "pip install 'vlscore[judge]'"
            ) from None
        return llguidance

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = load_tokenizer(self._folder, padding_side="left")
        if tokenizer.eos_token_id is None or not getattr(tokenizer, "is_fast", False):
            raise IncompatibleCheckpoint(
                f"{self._folder}: the tokenizer must have an end-of-text token and a tokenizer.json"
            )
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token
        return tokenizer

    @cached_property
    def _model(self) -> Any:
        kind = torch.float16 if precision_on(self._device.type) == "fp16" else torch.float32
        model = load_model("AutoModelForCausalLM", self._folder, torch_dtype=kind)
        return model.to(self._device)

    @cached_property
    def _longest(self) -> int | None:
        """Most tokens of question and answer; None if the model sets no limit."""
        longest = getattr(self._model.config, "max_position_embeddings", None)
        return None if longest is None else int(longest)

    @cached_property
    def _grammar_tokens(self) -> Any:
        return self._guidance.hf.from_tokenizer(
            self._tokenizer,
            n_vocab=int(self._model.config.vocab_size),
            eos_token=self._tokenizer.eos_token_id,
        )

    def facts(self, prompt: JudgePrompt) -> Mapping[str, str]:
        """Return the model's digest, its precision and the versions that its answers depend on.

        Raises: InvalidSetting if the prompt's file asks for what a local model cannot do.
        """
        unknown = sorted(set(prompt.request) - _OBEYED)
        if unknown or prompt.request.get("temperature", 0):
            raise InvalidSetting(
                f"prompt {prompt.name}: a local model always takes the most likely token, so "
                "[request] can only set max_tokens, and temperature = 0.0"
            )
        import transformers

        return {
            "model": name_and_digest(self._folder, files_of_model(self._folder)),
            "precision": precision_on(self._device.type),
            "transformers": transformers.__version__,
            "code": __version__,
        }

    def ask(
        self, questions: Sequence[JudgeQuestion], prompt: JudgePrompt, on_reply: OnReply
    ) -> dict[int, Exception]:
        """Answer all questions, in batches of similar length.

        Returns: a QuestionFailed for each question that is too long for the model.

        Raises: IncompatibleCheckpoint, MissingDependency.
        """
        with self._lock:
            self._guidance  # noqa: B018 - before the model, which takes long to load
            texts = [self._text(question) for question in questions]
            lengths = [len(ids) for ids in self._ids(texts)["input_ids"]]
            failures: dict[int, Exception] = {}
            rows: list[int] = []
            for row, length in enumerate(lengths):
                if self._longest is not None and length >= self._longest:
                    failures[row] = QuestionFailed(
                        f"the question has {length} tokens, but the model can read only "
                        f"{self._longest} tokens of question and answer"
                    )
                else:
                    rows.append(row)
            rows.sort(key=lambda row: lengths[row])
            for start in range(0, len(rows), self._at_once):
                part = rows[start : start + self._at_once]
                batch = [(questions[row], texts[row]) for row in part]
                replies = halving(
                    lambda some: self._generate(some, prompt.max_tokens), batch, self._device
                )
                for row, reply in zip(part, replies, strict=True):
                    on_reply(row, reply)
            return failures

    def _text(self, question: JudgeQuestion) -> str:
        """Return the conversation in the model's own format, up to the begin of the answer."""
        messages = [{"role": role, "content": text} for role, text in question.messages]
        if getattr(self._tokenizer, "chat_template", None) is None:
            parts = [f"{role}:\n{text}" for role, text in question.messages]
            return "\n\n".join([*parts, "assistant:\n"])
        try:
            text: str = self._tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        except Exception as error:  # templates raise errors of many kinds
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
            raise IncompatibleCheckpoint(
                f"{self._folder}: its chat template refuses the conversation: {reason}"
            ) from None
        return text

    def _ids(self, texts: Sequence[str], **settings: Any) -> Any:
        # A chat template writes the model's begin of text itself.
        is_plain = getattr(self._tokenizer, "chat_template", None) is None
        return self._tokenizer(list(texts), add_special_tokens=is_plain, **settings)

    def _generate(self, batch: Sequence[tuple[JudgeQuestion, str]], most: int) -> list[Reply]:
        inputs = self._ids([text for _, text in batch], return_tensors="pt", padding=True)
        ids = inputs["input_ids"].to(self._device)
        mask = inputs["attention_mask"].to(self._device)
        room = most if self._longest is None else min(most, self._longest - ids.shape[1])
        constraint = SchemaConstraint(
            [self._matcher(question) for question, _ in batch], ids.shape[1], self._guidance
        )
        with inference(self._device, "fp32"):
            tokens = self._model.generate(
                input_ids=ids,
                attention_mask=mask,
                max_new_tokens=max(room, 1),
                do_sample=False,
                temperature=None,
                top_p=None,
                top_k=None,
                eos_token_id=self._tokenizer.eos_token_id,
                pad_token_id=self._tokenizer.pad_token_id,
                logits_processor=[constraint],
            )
        replies = []
        for row, new in enumerate(tokens[:, ids.shape[1] :].tolist()):
            end = self._tokenizer.eos_token_id
            is_cut = end not in new
            own = new if is_cut else new[: new.index(end)]
            text = self._tokenizer.decode(
                own, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
            replies.append(Reply(text, is_cut, int(mask[row].sum()), len(own)))
        return replies

    def _matcher(self, question: JudgeQuestion) -> Any:
        """Return a matcher of answers about these two reports, with their numbers of lines."""
        schema = answer_schema(len(question.lines), len(question.true_lines))
        matcher = self._guidance.LLMatcher
        grammar = matcher.grammar_from_json_schema(
            json.dumps(schema), overrides={"whitespace_flexible": False}
        )
        made = matcher(self._grammar_tokens, grammar)
        if made.is_error():
            raise IncompatibleCheckpoint(f"{self._folder}: {made.get_error()[:200]}")
        return made


class SchemaConstraint:
    """Logits processor of transformers that allows only tokens which a matcher accepts next.

    Args:
        matchers: of llguidance, one for each row of the batch.
        begin: number of tokens of the questions.
        guidance: the package llguidance.
    """

    def __init__(self, matchers: Sequence[Any], begin: int, guidance: Any) -> None:
        self._matchers, self._read, self._guidance = matchers, begin, guidance

    def __call__(self, ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the scores, (rows, vocabulary), with -inf for every other token."""
        words = scores.shape[1]
        mask = self._guidance.numpy.allocate_token_bitmask(len(self._matchers), words)
        for row, matcher in enumerate(self._matchers):
            for token in ids[row, self._read :].tolist():
                if not matcher.is_stopped():
                    matcher.consume_token(token)
            self._guidance.numpy.fill_next_token_bitmask(matcher, mask, row)
        self._read = ids.shape[1]
        bits = torch.from_numpy(mask).to(scores.device)
        places = torch.arange(words, device=scores.device)
        allowed = (bits[:, places // 32] >> (places % 32)) & 1
        return scores.masked_fill(allowed == 0, float("-inf"))


@loaded_once(lambda folder, at_once: files_of_model(folder))
def remembered_local(folder: Path, at_once: int) -> LocalModel:
    """Return a local model; it is loaded again only if a file has changed."""
    return LocalModel(folder, at_once)
