"""METEOR of one report by NLTK: unigram alignment over words, stems and synonyms.

It is the METEOR of 2005, with WordNet's synonyms and NLTK's parameters. Papers on report generation
print METEOR 1.5 in Java (`meteor`), whose values are less than half as high. It needs the WordNet
corpus on this machine; nothing is downloaded.
"""

import re
from typing import Any

import numpy as np

from vlscore.errors import MissingDependency
from vlscore.metrics.batch import Batch, Values
from vlscore.metrics.library.words import has_corpus, how_to_get
from vlscore.metrics.metric import Metric, parameter

_HOW_TO_GET_WORDNET = f"meteor-nltk needs the WordNet corpus: {how_to_get('wordnet')}"
_TOKEN = re.compile(r"\w+(?:[.'-]\w+)*|[^\w\s]")


class MeteorNltk(Metric):
    """METEOR over lower-case words (with inner periods and hyphens) and punctuation marks."""

    name = "meteor-nltk"
    title = "METEOR (NLTK)"
    description = (
        "aligned words, stems and WordNet synonyms, with a penalty for fragmentation, as NLTK "
        "computes it: not the METEOR 1.5 of papers on report generation"
    )
    citation = "Banerjee, Lavie 2005, METEOR, ACL workshop"
    bounds = (0.0, 1.0)
    reference_scores_best = True
    library = "nltk"
    extra = "metrics"

    alpha: float = parameter(0.9, "weight of recall against precision")
    beta: float = parameter(3.0, "exponent of the fragmentation penalty")
    gamma: float = parameter(0.5, "weight of the fragmentation penalty")

    def compute(self, batch: Batch) -> Values:
        wordnet = self._wordnet()
        score = self._module("nltk.translate.meteor_score").single_meteor_score
        return np.array(
            [
                score(_tokens(reference), _tokens(candidate), wordnet=wordnet, **self.settings)
                for candidate, reference in batch.pairs()
            ]
        )

    def missing(self) -> str | None:
        # NLTK takes seconds to import, and finding its corpus does not need it.
        return super().missing() or (None if has_corpus("wordnet") else _HOW_TO_GET_WORDNET)

    def facts(self) -> dict[str, Any]:
        wordnet = self._wordnet().get_version()
        return {"tokens": "words+marks", "case": "lower", "wordnet": wordnet, **super().facts()}

    def _wordnet(self) -> Any:
        corpus = self._module("nltk.corpus").wordnet
        try:
            corpus.ensure_loaded()
        except (LookupError, OSError):
            raise MissingDependency(_HOW_TO_GET_WORDNET) from None
        return corpus


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())
