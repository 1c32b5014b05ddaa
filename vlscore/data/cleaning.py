"""Cleaning of reports as encoders' authors trained with them.

The functions reproduce, with every quirk, GLoRIA's code (Huang et al. 2021), and after it
LIMITR's, MGCA's and the ConVIRT in MGCA's repository. A number and the period after it vanish ("4.2
cm" becomes "2 cm"), punctuation is removed, letters beyond ASCII are dropped, not folded ("naïve"
becomes "nave"). Any change here changes scores.
"""

import re

import regex

# The authors' tokenizer matches words as this module does: combining marks are part of a word,
# "½" and "²" are not. The standard library's `re` differs.

_NUMBER_AND_PERIOD = re.compile(r"[0-9]+\.")
_WORD = regex.compile(r"\w+")


def clean_limitr(report: str) -> str:
    """Clean a report as LIMITR does: drop sentences without an ASCII word.

    >>> clean_limitr("1. Nodule of 4.2 cm.\\nNormal.")
    'nodule of 2 cm normal'
    """
    return " ".join(_sentences(report, fewest_words=1))


def clean_gloria(report: str) -> str:
    """Clean a report as GLoRIA does: drop sentences of a single word, too.

    >>> clean_gloria("Normal. Heart size is normal.")
    'heart size is normal'
    """
    return " ".join(_sentences(report, fewest_words=2))


def clean_mgca(report: str) -> str:
    """Clean a report as MGCA does, which is the same as GLoRIA's cleaning.

    MGCA leaves reports of fewer than three words out of its training; nothing is left out here.
    """
    return clean_gloria(report)


def _sentences(report: str, *, fewest_words: int) -> list[str]:
    cleaned = []
    for piece in _NUMBER_AND_PERIOD.split(report.replace("\n", " ")):
        for sentence in piece.split("."):
            words = _WORD.findall(sentence.replace("\ufffd\ufffd", " ").lower())
            if len(words) < fewest_words:
                continue
            ascii_words = [word.encode("ascii", "ignore").decode("ascii") for word in words]
            if any(ascii_words):
                cleaned.append(" ".join(word for word in ascii_words if word))
    return cleaned
