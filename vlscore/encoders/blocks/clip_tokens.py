"""CLIP's byte pair encoding, from the vocabulary that open_clip ships."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from open_clip.tokenizer import SimpleTokenizer
from torch import Tensor
from torch.nn.functional import pad as nn_pad

from vlscore.encoders.tokens import Tokens
from vlscore.errors import InvalidSetting

CONTEXT = 77


class ClipTokenizer:
    """Lower-casing CLIP tokenizer (Radford et al. 2021); padding has id 0.

    Args:
        vocabulary: a gzipped list of merges; default: CLIP's own.
        context: longest sequence, start and end tokens included.
        options: passed on to open_clip's SimpleTokenizer.
    """

    pad = 0

    def __init__(
        self, vocabulary: Path | None = None, *, context: int = CONTEXT, **options: Any
    ) -> None:
        if vocabulary is not None and vocabulary.suffix != ".gz":
            raise InvalidSetting(
                f"{vocabulary}: CLIP's vocabulary is a list of merges (.txt.gz) and comes with "
                "open_clip; leave tokenizer out"
            )
        if vocabulary is not None:
            options["bpe_path"] = str(vocabulary)
        self._bpe = SimpleTokenizer(**options)
        self.context = context

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """Start, pieces, end for each text; a longer text loses its tail, and says so."""
        start, end = self._bpe.sot_token_id, self._bpe.eot_token_id
        rows = [[start, *self._bpe.encode(_valid(text)), end] for text in texts]
        return Tokens.padded(rows, max_tokens=self.context, pad=self.pad, pad_to=self.context)


def whole_context(ids: Tensor, context: int, pad: int = 0) -> Tensor:
    """(n, L) -> (n, context): CLIP's text towers take no shorter sequence."""
    return nn_pad(ids, (0, context - ids.shape[1]), value=pad)


def _valid(text: str) -> str:
    # A lone surrogate cannot be encoded in UTF-8, whose bytes the pieces are made of.
    return text.encode("utf-8", "replace").decode("utf-8")
