"""Language of candidates: repeated phrases, vocabulary, frequent reports, earlier images.

The references are measured in the same way, because a number says little without theirs.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import compress
from typing import Any

from vlscore.evaluation.comparison.statistics import same_words
from vlscore.findings import refers_to_earlier
from vlscore.text import split_sentences

REFERENCES = "references"
#: Words of the longest phrase whose repetition is counted, and its least number of repetitions.
_LONGEST_PHRASE = 10
_TIMES = {1: 3}


def repeats_itself(report: str) -> bool:
    """Return whether a word stands three times, or a phrase of up to ten words twice, in a row.

    >>> repeats_itself("two views views views of the chest"), repeats_itself("No edema. No edema.")
    (True, True)
    >>> repeats_itself("No edema. Clear lungs. No edema.")
    False
    """
    stripped = (word.strip(".,;:()").lower() for word in report.split())
    places: dict[str, list[int]] = {}
    # Distance of two equal words -> place of the last such pair, and how many stood in a row.
    runs: dict[int, tuple[int, int]] = {}
    for place, word in enumerate(filter(None, stripped)):
        before = places.setdefault(word, [])
        for earlier in reversed(before):
            if (length := place - earlier) > _LONGEST_PHRASE:
                break
            last, run = runs.get(length, (place, 0))
            run = run + 1 if last == place - 1 else 1
            if run >= length * (_TIMES.get(length, 2) - 1):
                return True
            runs[length] = place, run
        before.append(place)
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
    sentences_of, speaks = cache(_sentences), cache(refers_to_earlier)
    unknown = [
        not prior and not speaks(text) for text, prior in zip(references, has_prior, strict=True)
    ]
    found = []
    for name, texts in [*candidates.items(), (REFERENCES, references)]:
        words = [same_words(text) for text in texts]
        asked = list(compress(texts, unknown))
        earlier = sum(map(speaks, asked)) / len(asked) if asked else None
        found.append(
            {
                "system": name,
                "repeated": sum(map(repeats_itself, texts)) / len(texts),
                "vocabulary": len({w.strip(".,;:()") for t in words for w in t.split()} - {""}),
                "sentences": len(set().union(*map(sentences_of, texts))),
                "most_frequent": Counter(words).most_common(1)[0][1] / len(texts),
                "earlier_image": None if name == REFERENCES else earlier,
                "n_without_earlier": len(asked),
                "n": len(texts),
            }
        )
    return found


def _sentences(text: str) -> set[str]:
    """Return the sentences of a text, equal where they differ in blanks and stops alone."""
    return {same_words(sentence.text).rstrip(" .") for sentence in split_sentences(text)}
