"""METEOR of one report: unigram alignment over words, stems and synonyms."""

from vlscore.metrics.metric import Metric, Parameter

METEOR = Metric(
    name="meteor",
    description="aligned words, stems and WordNet synonyms, less a penalty for fragmentation",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    uses_image=False,
    uses_reference=True,
    reference_scores_best=True,
    citation="Banerjee, Lavie 2005, METEOR, ACL workshop",
    parameters=(
        Parameter("alpha", 0.9, "weight of recall against precision"),
        Parameter("beta", 3.0, "exponent of the fragmentation penalty"),
        Parameter("gamma", 0.5, "weight of the fragmentation penalty"),
    ),
)
