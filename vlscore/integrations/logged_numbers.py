"""Results as one flat dict of numbers, for the loggers of MLflow, W&B and TensorBoard."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from vlscore.core import flat, plain
from vlscore.metrics import ScoreTable, means_and_corpus

# Characters that MLflow allows in the name of a metric.
_REFUSED = re.compile(r"[^\w\-. /]+")


def flat_numbers(result: Any, prefix: str = "") -> dict[str, float]:
    """Return the numbers of a result, name -> float, as `mlflow.log_metrics` and `wandb.log` take.

    Args:
        result: a Score; a ScoreTable, of which means and corpus values are returned; the result of
            `evaluate`, of which the summary is returned; the result of another command; a dict.
        prefix: is written before each name.

    Returns: finite numbers alone; intervals as x, x.low, x.high; counts as floats. In names,
        characters that MLflow refuses become "_". Records of a list are named by their texts.

    >>> flat_numbers({"bleu-4(smoothing=exp)": {"mean": 0.25, "unit": "none"}, "rows": 3})
    {'bleu-4_smoothing_exp_.mean': 0.25, 'rows': 3.0}
    """
    found: dict[str, float] = {}
    for name, value in _numbers(_content(result)):
        name = _REFUSED.sub("_", f"{prefix}{name}")
        if name in found:
            same = sum(other == name or other.startswith(f"{name}.again") for other in found)
            name = f"{name}.again{same}"
        found[name] = value
    return found


def _content(result: Any) -> Mapping[str, Any]:
    if isinstance(result, ScoreTable):
        return means_and_corpus(result) | {"failed": float(len(result.failures))}
    # The result of `evaluate` has its numbers in a summary.
    result = getattr(result, "summary", result)
    if isinstance(result, Mapping):
        return result
    content: Mapping[str, Any] = result.to_dict()
    return content


def _numbers(content: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, float]]:
    for name, value in flat(plain(dict(content))).items():
        whole = f"{above}.{name}" if above else name
        if isinstance(value, list):
            for record in value:
                if isinstance(record, Mapping):
                    texts = [text for text in record.values() if isinstance(text, str)]
                    yield from _numbers(record, ".".join([whole, *texts]))
        elif isinstance(value, int | float) and math.isfinite(value):
            yield whole, float(value)
