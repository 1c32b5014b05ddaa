"""Texts that are no reports, or hardly: what must not come out of them."""

import time

import pytest

from tests.perturb.contract import made, read
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


def test_control_characters_stay_where_they_are():
    report = "There is a small\x00 left\x07 effusion.\x1b No edema."
    assert changed("change-location", report) == {report.replace("left", "right")}
    assert changed("change-severity", report) == {report.replace("small", "large")}


def test_one_finding_in_ten_thousand_words():
    idle = "The examination was read with care and the reader had time enough. " * 420
    report = f"{idle}There is a small left effusion. {idle}".strip()
    assert len(report.split()) > 10_000
    start = time.perf_counter()
    source = read(report)
    found = {name: made(KINDS[name], source, per_report=2) for name in CLINICAL}
    assert time.perf_counter() - start < 20
    expected = {
        "change-location": "There is a small right effusion.",
        "change-severity": "There is a large left effusion.",
        "negate-finding": "There is no left effusion.",
    }
    for name, sentence in expected.items():
        (perturbation,) = found[name]
        assert perturbation.perturbed == report.replace("There is a small left effusion.", sentence)
    (removal,) = found["remove-pathology"]
    assert removal.perturbed == report.replace("There is a small left effusion. ", "")
    for name in ("affirm-finding", "drop-comparison", "standard-normal", "unmention-negatives"):
        assert found[name] == []
