"""METEOR: its value where WordNet is at hand, and the message where it is not."""

import pytest

from vlscore.errors import MissingDependency
from vlscore.metrics import compute, signature


def test_value_of_worked_examples():
    try:
        values = compute(
            ["meteor"],
            ["normal chest", "left effusion small", "the cat"],
            ["normal chest", "small left effusion", "a dog"],
        )["meteor"]
    except MissingDependency as error:
        pytest.skip(str(error))
    # All words match: F = 1, less gamma * (chunks / matches) ** beta.
    expected = [1 - 0.5 * (1 / 2) ** 3, 1 - 0.5 * (2 / 3) ** 3, 0.0]
    assert values == pytest.approx(expected, rel=1e-12)


def test_absent_corpus_is_named_with_what_to_do(monkeypatch, tmp_path):
    nltk_data = pytest.importorskip("nltk.data")
    corpus = pytest.importorskip("nltk.corpus")
    absent = corpus.util.LazyCorpusLoader("absent-wordnet", corpus.reader.WordNetCorpusReader, None)
    monkeypatch.setattr(nltk_data, "path", [str(tmp_path)])
    monkeypatch.setattr(corpus, "wordnet", absent)
    for call in (lambda: compute(["meteor"], ["a"], ["b"]), lambda: signature("meteor")):
        with pytest.raises(MissingDependency, match=r"nltk\.downloader wordnet"):
            call()
