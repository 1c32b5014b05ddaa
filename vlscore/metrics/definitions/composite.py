"""A weighted sum of metrics that was fitted to raters, in the manner of RadCliQ."""

from vlscore.metrics.metric import Metric, Parameter

COMPOSITE = Metric(
    name="composite",
    description="weighted sum of normalised metrics, fitted to raters by vlscore align --fit; "
    "written composite:FILE",
    higher_is_better=True,
    bounds=(None, None),
    uses_image=False,
    uses_reference=True,
    citation="in the manner of RadCliQ: Yu et al. 2023, Patterns",
    parameters=(Parameter("file", None, "what vlscore align --fit wrote", kind=str),),
    cost="model",
)
