"""What an oracle found, as text to read."""

import math

from vlscore.display import interval, number
from vlscore.oracle.answers import Answer
from vlscore.oracle.summary import OracleSummary

_WIDTH = 78
_IDS = 30


def answer_text(answer: Answer) -> str:
    """One study's hits, best first, each with what the score cannot see."""
    lines = [f"\n{answer.id}"]
    if not answer.hits:
        lines.append("  nothing qualifies")
    for place, hit in enumerate(answer.hits, start=1):
        found = hit.found
        facts = [f"score {found.score:.4f}"]
        for name, value in (
            ("area", found.area),
            ("foot", found.foot),
            ("h/|r-i|", found.height),
            ("|g-r|", found.distance),
        ):
            if not math.isnan(value):
                facts.append(f"{name} {value:.4g}")
        if found.distance_rank is not None:
            facts.append(f"rank {found.distance_rank}")
        if hit.verbatim:
            facts.append("VERBATIM")
        lines.append(f"  {place:>2}  {'  '.join(facts)}  [{_shortened(', '.join(hit.ids), _IDS)}]")
        lines.append(f"      {_shortened(hit.text, _WIDTH - 6)}")
    return "\n".join(lines)


def oracle_text(summary: OracleSummary) -> str:
    """The numbers of a search, and the signature."""
    lines = [f"{summary.searched} studies searched, {summary.failed} failed"]
    if summary.without_hits:
        lines.append(f"nothing qualifies for {summary.without_hits} of them")
    if summary.mean is not None and summary.median is not None:
        lines.append(
            f"best hits: mean score {interval(summary.mean, 4)}, median "
            f"{number(summary.median.estimate, 4)}"
        )
    if summary.compared:
        lines.append(f"{summary.verbatim} of {summary.compared} equal the reference")
    if summary.recall:
        shares = ", ".join(f"recall@{k} {share:.4f}" for k, share in summary.recall.items())
        lines.append(f"approximate search; on a sample of these studies: {shares}")
    return "\n".join([*lines, "", str(summary.signature)])


def _shortened(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
