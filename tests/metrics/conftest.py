"""What tests of several metrics use."""

import json
from collections.abc import Iterator

import pytest

from tests.metrics.networks.constructed import GOLDENS
from tests.metrics.networks.constructed_ratescore import CUT
from tests.metrics.wordnet import write_wordnet
from vlscore.metrics import memo


@pytest.fixture(scope="session", autouse=True)
def small_wordnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """NLTK finds a WordNet of a few words, the same on every machine, and no other."""
    corpus = pytest.importorskip("nltk.corpus")
    data = pytest.importorskip("nltk.data")
    folder = write_wordnet(tmp_path_factory.mktemp("nltk_data"))
    absent = corpus.util.LazyCorpusLoader("omw-1.4", corpus.reader.CorpusReader, r".*")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data, "path", [str(folder)])
        patch.setattr(
            corpus,
            "wordnet",
            corpus.util.LazyCorpusLoader("wordnet", corpus.reader.WordNetCorpusReader, absent),
        )
        yield


@pytest.fixture
def released_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    """RaTEScore reads the sentences of its released code, also where PyRuSH is not installed."""
    golden = json.loads((GOLDENS / "ratescore.json").read_text(encoding="utf-8"))
    cut = dict(zip(CUT, golden["sentences"], strict=True))
    place = "vlscore.metrics.networks.ratescore_network.sentences"
    monkeypatch.setattr(place, cut.__getitem__)


@pytest.fixture(autouse=True)
def nothing_read() -> Iterator[None]:
    """What was read in a text is forgotten after each test."""
    yield
    memo.forget()
