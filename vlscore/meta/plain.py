"""Results as plain data that every json reader takes."""

import math
from typing import Any


def plain(value: Any) -> Any:
    """The same nested dicts and lists; numbers that are not finite, which json lacks, are None.

    >>> plain({"ratio": float("inf"), "values": (1.0, float("nan"))})
    {'ratio': None, 'values': [1.0, None]}
    """
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
