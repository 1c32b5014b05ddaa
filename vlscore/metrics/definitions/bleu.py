"""BLEU-n of one report: brevity penalty times the geometric mean of n-gram precisions."""

from vlscore.metrics.metric import Metric, Parameter

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
        uses_embeddings=False,
        citation="Papineni et al. 2002, BLEU, ACL",
        parameters=(SMOOTHING, TOKENS),
    )
    for order in (1, 2, 4)
)
