"""A retrieval evaluation as text to read."""

from vlscore.meta.retrieval_run import RetrievalResult
from vlscore.stats import Interval


def retrieval_text(result: RetrievalResult) -> str:
    """Every number with its interval, then the signature."""
    lines = []
    for name, each in result.directions.items():
        lines.append(f"{name}: {each.queries} queries, {each.gallery} to search")
        for k, share in each.recall.items():
            lines.append(f"  {f'R@{k}':<12}{_shown(share, '.3f')}")
        lines.append(f"  {'median rank':<12}{_shown(each.median_rank, 'g')}")
    return "\n".join([*lines, "", str(result.signature)])


def _shown(value: Interval, digits: str) -> str:
    return f"{value.estimate:{digits}}  [{value.low:{digits}}, {value.high:{digits}}]"
