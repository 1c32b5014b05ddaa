"""Helpers of text metrics: words, NLTK's corpora, and shares of counts.

`splitter` splits reports into the words that BLEU and CIDEr-D count. `has_corpus` finds NLTK's
corpora without importing NLTK, which takes seconds. `share` and `corpus_f1` divide counts.
"""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import MissingDependency
from vlscore.metrics.batch import Values
from vlscore.metrics.metric import Output, parameter

#: How the rules of `vlscore.findings` read a text.
AS_READ_BY_RULES = {"case": "ignored", "masks": "one-word"}

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


def f1_precision_recall(
    tp: Values, fp: Values, fn: Values, of_nothing: float | NDArray[np.float64] = 1.0
) -> list[NDArray[np.float64]]:
    """Compute F1, precision and recall of each report from its counts.

    Args: of_nothing: value of 0 / 0, for all reports or for each; 1: there was nothing to find, and
        nothing was found.
    """
    parts = ((2 * tp, 2 * tp + fp + fn), (tp, tp + fp), (tp, tp + fn))
    return [share(part, whole, of_nothing) for part, whole in parts]


def corpus_f1(tp: Values, fp: Values, fn: Values) -> NDArray[np.float64]:
    """Compute F1 from counts over a corpus; nan if neither candidates nor references have any."""
    return share(2 * tp, 2 * tp + fp + fn, np.nan)


#: Averages over the labels of CheXpert, the primary one first. Papers print the F1 of CheXbert as
#: Micro-F1-14, Macro-F1-14, Micro-F1-5 and Macro-F1-5 (Miura et al. 2021; Tu et al. 2024, Med-PaLM
#: M). Fourteen include No Finding, so an always-normal report is right wherever the reference is
#: normal. Five leave out most of what can be wrong, a pneumothorax for one.
LABEL_AVERAGES = tuple(
    Output(f"{average}-{count}", f"{what} {which}")
    for count, which in (
        (13, "thirteen observations: all but No Finding"),
        (14, "fourteen observations, No Finding among them"),
        (5, "five observations of CheXpert's competition"),
    )
    for average, what in (
        ("micro", "F1 of the pooled counts of the"),
        ("macro", "mean F1 of the"),
        ("weighted", "mean F1, weighted by how often the references state each, of the"),
    )
)


def label_f1s(
    sums: Values, groups: Mapping[str, Sequence[int]]
) -> tuple[dict[str, Values], NDArray[np.float64]]:
    """Compute micro, macro and weighted F1 of groups of labels, and the F1 of every label.

    Args:
        sums: (k, 3 m) true positives, false positives and false negatives of m labels.
        groups: suffix of a number's name -> the labels from which it is computed.

    Returns: "micro", "macro", "weighted" with their suffixes -> (k,); and (k, m). nan where no
        report has any; weighted, where no reference has any.
    """
    tp, fp, fn = np.split(sums, 3, axis=1)
    f1 = corpus_f1(tp, fp, fn)
    found: dict[str, Values] = {}
    for suffix, chosen in groups.items():
        t, p, n = (x[:, chosen].sum(1) for x in (tp, fp, fn))
        found[f"micro{suffix}"] = corpus_f1(t, p, n)
        found[f"macro{suffix}"] = mean_of_defined(f1[:, chosen])
        stated = (tp + fn)[:, chosen]
        total = (stated * np.nan_to_num(f1[:, chosen])).sum(1)
        found[f"weighted{suffix}"] = share(total, stated.sum(1), np.nan)
    return found, f1


def label_supports(
    sums: Values, groups: Mapping[str, Sequence[int]]
) -> tuple[dict[str, Values], NDArray[np.float64]]:
    """Return how many times the references state the labels of each group, and every label.

    A micro and a weighted F1 rest on all of them; a macro F1 on the rarest label that has an F1,
    whose few mentions weigh as much as all those of another.

    Arguments and names as of `label_f1s`.
    """
    tp, fp, fn = np.split(sums, 3, axis=1)
    stated = tp + fn
    rarest = np.where(tp + fp + fn > 0, stated, np.inf)
    found: dict[str, Values] = {}
    for suffix, chosen in groups.items():
        found[f"micro{suffix}"] = found[f"weighted{suffix}"] = stated[:, chosen].sum(1)
        fewest = rarest[:, chosen].min(1)
        found[f"macro{suffix}"] = np.where(np.isfinite(fewest), fewest, 0.0)
    return found, stated


def mean_of_defined(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute (k,) means of (k, m) values over those that are not nan; nan if all are."""
    is_defined = ~np.isnan(values)
    total = np.where(is_defined, values, 0.0).sum(1)
    return share(total, is_defined.sum(1).astype(np.float64), np.nan)
