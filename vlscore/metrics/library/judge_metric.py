"""Metric by a judge: each error of a candidate, weighted by its clinical significance.

It uses the two reports alone: neither the patient's age nor the indication.
"""

import os
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from vlscore.core import Cache, warn_caller
from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.library.findings_f1 import FindingsMetric, comparisons_parameter
from vlscore.metrics.metric import Metric, Output, parameter

if TYPE_CHECKING:
    from vlscore.metrics.judge.judgement import Judgement
    from vlscore.metrics.judge.model_judge import ModelJudge
    from vlscore.metrics.judge.rules import RuleJudge


class JudgeScore(FindingsMetric):
    """Judges each candidate against its reference, by rules or by a language model."""

    name = "judge"
    title = "Judge"
    description = (
        "share of right findings among right findings and errors, weighted by severity; rules or a "
        "language model find the errors; 1 without an error"
    )
    citation = (
        "rules of vlscore; grades of errors after Huang et al. 2024, FineRadScore; "
        "categories of Yu et al. 2023, ReXVal"
    )
    bounds = (0.0, 1.0)
    further: ClassVar[tuple[Output, ...]] = (
        Output("grade", "grade of the whole report, 1 (little is right) to 5", True, (1.0, 5.0)),
        Output("sum", "sum of the severities, 1 to 5 each", False, (0.0, None)),
        Output("maximum", "largest severity; 0 without an error", False, (0.0, 5.0)),
        Output("count", "number of errors", False, (0.0, None)),
        Output("significant", "number of errors of severity 3 or more", False, (0.0, None)),
    )

    score: str = parameter(
        "rating",
        "what the first number is: rating (the weighed share), a fifth of the grade, or "
        "1 / (1 + x) with x the sum of the severities, the largest severity, the number of errors, "
        "or the number of significant ones",
        choices=("rating", *(output.name for output in further)),
    )
    model: str | None = parameter(
        None, "a language model in place of the rules: its name at the endpoint", kind=str
    )
    endpoint: str | None = parameter(
        None,
        "address of an OpenAI-compatible service; default: VLSCORE_JUDGE_ENDPOINT. A host on "
        "another machine must be in VLSCORE_JUDGE_SEND_TO",
        kind=str,
    )
    prompt: str | None = parameter(
        None, "of a model: few-shot (the default), zero-shot, or a .toml file of your own", kind=str
    )
    order: str | None = parameter(
        None,
        "of a model: which report the question shows first; default: candidate-first",
        choices=("candidate-first", "reference-first"),
        kind=str,
    )

    comparisons: str | None = comparisons_parameter()

    def compute(self, batch: Batch) -> Computed:
        from vlscore.metrics.judge.judgement import SCORES

        failures: dict[int, VLScoreError] = {}
        rows = np.full((len(batch), 1 + len(self.further)), np.nan)
        for row, judged in enumerate(self._judged(batch)):
            if isinstance(judged, VLScoreError):
                failures[row] = judged
            else:
                numbers = [getattr(judged, output.name) for output in self.further]
                rows[row] = (SCORES[self.score](judged), *numbers)
        return Computed(list(rows.T), failures=failures)

    def missing(self) -> str | None:
        if not self._asks_model:
            return None
        try:
            self._model_judge(None)
        except MissingDependency as error:
            return str(error)
        return None

    def facts(self) -> dict[str, Any]:
        if not self._asks_model:
            return {"judge": _rules().name}
        facts = {"judge": "model", **self._model_judge(None).facts}
        return {**facts, **Metric.normalisation}

    def _judged(self, batch: Batch) -> "list[Judgement | VLScoreError]":
        if not self._asks_model:
            rules = _rules(self.comparisons)
            return [rules.compare(*p) for p in batch.read(batch.memo.read, _statements)]
        from vlscore.metrics.judge.judgement import JudgeCase

        judge = self._model_judge(batch.memo.cache)
        if not judge.model.is_here:
            warn_caller(f"the metric judge sends both reports of each study to {judge.model}")
        outcomes = judge.judge_all([JudgeCase(*pair) for pair in batch.pairs()])
        found: list[Any] = [outcome.judgement or outcome.error for outcome in outcomes]
        if self.comparisons is None:
            return found
        return [each if isinstance(each, VLScoreError) else each.uncompared for each in found]

    @property
    def _asks_model(self) -> bool:
        """Whether a language model judges; raise InvalidSetting for settings without one."""
        if self.model is not None:
            return True
        for name in ("endpoint", "prompt", "order"):
            if getattr(self, name) is not None:
                raise InvalidSetting(
                    f"judge({name}=...) has no effect without a model: add one, as in "
                    "judge(model=NAME)"
                )
        return False

    def _model_judge(self, cache: Cache | None) -> "ModelJudge":
        from vlscore.metrics.judge.judge_endpoint import ENDPOINT, endpoint_settings
        from vlscore.metrics.judge.model_judge import remembered_judge

        return remembered_judge(
            str(self.model),
            self.endpoint or os.environ.get(ENDPOINT) or None,
            (self.prompt or "few-shot", self.order or "candidate-first"),
            *endpoint_settings(),
            cache,
        )


@cache
def _rules(comparisons: str | None = None) -> "RuleJudge":
    from vlscore.metrics.judge.rules import RuleJudge

    return RuleJudge(comparisons=comparisons)


def _statements(texts: Sequence[str]) -> list[Any]:
    from vlscore.metrics.judge.judge_tables import load_tables
    from vlscore.metrics.judge.statement_reading import statements_of

    tables = load_tables()
    return [statements_of(text, tables) for text in texts]
