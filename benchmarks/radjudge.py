"""RadJudge: thirty small cases with a known order of candidates.

RadJudge (rajpurkarlab/CRIMSON, folder RadJudge; Baharoon et al. 2026, arXiv 2603.06183) is a json
object with "RANKING_TESTS", a list of categories, each with `category` and `tests`; a test has
`id`, `ground_truth`, `candidates` ("C1" -> {"text": ..., "context": ...}) and `expected_ranking`:
"C1 > C2", "C1 = C2", or a list of these, ">" being better.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from vlscore.metrics import Item, Scorer

# Values that differ by no more are equal: networks add up in another order from batch to batch.
TOLERANCE = 1e-6
_RELATION = re.compile(r"\s*(\w+)\s*([>=])\s*(\w+)\s*")


def read_cases(path: str | Path) -> list[dict[str, Any]]:
    """Return the tests of the file, each with its `category` and its `relations`."""
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    cases = []
    for group in content["RANKING_TESTS"]:
        for test in group["tests"]:
            expected = test["expected_ranking"]
            texts = [expected] if isinstance(expected, str) else expected
            relations = [_RELATION.fullmatch(text).groups() for text in texts]
            cases.append({**test, "category": group["category"], "relations": relations})
    return cases


def check_orders(cases: Sequence[dict[str, Any]], metrics: Any) -> pd.DataFrame:
    """Return one row a case, and one column a metric: whether it orders the candidates as expected.

    Args: metrics: of texts, as `Scorer` takes them.
    """
    scorer = Scorer(metrics=metrics)
    keys = [(k, name) for k, case in enumerate(cases) for name in case["candidates"]]
    items = [
        Item(cases[k]["candidates"][name]["text"], cases[k]["ground_truth"]) for k, name in keys
    ]
    if scorer.needs_fit:
        scorer = scorer.fit(items)
    table = scorer.score_items(items)
    found = {
        "case": [case["id"] for case in cases],
        "category": [case["category"] for case in cases],
        "order": [" and ".join(" ".join(one) for one in case["relations"]) for case in cases],
    }
    for metric, values in table.values.items():
        known = dict(zip(keys, (metric.sign * values.columns[0]).tolist(), strict=True))
        found[str(metric)] = [
            all(_holds(known[k, one], sign, known[k, other]) for one, sign, other in c["relations"])
            for k, c in enumerate(cases)
        ]
    return pd.DataFrame(found)


def _holds(one: float, relation: str, other: float) -> bool:
    """Return whether two values are in the order; False if one of them is nan."""
    return abs(one - other) <= TOLERANCE if relation == "=" else one - other > TOLERANCE


def by_category(orders: pd.DataFrame) -> pd.DataFrame:
    """Return one row a metric, the best first: cases passed, in all and by category."""
    metrics = list(orders.columns[3:])
    sizes = orders.groupby("category", sort=False).size()
    counts = orders.groupby("category", sort=False)[metrics].sum()
    counts.index = [f"{name} ({sizes[name]})" for name in counts.index]
    passed = orders[metrics].sum().sort_values(ascending=False, kind="stable")
    shown = passed.map(f"{{}} of {len(orders)}".format).rename("passed")
    return pd.concat([shown, counts.T.loc[passed.index]], axis=1).reset_index(names="metric")
