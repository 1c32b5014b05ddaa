"""Tokenizers of published encoders: word pieces, tokenizer.json, CLIP's byte pairs.

* `WordPieceTokenizer` is BERT's over any vocabulary, the same under every version of transformers.
* `JsonTokenizer` runs any tokenizer.json, without asking a library which code to use.
* `ClipTokenizer` is CLIP's byte pair encoding, with the vocabulary that open_clip ships.

`read_json` and `refuse_code` read configurations as data.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor
from torch.nn.functional import pad as nn_pad

from vlscore.encoders.base import Tokens
from vlscore.errors import IncompatibleCheckpoint, UnsafeCheckpoint

_LARGEST_FILE = 1 << 26
_DEEPEST = 100
# Settings that make these libraries run code, download it, or read other files.
_ASKS_FOR_CODE = frozenset(
    (
        "trust_remote_code",
        "auto_map",
        "custom_pipelines",
        "custom_code",
        "code_revision",
        "use_kernels",
        "attn_implementation",
        "_attn_implementation",
        "bpe_path",
        "cache_dir",
        "subfolder",
        "_target_",
    )
)


def read_json(path: Path, what: str) -> dict[str, Any]:
    """Read a json object from a file.

    Args:
        what: kind of file, for messages.

    Raises: IncompatibleCheckpoint.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise ValueError("it is too large")
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise IncompatibleCheckpoint(f"{path} is no {what}: {reason}") from None
    if not isinstance(content, dict):
        raise IncompatibleCheckpoint(f"{path} is no {what}, but a {type(content).__name__}")
    return content


def refuse_code(config: Any, source: str, *, depth: int = 0) -> None:
    """Refuse a json object in which some setting, at any depth, asks to run code.

    Raises: UnsafeCheckpoint.
    """
    if depth > _DEEPEST:
        raise IncompatibleCheckpoint(f"{source} is nested too deeply for a configuration")
    if isinstance(config, Mapping):
        asking = sorted(key for key in config if key in _ASKS_FOR_CODE and config[key])
        if asking:
            raise UnsafeCheckpoint(
                f"{source} sets {asking[0]}, which can run code or read other places; it was not "
                "loaded. Take the setting out if you trust the rest"
            )
    if isinstance(config, Mapping | list):
        inner = config.values() if isinstance(config, Mapping) else config
        for value in inner:
            refuse_code(value, source, depth=depth + 1)


def _valid(text: str) -> str:
    # A lone surrogate is no character, and the libraries below cannot be given one.
    return text.encode("utf-8", "replace").decode("utf-8")


_SPECIAL = ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]")


class WordPieceTokenizer:
    """Lower-casing, accent-stripping BERT tokenizer.

    Equal to transformers' BertTokenizer(do_lower_case=True), which is also what the authors'
    code runs on the cased Bio_ClinicalBERT vocabulary. Special tokens written out in a text,
    such as "[UNK]", become those tokens.

    Args:
        vocabulary: word piece -> id.

    Attributes:
        in_order: the word pieces, each at its id.
    """

    def __init__(self, vocabulary: dict[str, int]) -> None:
        self._vocabulary = vocabulary
        self._tokenizer = Tokenizer(
            models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)
        )
        self._tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
        self._tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        self._tokenizer.add_special_tokens([token for token in _SPECIAL if token in vocabulary])
        self.pad, self.start, self.end = (vocabulary[t] for t in ("[PAD]", "[CLS]", "[SEP]"))
        self.size = len(vocabulary)
        self.in_order = sorted(vocabulary, key=vocabulary.__getitem__)
        self.digest = hashlib.sha256(
            "\n".join(self.in_order).encode("utf-8", "surrogatepass")
        ).hexdigest()

    @classmethod
    def from_file(cls, path: Path, *, size: int | None = None) -> "WordPieceTokenizer":
        """Read vocab.txt or tokenizer.json.

        Args:
            size: required number of pieces; default: any number.

        Raises: IncompatibleCheckpoint for another number, or without special tokens.
        """
        vocabulary = _read_vocabulary(path)
        absent = [token for token in _SPECIAL if token not in vocabulary]
        if absent:
            raise IncompatibleCheckpoint(f"{path} is no BERT vocabulary: no {', '.join(absent)}")
        if size not in (None, len(vocabulary)):
            raise IncompatibleCheckpoint(
                f"{path} holds {len(vocabulary)} word pieces, but the encoder has {size}: "
                "give the vocabulary that it was trained with as tokenizer="
            )
        return cls(vocabulary)

    @cached_property
    def continues_word(self) -> Tensor:
        """Mask (vocabulary,) bool, True for "##" pieces, which continue the previous word."""
        flags = torch.zeros(len(self._vocabulary), dtype=torch.bool)
        flags[[i for piece, i in self._vocabulary.items() if piece.startswith("##")]] = True
        return flags

    def __call__(
        self, texts: Sequence[str], *, max_tokens: int, pad_to: int | None = None
    ) -> Tokens:
        """Tokenize each text to [CLS] pieces [SEP]; a longer text loses its tail, which is flagged.

        Args:
            max_tokens: longest sequence, [CLS] and [SEP] included.
            pad_to: common length; default: that of the longest sequence.
        """
        whole = [self._tokenizer.encode(_valid(x), add_special_tokens=False).ids for x in texts]
        rows = [[self.start, *ids, self.end] for ids in whole]
        return Tokens.padded(rows, max_tokens=max_tokens, pad=self.pad, pad_to=pad_to)


