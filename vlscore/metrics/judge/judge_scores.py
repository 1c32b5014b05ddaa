"""Scores: one number for a judgement."""

from collections.abc import Callable, Mapping

from vlscore.metrics.judge.judgement import Judgement

#: Weight in the rating of an error of each severity, and of a correct finding of that severity.
WEIGHTS: Mapping[int, float] = {1: 0.25, 2: 0.5, 3: 1.0, 4: 1.5, 5: 2.0}
#: Weight that every report has as correct: without it, one error in a normal report would score 0.
_BASE = 0.5


def rating(judgement: Judgement) -> float:
    """Return the weighted share of correct statements among correct ones and errors, in (0, 1].

    It is (b + R) / (b + R + W): W sums WEIGHTS over the errors, R over the correct findings of
    the candidate, and b is 0.5. It is 1 without an error.
    """
    right = _BASE + sum(WEIGHTS[severity] for severity in judgement.found)
    wrong = sum(WEIGHTS[error.severity] for error in judgement.errors)
    return right / (right + wrong)


def _falling(total: float) -> float:
    return 1 / (1 + total)


#: Score by name, each in (0, 1] and 1 without an error.
SCORES: Mapping[str, Callable[[Judgement], float]] = {
    "rating": rating,
    "sum": lambda judgement: _falling(judgement.sum),
    "maximum": lambda judgement: _falling(judgement.maximum),
    "count": lambda judgement: _falling(judgement.count),
    "significant": lambda judgement: _falling(judgement.significant),
}
