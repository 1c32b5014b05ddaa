"""What a run of many studies comes to, in a few numbers."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vlscore.stats import Interval, bootstrap_mean, bootstrap_median


@dataclass(frozen=True)
class Summary:
    """Numbers of one run; `Interval`s are 95 % bootstrap intervals.

    Attributes:
        signature: what the scores depend on.
        rows: rows of the table; `scored` + `failed`.
        candidates_truncated, references_truncated: studies in which the encoder did not see the
            text's tail.
        foot_far_outside: scored studies whose candidate projects below -0.5 or above 1.5 on the
            line from image (0) to reference (1): near the line, perhaps, but not near the
            reference. Many of them are a reason to distrust the scores.
        mean, median: of the scores; None where nothing was scored.
    """

    signature: str
    rows: int
    scored: int
    failed: int
    candidates_truncated: int
    references_truncated: int
    foot_far_outside: int
    mean: Interval | None
    median: Interval | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def summarise(parts: Iterable[pa.Table], signature: str, *, seed: int = 0) -> Summary:
    """Summarise the finished parts of a run; holds eight bytes a study in memory."""
    chunks: list[np.ndarray] = []
    rows = failed = candidates = references = outside = 0
    for part in parts:
        scored = part.filter(pc.is_null(part["error"]))
        rows += len(part)
        failed += len(part) - len(scored)
        candidates += pc.sum(scored["candidate_truncated"]).as_py() or 0
        references += pc.sum(scored["reference_truncated"]).as_py() or 0
        position = scored["foot"].to_numpy()
        outside += int(((position < -0.5) | (position > 1.5)).sum())
        chunks.append(scored["score"].to_numpy())
    scores = np.concatenate(chunks) if chunks else np.empty(0)
    return Summary(
        signature=signature,
        rows=rows,
        scored=len(scores),
        failed=failed,
        candidates_truncated=candidates,
        references_truncated=references,
        foot_far_outside=outside,
        mean=bootstrap_mean(scores, seed=seed) if len(scores) else None,
        median=bootstrap_median(scores, seed=seed) if len(scores) else None,
    )
