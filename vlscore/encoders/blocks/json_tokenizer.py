"""Any tokenizer that a tokenizer.json describes, run without asking a library which code to use."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from open_clip.tokenizer import get_clean_fn
from tokenizers import Tokenizer

from vlscore.encoders.blocks.json_files import read_json, refuse_code
from vlscore.encoders.tokens import Tokens
from vlscore.errors import IncompatibleCheckpoint

# Beside the first, the others say which token pads and which one separates.
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
_PADDING = ("[PAD]", "<pad>")


class JsonTokenizer:
    """A tokenizer of the hub as open_clip runs it: cleaned, cut, and padded to the context.

    Equal to open_clip's HFTokenizer over the same file. That one lets the folder's settings choose
    the class to run, and so may import code; here the file is data, and nothing else is read but
    the names of the tokens that pad and separate.

    Args:
        path: tokenizer.json.
        context: longest sequence, special tokens included.
        clean: "whitespace", "lower" or "canonicalize".
        strip_sep_token: whether separators become 0.

    Raises: IncompatibleCheckpoint, UnsafeCheckpoint.
    """

    def __init__(
        self,
        path: Path,
        context: int,
        *,
        clean: str = "whitespace",
        strip_sep_token: bool = False,
    ) -> None:
        described = read_json(path, "description of a tokenizer")
        settings = _companions(path.parent)
        text = path.read_text(encoding="utf-8")
        try:
            self._whole, self._cut = Tokenizer.from_str(text), Tokenizer.from_str(text)
            self._whole.no_truncation()
            self._whole.no_padding()
            self._cut.enable_truncation(context)
            self._cut.no_padding()
        except Exception as error:  # the library raises Exception itself
            raise IncompatibleCheckpoint(f"{path} describes no tokenizer: {error}") from None
        padding = described.get("padding") or {}
        self.pad = self._id_of(settings.get("pad_token"), *_PADDING) or 0
        if "pad_token" not in settings and isinstance(padding.get("pad_id"), int):
            self.pad = padding["pad_id"]
        self._separator = self._id_of(settings.get("sep_token")) if strip_sep_token else None
        self.context = context
        self._clean: Callable[[str], str] = get_clean_fn(clean)
        self.digest = hashlib.sha256(
            f"{text}\n{context} {clean} {self.pad} {self._separator}".encode()
        ).hexdigest()

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """n texts -> (n, context) ids; a longer text loses its tail, and says so."""
        ids = torch.full((len(texts), self.context), self.pad, dtype=torch.long)
        mask = torch.zeros_like(ids)
        full_lengths = torch.zeros(len(texts), dtype=torch.long)
        for row, text in enumerate(texts):
            # A lone surrogate is no character, and the tokenizer below cannot be given one.
            clean = self._clean(text.encode("utf-8", "replace").decode("utf-8"))
            full_lengths[row] = len(self._whole.encode(clean).ids)
            kept = torch.tensor(self._cut.encode(clean).ids, dtype=torch.long)
            ids[row, : len(kept)], mask[row, : len(kept)] = kept, 1
        if self._separator is not None:
            ids[ids == self._separator] = 0
        return Tokens(ids, mask, full_lengths)

    def _id_of(self, *tokens: str | None) -> int | None:
        found = (self._whole.token_to_id(token) for token in tokens if token is not None)
        return next((number for number in found if number is not None), None)


def _companions(folder: Path) -> dict[str, str]:
    """The special tokens that the files beside tokenizer.json name."""
    tokens: dict[str, str] = {}
    for name in TOKENIZER_FILES[1:]:
        if not (folder / name).is_file():
            continue
        settings = read_json(folder / name, "file of tokenizer settings")
        refuse_code(settings, str(folder / name))
        for key in ("pad_token", "sep_token"):
            token = settings.get(key)
            token = token.get("content") if isinstance(token, dict) else token
            if isinstance(token, str):
                tokens.setdefault(key, token)
    return tokens
