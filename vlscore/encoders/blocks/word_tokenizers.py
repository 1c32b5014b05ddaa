"""Tokenizers of towers that read sentence by sentence: of words, and of findings.

* `WordTokenizer` gives words and sentence ends.
* `FindingTokenizer` gives sentences in other words the same tokens. A network that learned from few
  reports reads phrasings poorly that it has not met. The extraction of `vlscore.findings` was made
  for those. So each finding of a sentence becomes a sentence of its own, of tokens for observation,
  polarity, side, place, severity and change: "There is a small left pleural effusion." and "Left
  effusion, small in size." are equal. Sentences without a finding keep their words. An encoder
  keeps the lexicon that it was trained with: new words in ours change none of its vectors.

`split_token_ids` divides token ids into one row a sentence.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from vlscore.core import text_digest
from vlscore.encoders.base import Tokens
from vlscore.errors import IncompatibleCheckpoint
from vlscore.findings import (
    Finding,
    Lexicon,
    Status,
    TemporalChange,
    extract,
    extraction_name,
    load_lexicon,
    severity_level,
)
from vlscore.text import split_sentences

PAD, STOP, UNKNOWN = 0, 1, 2
MAX_TOKENS = 384
LONGEST_SENTENCE = 48

_WORD = re.compile(r"\[unk\]|[^\W_]+|[.;!?\n]")
STOPS = frozenset(".;!?\n")


class WordTokenizer:
    """Tokenizer of words and sentence ends; unknown words share hashed ids.

    Attributes:
        HASHED: number of ids that unknown words share; they follow PAD, STOP and UNKNOWN.
    """

    HASHED: ClassVar[int] = 256

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        first = UNKNOWN + 1 + self.HASHED
        self._ids = {word: first + k for k, word in enumerate(words)}
        self.size = first + len(words)

    @classmethod
    def vocabulary_of(cls, reports: Sequence[str]) -> list[str]:
        """Return the words of these reports, sorted."""
        return vocabulary_of(reports)

    def ids_of(self, report: str) -> list[int]:
        """Return token ids; a report without words has one sentence end."""
        return [self._id_of(token) for token in _WORD.findall(report.lower())] or [STOP]

    def _id_of(self, token: str) -> int:
        if token in STOPS:
            return STOP
        if token == "[unk]":
            return UNKNOWN
        known = self._ids.get(token)
        if known is not None:
            return known
        return UNKNOWN + 1 + text_digest(token)[0]

    def __call__(self, reports: Sequence[str]) -> Tokens:
        sequences = [self.ids_of(report) for report in reports]
        # The end of a long report is cut off, its last token too: it is no end token.
        cut = [sequence[:MAX_TOKENS] for sequence in sequences]
        full_lengths = torch.tensor([len(sequence) for sequence in sequences], dtype=torch.long)
        tokens = Tokens.padded(cut, max_tokens=MAX_TOKENS, pad=PAD)
        return replace(tokens, full_lengths=full_lengths)


def vocabulary_of(reports: Sequence[str]) -> list[str]:
    """Return the words of these reports, sorted.

    >>> vocabulary_of(["No effusion. No edema!", "[UNK] effusion"])
    ['edema', 'effusion', 'no']
    """
    tokens = {token for report in reports for token in _WORD.findall(report.lower())}
    return sorted(tokens - STOPS - {"[unk]"})


def read_vocabulary(path: Path) -> list[str]:
    """Read the words of a vocabulary.json. Raises: IncompatibleCheckpoint."""
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


# No word of a report begins with it.
_MARK = "="
_REMEMBERED = 1 << 16


class FindingTokenizer(WordTokenizer):
    """Tokenizer of findings, and of the words of sentences without a finding.

    Attributes:
        lexicon: file of a frozen lexicon with which findings are extracted; None for ours.
        digest: of the vocabulary and the extraction, which decide the tokens of any report.

    Raises: InvalidLexicon.
    """

    def __init__(self, words: Sequence[str], lexicon: Path | None = None) -> None:
        super().__init__(words)
        self.lexicon = lexicon
        load_lexicon(lexicon)

    @property
    def digest(self) -> str:
        """Return the hexadecimal sha256 of the vocabulary and of the extraction's name."""
        return text_digest("\n".join((extraction_name(self.lexicon), *self.words))).hex()

    def ids_of(self, report: str) -> list[int]:
        """Return token ids; a report without words has one sentence end."""
        ids: list[int] = []
        for tokens in _sentences(report, self.lexicon):
            ids += [*map(self._id_of, tokens), STOP]
        return ids or [STOP]

    @classmethod
    def vocabulary_of(cls, reports: Sequence[str]) -> list[str]:
        """Return the tokens and words of these reports, sorted.

        >>> FindingTokenizer.vocabulary_of(["No left effusion. Normal."])
        ['=negative', '=pleural_effusion', '=side left', 'normal']
        """
        found = {token for report in reports for each in _sentences(report) for token in each}
        marked = {token for token in found if token.startswith(_MARK)}
        return sorted(marked | set(vocabulary_of([" ".join(found - marked)])))


def _sentences(report: str, lexicon: Path | None = None) -> Iterator[tuple[str, ...]]:
    for sentence in split_sentences(report):
        yield from _read(sentence.text, lexicon)


@lru_cache(_REMEMBERED)
def _read(sentence: str, lexicon: Path | None) -> tuple[tuple[str, ...], ...]:
    """Return one row of tokens for each finding; without findings one row of words."""
    known = load_lexicon(lexicon)
    findings = extract(sentence, known).findings
    if findings:
        return tuple(dict.fromkeys(_tokens_of(finding, known) for finding in findings))
    return (tuple(token for token in _WORD.findall(sentence.lower()) if token not in STOPS),)


#: Tokens of changes in the vocabularies of bundled encoders, where they are not the change's name.
_CHANGES = {TemporalChange.WORSE: "increased", TemporalChange.IMPROVED: "decreased"}


def _tokens_of(finding: Finding, lexicon: Lexicon) -> tuple[str, ...]:
    side, change = finding.side, finding.change
    level = severity_level(finding.severity, lexicon) if finding.severity else None
    tokens = [finding.observation, finding.polarity.value]
    if side is not None:
        tokens.append(f"side {side.value}")
    tokens += [f"zone {zone}" for zone in sorted(set(finding.zones))]
    if level is not None:
        tokens.append(f"severity {level.rank}")
    if change is not None:
        tokens.append(f"change {_CHANGES.get(change, change.value)}")
    if finding.status is not Status.CURRENT:
        tokens.append(finding.status.value)
    return tuple(_MARK + token for token in tokens)


def split_token_ids(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Split token ids (n, L) into one row a sentence (m, longest), and its report (m,).

    A sentence of more than 48 words is cut into pieces of 48.
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
    """Count, for each of sorted keys, the equal ones before it."""
    position = torch.arange(len(key), device=key.device)
    starts = torch.ones_like(key, dtype=torch.bool)
    starts[1:] = key[1:] != key[:-1]
    first = torch.where(starts, position, 0)
    return position - torch.cummax(first, dim=0).values if len(key) else position
