"""chrF: F measure of character n-grams; chrF++ adds words and pairs of words."""

from vlscore.metrics.metric import Metric, Output, Parameter

CHARACTER_ORDER = 6
# Highest order of word n-grams of each metric.
WORD_ORDERS = {"chrf": 0, "chrf++": 2}

_CITATIONS = {
    "chrf": "Popovic 2015, chrF, WMT",
    "chrf++": "Popovic 2017, chrF++: words helping character n-grams, WMT",
}
_OVER = {"chrf": "characters", "chrf++": "characters, words and pairs of words"}

CHRF = tuple(
    Metric(
        name=name,
        description=f"F measure of n-grams of {_OVER[name]}",
        higher_is_better=True,
        bounds=(0.0, 1.0),
        uses_image=False,
        uses_reference=True,
        reference_scores_best=True,
        citation=_CITATIONS[name],
        parameters=(
            Parameter("beta", 2.0, "weight of recall", above=0.0),
            Parameter("case", "lower", "whether letters are lowered first", ("lower", "kept")),
        ),
        # Counts of the candidate, of the reference and of both, for each order.
        statistics=3 * (CHARACTER_ORDER + words),
        corpus=(Output("corpus", "counts pooled over all reports, as sacrebleu prints"),),
    )
    for name, words in WORD_ORDERS.items()
)
