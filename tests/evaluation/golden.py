"""Numbers that were stored before the commands were written anew."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

_DATA = Path(__file__).with_name("data")
Records = Sequence[Mapping[str, Any]]


def stored(name: str) -> dict[str, Any]:
    """The content of values_NAME.json."""
    content: dict[str, Any] = json.loads((_DATA / f"values_{name}.json").read_text("utf-8"))
    return content


def assert_same(
    found: pd.DataFrame, expected: Records, keys: Iterable[str], rel: float = 1e-12
) -> None:
    """Every stored row is there by its keys, and each number of it is equal."""
    keys = list(keys)
    known = {tuple(row[key] for key in keys): row for row in found.to_dict("records")}
    assert len(known) == len(found) == len(expected)
    for row in expected:
        own = known[tuple(row[key] for key in keys)]
        for name, value in row.items():
            _assert_equal(own[name], value, f"{[row[k] for k in keys]} {name}", rel)


def _assert_equal(found: Any, expected: Any, what: str, rel: float) -> None:
    if expected is None:
        assert found is None or math.isnan(found), what
    elif isinstance(expected, float):
        assert math.isclose(found, expected, rel_tol=rel, abs_tol=1e-14), (what, found, expected)
    else:
        assert found == expected, (what, found, expected)
