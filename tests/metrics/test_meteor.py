"""METEOR 1.5 against pycocoevalcap's own class, and the messages where Java or it is absent."""

import shutil
from importlib.util import find_spec

import numpy as np
import pytest

from tests.metrics.contract import corpus_of, values_of
from vlscore.errors import MissingDependency
from vlscore.metrics import compute, find_metric
from vlscore.metrics.library import meteor as library

needs_java = pytest.mark.skipif(
    find_spec("pycocoevalcap") is None or shutil.which("java") is None,
    reason="METEOR 1.5 needs Java and pip install 'vlscore[meteor]'",
)
CANDIDATES = [
    "the lungs are clear . heart size is normal .",
    "Small left pleural effusion, unchanged.",
    "no acute disease",
    "",
    "lungs ||| clear\nno  pneumothoraces XXXX ___",
    "cardiac silhouette is within normal limits",
]
REFERENCES = [
    "heart size normal . lungs are clear . no pneumothorax .",
    "A small effusion is seen on the left; it has not changed.",
    "no acute disease",
    "The lungs are clear.",
    "The lungs are clear. No pneumothorax. XXXX ___",
    "The heart is of normal size.",
]


@needs_java
@pytest.mark.slow
def test_values_are_those_of_pycocoevalcap():
    theirs = pytest.importorskip("pycocoevalcap.meteor.meteor").Meteor()
    lines = [
        {k: [" ".join(text.replace("|||", " ").split())] for k, text in enumerate(texts)}
        for texts in (REFERENCES, CANDIDATES)
    ]
    expected_corpus, expected = theirs.compute_score(*lines)
    values = values_of("meteor", CANDIDATES, REFERENCES)
    assert values.columns[0] == pytest.approx(expected, abs=1e-12)
    assert corpus_of(values)["corpus"][0] == pytest.approx(expected_corpus, abs=1e-12)
    assert values.columns[0][2] == 1.0
    assert values.columns[0][3] == 0.0


def test_score_of_counts_by_hand():
    """Counts that the program gives for "the lungs are clear . normal heart size ." (9 words, 4 of
    them function words) and a reference of 11 (6): 5 content and 4 function words are equal, in 5
    runs.
    """
    counts = np.zeros((1, 23))
    counts[0, :8] = [9, 11, 4, 6, 5, 5, 4, 4]
    counts[0, 20:] = [5, 9, 9]
    matched = 0.75 * 5 + 0.25 * 4
    precision, recall = matched / (0.75 * 5 + 0.25 * 4), matched / (0.75 * 5 + 0.25 * 6)
    mean = precision * recall / (0.85 * precision + 0.15 * recall)
    expected = mean * (1 - 0.6 * (5 / 9) ** 0.2)
    assert find_metric("meteor").corpus_values(counts)["corpus"] == pytest.approx([expected])


def test_what_is_absent_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setattr("vlscore.metrics.metric.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"pip install 'vlscore\[meteor\]'"):
        compute("meteor", ["a"], ["b"])
    monkeypatch.setattr("vlscore.metrics.metric.find_spec", lambda name: object())
    monkeypatch.setattr(library.shutil, "which", lambda name: None)
    with pytest.raises(MissingDependency, match=r"needs a Java runtime.*meteor-nltk"):
        compute("meteor", ["a"], ["b"])
