"""MIRQI: agreement in mentions of findings, their polarity and attributes, with its known faults.

The published code counts as an error only what contradicts the reference. A finding of the
candidate that the reference never mentions is not a false positive, and one of the reference that
the candidate never mentions is not a false negative: a candidate with one right finding of ten has
recall 1. Every mention is compared only with the reference's first mention of its category, so a
report that denies a finding on one side and affirms it on the other does not agree with itself. A
repeated mention counts again. vlscore reproduces all this, so that the number is the published one.

Mentions are found by the rules of `vlscore.findings`, and counted as in the authors' code
(github.com/xiaosongwang/MIRQI, evaluate.py). The 1e-6 that it adds to denominators is left out;
0 / 0 is 0, as there.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from vlscore.errors import InvalidSetting
from vlscore.metrics.batch import Batch, Values
from vlscore.metrics.library.findings_f1 import (
    FindingsMetric,
    comparisons_parameter,
    findings_of,
)
from vlscore.metrics.metric import Output, parameter


class Mirqi(FindingsMetric):
    """F, precision and recall; 1 if neither report affirms or contradicts a finding."""

    name = "mirqi"
    title = "MIRQI"
    description = (
        "F measure of mentions that agree in finding and polarity, weighted by attributes; "
        "only contradictions are errors: omitted and invented findings are not"
    )
    citation = (
        "Zhang et al. 2020, When Radiology Report Generation Meets Knowledge Graph, AAAI; "
        "mentions by the rules of vlscore.findings"
    )
    bounds = (0.0, 1.0)
    further = (Output("precision", "MIRQI-p"), Output("recall", "MIRQI-r"))
    read_as = "mentions"

    positive: float = parameter(0.8, "weight of stated findings against denied ones")
    attributes: float = parameter(0.3, "weight of a finding's attributes against the finding")

    comparisons: str | None = comparisons_parameter()

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("positive", self.positive), ("attributes", self.attributes)):
            if not 0 <= value <= 1:
                raise InvalidSetting(f"{name} must be a weight from 0 to 1, not {value:g}")

    def compute(self, batch: Batch) -> Sequence[Values]:
        found = findings_of(batch, self.comparisons)
        pairs = [[_mentions(part) for part in pair] for pair in found]
        numbers = np.array([_scores(g, r, self.positive, self.attributes) for g, r in pairs])
        precision, recall = numbers.reshape(-1, 2).T
        total = precision + recall
        f = np.where(total > 0, 2 * precision * recall / np.where(total > 0, total, 1.0), 0.0)
        return [f, precision, recall]


class LabelMention(NamedTuple):
    """One mention of a finding: its CheXpert label, or its own name if it has none.

    `denied` is False for a finding that is affirmed or uncertain; `attributes` are side, place,
    severity and others.
    """

    category: str
    denied: bool
    attributes: tuple[str, ...]


def _mentions(report: Any) -> list[LabelMention]:
    """Return the mentions of a report's findings that are current."""
    from vlscore.findings import Polarity, Status

    return [
        LabelMention(
            finding.chexpert or finding.observation,
            finding.polarity is Polarity.NEGATIVE,
            tuple(dict.fromkeys(attribute.value for attribute in finding.attributes)),
        )
        for finding in report
        if finding.status is Status.CURRENT
    ]


def _scores(
    candidate: Sequence[LabelMention],
    reference: Sequence[LabelMention],
    positive: float,
    attributes: float,
) -> tuple[float, float]:
    """Compute precision and recall of one report."""
    first: dict[str, LabelMention] = {}
    for mention in reference:
        first.setdefault(mention.category, mention)
    tp = fp = tn = fn = 0.0
    for mention in candidate:
        other = first.get(mention.category)
        if other is None:
            continue
        if mention.denied:
            tn += other.denied
            fn += not other.denied
        elif other.denied:
            fp += 1
        else:
            tp += 1 - attributes
            if other.attributes:
                shared = sum(each in mention.attributes for each in other.attributes)
                tp += shared / len(other.attributes) * attributes
    states = any(not mention.denied for mention in candidate)
    if states == any(not mention.denied for mention in reference):
        precision, recall = (_part(tp, tp + fp), _part(tp, tp + fn)) if states else (1.0, 1.0)
    else:
        precision = recall = 0.0
    if tn:
        precision = precision * positive + _part(tn, tn + fn) * (1 - positive)
        recall = recall * positive + _part(tn, tn + fp) * (1 - positive)
    return precision, recall


def _part(count: float, whole: float) -> float:
    return count / whole if whole else 0.0
