"""What a reader must know before trusting single numbers of a comparison, in sentences."""

import math
from collections.abc import Sequence

from vlscore.evaluation.comparison.statistics import Measured, Tested

# Values that a sentence names; the files have all of them.
_SHOWN = 3

DISAGREEMENT = (
    "Intervals come from the bootstrap and p from randomization, which can disagree near the "
    "border: * one of the two shows a difference at 5 %, the other does not."
)


def cautions(measured: Sequence[Measured], tested: Sequence[Tested]) -> list[str]:
    """Return sentences about disagreeing tests and about resamples that are left out."""
    found = []
    if differ := [test for test in tested if test.disagrees]:
        named = [f"{test.name} of {test.first} - {test.second}" for test in differ[:_SHOWN]]
        found.append(
            f"in {len(differ)} of {len(tested)} differences the 95 % interval and p < 0.05 "
            f"disagree ({_and_more(named, len(differ))}): the interval comes from the bootstrap, p "
            "from randomization; call no such difference significant"
        )
    shares = {
        each.name: max(each.left_out.values())
        for each in measured
        if any(not math.isnan(each.values[name].low) for name in each.left_out)
    }
    if shares:
        named = [f"{name} {100 * share:.0f} %" for name, share in [*shares.items()][:_SHOWN]]
        found.append(
            "some resamples hold no report that mentions the observation, so that it has no F1 in "
            f"them; intervals leave them out: {_and_more(named, len(shares))}"
        )
    return found


def families(measured: Sequence[Measured], tested: Sequence[Tested]) -> list[str]:
    """Return a sentence about the tests over which p values are adjusted."""
    headlines = {each.name for each in measured if each.is_headline}
    count = sum(test.name in headlines for test in tested)
    if count == len(tested):
        return []
    pairs = len({(test.first, test.second) for test in tested})
    return [
        f"p is adjusted over {count} tests, the headlines of {len(headlines)} metrics times "
        f"{pairs} pairs of systems; `--family all` adjusts over all {len(tested)} tests, those of "
        "labels, precision and the like, too"
    ]


def _and_more(named: Sequence[str], count: int) -> str:
    shown = ", ".join(named)
    return f"{shown}, and {count - _SHOWN} more" if count > _SHOWN else shown
