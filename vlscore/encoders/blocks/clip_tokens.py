"""CLIP's byte pair encoding, from the vocabulary that open_clip ships."""

import gzip
import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from open_clip.tokenizer import SimpleTokenizer
from torch import Tensor
from torch.nn.functional import pad as nn_pad

from vlscore.encoders.tokens import Tokens
from vlscore.errors import IncompatibleCheckpoint, InvalidSetting, WeightsNotFound

CONTEXT = 77
_LARGEST_MERGES = 1 << 26
# How many lines of the list are used.
_MERGES = 49152 - 256 - 2 + 1


class ClipTokenizer:
    """Lower-casing CLIP tokenizer (Radford et al. 2021); padding has id 0.

    Args:
        vocabulary: a gzipped list of merges; default: CLIP's own.
        context: longest sequence, start and end tokens included.
        options: of open_clip's SimpleTokenizer: clean.

    Raises: InvalidSetting, WeightsNotFound, IncompatibleCheckpoint where `vocabulary` is none.
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
            _check_merges(vocabulary)
            options["bpe_path"] = str(vocabulary)
        self._bpe = SimpleTokenizer(**options)
        self.context = context
        self.digest = hashlib.sha256(
            repr((self._bpe.encoder, self._bpe.bpe_ranks, context, options.get("clean"))).encode()
        ).hexdigest()

    def __call__(self, texts: Sequence[str]) -> Tokens:
        """Start, pieces, end for each text; a longer text loses its tail, and says so."""
        start, end = self._bpe.sot_token_id, self._bpe.eot_token_id
        rows = [[start, *self._bpe.encode(_valid(text)), end] for text in texts]
        return Tokens.padded(rows, max_tokens=self.context, pad=self.pad, pad_to=self.context)


def whole_context(ids: Tensor, context: int, pad: int = 0) -> Tensor:
    """(n, L) -> (n, context): CLIP's text towers take no shorter sequence."""
    return nn_pad(ids, (0, context - ids.shape[1]), value=pad)


def _check_merges(path: Path) -> None:
    """Read a list of merges as far as is sensible: a small file can unpack to any size."""
    if not path.is_file():
        raise WeightsNotFound(f"{path}: no such vocabulary file")
    try:
        with gzip.open(path) as file:
            content = file.read(_LARGEST_MERGES + 1)
        if len(content) > _LARGEST_MERGES:
            raise ValueError("it is too large")
        pairs = content.decode("utf-8").split("\n")[1:_MERGES]
        if not pairs or any(len(line.split()) != 2 for line in pairs):
            raise ValueError("it has a line that is no pair")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise IncompatibleCheckpoint(f"{path} is no list of merges: {error}") from None


def _valid(text: str) -> str:
    # A lone surrogate cannot be encoded in UTF-8, whose bytes the pieces are made of.
    return text.encode("utf-8", "replace").decode("utf-8")
