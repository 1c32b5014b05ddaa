"""Libraries that compute metrics. A new one is one file and one line here."""

from vlscore.metrics.providers.base import Provider
from vlscore.metrics.providers.nltk_provider import NltkProvider
from vlscore.metrics.providers.rouge_score_provider import RougeScoreProvider
from vlscore.metrics.providers.sacrebleu_provider import SacrebleuProvider
from vlscore.metrics.providers.similarity_provider import SimilarityProvider

PROVIDERS: tuple[Provider, ...] = (
    SimilarityProvider(),
    SacrebleuProvider(),
    RougeScoreProvider(),
    NltkProvider(),
)

__all__ = ["PROVIDERS", "Provider"]
