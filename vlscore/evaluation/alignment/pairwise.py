"""Order of two candidates of one study: agreement of metrics with raters, ties included."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from vlscore.evaluation.alignment.rated_pairs import Array, RatedPairs
from vlscore.stats import Interval, grouped_mean

ANOTHER_RATER = "another rater"


@dataclass(frozen=True)
class RankingAgreement:
    """Share of pairs of candidates that a metric puts in the order in which a rater puts them.

    One comparison is one rater's order of two candidates of one study; intervals resample
    studies.

    Attributes:
        metric: its name; "another rater" for each rater against each other one.
        rating: name of the rating.
        comparisons, studies: how many there are.
        same: share where both find better, both worse, or both equal.
        decided: number of comparisons where the rater finds one candidate better.
        right: of these, the share where the metric agrees; a tie of the metric counts one half.
        rater_ties, metric_ties: share of the comparisons that are ties.
    """

    metric: str
    rating: str
    comparisons: int
    studies: int
    same: Interval | None
    decided: int
    right: Interval | None
    rater_ties: float
    metric_ties: float


def ranking_agreement(
    metrics: Mapping[str, Array],
    pairs: RatedPairs,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> list[RankingAgreement]:
    """Compute the agreement of metrics, and of other raters, with single raters on pairs of
    candidates.

    Args: metrics: name -> (n,) values, larger is better; nan where there is none.

    Returns: one a metric and rating; empty where no study has two candidates.
    """
    first, second = _couples(pairs.studies)
    if not len(first):
        return []
    found = []
    for name, values in pairs.ratings.items():
        # (k, couples) each rater's order of each couple: 1, 0 or -1; nan where not rated.
        said = np.sign(pairs.sign_of(name) * (values[:, first] - values[:, second]))
        names = np.array([pairs.studies[k] for k in first])
        for metric, numbers in metrics.items():
            ordered = np.sign(numbers[first] - numbers[second])
            everyone = np.broadcast_to(ordered, said.shape)
            found.append(_agreement(metric, name, everyone, said, names, level, resamples, seed))
        couples = list(permutations(range(len(pairs.raters)), 2))
        if couples:
            ones, others = (np.array(each) for each in zip(*couples, strict=True))
            found.append(
                _agreement(
                    ANOTHER_RATER, name, said[ones], said[others], names, level, resamples, seed
                )
            )
    return found


def _agreement(
    metric: str,
    rating: str,
    ordered: Array,
    said: Array,
    names: NDArray[np.str_],
    level: float,
    resamples: int,
    seed: int,
) -> RankingAgreement:
    usable = ~(np.isnan(ordered) | np.isnan(said))
    a, b = ordered[usable], said[usable]
    groups = np.broadcast_to(names, said.shape)[usable]
    decided = b != 0

    def share(values: Array, of: NDArray[np.str_]) -> Interval | None:
        if not len(values):
            return None
        return grouped_mean(
            values, [str(g) for g in of], level=level, resamples=resamples, seed=seed
        )

    right = np.where(a == 0, 0.5, (a == b).astype(np.float64))
    return RankingAgreement(
        metric,
        rating,
        comparisons=len(a),
        studies=len(set(groups.tolist())),
        same=share((a == b).astype(np.float64), groups),
        decided=int(decided.sum()),
        right=share(right[decided], groups[decided]),
        rater_ties=float((b == 0).mean()) if len(b) else float("nan"),
        metric_ties=float((a == 0).mean()) if len(a) else float("nan"),
    )


def _couples(studies: tuple[str, ...]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return places of the two candidates of every couple within a study."""
    places: dict[str, list[int]] = {}
    for k, study in enumerate(studies):
        places.setdefault(study, []).append(k)
    couples: Iterator[tuple[int, int]] = (
        couple for rows in places.values() for couple in combinations(rows, 2)
    )
    found = np.array(list(couples), dtype=np.intp).reshape(-1, 2)
    return found[:, 0], found[:, 1]
