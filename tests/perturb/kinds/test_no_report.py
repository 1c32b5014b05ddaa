"""Texts that are no reports, or hardly: what must not come out of them."""

import pytest

from tests.perturb.contract import read
from tests.perturb.kinds.changed import changed
from vlscore.perturb import KINDS, why_nothing

# Words alone: these kinds need no knowledge of what is said.
OF_WORDS = {"shuffle-sentences", "replace-uninformative"}
CLINICAL = sorted(set(KINDS) - OF_WORDS)

NOTHING = {
    "empty": "",
    "white space": " \t\n ",
    "punctuation": "... ;; -- ().",
    "numbers": "12 34 5.6",
    "one word": "Normal",
    "one word of ours": "left",
    "a header alone": "IMPRESSION:",
    "masks": "XXXX XXXX ___",
    "german": "Linksseitiger Erguss, dorsobasal. Leichte Stauung.",
    "spanish": "Derrame izquierdo leve. Corazón de tamaño conservado.",
    "chinese": "左侧少量胸腔积液。心影不大。",
    "control characters": "\x00\x01\x02\x07\x1b[31m\x7f",
    "byte order mark": "\ufeff",
    "prose": "The quick brown fox jumps over a lazy dog. The dog sleeps.",
    "another body part": "The left knee shows no joint space narrowing.",
}


@pytest.mark.parametrize("report", NOTHING.values(), ids=NOTHING.keys())
@pytest.mark.parametrize("name", CLINICAL)
def test_nothing_comes_out(name, report):
    assert changed(name, report) == set()
    assert why_nothing(read(report), KINDS[name])


@pytest.mark.parametrize("name", ["empty", "white space", "punctuation", "byte order mark"])
@pytest.mark.parametrize("kind", sorted(OF_WORDS))
def test_without_words_there_is_nothing_to_shuffle_or_mask(kind, name):
    assert changed(kind, NOTHING[name]) == set()
