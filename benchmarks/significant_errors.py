"""Significant errors between the findings of two phantom reports, by a convention.

Radiologists judge whether an error changes the treatment of the patient. Nobody treats a phantom,
so `split_errors` uses a convention for which errors are significant:

- A false or omitted finding is significant unless it is mild (severity 1).
- A wrong location is significant if the side differs, insignificant if only the zone differs.
- A wrong severity is significant if it is two steps off, as mild for severe.
- A false or omitted comparison is significant if either report calls the finding new or increased,
  because a clinician would act on that.
"""

from collections.abc import Iterable

from vlscore.data import PhantomFinding
from vlscore.data.phantom.report_errors import ErrorCounts

_MILD = 1
_ACTED_ON = {"new", "increased"}


def split_errors(
    candidate: Iterable[PhantomFinding], reference: Iterable[PhantomFinding]
) -> dict[bool, ErrorCounts]:
    """Split the errors of `count_errors`: significant ones under True, the others under False.

    >>> mild, severe = (PhantomFinding("edema", severity=level) for level in (1, 3))
    >>> found = split_errors([severe], [mild])
    >>> found[True].wrong_severity, found[False].total
    (1, 0)
    >>> split_errors([mild], [])[False].false_finding
    1
    """
    stated = {finding.kind: finding for finding in candidate}
    true = {finding.kind: finding for finding in reference}
    counts = {True: dict[str, int](), False: dict[str, int]()}

    def add(category: str, is_significant: bool) -> None:
        of = counts[is_significant]
        of[category] = of.get(category, 0) + 1

    for kind in stated.keys() - true.keys():
        add("false_finding", stated[kind].severity != _MILD)
    for kind in true.keys() - stated.keys():
        add("omitted_finding", true[kind].severity != _MILD)
    for kind in stated.keys() & true.keys():
        c, r = stated[kind], true[kind]
        if (c.side, c.zone) != (r.side, r.zone):
            add("wrong_location", c.side != r.side)
        if c.severity is not None and r.severity is not None and c.severity != r.severity:
            add("wrong_severity", abs(c.severity - r.severity) > 1)
        if c.change != r.change:
            category = "omitted_comparison" if c.change is None else "false_comparison"
            add(category, not _ACTED_ON.isdisjoint({c.change, r.change}))
    return {is_significant: ErrorCounts(**of) for is_significant, of in counts.items()}
