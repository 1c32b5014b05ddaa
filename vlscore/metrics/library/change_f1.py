"""F1 of the changes since an earlier examination that two reports state, finding by finding."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.findings import CHEXPERT_LABELS
from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.library.findings_f1 import FindingsMetric, findings_of
from vlscore.metrics.library.label_f1 import LabelF1, f1_precision_recall, slug
from vlscore.metrics.metric import Output

if TYPE_CHECKING:
    from vlscore.findings import FindingChange

_OTHER = "Other"
#: Findings by which changes are counted; what belongs to no CheXpert label is "Other".
LABELS = (*(name for name in CHEXPERT_LABELS if name != "No Finding"), _OTHER)
#: Labels of parts of the chest, where a report compares them without a finding.
_OF_PARTS = {
    "heart": "Cardiomegaly",
    "cardiomediastinum": "Enlarged Cardiomediastinum",
    "mediastinum": "Enlarged Cardiomediastinum",
}
_CORPUS = LabelF1(LABELS, {"": range(len(LABELS))}, shown=LABELS)


class ChangeF1(FindingsMetric):
    """Precision, recall and F1 of (finding, change) pairs.

    The mean over studies is mostly that of pairs that speak of no change; micro counts none of
    these, and is undefined where no report speaks of one.
    """

    name = "change-f1"
    title = "Change F1"
    description = (
        "F1 of the changes (new, worse, unchanged, improved, resolved) of findings that candidate "
        "and reference state; 1 if neither states a change"
    )
    citation = (
        "rules of vlscore.findings; classes after Wu et al. 2021, Chest ImaGenome, and Bannur et "
        "al. 2023, BioViL-T"
    )
    bounds = (0.0, 1.0)
    further = (
        Output("precision", "share of the candidate's changes that the reference states"),
        Output("recall", "share of the reference's changes that the candidate states"),
    )
    statistics = 3 * len(LABELS)
    corpus = (
        Output("micro", "F1 of the counts of all findings; undefined where no report compares"),
        Output("macro", "mean F1 over the findings whose change some report states"),
        *(Output(slug(name), f"F1 of changes of {name}; undefined without any") for name in LABELS),
    )
    primary = "micro"
    read_as = "changes"

    def compute(self, batch: Batch) -> Computed:
        pairs = [[_items(report) for report in pair] for pair in findings_of(batch)]
        shared = _counts([candidate & reference for candidate, reference in pairs])
        extra = _counts([candidate - reference for candidate, reference in pairs])
        missed = _counts([reference - candidate for candidate, reference in pairs])
        tp, fp, fn = (counts.sum(1) for counts in (shared, extra, missed))
        # A silent pair counts 0 everywhere. It must not fail: `compare` would drop the study for
        # every system, also for one that invents a change there.
        return Computed(f1_precision_recall(tp, fp, fn), np.hstack([shared, extra, missed]))

    def corpus_values(self, sums: Values) -> Mapping[str, Values]:
        return _CORPUS.values(sums)

    def support(self, sums: Values) -> Mapping[str, Values]:
        return _CORPUS.supports(sums)


#: Label, what it is about where the label is "Other", and the change.
_Item = tuple[str, str, str]


def _items(report: Any) -> set[_Item]:
    from vlscore.findings import changes_of

    return {_item(change) for change in changes_of(report)}


def _item(change: "FindingChange") -> _Item:
    label = change.finding.chexpert if change.finding else _OF_PARTS.get(change.topic)
    return label or _OTHER, "" if label else change.topic, str(change.change)


def _counts(items: Sequence[set[_Item]]) -> Values:
    """Return (n, m) how many items of each label each report has."""
    counts = np.zeros((len(items), len(LABELS)))
    for row, own in enumerate(items):
        for label, _, _ in own:
            counts[row, LABELS.index(label)] += 1
    return counts
