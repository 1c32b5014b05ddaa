"""CheXbert's labels and vectors, by our own inference over the published checkpoint."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.definitions.chexbert import WEIGHTS_VARIABLE
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.counting import share
from vlscore.metrics.providers.local_weights import (
    LocalWeightsProvider,
    name_and_digest,
    precision_of,
    vocabulary_place,
    weights_place,
)

if TYPE_CHECKING:
    from vlscore.annotators import CheXbertAnnotation

_OBSERVATIONS = 14
Flags = NDArray[np.bool_]


class CheXbertProvider(LocalWeightsProvider):
    """Every distinct report is read once, whichever of the metrics asks."""

    supports = ("chexbert-f1", "chexbert-similarity")

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        if not len(batch):
            return Computed(
                [np.empty(0) for _ in metric.columns],
                np.empty((0, metric.statistics)) if metric.statistics else None,
            )
        from vlscore.annotators.memory import remembered_chexbert

        assert batch.references is not None
        annotator = remembered_chexbert(*self.files(metric), precision_of(metric))
        read = self.annotated(annotator, metric, batch)
        candidates, references = read[: len(batch)], read[len(batch) :]
        truncated = np.array(
            [g.is_truncated or r.is_truncated for g, r in zip(candidates, references, strict=True)],
            dtype=np.float64,
        )
        if metric.name == "chexbert-similarity":
            return Computed([_cosines(candidates, references), truncated])
        return _agreement(candidates, references, str(metric.settings["uncertain"]), truncated)

    def corpus(self, metric: Metric, sums: Values) -> Mapping[str, Values]:
        tp, fp, fn = (sums[:, k * _OBSERVATIONS : (k + 1) * _OBSERVATIONS] for k in range(3))
        found = {}
        for suffix, chosen in (("", list(range(_OBSERVATIONS))), ("-5", _five())):
            t, p, n = (x[:, chosen] for x in (tp, fp, fn))
            found[f"micro{suffix}"] = share(2 * t.sum(1), (2 * t + p + n).sum(1), 0.0)
            found[f"macro{suffix}"] = share(2 * t, 2 * t + p + n, 0.0).mean(1)
        return found

    def conventions(self, metric: Metric) -> dict[str, str]:
        weights, vocabulary = self.present_files(metric)
        return {"weights": name_and_digest(weights), "vocabulary": name_and_digest(vocabulary)}

    def files(self, metric: Metric) -> tuple[Path, Path]:
        from vlscore.annotators.places import chexbert_files

        what = "the checkpoint chexbert.pth of github.com/stanfordmlgroup/CheXbert"
        return chexbert_files(
            weights_place(metric, WEIGHTS_VARIABLE, what), vocabulary_place(metric)
        )


def _agreement(
    candidates: "Sequence[CheXbertAnnotation]",
    references: "Sequence[CheXbertAnnotation]",
    uncertain: str,
    truncated: Values,
) -> Computed:
    from vlscore.annotators.chexbert import POSITIVE, UNCERTAIN

    predicted, wanted = (
        np.stack([each.classes for each in part]) for part in (candidates, references)
    )
    positive = [POSITIVE, UNCERTAIN] if uncertain == "positive" else [POSITIVE]
    compared = np.ones(predicted.shape, dtype=np.bool_)
    if uncertain == "ignored":
        compared = (predicted != UNCERTAIN) & (wanted != UNCERTAIN)
    has, should = np.isin(predicted, positive), np.isin(wanted, positive)
    counts = [has & should & compared, has & ~should & compared, ~has & should & compared]
    tp, fp, fn = (x.sum(1).astype(np.float64) for x in counts)
    five = [x[:, _five()].sum(1).astype(np.float64) for x in counts]
    columns = [
        share(2 * tp, 2 * tp + fp + fn),
        share(tp, tp + fp),
        share(tp, tp + fn),
        share(2 * five[0], 2 * five[0] + five[1] + five[2]),
        truncated,
    ]
    return Computed(columns, np.hstack(counts).astype(np.float64))


def _cosines(
    candidates: "Sequence[CheXbertAnnotation]", references: "Sequence[CheXbertAnnotation]"
) -> Values:
    g, r = (
        np.stack([each.embedding for each in part]).astype(np.float64)
        for part in (candidates, references)
    )
    cosines = (g * r).sum(1) / (np.linalg.norm(g, axis=1) * np.linalg.norm(r, axis=1))
    return np.asarray(np.clip(cosines, -1.0, 1.0))


def _five() -> list[int]:
    from vlscore.annotators.chexbert import FIVE, OBSERVATIONS

    return [OBSERVATIONS.index(name) for name in FIVE]
