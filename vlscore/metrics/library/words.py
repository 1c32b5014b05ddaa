"""Words of a report, as BLEU and CIDEr-D count them.

Whether NLTK has a corpus on this machine, without importing NLTK, which takes seconds.

Shares of counts, for metrics that count what agrees.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import MissingDependency
from vlscore.metrics.batch import Values

# Texts that are split before sacrebleu's memories are emptied.
_REMEMBERED = 2048
# What `str.split` takes for white space, the blank left out, each as a letter of private use.
_OTHER_SPACES = (
    "\t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
    + "".join(map(chr, range(0x2000, 0x200B)))
)
_AS_LETTERS = {ord(space): chr(0xF0000 + k) for k, space in enumerate(_OTHER_SPACES)}


def before_periods(text: str) -> str:
    """Return the words of CXR-Report-Metric, joined by blanks: periods are words of their own.

    Its authors split at blanks alone. So a line break joins two words, and stands here as a letter
    at which no tokenizer splits.

    >>> before_periods("No effusion,  clear.")
    'No effusion, clear .'
    >>> len(before_periods("Clear.\\nNo edema.").split())
    4
    """
    words = text.replace(".", " .").translate(_AS_LETTERS).split(" ")
    return " ".join(word for word in words if word)


def splitter(tokens: str) -> Callable[[str], list[str]]:
    """The function from a text to its lower-case words, as the parameter `tokens` names it.

    Raises: MissingDependency where sacrebleu is absent, for "13a".
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
    count = 0

    def split(text: str) -> list[str]:
        nonlocal count
        count += 1
        if count % _REMEMBERED == 0:
            forget_lines()
        return tokenize(text.lower().rstrip()).split()

    return split


def forget_lines() -> None:
    """Empty the memories of sacrebleu's tokenizer 13a, of which there are two.

    Each keeps 65,536 lines for as long as the process lives: in a long run more than all else that
    grows with the table.
    """
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    from sacrebleu.tokenizers.tokenizer_re import TokenizerRegexp

    for kind in (Tokenizer13a, TokenizerRegexp):
        # Another release may remember nothing.
        getattr(kind.__call__, "cache_clear", lambda: None)()


def has_corpus(name: str) -> bool:
    """Whether a folder that NLTK searches holds the corpus, unpacked or not."""
    loaded = sys.modules.get("nltk.data")
    folders = loaded.path if loaded is not None else _searched_folders()
    return any(
        (Path(folder) / "corpora" / file).exists()
        for folder in folders
        for file in (name, f"{name}.zip")
    )


def how_to_get(name: str) -> str:
    """What to do where a corpus is absent; nothing is fetched unasked."""
    return (
        f"python -m nltk.downloader {name}; on a machine without a network, set NLTK_DATA to a "
        f"folder that holds corpora/{name}"
    )


def _searched_folders() -> list[str]:
    """As in nltk.data, whose documentation lists them."""
    named = [folder for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    places = [os.path.expanduser("~"), *(f"{sys.prefix}{part}" for part in ("", "/share", "/lib"))]
    places += ["/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib"]
    if sys.platform == "win32":
        places += [os.environ.get("APPDATA", "C:\\"), "C:\\", "D:\\", "E:\\"]
    return [*named, *(os.path.join(place, "nltk_data") for place in places)]


def share(
    part: Values, whole: Values, of_nothing: float | NDArray[np.float64] = 1.0
) -> NDArray[np.float64]:
    """Return part / whole, and `of_nothing` where the whole is 0.

    Of one report, nothing was to be said and nothing was: 1. Of a corpus, an observation that
    nobody mentions has no F1: nan.
    """
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), of_nothing)


def corpus_f1(tp: Values, fp: Values, fn: Values) -> NDArray[np.float64]:
    """F1 of counts over a corpus; nan where neither candidates nor references have any."""
    return share(2 * tp, 2 * tp + fp + fn, np.nan)


def mean_of_defined(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k, m) values -> (k,) means over those that are not nan; nan where all are."""
    is_defined = ~np.isnan(values)
    total = np.where(is_defined, values, 0.0).sum(1)
    return share(total, is_defined.sum(1).astype(np.float64), np.nan)
