"""Metric by the rule judge: each error of a candidate, weighted by its clinical significance.

It uses the two reports alone: neither the patient's age nor the indication.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.metric import Metric, Output, Parameter
from vlscore.metrics.provider import Provider

if TYPE_CHECKING:
    from vlscore.metrics.judge.judgement import Judgement
    from vlscore.metrics.judge.rules import RuleJudge


# Keys of vlscore.metrics.judge.SCORES, repeated here so that the judge is loaded on first use only.
_SCORES = ("rating", "sum", "maximum", "count", "significant")


class JudgeProvider(Provider):
    """Judges each candidate against its reference."""

    library = "vlscore"

    @cached_property
    def _judge(self) -> "RuleJudge":
        from vlscore.metrics.judge.rules import RuleJudge

        return RuleJudge()

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        from vlscore.metrics.judge.judge_scores import SCORES

        score = SCORES[str(metric.settings["score"])]
        candidates, references = batch.artefacts["judge-statements"]
        judged = [self._judge.compare(g, r) for g, r in zip(candidates, references, strict=True)]
        rows = np.array([_row(score(j), j) for j in judged], dtype=np.float64).reshape(-1, 5)
        return Computed(list(rows.T))

    def facts(self, metric: Metric) -> dict[str, Any]:
        return {"judge": self._judge.name}


def _row(score: float, judgement: "Judgement") -> tuple[float, ...]:
    return (
        score,
        judgement.sum,
        judgement.maximum,
        judgement.count,
        judgement.significant,
    )


JUDGE = Metric(
    provider=JudgeProvider(),
    name="judge",
    title="Judge",
    description="what a candidate states rightly, weighed by significance, among what it states "
    "rightly and wrongly; errors are found by rules; 1 without an error",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    uses_image=False,
    uses_reference=True,
    artefacts=("judge-statements",),
    citation="rules of vlscore; grades of errors after Huang et al. 2024, FineRadScore; "
    "categories of Yu et al. 2023, ReXVal",
    parameters=(
        Parameter(
            "score",
            "rating",
            "what the first number is: rating (the weighed share), or 1 / (1 + x) with x the sum "
            "of the severities, the largest severity, the number of errors, or the number of "
            "significant ones",
            _SCORES,
        ),
    ),
    further=(
        Output("sum", "sum of the severities, 1 to 5 each", False, (0.0, None)),
        Output("maximum", "largest severity; 0 without an error", False, (0.0, 5.0)),
        Output("count", "number of errors", False, (0.0, None)),
        Output("significant", "number of errors of severity 3 or more", False, (0.0, None)),
    ),
)
