"""Answers in the form of GREEN's model and in others, and a tiny language model of noise."""

import json
from pathlib import Path

import numpy as np
import torch

_NAMES = (
    "False report of a finding in the candidate",
    "Missing a finding present in the reference",
    "Misidentification of a finding's anatomic location/position",
    "Misassessment of the severity of a finding",
    "Mentioning a comparison that isn't in the reference",
    "Omitting a comparison detailing a change from a prior study",
)
_SHOWN = ("Effusion", "Edema", "Nodule", "Fracture", "Mass", "Opacity", "Collapse", "Line")


def errors(*counts: int) -> str:
    """The lines of a section, one for each category that a count is given for."""
    return "\n".join(
        f"({letter}) {name}: {count}.{' ' if count else ''}{'; '.join(_SHOWN[:count])}"
        for letter, name, count in zip("abcdef", _NAMES, counts, strict=False)
    )


def answer(significant: str, insignificant: str, matched: str) -> str:
    """An answer of three sections behind an explanation."""
    return (
        "\nThe candidate report differs from the reference report.\n\n"
        f"[Clinically Significant Errors]:\n{significant}\n\n"
        f"[Clinically Insignificant Errors]:\n{insignificant}\n\n"
        f"[Matched Findings]:\n{matched}"
    )


NONE = errors(0, 0, 0, 0, 0, 0)
# In the place of the authors' own words.
QUESTION = (
    "Compare two reports.\nReference Report:\n    {reference}\nCandidate Report:\n    {candidate}\n"
)
# The first five have the counts of the answers in the released repository's tests/test_repro.py.
READABLE = (
    answer(errors(2, 3, 0, 1, 0, 0), NONE, "0."),
    answer(errors(2, 1, 2, 0, 0, 0), NONE, "1. Small left effusion."),
    answer(errors(0, 2, 1, 1, 0, 0), NONE, "2. Devices are unchanged; The left lung is clear."),
    answer(errors(1, 0, 0, 0, 0, 0), NONE, "1. No pneumonia."),
    answer(errors(1, 0, 1, 1, 0, 0), NONE, "1. A CT is recommended."),
    answer(NONE, errors(1, 0, 0, 2, 0, 1), "12. Heart; Lungs."),
    answer("No significant errors.", "None.", "3. Heart; Lungs; Bones."),
    answer(errors(0, 1), errors(1), "No matched findings."),
    answer("(b) Missing: 2. Edema; Mass.\n(a) False: 1. Line.", NONE, "4. A; B; C; D."),
    answer("(1) False: 1. Line.\n(3) Place: 2. Left; Right.", NONE, "2. A; B."),
    # Lines of one category twice; a continued line; a letter within the words.
    answer("(a) False: 1. Line.\n(a) Wrong: 3. A; B; C.\nand more", NONE, "1. A."),
    answer("(d) Severity: 1. Small (c) large.\n(c) Place: 0.", NONE, "5. A."),
    answer(errors(0, 0, 0, 1, 0, 0), NONE, "7. A\n\nFurther words: 9."),
    "[Matched Findings]: 2. A; B.\n\n[Clinically Significant Errors]: (f) Omitted: 1. C.",
)
UNREADABLE = {
    "": "no section .Clinically Significant Errors",
    "effusion effusion the the": "no section .Clinically Significant Errors",
    answer("zero", NONE, "1. A."): r"no line that begins with \(a\) to \(f\)",
    answer("(a) False: many.", NONE, "1. A."): r"\(a\) names no number",
    answer(NONE, NONE, "Two. A; B."): "begins with no number",
    answer(NONE, NONE, "2 A; B"): "begins with no number",
    f"[Clinically Significant Errors]:\n{NONE}": "no section .Matched Findings",
    answer(NONE, NONE, "9" * 5000 + ". A"): "begins with no number",
}
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "max_position_embeddings": 2048,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_PIECES = (
    "effusion",
    "the",
    "left",
    "no",
    "(a)",
    ":",
    "1",
    ".",
    "[",
    "]",
    "Matched",
    "clear",
    "\n",
)


def write_green(folder: Path) -> Path:
    """A Llama whose words are noise, with a tokenizer that ends a text as Llama's does."""
    from safetensors.torch import save_file
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import AutoConfig, AutoModelForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    special = ("<unk>", "<s>", "</s>")
    vocabulary = {piece: row for row, piece in enumerate((*special, *_PIECES))}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.add_special_tokens(list(special))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\n| +"), "removed")
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "PreTrainedTokenizerFast",
                "bos_token": "<s>",
                "eos_token": "</s>",
                "unk_token": "<unk>",
            }
        )
    )
    (folder / "config.json").write_text(json.dumps({**LLAMA, "vocab_size": len(vocabulary)}))
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    chance = np.random.default_rng(4)
    tensors = {
        key: torch.from_numpy(chance.normal(size=tuple(t.shape)).astype(np.float32))
        for key, t in model.state_dict().items()
    }
    # It never ends by itself.
    tensors["lm_head.weight"][: len(special)] = 0
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "green_prompt.txt").write_text(QUESTION, encoding="utf-8")
    return folder
