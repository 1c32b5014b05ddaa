"""BLEU by sacrebleu.

Without smoothing the score equals NLTK's sentence_bleu and pycocoevalcap's sentence scores on the
same tokens wherever every order up to n has a match, and is 0 elsewhere, where those print a tiny
number that stands for it.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vlscore.metrics.embeddings import EmbeddingTriples
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.base import Provider


class SacrebleuProvider(Provider):
    """Sentence-level BLEU, in [0, 1] rather than sacrebleu's percent."""

    library = "sacrebleu"

    def supports(self, metric: Metric) -> bool:
        return metric.name.startswith("bleu-")

    def compute(
        self,
        metric: Metric,
        candidates: Sequence[str],
        references: Sequence[str],
        embeddings: EmbeddingTriples | None,
    ) -> NDArray[np.float64]:
        self._module("sacrebleu")
        from sacrebleu.metrics.bleu import BLEU

        settings = metric.settings
        by_period = settings["tokens"] == "cxr"
        bleu = BLEU(
            max_ngram_order=int(metric.name.removeprefix("bleu-")),
            smooth_method=settings["smoothing"],
            tokenize="none" if by_period else settings["tokens"],
            lowercase=True,
        )
        prepare = _before_periods if by_period else str
        pairs = zip(candidates, references, strict=True)
        # A corpus of one report: the same number as sentence_score, without its advice to leave
        # out orders that a short report cannot have.
        values = [bleu.corpus_score([prepare(g)], [[prepare(r)]]).score for g, r in pairs]
        # sacrebleu's exponential of logarithms may end one rounding above 100.
        return np.minimum(np.array(values, dtype=np.float64) / 100, 1.0)

    def conventions(self, metric: Metric) -> dict[str, str]:
        return {"level": "sentence", "case": "lower"}


def _before_periods(text: str) -> str:
    return " ".join(text.replace(".", " .").split())
