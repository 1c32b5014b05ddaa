"""METEOR of one report by NLTK: unigram alignment over words, stems and synonyms.

It needs the WordNet corpus on this machine; nothing is downloaded.
"""

import re
from typing import Any

from vlscore.errors import MissingDependency
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.library.words import has_corpus, how_to_get
from vlscore.metrics.metric import Metric, Parameter
from vlscore.metrics.provider import Provider, one_column

_HOW_TO_GET_WORDNET = f"METEOR needs the WordNet corpus: {how_to_get('wordnet')}"
_TOKEN = re.compile(r"\w+(?:[.'-]\w+)*|[^\w\s]")


class NltkProvider(Provider):
    """METEOR over lower-case words (with inner periods and hyphens) and punctuation marks."""

    library = "nltk"
    extra = "metrics"

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
        # NLTK takes seconds to import, and finding its corpus does not need it.
        return super().missing(metric) or (None if has_corpus("wordnet") else _HOW_TO_GET_WORDNET)

    def conventions(self, metric: Metric) -> dict[str, str]:
        return {"tokens": "words+marks", "case": "lower", "wordnet": self._wordnet().get_version()}

    def _wordnet(self) -> Any:
        corpus = self._module("nltk.corpus").wordnet
        try:
            corpus.ensure_loaded()
        except (LookupError, OSError):
            raise MissingDependency(_HOW_TO_GET_WORDNET) from None
        return corpus


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


METEOR = Metric(
    provider=NltkProvider(),
    name="meteor",
    title="METEOR",
    description="aligned words, stems and WordNet synonyms, less a penalty for fragmentation",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    reference_scores_best=True,
    citation="Banerjee, Lavie 2005, METEOR, ACL workshop",
    parameters=(
        Parameter("alpha", 0.9, "weight of recall against precision"),
        Parameter("beta", 3.0, "exponent of the fragmentation penalty"),
        Parameter("gamma", 0.5, "weight of the fragmentation penalty"),
    ),
)