def _read_vocabulary(path: Path) -> dict[str, int]:
    if path.suffix == ".json":
        model = read_json(path, "description of a tokenizer").get("model")
        vocabulary = model.get("vocab") if isinstance(model, dict) else None
        if not isinstance(vocabulary, dict):
            raise IncompatibleCheckpoint(f"{path} describes no tokenizer of word pieces")
    else:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise IncompatibleCheckpoint(f"{path} is no list of word pieces: {error}") from None
        # Not splitlines(): it would split at further characters that a vocabulary may hold.
        lines = text.removesuffix("\n").split("\n")
        vocabulary = {piece: number for number, piece in enumerate(lines)}
        if len(vocabulary) < len(lines):
            twice = next(piece for n, piece in enumerate(lines) if vocabulary[piece] != n)
            raise IncompatibleCheckpoint(f"{path} lists the word piece {twice!r} twice")
    numbers = vocabulary.values()
    if not all(type(n) is int and 0 <= n < len(vocabulary) for n in numbers) or (
        len(set(numbers)) < len(vocabulary)
    ):
        raise IncompatibleCheckpoint(
            f"{path}: its word pieces are not numbered from 0 to {len(vocabulary) - 1}"
        )
    return vocabulary


# The first file describes the tokenizer, the others name its special tokens.
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
_PADDING = ("[PAD]", "<pad>")


class JsonTokenizer:
    """A tokenizer of the hub as open_clip runs it: clean, cut, and pad to the context.

    Equal to open_clip's HFTokenizer over the same file. In HFTokenizer the folder's settings choose
    the class to run, and so may import code. Here the file is data, and of other files only the
    names of the padding and separating tokens are read.

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
        from open_clip.tokenizer import get_clean_fn  # imports timm and transformers

        self._clean: Callable[[str], str] = get_clean_fn(clean)
        self.digest = hashlib.sha256(
            f"{text}\n{context} {clean} {self.pad} {self._separator}".encode()
        ).hexdigest()

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """Tokenize n texts -> (n, context) ids; a longer text loses its tail, which is flagged."""
        ids = torch.full((len(texts), self.context), self.pad, dtype=torch.long)
        mask = torch.zeros_like(ids)
        full_lengths = torch.zeros(len(texts), dtype=torch.long)
        for row, text in enumerate(texts):
            clean = self._clean(_valid(text))
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
    """Return the special tokens named in the other files of tokenizer.json's folder."""
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


CONTEXT = 77


class ClipTokenizer:
    """Lower-casing CLIP tokenizer (Radford et al. 2021), with the vocabulary of open_clip.

    Args:
        context: longest sequence, start and end tokens included; padding has id 0.
        options: options of open_clip's SimpleTokenizer: clean.
    """

    pad = 0

    def __init__(self, *, context: int = CONTEXT, **options: Any) -> None:
        from open_clip.tokenizer import SimpleTokenizer  # imports timm and transformers

        self._bpe = SimpleTokenizer(**options)
        self.context = context
        self.digest = hashlib.sha256(
            repr((self._bpe.encoder, self._bpe.bpe_ranks, context, options.get("clean"))).encode()
        ).hexdigest()

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """Tokenize each text to start, pieces, end; the tail of a longer one is cut and flagged."""
        start, end = self._bpe.sot_token_id, self._bpe.eot_token_id
        rows = [[start, *self._bpe.encode(_valid(text)), end] for text in texts]
        return Tokens.padded(rows, max_tokens=self.context, pad=self.pad, pad_to=self.context)


def whole_context(ids: Tensor, context: int, pad: int = 0) -> Tensor:
    """Pad (n, L) -> (n, context), because CLIP's text towers take no shorter sequence."""
    return nn_pad(ids, (0, context - ids.shape[1]), value=pad)
