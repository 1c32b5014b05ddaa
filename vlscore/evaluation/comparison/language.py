"""Candidates as texts: length, copies, repeated phrases, vocabulary, earlier images.

The language of the references is measured in the same way, because a number says little without
theirs.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import compress
from operator import eq
from typing import Any

from vlscore.findings import refers_to_earlier
from vlscore.text import split_sentences

REFERENCES = "references"
#: Words of the longest phrase whose repetition is counted, and its least number of repetitions.
_LONGEST_PHRASE = 10
_TIMES = {1: 3}
# The end of a finished sentence; quotes and brackets may close behind it.
_ENDS = re.compile(r"[.!?][\"'\u2019\u201d)\]]*$")


def same_words(report: str) -> str:
    """Return the text that is compared to find copies: lower case, one blank between words."""
    return " ".join(report.lower().split())


def _words(report: str) -> list[str]:
    """Return the words of a report in small letters, without the signs around them."""
    return list(filter(None, (word.strip(".,;:()") for word in report.lower().split())))


def text_facts(candidates: Sequence[str], known: Collection[str]) -> dict[str, Any]:
    """Count facts about candidates as texts; shares are between 0 and 1.

    Args:
        candidates: n texts, n at least 1.
        known: reports, as `same_words` makes them, of which copies are counted.

    >>> facts = text_facts(["Clear lungs .", "clear lungs.", "A nodule in"], {"clear lungs ."})
    >>> [round(facts[share], 2) for share in ("distinct", "verbatim", "unfinished")]
    [1.0, 0.33, 0.33]
    """
    texts = [same_words(candidate) for candidate in candidates]
    count = len(texts)
    return {
        "mean_words": sum(len(text.split()) for text in texts) / count,
        "distinct": len(set(texts)) / count,
        "verbatim": sum(bool(text) and text in known for text in texts) / count,
        "unfinished": sum(bool(text) and not _ENDS.search(text) for text in texts) / count,
        "empty": sum(not text for text in texts),
        "n": count,
    }


def repeats_itself(report: str) -> bool:
    """Return whether a word stands three times, or a phrase of up to ten words twice, in a row.

    >>> repeats_itself("two views views views of the chest"), repeats_itself("No edema. No edema.")
    (True, True)
    >>> repeats_itself("No edema. Clear lungs. No edema.")
    False
    """
    words = _words(report)
    for length in range(1, min(_LONGEST_PHRASE, len(words) // 2) + 1):
        # As long as a phrase is repeated, each word equals the one so many words before it.
        is_equal = bytes(map(eq, words, words[length:]))
        if bytes([True]) * (length * (_TIMES.get(length, 2) - 1)) in is_equal:
            return True
    return False


def language_facts(
    candidates: Mapping[str, Sequence[str]],
    references: Sequence[str],
    has_prior: Sequence[bool],
) -> list[dict[str, Any]]:
    """Return facts about the language of each system, and of the references, last.

    Args:
        candidates: n texts of each system.
        references: n texts; "" where a study has none.
        has_prior: whether a study has an earlier image.

    Returns: `repeated`, share of reports that repeat a phrase; `vocabulary`, number of different
        words; `sentences`, number of different sentences; `most_frequent`, share of the most
        frequent report; `earlier_image`, share of reports that speak of an earlier image, of the
        `n_without_earlier` studies where none is known: the reference speaks of none, and the table
        has none. None where there is no such study.
    """
    # Many texts occur again and again, and only those of reports that count are read.
    sentences_of, speaks, repeats = (
        cache(_sentences),
        cache(refers_to_earlier),
        cache(repeats_itself),
    )
    unknown = [
        not prior and not speaks(text) for text, prior in zip(references, has_prior, strict=True)
    ]
    found = []
    for name, texts in [*candidates.items(), (REFERENCES, references)]:
        is_reference = texts is references
        asked = list(compress(texts, unknown))
        earlier = sum(map(speaks, asked)) / len(asked) if asked else None
        found.append(
            {
                "system": name,
                "repeated": sum(map(repeats, texts)) / len(texts),
                "vocabulary": len(set().union(*map(_words, set(texts)))),
                "sentences": len(set().union(*map(sentences_of, texts))),
                "most_frequent": Counter(map(same_words, texts)).most_common(1)[0][1] / len(texts),
                "earlier_image": None if is_reference else earlier,
                "n_without_earlier": len(asked),
                "n": len(texts),
            }
        )
    return found


def _sentences(text: str) -> set[str]:
    """Return the sentences of a text, equal where they differ in blanks and stops alone."""
    return {same_words(sentence.text).rstrip(" .") for sentence in split_sentences(text)}
