"""METEOR by NLTK: its value over a WordNet of a few words, and the message where there is none."""

import pytest

from vlscore.errors import MissingDependency
from vlscore.metrics import compute, signature


@pytest.mark.parametrize(
    ("candidate", "reference", "expected"),
    [
        # All words match: F = 1, less gamma * (chunks / matches) ** beta.
        ("normal chest", "normal chest", 1 - 0.5 * (1 / 2) ** 3),
        ("left effusion small", "small left effusion", 1 - 0.5 * (2 / 3) ** 3),
        ("the cat", "a dog", 0.0),
        # WordNet alone knows these synonyms. NLTK looks up what the stemmer has left of each word.
        ("The x-ray shows liquid.", "The radiograph reveals fluid.", 1 - 0.5 * (1 / 5) ** 3),
        # Precision 1, recall 2 of 3: F = P R / (alpha P + (1 - alpha) R).
        (
            "liquid collection",
            "fluid collection right",
            (2 / 3) / (0.9 + 0.1 * 2 / 3) * (1 - 0.5 * (1 / 2) ** 3),
        ),
    ],
)
def test_value_of_worked_examples(candidate, reference, expected):
    values = compute(["meteor-nltk"], [candidate], [reference])["meteor-nltk"]
    assert values == pytest.approx([expected], rel=1e-12)


def test_the_signature_names_the_wordnet():
    assert "|wordnet:0.1|" in str(signature("meteor-nltk"))


def test_absent_corpus_is_named_with_what_to_do(monkeypatch, tmp_path):
    nltk_data = pytest.importorskip("nltk.data")
    corpus = pytest.importorskip("nltk.corpus")
    absent = corpus.util.LazyCorpusLoader("absent-wordnet", corpus.reader.WordNetCorpusReader, None)
    monkeypatch.setattr(nltk_data, "path", [str(tmp_path)])
    monkeypatch.setattr(corpus, "wordnet", absent)
    for call in (lambda: compute(["meteor-nltk"], ["a"], ["b"]), lambda: signature("meteor-nltk")):
        with pytest.raises(MissingDependency, match=r"nltk\.downloader wordnet"):
            call()
