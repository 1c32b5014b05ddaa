"""What is read in a text is read once, remembered, and stored between runs."""

import numpy as np
import pytest

from tests.metrics.networks.constructed import LONG, REPORTS, UNUSUAL
from vlscore.core import open_cache
from vlscore.metrics import CheXbert, Memo, RadGraph, memo
from vlscore.metrics.networks import chexbert_network, radgraph_network

TEXTS = [*REPORTS, *UNUSUAL, LONG]
READ: list[str] = []


def _lengths(texts):
    READ.extend(texts)
    return [len(text) for text in texts]


def test_each_distinct_text_is_read_once_in_a_process():
    READ.clear()
    assert Memo().read(_lengths, ["b", "aa", "b"]) == [1, 2, 1]
    assert Memo().read(_lengths, ["aa", "c"]) == [2, 1]
    assert READ == ["b", "aa", "c"]


def test_values_are_stored_as_soon_as_some_are_made(tmp_path):
    """A run that ends in the middle has stored what came before."""

    def make(texts):
        if "ccc" in texts:
            raise KeyboardInterrupt
        return [np.array([len(text), 0.5]) for text in texts]

    first = Memo(open_cache(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        first.annotate({"holds": "x"}, ["ccc", "a", "bb", "a"], make, at_once=1)
    memo.forget()
    second = Memo(open_cache(tmp_path))
    found = second.annotate({"holds": "x"}, ["a", "bb", "d"], make)
    assert [value.tolist() for value in found] == [[1.0, 0.5], [2.0, 0.5], [1.0, 0.5]]
    assert (second.reports_annotated, second.annotations_from_cache) == (1, 2)


@pytest.mark.parametrize("change", [{}, {"weights": "other"}])
def test_other_facts_are_other_values(tmp_path, change):
    cache = open_cache(tmp_path)
    facts = {"holds": "x", "weights": "one"}
    Memo(cache).annotate(facts, [("a", "b")], lambda pairs: [1.0])
    memo.forget()
    found = Memo(cache).annotate(facts | change, [("a", "b")], lambda pairs: [2.0])
    assert found == [2.0 if change else 1.0]


@pytest.fixture(params=["radgraph", "chexbert"])
def network(request, tmp_path):
    """A function that returns annotations, how many were made and how many were in the cache."""
    weights = request.getfixturevalue(f"{request.param}_weights")
    vocabulary = (weights if weights.is_dir() else weights.parent) / "vocab.txt"
    module = {"radgraph": radgraph_network, "chexbert": chexbert_network}[request.param]

    def read(texts, cache=None):
        found = Memo(cache)
        read = module.annotations(found, weights, vocabulary, texts)
        return read, (found.reports_annotated, found.annotations_from_cache)

    return read


def _plain(annotation):
    if hasattr(annotation, "classes"):
        cut = annotation.is_truncated
        return annotation.classes.tolist(), annotation.embedding.tobytes(), cut
    return annotation


def test_a_second_run_reads_nothing_and_finds_the_same(network, tmp_path, monkeypatch):
    cache = open_cache(tmp_path / "cache")
    first, counts = network([*TEXTS, *TEXTS], cache)
    assert counts == (len(TEXTS), 0)
    memo.forget()
    for kind in (CheXbert, RadGraph):
        monkeypatch.setattr(kind, "annotate", lambda *_: pytest.fail("a network was asked"))
    again, counts = network(TEXTS, cache)
    assert counts == (0, len(TEXTS))
    assert list(map(_plain, again)) == list(map(_plain, first[: len(TEXTS)]))


def test_no_word_of_a_report_lies_in_the_cache(network, tmp_path):
    cache = open_cache(tmp_path / "cache")
    network(TEXTS, cache)
    cache.close()
    held = b"".join(path.read_bytes() for path in (tmp_path / "cache").iterdir())
    for word in (b"effusion", b"lung", b"heart", b"opacity"):
        assert word not in held.lower()
