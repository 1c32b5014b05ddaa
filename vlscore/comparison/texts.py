"""What the candidates of a system are like as texts, whatever a metric says of them."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

# The end of a finished sentence; quotes and brackets may close behind it.
_ENDS = re.compile(r"[.!?][\"'\u2019\u201d)\]]*$")


@dataclass(frozen=True)
class TextFacts:
    """Of the candidates of one system; shares are between 0 and 1.

    Attributes:
        count: of candidates.
        empty: how many say nothing.
        mean_words: words of a candidate, split at blanks.
        distinct: share of different candidates among all.
        verbatim: share that equals some reference of the table, or some report of the training
            table where one was given.
        unfinished: share that does not end a sentence; empty candidates are not counted.
        truncated: share of which the encoder did not read the end; None without an encoder.
    """

    count: int
    empty: int
    mean_words: float
    distinct: float
    verbatim: float
    unfinished: float
    truncated: float | None = None


def text_facts(
    candidates: Sequence[str], known: Collection[str], truncated: float | None = None
) -> TextFacts:
    """Count.

    Args:
        candidates: n texts, n at least 1.
        known: reports, as `same_words` makes them.

    >>> facts = text_facts(["Clear lungs .", "clear lungs.", "A nodule in"], {"clear lungs ."})
    >>> [round(share, 2) for share in (facts.distinct, facts.verbatim, facts.unfinished)]
    [1.0, 0.33, 0.33]
    """
    texts = [same_words(candidate) for candidate in candidates]
    count = len(texts)
    return TextFacts(
        count=count,
        empty=sum(not text for text in texts),
        mean_words=sum(len(text.split()) for text in texts) / count,
        distinct=len(set(texts)) / count,
        verbatim=sum(bool(text) and text in known for text in texts) / count,
        unfinished=sum(bool(text) and not _ENDS.search(text) for text in texts) / count,
        truncated=truncated,
    )


def same_words(report: str) -> str:
    """What is compared to find copies: lower case, one blank between words."""
    return " ".join(report.lower().split())
