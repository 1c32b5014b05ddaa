"""Helpers of text metrics: words, NLTK's corpora, and shares of counts.

`splitter` splits reports into the words that BLEU and CIDEr-D count. `has_corpus` finds NLTK's
corpora without importing NLTK, which takes seconds. `share` divides counts.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import MissingDependency
from vlscore.metrics.batch import Values
from vlscore.metrics.metric import parameter

# White space of `str.split` except the blank -> letters of Unicode's private use area.
_OTHER_SPACES = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
    + "".join(map(chr, range(0x2000, 0x200B)))
)
_AS_LETTERS = {ord(space): chr(0xF0000 + k) for k, space in enumerate(_OTHER_SPACES)}


def before_periods(text: str) -> str:
    """Return the words of CXR-Report-Metric, joined by blanks: periods are words of their own.

    Its authors split at blanks alone, so a line break joins two words. Here it is replaced by a
    letter at which no tokenizer splits.

    >>> before_periods("No effusion,  clear.")
    'No effusion, clear .'
    >>> len(before_periods("Clear.\\nNo edema.").split())
    4
    """
    words = text.replace(".", " .").translate(_AS_LETTERS).split(" ")
    return " ".join(word for word in words if word)


def tokens_parameter() -> Any:
    """Return the parameter `tokens` of BLEU and CIDEr-D."""
    return parameter(
        "13a",
        "13a: mteval-v13a words and punctuation; cxr: split at blanks and before periods, as "
        "CXR-Report-Metric does, where a line break joins two words; both in lower case",
        choices=("13a", "cxr"),
    )


def splitter(tokens: str) -> Callable[[str], list[str]]:
    """Return the function from a text to its lower-case words for the parameter `tokens`.

    Raises: MissingDependency for "13a", if sacrebleu is absent.
    """
    if tokens == "cxr":
        return lambda text: before_periods(text.lower()).split()
    try:
        from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    except ImportError:
        raise MissingDependency(
            "sacrebleu is not installed: pip install 'vlscore[metrics]'"
        ) from None
    tokenize: Callable[[str], str] = Tokenizer13a()  # type: ignore[no-untyped-call]
    return lambda text: tokenize(text.lower().rstrip()).split()


@dataclass
class ReferenceCounts:
    """Number of references, and of those in which each word, word piece or n-gram occurs."""

    references: int = 0
    counts: Counter[Any] = field(default_factory=Counter)

    def add(self, items: Iterable[Any]) -> None:
        """Count one reference; `items` are what occurs in it, each once."""
        self.references += 1
        self.counts.update(items)


def has_corpus(name: str) -> bool:
    """Return whether a folder that NLTK searches holds the corpus, unpacked or not."""
    loaded = sys.modules.get("nltk.data")
    folders = loaded.path if loaded is not None else _searched_folders()
    return any(
        (Path(folder) / "corpora" / file).exists()
        for folder in folders
        for file in (name, f"{name}.zip")
    )


def how_to_get(name: str) -> str:
    """Return advice on how to get an absent corpus; vlscore never downloads it by itself."""
    return (
        f"python -m nltk.downloader {name}; on a machine without a network, set NLTK_DATA to a "
        f"folder that holds corpora/{name}"
    )


def _searched_folders() -> list[str]:
    """Return the folders that nltk.data searches, as its documentation lists them."""
    named = [folder for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    places = [os.path.expanduser("~"), *(f"{sys.prefix}{part}" for part in ("", "/share", "/lib"))]
    places += ["/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib"]
    if sys.platform == "win32":
        places += [os.environ.get("APPDATA", "C:\\"), "C:\\", "D:\\", "E:\\"]
    return [*named, *(os.path.join(place, "nltk_data") for place in places)]


def share(
    part: Values, whole: Values, of_nothing: float | NDArray[np.float64] = 1.0
) -> NDArray[np.float64]:
    """Return part / whole, or `of_nothing` if the whole is 0.

    For a corpus `of_nothing` is nan: an observation that no report mentions has no F1.
    """
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), of_nothing)
