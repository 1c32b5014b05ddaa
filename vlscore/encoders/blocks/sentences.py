"""Reports as words and sentences: what towers that read sentence by sentence share."""

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from vlscore.encoders.tokens import Tokens
from vlscore.errors import IncompatibleCheckpoint

PAD, STOP, UNKNOWN = 0, 1, 2
MAX_TOKENS = 384
LONGEST_SENTENCE = 48

_WORD = re.compile(r"\[unk\]|[^\W_]+|[.;!?\n]")
_STOPS = frozenset(".;!?\n")


class WordTokenizer:
    """Words and sentence ends to ids; words it does not know share hashed ids.

    Attributes:
        HASHED: how many ids such words share; they come behind those of PAD, STOP and UNKNOWN.
    """

    HASHED: ClassVar[int] = 256

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        first = UNKNOWN + 1 + self.HASHED
        self._ids = {word: first + k for k, word in enumerate(words)}
        self.size = first + len(words)

    def ids_of(self, report: str) -> list[int]:
        """Token ids; a report without words has one sentence end."""
        return [self._id_of(token) for token in _WORD.findall(report.lower())] or [STOP]

    def _id_of(self, token: str) -> int:
        if token in _STOPS:
            return STOP
        if token == "[unk]":
            return UNKNOWN
        known = self._ids.get(token)
        if known is not None:
            return known
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        return UNKNOWN + 1 + digest[0]

    def __call__(self, reports: Sequence[str]) -> Tokens:
        sequences = [self.ids_of(report) for report in reports]
        longest = min(max(map(len, sequences), default=0), MAX_TOKENS)
        ids = torch.full((len(sequences), longest), PAD, dtype=torch.long)
        for row, sequence in enumerate(sequences):
            kept = sequence[:longest]
            ids[row, : len(kept)] = torch.tensor(kept)
        full_lengths = torch.tensor([len(sequence) for sequence in sequences], dtype=torch.long)
        return Tokens(ids, (ids != PAD).long(), full_lengths)


def pretokenize(report: str) -> list[str]:
    """The words and sentence ends that a vocabulary is made from."""
    return _WORD.findall(report.lower())


def vocabulary_of(reports: Sequence[str], *, at_least: int = 1) -> list[str]:
    """The words that stand at least so often in these reports, sorted.

    >>> vocabulary_of(["No effusion. No edema!", "[UNK] effusion"])
    ['edema', 'effusion', 'no']
    """
    counts: dict[str, int] = {}
    for report in reports:
        for token in pretokenize(report):
            counts[token] = counts.get(token, 0) + 1
    words = counts.keys() - _STOPS - {"[unk]"}
    return sorted(word for word in words if counts[word] >= at_least)


def read_vocabulary(path: Path) -> list[str]:
    """The words of a vocabulary.json. Raises IncompatibleCheckpoint."""
    try:
        words = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError("it is no list of words")
        "\n".join(words).encode()
    except (OSError, ValueError, RecursionError) as error:
        raise IncompatibleCheckpoint(
            f"{path} is no vocabulary: {str(error) or type(error).__name__}"
        ) from None
    return words


def split_sentences(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Token ids (n, L) -> one row a sentence (m, longest) and the report each belongs to (m,).

    A sentence of more than 48 words is read in pieces of 48.
    """
    is_word = (ids != PAD) & (ids != STOP)
    number = torch.cumsum(ids == STOP, dim=1)
    report = torch.arange(len(ids), device=ids.device)[:, None].expand_as(ids)
    words, number, report = ids[is_word], number[is_word], report[is_word]
    key = report * (ids.shape[1] + 1) + number
    place = running_count(key)
    piece = place // LONGEST_SENTENCE
    starts = torch.ones_like(key, dtype=torch.bool)
    starts[1:] = (key[1:] != key[:-1]) | (piece[1:] != piece[:-1])
    row = torch.cumsum(starts, dim=0) - 1
    longest = int(place.clamp(max=LONGEST_SENTENCE - 1).max()) + 1 if len(place) else 0
    sentences = ids.new_full((int(starts.sum()), longest), PAD)
    sentences[row, place % LONGEST_SENTENCE] = words
    return sentences, report[starts]


def running_count(key: Tensor) -> Tensor:
    """For sorted keys, how many equal ones came before."""
    position = torch.arange(len(key), device=key.device)
    starts = torch.ones_like(key, dtype=torch.bool)
    starts[1:] = key[1:] != key[:-1]
    first = torch.where(starts, position, 0)
    return position - torch.cummax(first, dim=0).values if len(key) else position
