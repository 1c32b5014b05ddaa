"""BERT's word pieces over any vocabulary, the same under every version of transformers."""

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from torch import Tensor

from vlscore.encoders.blocks.json_files import read_json
from vlscore.encoders.tokens import Tokens
from vlscore.errors import IncompatibleCheckpoint

_SPECIAL = ("[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]")


class WordPieceTokenizer:
    """Lower-casing, accent-stripping BERT tokenizer.

    Equal to transformers' BertTokenizer(do_lower_case=True), which is also what the authors'
    code runs on the cased Bio_ClinicalBERT vocabulary. Special tokens written out in a text,
    such as "[UNK]", are read as those tokens.

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
            size: how many pieces there must be; default: any number.

        Raises: IncompatibleCheckpoint where there are others, or no special tokens.
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
        """(vocabulary,) bool, True for the "##" pieces, which continue the word before."""
        flags = torch.zeros(len(self._vocabulary), dtype=torch.bool)
        flags[[i for piece, i in self._vocabulary.items() if piece.startswith("##")]] = True
        return flags

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The word pieces that the ids stand for."""
        return [self._tokenizer.id_to_token(i) or "[UNK]" for i in ids]

    def __call__(
        self, texts: Sequence[str], *, max_tokens: int, pad_to: int | None = None
    ) -> Tokens:
        """[CLS] pieces [SEP] for each text; a longer text loses its tail, and says so.

        Args:
            max_tokens: longest sequence, [CLS] and [SEP] included.
            pad_to: common length; default: that of the longest sequence.
        """
        rows = [[self.start, *self._encode(text), self.end] for text in texts]
        return Tokens.padded(rows, max_tokens=max_tokens, pad=self.pad, pad_to=pad_to)

    def _encode(self, text: str) -> list[int]:
        # A lone surrogate is no character, and the tokenizer below cannot be given one.
        clean = text.encode("utf-8", "replace").decode("utf-8")
        return self._tokenizer.encode(clean, add_special_tokens=False).ids


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
        # Not splitlines(): a vocabulary may hold characters that it takes for line ends.
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
