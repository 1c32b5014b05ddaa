"""Agreement of findings, by our own rules."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vlscore._signature import Signature
from vlscore._version import __version__
from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.base import Provider

# "No Finding" is the absence of the others, and is counted like them, as CheXbert's F1 does.
_OBSERVATIONS = 14


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
        tp, fp, fn = (x.sum(1).astype(np.float64) for x in (hits, extra, missed))
        statistics = np.hstack([hits, extra, missed]).astype(np.float64)
        columns = [_share(2 * tp, 2 * tp + fp + fn), _share(tp, tp + fp), _share(tp, tp + fn)]
        return Computed(columns, statistics)

    def corpus(self, metric: Metric, sums: Values) -> Mapping[str, Values]:
        tp, fp, fn = (sums[:, k * _OBSERVATIONS : (k + 1) * _OBSERVATIONS] for k in range(3))
        micro = _share(2 * tp.sum(1), (2 * tp + fp + fn).sum(1))
        occurs = (tp + fp + fn) > 0
        f1 = _share(2 * tp, 2 * tp + fp + fn)
        counted = occurs.sum(1)
        macro = np.where(counted > 0, (f1 * occurs).sum(1) / np.maximum(counted, 1), 1.0)
        return {"micro": micro, "macro": macro}

    def missing(self, metric: Metric) -> str | None:
        return None

    def facts(self, metric: Metric, inputs: Sequence[Signature] = ()) -> dict[str, Any]:
        return {"labels": f"vlscore.findings@{__version__}"}


def _positives(labels: Sequence[Mapping[str, int | None]], counts_uncertain: bool) -> Any:
    positive = (1, -1) if counts_uncertain else (1,)
    rows = [[value in positive for value in each.values()] for each in labels]
    return np.array(rows, dtype=bool).reshape(-1, _OBSERVATIONS)


def _share(part: Values, whole: Values) -> Values:
    """part / whole; 1 where both are 0: nothing was to be said, and nothing was."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 1.0)
