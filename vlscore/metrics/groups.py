"""Names that stand for several metrics, as in `-m text` or `-m bleu,image`."""

from collections.abc import Callable

from vlscore.core import Registry, plain_name
from vlscore.errors import VLScoreError
from vlscore.metrics.metric import Metric

# Function that decides whether a metric belongs to the group.
_Belongs = Callable[[Metric], bool]

GROUPS: dict[str, tuple[str, _Belongs]] = {
    "text": (
        "every free metric of texts that can run here",
        lambda metric: not metric.uses_embeddings,
    ),
    "image": (
        "every free metric that looks at the image",
        lambda metric: metric.uses_image,
    ),
    "bleu": ("bleu-1 to bleu-4", lambda metric: metric.name.startswith("bleu-")),
}


def members_of(
    name: str, metrics: Registry[Metric], missing: Callable[[Metric], str | None]
) -> list[Metric] | None:
    """Return the metrics of a group, in the registry's order; None if no group has the name.

    A group holds only free metrics whose library is installed.

    Args:
        name: name of the group, in any spelling.
        metrics: all registered metrics.
        missing: function that returns why a metric cannot run here, or None if it can.
    """
    group = GROUPS.get(plain_name(name))
    if group is None:
        return None
    found = []
    for metric in metrics.values():
        if metric.cost != "free" or not group[1](metric):
            continue
        try:
            reason = missing(metric)
        except VLScoreError as error:
            reason = str(error)
        if reason is None:
            found.append(metric)
    return found
