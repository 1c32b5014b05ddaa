"""CIDEr-D: cosine of n-gram counts, each n-gram weighted by how few references hold it."""

from vlscore.metrics.definitions.bleu import TOKENS
from vlscore.metrics.metric import Metric, Parameter

CIDER_D = Metric(
    name="cider-d",
    description="tf-idf cosine of n-grams up to order 4, counts clipped, with a penalty for "
    "length; document frequencies are those of the run's references",
    higher_is_better=True,
    bounds=(0.0, 10.0),
    uses_image=False,
    uses_reference=True,
    reference_scores_best=True,
    citation="Vedantam, Zitnick, Parikh 2015, CIDEr, CVPR (CIDEr-D); as pycocoevalcap computes it",
    parameters=(
        Parameter("sigma", 6.0, "width of the penalty for another length, in words", above=0.0),
        TOKENS,
    ),
)
