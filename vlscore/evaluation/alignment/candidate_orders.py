"""Order of candidates: agreement of metrics with raters, and with an expected order.

`ranking_agreement` compares metrics with raters on every two candidates of a study, ties included.

`check_orders` scores small cases with a known order of candidates. RadJudge (rajpurkarlab/CRIMSON,
folder RadJudge; Baharoon et al. 2026, arXiv 2603.06183) is such a set of thirty: a json object with
"RANKING_TESTS", a list of categories, each with `category` and `tests`; a test has `id`,
`ground_truth`, `candidates` ("C1" -> {"text": ..., "context": ...}) and `expected_ranking`:
"C1 > C2", "C1 = C2", or a list of these, ">" being better.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation.alignment.rated_pairs import Array, RatedPairs
from vlscore.metrics import Batch, Metric, Plan, find_metrics
from vlscore.stats import Interval, TextTable, grouped_mean, places_by_group

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
        rated = np.sign(pairs.sign_of(name) * (values[:, first] - values[:, second]))
        names = np.array([pairs.studies[k] for k in first])
        for metric, numbers in metrics.items():
            ordered = np.sign(numbers[first] - numbers[second])
            everyone = np.broadcast_to(ordered, rated.shape)
            found.append(_agreement(metric, name, everyone, rated, names, level, resamples, seed))
        couples = list(permutations(range(len(pairs.raters)), 2))
        if couples:
            ones, others = (np.array(each) for each in zip(*couples, strict=True))
            found.append(
                _agreement(
                    ANOTHER_RATER, name, rated[ones], rated[others], names, level, resamples, seed
                )
            )
    return found


def _agreement(
    metric: str,
    rating: str,
    ordered: Array,
    rated: Array,
    names: NDArray[np.str_],
    level: float,
    resamples: int,
    seed: int,
) -> RankingAgreement:
    usable = ~(np.isnan(ordered) | np.isnan(rated))
    a, b = ordered[usable], rated[usable]
    groups = np.broadcast_to(names, rated.shape)[usable]
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
    couples = [c for rows in places_by_group(studies).values() for c in combinations(rows, 2)]
    found = np.array(couples, dtype=np.intp).reshape(-1, 2)
    return found[:, 0], found[:, 1]


# Values that differ by no more are equal: networks add up in another order from batch to batch.
TOLERANCE = 1e-6
_KEY = "RANKING_TESTS"
_RELATION = re.compile(r"\s*(\w+)\s*([>=])\s*(\w+)\s*")
PASSED, FAILED = "passed", "failed"


@dataclass(frozen=True)
class OrderedCase:
    """Candidates for one reference, and how a score should order them.

    Attributes:
        id: as in "1a".
        category: what it tests.
        reference: the ground truth.
        texts: name of a candidate -> its report.
        relations: (one, ">" or "=", other), ">" where the first is better.
        has_context: candidates differ in facts about the patient, which no metric here reads.
    """

    id: str
    category: str
    reference: str
    texts: dict[str, str]
    relations: tuple[tuple[str, str, str], ...]
    has_context: bool = False


@dataclass(frozen=True)
class OrderVerdicts:
    """Cases, and whether each metric orders their candidates as expected.

    Attributes:
        cases: in the order of the file.
        metrics: names.
        passed: metric -> one entry a case: whether every relation of it holds.
    """

    cases: Sequence[OrderedCase]
    metrics: Sequence[str]
    passed: dict[str, list[bool]]

    def tables(self) -> list[TextTable]:
        """Return passed cases of every metric by category, and every case."""
        categories = list(dict.fromkeys(case.category for case in self.cases))
        sizes = {name: sum(case.category == name for case in self.cases) for name in categories}
        best = sorted(self.metrics, key=lambda name: -sum(self.passed[name]))
        rows = [
            (
                metric,
                f"{sum(self.passed[metric])} of {len(self.cases)}",
                *(
                    str(
                        sum(
                            passed
                            for case, passed in zip(self.cases, self.passed[metric], strict=True)
                            if case.category == name
                        )
                    )
                    for name in categories
                ),
            )
            for metric in best
        ]
        heads = [f"{name} ({sizes[name]})" for name in categories]
        blind = [case.id for case in self.cases if case.has_context]
        caption = (
            "Cases whose every relation holds; candidates that should be equal may differ by "
            f"{TOLERANCE:g}."
        )
        if blind:
            caption += (
                f" The candidates of {', '.join(blind)} come with the patient's age or indication, "
                "which these metrics do not read."
            )
        single = [
            (
                case.id,
                " and ".join(" ".join(relation) for relation in case.relations),
                *(PASSED if self.passed[metric][k] else FAILED for metric in best),
            )
            for k, case in enumerate(self.cases)
        ]
        return [
            TextTable("Orders by category", ("metric", "passed", *heads), tuple(rows), caption),
            TextTable("Orders one by one", ("case", "order", *best), tuple(single)),
        ]


def read_orders(path: str | Path) -> list[OrderedCase]:
    """Read the cases of a file in RadJudge's layout.

    Raises: InvalidTable where it cannot be read or has another layout, naming the case.
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidTable(f"{path}: cannot be read as json ({type(error).__name__})") from None
    groups = content.get(_KEY) if isinstance(content, dict) else None
    if not isinstance(groups, list) or not groups:
        raise InvalidTable(f'{path}: is no object with "{_KEY}", a list of categories')
    cases = []
    for place, group in enumerate(groups, start=1):
        tests = group.get("tests") if isinstance(group, dict) else None
        if not isinstance(tests, list):
            raise InvalidTable(f'{path}, category {place}: has no list "tests"')
        for number, test in enumerate(tests, start=1):
            try:
                cases.append(_case(test, str(group.get("category", place))))
            except (KeyError, TypeError, ValueError, AttributeError):
                raise InvalidTable(
                    f"{path}, category {place}, test {number}: lacks id, ground_truth, candidates "
                    'with a "text" each, or an expected_ranking such as "C1 > C2"'
                ) from None
    if not cases:
        raise InvalidTable(f"{path}: holds no test")
    return cases


