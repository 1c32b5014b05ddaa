"""Libraries that compute metrics. A new one is one file and one line here."""

from vlscore.metrics.library.bert_score import BertScoreProvider
from vlscore.metrics.library.bleu import SacrebleuProvider
from vlscore.metrics.library.chexbert import CheXbertProvider
from vlscore.metrics.library.chrf import ChrfProvider
from vlscore.metrics.library.cider_d import CiderProvider
from vlscore.metrics.library.composite import CompositeProvider
from vlscore.metrics.library.embedded import SimilarityProvider
from vlscore.metrics.library.findings_f1 import FindingsProvider
from vlscore.metrics.library.green import GreenProvider
from vlscore.metrics.library.judge_metric import JudgeProvider
from vlscore.metrics.library.meteor import NltkProvider
from vlscore.metrics.library.mirqi import MirqiProvider
from vlscore.metrics.library.radcliq import RadCliQProvider
from vlscore.metrics.library.radgraph import RadGraphProvider
from vlscore.metrics.library.ratescore import RaTEScoreProvider
from vlscore.metrics.library.readability import TextstatProvider
from vlscore.metrics.library.rouge_l import RougeScoreProvider
from vlscore.metrics.provider import Provider

PROVIDERS: tuple[Provider, ...] = (
    SimilarityProvider(),
    SacrebleuProvider(),
    ChrfProvider(),
    CiderProvider(),
    BertScoreProvider(),
    RougeScoreProvider(),
    NltkProvider(),
    FindingsProvider(),
    JudgeProvider(),
    MirqiProvider(),
    TextstatProvider(),
    CheXbertProvider(),
    RadGraphProvider(),
    RadCliQProvider(),
    RaTEScoreProvider(),
    GreenProvider(),
    CompositeProvider(),
)
