"""CheXbert metrics: F1 of the labels, and cosine of the vectors, of two reports.

vlscore runs the published checkpoint with its own inference code.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.library.words import f1_precision_recall, label_f1s, label_supports
from vlscore.metrics.metric import Metric, Output, Parameter
from vlscore.metrics.provider import (
    LocalWeightsProvider,
    name_and_digest,
    precision_of,
    vocabulary_place,
    weights_place,
)

if TYPE_CHECKING:
    from vlscore.metrics.networks.chexbert_network import CheXbertAnnotation


WEIGHTS_VARIABLE = "VLSCORE_CHEXBERT"

_CITATION = "Smit et al. 2020, CheXbert, EMNLP"
WEIGHTS = Parameter(
    "weights",
    None,
    f"chexbert.pth, or a folder with it; default: {WEIGHTS_VARIABLE}; nothing is fetched",
    kind=str,
)
VOCABULARY = Parameter(
    "vocabulary",
    None,
    "vocab.txt of bert-base-uncased; default: beside the checkpoint, else the hub's cache",
    kind=str,
)
PRECISION = Parameter(
    "precision",
    "fp32",
    "of the network; bf16 is faster where the processor or GPU has units for it, and may change "
    "what is read in a report",
    ("fp32", "bf16"),
)
_TRUNCATED = Output(
    "truncated",
    "1 where the tail of a report, beyond 512 tokens, was not read",
    higher_is_better=False,
)


_OBSERVATIONS = 14


class CheXbertProvider(LocalWeightsProvider):
    """Provider of both CheXbert metrics; it reads every distinct report once for both."""

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        if not len(batch):
            return Computed(
                [np.empty(0) for _ in metric.columns],
                np.empty((0, metric.statistics)) if metric.statistics else None,
            )
        from vlscore.metrics.networks.chexbert_network import remembered_chexbert

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
        groups = _groups()
        found, f1 = label_f1s(sums, groups)
        if metric.settings["absent"] == "zero":
            for suffix, chosen in groups.items():
                found[f"micro{suffix}"] = np.nan_to_num(found[f"micro{suffix}"])
                found[f"macro{suffix}"] = np.nan_to_num(f1[:, chosen]).mean(1)
        return found

    def support(self, metric: Metric, sums: Values) -> Mapping[str, Values]:
        return label_supports(sums, _groups())[0]

    def conventions(self, metric: Metric) -> dict[str, str]:
        weights, vocabulary = self.present_files(metric)
        return {"weights": name_and_digest(weights), "vocabulary": name_and_digest(vocabulary)}

    def files(self, metric: Metric) -> tuple[Path, Path]:
        from vlscore.metrics.networks.model_files import chexbert_files

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
    from vlscore.metrics.networks.chexbert_network import POSITIVE, UNCERTAIN

    predicted, wanted = (
        np.stack([each.classes for each in part]) for part in (candidates, references)
    )
    positive = [POSITIVE, UNCERTAIN] if uncertain == "positive" else [POSITIVE]
    compared = np.ones(predicted.shape, dtype=np.bool_)
    if uncertain == "ignored":
        compared = (predicted != UNCERTAIN) & (wanted != UNCERTAIN)
    has, should = np.isin(predicted, positive), np.isin(wanted, positive)
    counts = [has & should & compared, has & ~should & compared, ~has & should & compared]
    of_all, of_five = (
        f1_precision_recall(*(x[:, chosen].sum(1).astype(np.float64) for x in counts))
        for chosen in _groups().values()
    )
    columns = [*of_all, of_five[0], truncated]
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


def _groups() -> dict[str, list[int]]:
    """Return suffix of a number's name -> the observations from which it is computed."""
    return {"": list(range(_OBSERVATIONS)), "-5": _five()}


def _five() -> list[int]:
    from vlscore.metrics.networks.chexbert_network import FIVE, OBSERVATIONS

    return [OBSERVATIONS.index(name) for name in FIVE]


CHEXBERT_F1 = Metric(
    provider=CheXbertProvider(),
    name="chexbert-f1",
    title="CheXbert F1",
    headline="micro",
    description="F1 of the fourteen observations that CheXbert reads in candidate and reference; "
    "1 where it reads none in either",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    citation=_CITATION,
    parameters=(
        Parameter(
            "uncertain",
            "positive",
            "what an uncertain observation counts as; ignored: it is not compared",
            ("positive", "negative", "ignored"),
        ),
        Parameter(
            "absent",
            "undefined",
            "F1 over a corpus of an observation that no report has: undefined, and left out of "
            "macro; or zero, as in f1chexbert",
            ("undefined", "zero"),
        ),
        WEIGHTS,
        VOCABULARY,
        PRECISION,
    ),
    further=(
        Output("precision", "share of the candidate's observations that the reference has"),
        Output("recall", "share of the reference's observations that the candidate has"),
        Output("five", "F1 of cardiomegaly, edema, consolidation, atelectasis, pleural effusion"),
        _TRUNCATED,
    ),
    # True positives, false positives and false negatives of each of fourteen observations.
    statistics=3 * 14,
    corpus=(
        Output("micro", "F1 of the counts of all observations together"),
        Output("macro", "mean F1 of the fourteen; `absent` says what one that never occurs counts"),
        Output("micro-5", "micro over the five"),
        Output("macro-5", "macro over the five"),
    ),
    cost="model",
)


CHEXBERT_SIMILARITY = Metric(
    provider=CheXbertProvider(),
    name="chexbert-similarity",
    title="CheXbert similarity",
    description="cosine of CheXbert's vectors of [CLS], the s_emb of Yu et al. 2023",
    higher_is_better=True,
    bounds=(-1.0, 1.0),
    reference_scores_best=True,
    citation=f"{_CITATION}; Yu et al. 2023, Patterns",
    parameters=(WEIGHTS, VOCABULARY, PRECISION),
    further=(_TRUNCATED,),
    cost="model",
)
