"""METEOR by NLTK, which needs the WordNet corpus on this machine; nothing is fetched."""

import re
from typing import Any

from vlscore.errors import MissingDependency
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.base import Provider, one_column

_TOKEN = re.compile(r"\w+(?:[.'-]\w+)*|[^\w\s]")


class NltkProvider(Provider):
    """METEOR over lower-case words (with inner periods and hyphens) and punctuation marks."""

    library = "nltk"
    extra = "metrics"
    supports = ("meteor",)

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        wordnet = self._wordnet()
        score = self._module("nltk.translate.meteor_score").single_meteor_score
        return one_column(
            [
                score(_tokens(reference), _tokens(candidate), wordnet=wordnet, **metric.settings)
                for candidate, reference in batch.pairs()
            ]
        )

    def missing(self, metric: Metric) -> str | None:
        reason = super().missing(metric)
        if reason is not None:
            return reason
        try:
            self._wordnet()
        except MissingDependency as error:
            return str(error)
        return None

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
