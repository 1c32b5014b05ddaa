"""Metric by a judge: each error of a candidate, weighted by its clinical significance.

It uses the two reports alone: neither the patient's age nor the indication.
"""

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import Cache, warn_caller
from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError, WeightsNotFound
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.metric import Metric, Output, Parameter
from vlscore.metrics.provider import Provider

if TYPE_CHECKING:
    from vlscore.metrics.judge.judgement import Judgement
    from vlscore.metrics.judge.model_judge import ModelJudge
    from vlscore.metrics.judge.rules import RuleJudge


# Keys of vlscore.metrics.judge.SCORES, repeated here so that the judge is loaded on first use only.
_SCORES = ("rating", "sum", "maximum", "count", "significant")


class JudgeProvider(Provider):
    """Judges each candidate against its reference, by rules or by a language model."""

    library = "vlscore"

    @cached_property
    def _rules(self) -> "RuleJudge":
        from vlscore.metrics.judge.rules import RuleJudge

        return RuleJudge()

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        from vlscore.metrics.judge.judgement import SCORES

        score = SCORES[str(metric.settings["score"])]
        failures: dict[int, VLScoreError] = {}
        rows = np.full((len(batch), 5), np.nan)
        for row, judged in enumerate(self._judged(metric, batch)):
            if isinstance(judged, VLScoreError):
                failures[row] = judged
            else:
                severities = (judged.sum, judged.maximum, judged.count, judged.significant)
                rows[row] = (score(judged), *severities)
        return Computed(list(rows.T), failures=failures)

    def missing(self, metric: Metric) -> str | None:
        if not _asks_model(metric):
            return None
        from vlscore.metrics.judge.model_judge import lacks_library

        try:
            return lacks_library(_model_judge(metric, None).model)
        except (MissingDependency, WeightsNotFound) as error:
            return str(error)

    def facts(self, metric: Metric) -> dict[str, Any]:
        if not _asks_model(metric):
            return {"judge": self._rules.name}
        return {"judge": "model", **_model_judge(metric, None).facts}

    def _judged(self, metric: Metric, batch: Batch) -> "list[Judgement | VLScoreError]":
        if not _asks_model(metric):
            candidates, references = batch.artefacts["judge-statements"]
            pairs = zip(candidates, references, strict=True)
            return [self._rules.compare(candidate, reference) for candidate, reference in pairs]
        from vlscore.metrics.judge.judgement import JudgeCase

        judge = _model_judge(metric, batch.annotations.cache)
        if not judge.model.is_here:
            warn_caller(f"the metric judge sends both reports of each study to {judge.model}")
        outcomes = judge.judge_all([JudgeCase(*pair) for pair in batch.pairs()])
        return [outcome.judgement or _error_of(outcome.error) for outcome in outcomes]


def _error_of(error: VLScoreError | None) -> VLScoreError:
    assert error is not None
    return error


def _asks_model(metric: Metric) -> bool:
    """Return whether a language model judges; raise InvalidSetting for settings without one."""
    if metric.settings["model"] is not None:
        return True
    useless = [name for name, _ in metric.chosen if name in ("endpoint", "prompt", "order")]
    if useless:
        raise InvalidSetting(
            f"judge({useless[0]}=...) has no effect without a model: add one, as in "
            "judge(model=NAME)"
        )
    return False


def _model_judge(metric: Metric, cache: Cache | None) -> "ModelJudge":
    from vlscore.metrics.judge.judge_endpoint import ENDPOINT, allowed_hosts, requests_at_once
    from vlscore.metrics.judge.model_judge import remembered_judge

    settings = {name: None if v is None else str(v) for name, v in metric.settings.items()}
    return remembered_judge(
        str(settings["model"]),
        settings["endpoint"] or os.environ.get(ENDPOINT) or None,
        (settings["prompt"] or "few-shot", settings["order"] or "candidate-first"),
        tuple(allowed_hosts()),
        requests_at_once(),
        cache,
    )


JUDGE = Metric(
    provider=JudgeProvider(),
    name="judge",
    title="Judge",
    description="what a candidate states rightly, weighed by significance, among what it states "
    "rightly and wrongly; errors are found by rules, or by a language model; 1 without an error",
    higher_is_better=True,
    bounds=(0.0, 1.0),
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
        Parameter(
            "model",
            None,
            "a language model in place of the rules: its folder on this machine, or its name at "
            "the endpoint",
            kind=str,
        ),
        Parameter(
            "endpoint",
            None,
            "address of an OpenAI-compatible service; default: VLSCORE_JUDGE_ENDPOINT. A host on "
            "another machine must be in VLSCORE_JUDGE_SEND_TO",
            kind=str,
        ),
        Parameter(
            "prompt",
            None,
            "of a model: few-shot (the default), zero-shot, or a .toml file of your own",
            kind=str,
        ),
        Parameter(
            "order",
            None,
            "of a model: which report the question shows first; default: candidate-first",
            ("candidate-first", "reference-first"),
            kind=str,
        ),
    ),
    further=(
        Output("sum", "sum of the severities, 1 to 5 each", False, (0.0, None)),
        Output("maximum", "largest severity; 0 without an error", False, (0.0, 5.0)),
        Output("count", "number of errors", False, (0.0, None)),
        Output("significant", "number of errors of severity 3 or more", False, (0.0, None)),
    ),
)
