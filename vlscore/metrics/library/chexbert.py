"""CheXbert metrics: F1 of the labels, and cosine of the vectors, of two reports.

vlscore runs the published checkpoint with its own inference code.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.library.file_metric import FileMetric, path_parameter
from vlscore.metrics.library.label_f1 import LABEL_AVERAGES, LabelF1, f1_precision_recall
from vlscore.metrics.memo import name_and_digest
from vlscore.metrics.metric import Output, parameter
from vlscore.metrics.networks.categories import BLANK, OBSERVATIONS, POSITIVE, UNCERTAIN

if TYPE_CHECKING:
    from vlscore.metrics.networks.chexbert_network import CheXbertAnnotation

WEIGHTS_VARIABLE = "VLSCORE_CHEXBERT"

_CORPUS = LabelF1.of_chexpert(OBSERVATIONS)
_CITATION = "Smit et al. 2020, CheXbert, EMNLP"
_WEIGHTS = (
    f"chexbert.pth, or a folder with it; default: {WEIGHTS_VARIABLE}, else the file that "
    "`vlscore weights fetch chexbert` downloads"
)
_VOCABULARY = (
    "vocab.txt of bert-base-uncased; default: next to the checkpoint, else the hub's cache"
)
_TRUNCATED = Output(
    "truncated",
    "1 where the tail of a report, beyond 512 tokens, was not read",
    higher_is_better=False,
)


class _CheXbertMetric(FileMetric):
    """Base of both metrics; every distinct report is read once for both."""

    def files(self) -> tuple[Path, Path]:
        from vlscore.metrics.networks.model_files import chexbert_files

        vocabulary = self.settings["vocabulary"]
        return chexbert_files(
            self.path_of("weights", WEIGHTS_VARIABLE, "chexbert"),
            None if vocabulary is None else str(vocabulary),
        )

    def facts(self) -> dict[str, Any]:
        weights, vocabulary = self.present_files()
        digests = {"weights": name_and_digest(weights), "vocabulary": name_and_digest(vocabulary)}
        return {"precision": "fp32", **digests}

    def _read(
        self, batch: Batch
    ) -> "tuple[list[CheXbertAnnotation], list[CheXbertAnnotation], Values]":
        """Return what is read in candidates and references, and whether either was cut off."""
        from vlscore.metrics.networks.chexbert_network import annotations

        pairs = batch.read(annotations, batch.memo, *self.files())
        truncated = [float(g.is_truncated or r.is_truncated) for g, r in pairs]
        return [g for g, _ in pairs], [r for _, r in pairs], np.array(truncated)


class CheXbertF1(_CheXbertMetric):
    """F1 of the labels."""

    name = "chexbert-f1"
    title = "CheXbert F1"
    description = (
        "F1 of the fourteen observations that CheXbert reads in candidate and reference; "
        "0 for a blank candidate, else 1 if it reads none in either report"
    )
    citation = _CITATION
    bounds = (0.0, 1.0)
    further = (
        Output("precision", "share of the candidate's observations that the reference has"),
        Output("recall", "share of the reference's observations that the candidate has"),
        Output("five", "F1 of cardiomegaly, edema, consolidation, atelectasis, pleural effusion"),
        _TRUNCATED,
    )
    # True positives, false positives and false negatives of each observation.
    statistics = 3 * len(OBSERVATIONS)
    corpus = LABEL_AVERAGES
    primary = "micro-13"

    uncertain: str = parameter(
        "positive",
        "what an uncertain observation counts as; ignored: it is not compared",
        choices=("positive", "negative", "ignored"),
    )
    absent: str = parameter(
        "undefined",
        "F1 over a corpus of an observation that no report has: undefined, and left out of "
        "macro; or zero, as in f1chexbert",
        choices=("undefined", "zero"),
    )
    weights: str | None = path_parameter(_WEIGHTS)
    vocabulary: str | None = path_parameter(_VOCABULARY)

    def compute(self, batch: Batch) -> Computed:
        candidates, references, truncated = self._read(batch)
        predicted, wanted = _classes(candidates), _classes(references)
        # The network reads labels, "No Finding" among them, even in a text without words.
        stated = np.array([bool(text.strip()) for text in batch.candidates], dtype=np.bool_)
        predicted[~stated] = BLANK
        positive = [POSITIVE, UNCERTAIN] if self.uncertain == "positive" else [POSITIVE]
        compared = np.ones(predicted.shape, dtype=np.bool_)
        if self.uncertain == "ignored":
            compared = (predicted != UNCERTAIN) & (wanted != UNCERTAIN)
        has, should = np.isin(predicted, positive), np.isin(wanted, positive)
        counts = [has & should & compared, has & ~should & compared, ~has & should & compared]
        of_all, of_five = (
            f1_precision_recall(tp, fp, fn, stated.astype(np.float64))
            for suffix in ("-14", "-5")
            for tp, fp, fn in [
                [x[:, _CORPUS.groups[suffix]].sum(1).astype(np.float64) for x in counts]
            ]
        )
        return Computed([*of_all, of_five[0], truncated], np.hstack(counts).astype(np.float64))

    def corpus_values(self, sums: Values) -> Mapping[str, Values]:
        return _CORPUS.values(sums, absent=0.0 if self.absent == "zero" else np.nan)

    def counted_labels(self) -> tuple[str, ...]:
        return () if self.uncertain == "ignored" else tuple(OBSERVATIONS)

    def support(self, sums: Values) -> Mapping[str, Values]:
        return _CORPUS.supports(sums)


class CheXbertSimilarity(_CheXbertMetric):
    """Cosine of the vectors."""

    name = "chexbert-similarity"
    title = "CheXbert similarity"
    description = "cosine of CheXbert's [CLS] vectors (s_emb of Yu et al. 2023)"
    citation = f"{_CITATION}; Yu et al. 2023, Patterns"
    bounds = (-1.0, 1.0)
    further = (_TRUNCATED,)
    reference_scores_best = True

    weights: str | None = path_parameter(_WEIGHTS)
    vocabulary: str | None = path_parameter(_VOCABULARY)

    def compute(self, batch: Batch) -> list[Values]:
        candidates, references, truncated = self._read(batch)
        if not candidates:
            return [truncated, truncated]
        g, r = (
            np.stack([each.embedding for each in part]).astype(np.float64)
            for part in (candidates, references)
        )
        cosines = (g * r).sum(1) / (np.linalg.norm(g, axis=1) * np.linalg.norm(r, axis=1))
        return [np.clip(cosines, -1.0, 1.0), truncated]


def _classes(read: "Sequence[CheXbertAnnotation]") -> Any:
    found = np.array([each.classes for each in read], dtype=np.int64)
    return found.reshape(-1, len(OBSERVATIONS))
