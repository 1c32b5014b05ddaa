"""METEOR by NLTK, which needs the WordNet corpus on this machine; nothing is fetched."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import MissingDependency
from vlscore.metrics.embeddings import EmbeddingTriples
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.base import Provider

_TOKEN = re.compile(r"\w+(?:[.'-]\w+)*|[^\w\s]")


class NltkProvider(Provider):
    """METEOR over lower-case words (with inner periods and hyphens) and punctuation marks."""

    library = "nltk"

    def supports(self, metric: Metric) -> bool:
        return metric.name == "meteor"

    def compute(
        self,
        metric: Metric,
        candidates: Sequence[str],
        references: Sequence[str],
        embeddings: EmbeddingTriples | None,
    ) -> NDArray[np.float64]:
        wordnet = self._wordnet()
        score = self._module("nltk.translate.meteor_score").single_meteor_score
        values = [
            score(_tokens(reference), _tokens(candidate), wordnet=wordnet, **metric.settings)
            for candidate, reference in zip(candidates, references, strict=True)
        ]
        return np.array(values, dtype=np.float64)

    def conventions(self, metric: Metric) -> dict[str, str]:
        return {"tokens": "words+marks", "case": "lower", "wordnet": self._wordnet().get_version()}

    def _wordnet(self) -> Any:
        corpus = self._module("nltk.corpus").wordnet
        try:
            corpus.ensure_loaded()
        except (LookupError, OSError):
            raise MissingDependency(
                "METEOR needs the WordNet corpus: python -m nltk.downloader wordnet; on a machine "
                "without a network, set NLTK_DATA to a folder that holds corpora/wordnet"
            ) from None
        return corpus


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())
