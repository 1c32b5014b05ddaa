"""BLEU-n: brevity penalty times the geometric mean of n-gram precisions.

Of each report by itself, and of a corpus, whose counts are pooled before they are divided.
"""

from vlscore.metrics.metric import Metric, Output, Parameter

SMOOTHING = Parameter(
    "smoothing",
    "none",
    "what an order without matches counts: none makes the score 0, as NLTK's and pycocoevalcap's "
    "defaults do up to rounding; exp, add-k and floor are those of Chen, Cherry 2014",
    ("none", "exp", "add-k", "floor"),
)
TOKENS = Parameter(
    "tokens",
    "13a",
    "13a: mteval-v13a words and punctuation; cxr: split at blanks and before periods, as "
    "CXR-Report-Metric does; both in lower case",
    ("13a", "cxr"),
)

BLEU = tuple(
    Metric(
        name=f"bleu-{order}",
        description=f"n-gram precision up to order {order}, with brevity penalty, of one report",
        higher_is_better=True,
        bounds=(0.0, 1.0),
        uses_image=False,
        uses_reference=True,
        reference_scores_best=True,
        citation="Papineni et al. 2002, BLEU, ACL",
        parameters=(SMOOTHING, TOKENS),
        statistics=2 * order + 2,
        corpus=(
            Output("corpus", "counts pooled over all reports, as pycocoevalcap and papers print"),
        ),
    )
    for order in (1, 2, 3, 4)
)
