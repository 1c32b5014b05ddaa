"""Agreement of findings, by our own rules."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vlscore._version import __version__
from vlscore.findings import CHEXPERT_LABELS
from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.definitions.findings_f1 import COMPETITION
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.base import Provider
from vlscore.metrics.providers.counting import share

# "No Finding" is the absence of the others, and is counted like them, as CheXbert's F1 does.
_OBSERVATIONS = len(CHEXPERT_LABELS)
_NO_FINDING = "No Finding"


class FindingsProvider(Provider):
    """Precision, recall and F1 of CheXpert observations; the artefact holds each text's labels."""

    library = "vlscore"
    supports = ("findings-f1",)

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        candidates, references = batch.artefacts["chexpert-labels"]
        counts_uncertain = metric.settings["uncertain"] == "positive"
        predicted = _positives(candidates, counts_uncertain)
        wanted = _positives(references, counts_uncertain)
        hits, extra, missed = predicted & wanted, predicted & ~wanted, ~predicted & wanted
        if metric.settings["unmentioned"] == "ignored":
            extra = extra & _mentioned(references)
        tp, fp, fn = (x.sum(1).astype(np.float64) for x in (hits, extra, missed))
        statistics = np.hstack([hits, extra, missed]).astype(np.float64)
        columns = [share(2 * tp, 2 * tp + fp + fn), share(tp, tp + fp), share(tp, tp + fn)]
        return Computed(columns, statistics)

    def corpus(self, metric: Metric, sums: Values) -> Mapping[str, Values]:
        tp, fp, fn = (sums[:, k * _OBSERVATIONS : (k + 1) * _OBSERVATIONS] for k in range(3))
        f1 = share(2 * tp, 2 * tp + fp + fn)
        everyone = list(range(_OBSERVATIONS))
        five = [CHEXPERT_LABELS.index(name) for name in COMPETITION]
        found = {}
        for suffix, chosen in (("", everyone), ("-5", five)):
            t, p, n, f = (x[:, chosen] for x in (tp, fp, fn, f1))
            occurs = (t + p + n) > 0
            counted = occurs.sum(1)
            found[f"micro{suffix}"] = share(2 * t.sum(1), (2 * t + p + n).sum(1))
            mean = (f * occurs).sum(1) / np.maximum(counted, 1)
            found[f"macro{suffix}"] = np.where(counted > 0, mean, 1.0)
        names = (output.name for output in metric.corpus[-len(five) :])
        return {**found, **{name: f1[:, k] for name, k in zip(names, five, strict=True)}}

    def facts(self, metric: Metric) -> dict[str, Any]:
        return {"labels": f"vlscore.findings@{__version__}"}


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
