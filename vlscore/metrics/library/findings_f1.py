"""F1 of the findings of two reports, extracted by the rules of `vlscore.findings`."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from vlscore.findings import CHEXPERT_LABELS
from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.library.label_f1 import (
    COMPETITION,
    LABEL_AVERAGES,
    LabelF1,
    f1_precision_recall,
    slug,
)
from vlscore.metrics.metric import Metric, Output, parameter


class FindingsMetric(Metric):
    """Base of metrics of what the rules of `vlscore.findings` read; each text is read once.

    Attributes: read_as: name of the fact that states the version of the rules.
    """

    uses_findings = True
    normalisation: ClassVar[Mapping[str, str]] = {"case": "ignored", "masks": "one-word"}
    library = "vlscore"
    read_as: ClassVar[str] = "labels"

    def facts(self) -> dict[str, Any]:
        from vlscore.findings import extraction_name

        return {self.read_as: f"vlscore.findings@{extraction_name()}"}


def comparisons_parameter() -> Any:
    """Return the parameter `comparisons` of metrics that read findings."""
    return parameter(
        None,
        "ignored: comparisons with earlier examinations, and findings that have resolved, are left "
        "out of both reports; default: they count as they are read",
        choices=("ignored",),
        kind=str,
    )


_OBSERVATIONS = len(CHEXPERT_LABELS)
_NO_FINDING = "No Finding"
_CORPUS = LabelF1.of_chexpert(CHEXPERT_LABELS, shown=COMPETITION)


class FindingsF1(FindingsMetric):
    """Precision, recall and F1 of CheXpert observations."""

    name = "findings-f1"
    title = "Findings F1"
    description = (
        "F1 of CheXpert's fourteen observations, with No Finding, that candidate and reference "
        "state; 0 for a candidate that states nothing"
    )
    citation = "Irvin et al. 2019, CheXpert, AAAI (labels); rules of vlscore.findings"
    bounds = (0.0, 1.0)
    further = (
        Output("precision", "share of the candidate's observations that the reference states"),
        Output("recall", "share of the reference's observations that the candidate states"),
    )
    # True positives, false positives and false negatives of each observation.
    statistics = 3 * _OBSERVATIONS
    corpus = (
        *LABEL_AVERAGES,
        *(
            Output(slug(name), f"F1 of {name}; undefined where no report mentions it")
            for name in COMPETITION
        ),
    )
    primary = "micro-13"

    uncertain: str = parameter(
        "positive",
        "what an uncertain observation counts as",
        choices=("positive", "negative"),
    )
    unmentioned: str = parameter(
        "negative",
        "what an observation that the reference does not mention counts as: negative, as if "
        "it were denied, or ignored, so that the candidate is not judged on it; No Finding is "
        "always judged, for it follows from the others",
        choices=("negative", "ignored"),
    )

    comparisons: str | None = comparisons_parameter()

    def compute(self, batch: Batch) -> Computed:
        from vlscore.findings import chexpert_labels

        pairs = [
            [chexpert_labels(report) for report in pair]
            for pair in findings_of(batch, self.comparisons)
        ]
        candidates, references = [g for g, _ in pairs], [r for _, r in pairs]
        counts_uncertain = self.uncertain == "positive"
        predicted = _positives(candidates, counts_uncertain)
        wanted = _positives(references, counts_uncertain)
        hits, extra, missed = predicted & wanted, predicted & ~wanted, ~predicted & wanted
        if self.unmentioned == "ignored":
            extra = extra & _mentioned(references)
        tp, fp, fn = (x.sum(1).astype(np.float64) for x in (hits, extra, missed))
        statistics = np.hstack([hits, extra, missed]).astype(np.float64)
        # A report without any label states nothing, and nothing is right about it.
        of_nothing = predicted.any(1).astype(np.float64)
        return Computed(f1_precision_recall(tp, fp, fn, of_nothing), statistics)

    def corpus_values(self, sums: Values) -> Mapping[str, Values]:
        return _CORPUS.values(sums)

    def support(self, sums: Values) -> Mapping[str, Values]:
        return _CORPUS.supports(sums)

    def counted_labels(self) -> tuple[str, ...]:
        return CHEXPERT_LABELS if self.unmentioned == "negative" else ()

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "absent": "undefined"}


def findings_of(batch: Batch, comparisons: str | None = None) -> list[tuple[Any, Any]]:
    """Return the findings of candidate and reference of each study, each text read once.

    Args: comparisons: "ignored": without comparisons with earlier examinations.
    """
    from vlscore.findings import without_comparisons

    pairs = batch.read(batch.memo.read, _findings)
    if comparisons == "ignored":
        return [(without_comparisons(g), without_comparisons(r)) for g, r in pairs]
    return pairs


def _findings(texts: Sequence[str]) -> list[Any]:
    from vlscore.findings import extract

    return [extract(text) for text in texts]


def _positives(labels: Sequence[Mapping[str, int | None]], counts_uncertain: bool) -> Any:
    positive = (1, -1) if counts_uncertain else (1,)
    rows = [[value in positive for value in each.values()] for each in labels]
    return np.array(rows, dtype=bool).reshape(-1, _OBSERVATIONS)


def _mentioned(labels: Sequence[Mapping[str, int | None]]) -> Any:
    rows = [
        [value is not None or name == _NO_FINDING for name, value in each.items()]
        for each in labels
    ]
    return np.array(rows, dtype=bool).reshape(-1, _OBSERVATIONS)
