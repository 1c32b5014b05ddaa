"""One line about the metrics that a run of every free metric leaves out."""

import re
from collections.abc import Mapping

_SHOWN = 4


def left_out_line(reasons: Mapping[str, str]) -> str:
    """Return one sentence that names the metrics left out, grouped by reason.

    Args: reasons: metric -> why, as `usable_metrics` returns them.

    >>> left_out_line({"a": "no images", "b": "no images", "c": "no library"})
    'left out 3 metrics: 2 (a, b): no images; 1 (c): no library. `vlscore metrics` describes each'
    >>> left_out_line({})
    ''
    """
    if not reasons:
        return ""
    groups: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        groups.setdefault(re.sub(rf"\b{re.escape(name)}\b", "it", reason), []).append(name)
    parts: list[str] = []
    rest: list[str] = []
    for reason, names in sorted(groups.items(), key=lambda group: -len(group[1])):
        if len(parts) == _SHOWN:
            rest += names
            continue
        shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
        parts.append(f"{len(names)} ({shown}): {reason}")
    if rest:
        parts.append(f"{len(rest)} for other reasons")
    count = f"{len(reasons)} metric{'s' if len(reasons) > 1 else ''}"
    return f"left out {count}: {'; '.join(parts)}. `vlscore metrics` describes each"
