"""Small cases with a known order of candidates: which metrics agree with it.

RadJudge (rajpurkarlab/CRIMSON, folder RadJudge; Baharoon et al. 2026, arXiv 2603.06183) is such a
set of thirty: a json object with "RANKING_TESTS", a list of categories, each with `category` and
`tests`; a test has `id`, `ground_truth`, `candidates` ("C1" -> {"text": ..., "context": ...}) and
`expected_ranking`: "C1 > C2", "C1 = C2", or a list of these, ">" being better.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.metrics import Batch, Metric, Plan, find_metrics
from vlscore.stats import TextTable

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
