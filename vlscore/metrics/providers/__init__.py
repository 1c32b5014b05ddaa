"""Libraries that compute metrics. A new one is one file and one line here."""

from vlscore.metrics.providers.base import Provider, one_column
from vlscore.metrics.providers.bert_score_provider import BertScoreProvider
from vlscore.metrics.providers.chexbert_provider import CheXbertProvider
from vlscore.metrics.providers.chrf_provider import ChrfProvider
from vlscore.metrics.providers.cider_provider import CiderProvider
from vlscore.metrics.providers.composite_provider import CompositeProvider
from vlscore.metrics.providers.findings_provider import FindingsProvider
from vlscore.metrics.providers.green_provider import GreenProvider
from vlscore.metrics.providers.mirqi_provider import MirqiProvider
from vlscore.metrics.providers.nltk_provider import NltkProvider
from vlscore.metrics.providers.radcliq_provider import RadCliQProvider
from vlscore.metrics.providers.radgraph_provider import RadGraphProvider
from vlscore.metrics.providers.ratescore_provider import RaTEScoreProvider
from vlscore.metrics.providers.rouge_score_provider import RougeScoreProvider
from vlscore.metrics.providers.sacrebleu_provider import SacrebleuProvider
from vlscore.metrics.providers.similarity_provider import SimilarityProvider
from vlscore.metrics.providers.textstat_provider import TextstatProvider

PROVIDERS: tuple[Provider, ...] = (
    SimilarityProvider(),
    SacrebleuProvider(),
    ChrfProvider(),
    CiderProvider(),
    BertScoreProvider(),
    RougeScoreProvider(),
    NltkProvider(),
    FindingsProvider(),
    MirqiProvider(),
    TextstatProvider(),
    CheXbertProvider(),
    RadGraphProvider(),
    RadCliQProvider(),
    RaTEScoreProvider(),
    GreenProvider(),
    CompositeProvider(),
)

__all__ = ["PROVIDERS", "Provider", "one_column"]
