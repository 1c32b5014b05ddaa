"""Tokenizer of findings: sentences in other words become the same tokens.

A network that learned from few reports reads phrasings poorly that it has not met. The extraction
of `vlscore.findings` was made for those. So each finding of a sentence becomes a sentence of its
own, of tokens for observation, polarity, side, place, severity and change: "There is a small left
pleural effusion." and "Left effusion, small in size." are equal. Sentences without a finding keep
their words.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from vlscore.data import split_sentences
from vlscore.encoders.blocks.tokenizers import (
    STOP,
    STOPS,
    WordTokenizer,
    pretokenize,
    vocabulary_of,
)
from vlscore.findings import Finding, Status, extract, severity_level

# No word of a report begins with it.
_MARK = "="
_REMEMBERED = 1 << 16


class FindingTokenizer(WordTokenizer):
    """Tokenizer of findings, and of the words of sentences without a finding."""

    def ids_of(self, report: str) -> list[int]:
        """Return token ids; a report without words has one sentence end."""
        ids: list[int] = []
        for tokens in _sentences(report):
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


def _sentences(report: str) -> Iterator[tuple[str, ...]]:
    for sentence in split_sentences(report):
        yield from _read(sentence.text)


@lru_cache(_REMEMBERED)
def _read(sentence: str) -> tuple[tuple[str, ...], ...]:
    """Return one row of tokens for each finding; without findings one row of words."""
    findings = extract(sentence).findings
    if findings:
        return tuple(dict.fromkeys(map(_tokens_of, findings)))
    return (tuple(token for token in pretokenize(sentence) if token not in STOPS),)


def _tokens_of(finding: Finding) -> tuple[str, ...]:
    side, change = finding.side, finding.change
    level = severity_level(finding.severity) if finding.severity else None
    tokens = [finding.observation, finding.polarity.value]
    if side is not None:
        tokens.append(f"side {side.value}")
    tokens += [f"zone {zone}" for zone in sorted(set(finding.zones))]
    if level is not None:
        tokens.append(f"severity {level.rank}")
    if change is not None:
        tokens.append(f"change {change.value}")
    if finding.status is not Status.CURRENT:
        tokens.append(finding.status.value)
    return tuple(_MARK + token for token in tokens)
