"""What tests of several metrics use."""

from collections.abc import Iterator

import pytest

from tests.metrics.wordnet import write_wordnet


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
