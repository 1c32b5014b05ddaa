"""Probes: logistic regressions from image vectors to findings, and likelihood ratios of scores."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vlscore.core import unit_rows

Values = NDArray[np.float64]
#: Prior deviation of a slope of likelihood ratios; chosen on the part "choose" of docs/real.md.
DEVIATION = 0.5
#: Added to deviations: a number that is the same in all vectors has none.
LEAST_SPREAD = 1e-9


@dataclass(frozen=True, eq=False)
class Probes:
    """Logistic regressions of k findings on standardised vectors of d numbers.

    Where an encoder reads words, a finding's regression has one more input: how much nearer the
    image is to words that state the finding than to words that deny it (zero-shot). A finding with
    too few cases for a regression has this number alone.

    Attributes:
        mean, spread: (d,) of the vectors that they were fitted to.
        weights, bias: (d, k) and (k,); zeros for a finding that was not fitted.
        directions: (d, k) vector of words that state a finding, less that of words that deny it;
            zeros without words.
        shift, scale, share: (k,) the zero-shot number is shifted, scaled, and has this weight.
    """

    mean: Values
    spread: Values
    weights: Values
    bias: Values
    directions: Values
    shift: Values
    scale: Values
    share: Values

    def __call__(self, vectors: Values) -> Values:
        """Return scores (n, k) of vectors (n, d): log odds, where a regression was fitted."""
        scores = (vectors - self.mean) / self.spread @ self.weights + self.bias
        zero_shot = (unit_rows(vectors) @ self.directions - self.shift) * self.scale
        found: Values = scores + zero_shot * self.share
        return found


def fit_probes(
    vectors: Values,
    labels: Values,
    directions: Values | None,
    penalty: float,
    least: int,
    groups: Mapping[int, int] | None = None,
) -> Probes:
    """Fit a logistic regression with an L2 penalty for each finding.

    The loss is the mean over cases plus penalty / 2 times the squared length of the weights. Where
    a finding has a group, it is the squared distance to the group's weights: few images show an
    infiltrate, and many a lung opacity. Cases without the finding and with its group do not count,
    because radiologists name one thing by several of the group's words.

    Args:
        vectors: (n, d).
        labels: (n, k): 1, 0, or nan for cases that do not count.
        directions: (d, k) of words; None without zero-shot.
        least: a finding with fewer cases of either kind has no regression.
        groups: column of a finding -> column of its group, which has no group itself.
    """
    (_, d), k, groups = vectors.shape, labels.shape[1], groups or {}
    mean, spread = vectors.mean(0), vectors.std(0) + LEAST_SPREAD
    inputs = (vectors - mean) / spread
    ways = np.zeros((d, k)) if directions is None else directions
    near = unit_rows(vectors) @ ways
    shift, scale = near.mean(0), 1 / (near.std(0) + LEAST_SPREAD)
    weights, bias, share = np.zeros((d, k)), np.zeros(k), np.ones(k)
    for column in sorted(range(k), key=groups.__contains__):
        known, centre = ~np.isnan(labels[:, column]), np.zeros(d)
        if (group := groups.get(column)) is not None:
            known &= ~((labels[:, column] == 0) & (labels[:, group] == 1))
            centre = weights[:, group]
        truth = labels[known, column]
        if min(truth.sum(), len(truth) - truth.sum()) < least:
            continue
        own = inputs[known]
        if directions is not None:
            own = np.column_stack([own, (near[known, column] - shift[column]) * scale[column]])
            centre = np.append(centre, 0.0)
        found = _regression(own, truth, penalty, centre)
        weights[:, column], bias[column] = found[:d], found[-1]
        share[column] = 0.0 if directions is None else found[d]
    return Probes(mean, spread, weights, bias, ways, shift, scale, share)


def _regression(inputs: Values, targets: Values, penalty: float, centre: Values) -> Values:
    """Return weights and bias (d + 1,) of a logistic regression on targets in [0, 1].

    Args: centre: (d,) weights from which the penalty measures.
    """
    from scipy.optimize import minimize  # takes a while to import
    from scipy.special import expit

    def loss(weights: Values) -> tuple[float, Values]:
        odds = inputs @ weights[:-1] + weights[-1]
        error = (expit(odds) - targets) / len(targets)
        apart = weights[:-1] - centre
        slope = np.append(inputs.T @ error + penalty * apart, error.sum())
        value = (np.logaddexp(0, odds) - targets * odds).mean() + penalty / 2 * (apart @ apart)
        return float(value), slope

    found: Values = minimize(loss, np.append(centre, 0.0), jac=True, method="L-BFGS-B").x
    return found


def likelihood_ratios(scores: Values, truth: Values) -> tuple[Values, Values]:
    """Return (k,) slopes and offsets of the log likelihood ratio of each finding's presence.

    Log odds are linear in the score, as Platt's (1999); minus the log odds without the score, they
    are the ratio. Few images have a finding, so the slopes have a normal prior: their common mean,
    and a deviation of 1/2, where scores have the deviation 1 among images without the finding.

    Args:
        scores: (m, k) of calibration cases.
        truth: (m, k): 1, 0, or nan; each finding has cases of both.
    """
    from scipy.optimize import minimize  # takes a while to import
    from scipy.special import expit

    without = np.where(truth == 0, scores, np.nan)
    middle, width = np.nanmean(without, axis=0), np.nanstd(without, axis=0) + LEAST_SPREAD
    inputs, known = (scores - middle) / width, ~np.isnan(truth)
    targets, k = np.nan_to_num(truth), scores.shape[1]
    base = np.log(np.nansum(truth, axis=0) / (known & (targets == 0)).sum(0))

    def loss(weights: Values) -> tuple[float, Values]:
        slopes, offsets, common = weights[:k], weights[k:-1], weights[-1]
        odds = inputs * slopes + offsets
        error = (expit(odds) - targets) * known
        apart = (slopes - common) / DEVIATION
        value = ((np.logaddexp(0, odds) - targets * odds) * known).sum() + apart @ apart / 2
        pull = apart / DEVIATION
        slope = np.concatenate([(error * inputs).sum(0) + pull, error.sum(0), [-pull.sum()]])
        return float(value), slope

    start = np.concatenate([np.ones(k), base, [1.0]])
    bounds = [(0.0, None)] * k + [(None, None)] * (k + 1)
    found: Values = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    slopes: Values = found[:k] / width
    return slopes, found[k:-1] - base - slopes * middle
