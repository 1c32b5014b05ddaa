"""One number for a judgement."""

from collections.abc import Callable, Mapping

from vlscore.metrics.judge.judgement import Judgement

#: What an error of each severity takes from the rating, and a finding rightly stated gives to it.
WEIGHTS: Mapping[int, float] = {1: 0.25, 2: 0.5, 3: 1.0, 4: 1.5, 5: 2.0}
#: Weight of what every report has right: without it, one error in a normal report would score 0.
_BASE = 0.5


def rating(judgement: Judgement) -> float:
    """Return what the candidate has right among what it has right and wrong, in (0, 1].

    (b + R) / (b + R + W): W sums WEIGHTS over the errors, R over the findings of the reference that
    the candidate states rightly, b is 0.5. 1 without an error.
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
