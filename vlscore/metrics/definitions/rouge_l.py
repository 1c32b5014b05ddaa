"""ROUGE-L of one report: F measure of the longest common subsequence."""

from vlscore.metrics.metric import Metric, Parameter

ROUGE_L = Metric(
    name="rouge-l",
    description="F measure of the longest common subsequence of words",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    uses_image=False,
    uses_reference=True,
    reference_scores_best=True,
    citation="Lin 2004, ROUGE, ACL workshop",
    parameters=(
        Parameter("beta", 1.0, "weight of recall; pycocoevalcap takes 1.2", above=0.0),
        Parameter("stemming", False, "whether words are stemmed (Porter) before comparing"),
    ),
)