def check_orders(
    cases: Sequence[OrderedCase], metrics: Any, tolerance: float = TOLERANCE
) -> OrderVerdicts:
    """Score every candidate of every case, and compare their order with the expected one.

    Args:
        metrics: of texts, as `find_metrics` takes them.
        tolerance: by which equal candidates may differ, and which better ones must exceed.

    Raises: UnknownName; InvalidSetting for a metric that looks at images; MissingDependency.
    """
    found = find_metrics(metrics)
    if seeing := [str(metric) for metric in found if metric.uses_embeddings]:
        raise InvalidSetting(
            f"{', '.join(seeing)}: the cases have no images; name metrics of texts"
        )
    plan = Plan(found)
    plan.require()
    pairs = [(k, name) for k, case in enumerate(cases) for name in case.texts]
    references = [cases[k].reference for k, _ in pairs]
    if plan.needs_fit:
        plan = plan.fit(references)
    values = plan.values(Batch([cases[k].texts[name] for k, name in pairs], references))
    passed: dict[str, list[bool]] = {}
    for metric in found:
        oriented = metric.sign * values[metric].headline
        known = dict(zip(pairs, oriented.tolist(), strict=True))
        passed[str(metric)] = [
            all(
                _holds(known[k, one], relation, known[k, other], tolerance)
                for one, relation, other in case.relations
            )
            for k, case in enumerate(cases)
        ]
    return OrderVerdicts(cases, [str(metric) for metric in found], passed)


def usable_text_metrics() -> list[Metric]:
    """Return the free metrics of texts that can run here."""
    from vlscore.metrics import usable_metrics

    return usable_metrics()[0]


def _case(test: Any, category: str) -> OrderedCase:
    expected = test["expected_ranking"]
    candidates = test["candidates"]
    texts = {str(name): each["text"] for name, each in candidates.items()}
    relations = []
    for text in [expected] if isinstance(expected, str) else expected:
        match = _RELATION.fullmatch(text)
        if match is None or match[1] not in texts or match[3] not in texts:
            raise ValueError(text)
        relations.append((match[1], match[2], match[3]))
    reports = (test["ground_truth"], *texts.values())
    if not relations or not all(isinstance(each, str) for each in reports):
        raise ValueError(relations)
    return OrderedCase(
        str(test["id"]),
        category,
        test["ground_truth"],
        texts,
        tuple(relations),
        any("context" in each for each in candidates.values()),
    )


def _holds(one: float, relation: str, other: float, tolerance: float) -> bool:
    """Return whether two oriented values are in the order; False if one is missing."""
    if np.isnan(one) or np.isnan(other):
        return False
    return abs(one - other) <= tolerance if relation == "=" else one - other > tolerance
