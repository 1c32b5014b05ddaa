"""MIRQI: mentions of findings, their polarity and their attributes; with the faults it has.

The published code counts as an error only what contradicts the reference. A finding of the
candidate that the reference never mentions is no false positive, and one of the reference that the
candidate never mentions is no false negative: a candidate with one right finding of ten has recall
1. Every mention is compared with the reference's first mention of its category alone, so a report
that denies a finding on one side and states it on the other does not even agree with itself. A
mention that is repeated counts again. All this is kept here, for it is what the name stands for.
"""

from vlscore.metrics.metric import Metric, Output, Parameter

MIRQI = Metric(
    name="mirqi",
    description="F measure of mentions that agree in finding and polarity, attributes weighed in; "
    "only contradictions are errors: what is left out or invented is not",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    uses_image=False,
    uses_reference=True,
    artefacts=("finding-mentions",),
    citation="Zhang et al. 2020, When Radiology Report Generation Meets Knowledge Graph, AAAI; "
    "mentions by the rules of vlscore.findings",
    parameters=(
        Parameter("positive", 0.8, "weight of stated findings against denied ones"),
        Parameter("attributes", 0.3, "weight of a finding's attributes against the finding"),
    ),
    further=(
        Output("precision", "MIRQI-p"),
        Output("recall", "MIRQI-r"),
    ),
)
