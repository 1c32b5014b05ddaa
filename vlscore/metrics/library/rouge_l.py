"""ROUGE-L of one report: F measure of the longest common subsequence.

ROUGE-L by rouge-score, whose words are runs of lower-case letters a-z and digits.
"""

from typing import Any

from vlscore.errors import InvalidSetting
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.metric import Metric, Parameter
from vlscore.metrics.provider import Provider, one_column


class RougeScoreProvider(Provider):
    """ROUGE-L at the level of the report: line breaks mean nothing."""

    library = "rouge-score"

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        module = self._module("rouge_score.rouge_scorer")
        stems = bool(metric.settings["stemming"])
        own = _AtBlanks() if metric.settings["tokens"] == "blanks" else None
        if own is not None and stems:
            raise InvalidSetting(
                "rouge-l stems words of tokens=a-z0-9 alone: leave one of both out"
            )
        scorer = module.RougeScorer(["rougeL"], use_stemmer=stems, tokenizer=own)
        beta = metric.settings["beta"]
        return one_column(
            [_f_measure(scorer.score(r, g)["rougeL"], beta) for g, r in batch.pairs()]
        )

    def conventions(self, metric: Metric) -> dict[str, str]:
        return {"case": "lower"}


class _AtBlanks:
    """Splits at white space, in the form in which rouge-score takes a tokenizer."""

    def tokenize(self, text: str) -> list[str]:
        return text.lower().split()


def _f_measure(score: Any, beta: Any) -> float:
    precision, recall = score.precision, score.recall
    weighted = recall + beta**2 * precision
    return float((1 + beta**2) * precision * recall / weighted) if weighted > 0 else 0.0


ROUGE_L = Metric(
    provider=RougeScoreProvider(),
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
        Parameter(
            "tokens",
            "a-z0-9",
            "a-z0-9: runs of letters and digits, as rouge-score has; blanks: split at white space "
            "alone, so that periods of tokenized texts count as words, as in pycocoevalcap; both "
            "in lower case",
            ("a-z0-9", "blanks"),
        ),
        Parameter("stemming", False, "whether words are stemmed (Porter) before comparing"),
    ),
)
