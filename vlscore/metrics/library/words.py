"""Words of a report, as BLEU and CIDEr-D count them.

Whether NLTK has a corpus on this machine, without importing NLTK, which takes seconds.

Shares of counts, for metrics that count what agrees.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from vlscore.errors import MissingDependency
from vlscore.metrics.batch import Values

# Texts that are split before sacrebleu's memories are emptied.
_REMEMBERED = 2048


def before_periods(text: str) -> str:
    """Blanks alone, and one before each period: the words of CXR-Report-Metric.

    >>> before_periods("No effusion,  clear.")
    'No effusion, clear .'
    """
    return " ".join(text.replace(".", " .").split())


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


def share(part: Values, whole: Values, of_nothing: float = 1.0) -> Values:
    """part / whole, and `of_nothing` where both are 0: nothing was to be said, and nothing was."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), of_nothing)
