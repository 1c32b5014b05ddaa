"""Values of all systems for a stretch of studies: each image and each reference embedded once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray

from vlscore.embedding import EmbeddedRows, StudyEmbedder
from vlscore.errors import InvalidStudy, VLScoreError
from vlscore.meta import StudyVectors
from vlscore.metrics import Batch, EmbeddingTriples, Metric
from vlscore.scorer import Scorer
from vlscore.studies import Study


@dataclass(frozen=True)
class Layout:
    """Where the numbers of each metric stand in a row of numbers.

    Attributes:
        metrics: in order.
    """

    metrics: tuple[Metric, ...]

    @property
    def width(self) -> int:
        """Numbers in a row: every metric's columns, then what its corpus values are made of."""
        return sum(len(metric.columns) + metric.statistics for metric in self.metrics)

    def columns(self, metric: Metric) -> slice:
        """Of a metric's columns."""
        start = self._start(metric)
        return slice(start, start + len(metric.columns))

    def statistics(self, metric: Metric) -> slice:
        """Of what its corpus values are made of."""
        start = self._start(metric) + len(metric.columns)
        return slice(start, start + metric.statistics)

    def _start(self, metric: Metric) -> int:
        before = self.metrics[: self.metrics.index(metric)]
        return sum(len(each.columns) + each.statistics for each in before)


@dataclass(eq=False)
class SystemValues:
    """Values of one system for n studies.

    Attributes:
        numbers: (n, layout.width); nan where a study has no value.
        truncated: (n,) whether the encoder did not read the candidate's end; None without one.
        failures: study -> {metric: why it has no value}.
    """

    numbers: NDArray[np.float64]
    truncated: NDArray[np.bool_] | None = None
    failures: dict[int, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def joined(cls, parts: Sequence["SystemValues"]) -> "SystemValues":
        """The values of consecutive stretches of studies."""
        starts = np.cumsum([0, *(len(part.numbers) for part in parts)]).tolist()
        flags = [part.truncated for part in parts if part.truncated is not None]
        return cls(
            np.concatenate([part.numbers for part in parts]),
            np.concatenate(flags) if len(flags) == len(parts) else None,
            {
                start + k: reasons
                for start, part in zip(starts, parts, strict=False)
                for k, reasons in part.failures.items()
            },
        )


def compute_values(
    scorer: Scorer,
    studies: Sequence[Study],
    candidates: Sequence[str | None],
    images: StudyVectors | None,
    *,
    is_selected: bool = False,
) -> SystemValues:
    """Values of one system; what fails is listed, never raised.

    Args:
        candidates: of the n studies; None where the system has none.
        images: embedded already; None where no metric looks at them.
        is_selected: the text policy was applied to the candidates already.
    """
    layout = Layout(scorer.metrics)
    failures: dict[int, VLScoreError] = {}
    rows, chosen = [], []
    for row, (study, candidate) in enumerate(zip(studies, candidates, strict=True)):
        try:
            if candidate is None:
                raise InvalidStudy("the baseline has no report for this study")
            given = replace(study, candidate=None if is_selected else candidate)
            if not scorer.plan.needs.references:
                given = replace(given, reference=None, parts=None)
            given = given.selected(scorer.text_policy)
            chosen.append(replace(given, candidate=candidate) if is_selected else given)
            rows.append(row)
        except VLScoreError as error:
            failures[row] = error
    texts = [study.candidate or "" for study in chosen]
    against = None
    if scorer.plan.needs.references:
        against = [study.reference or "" for study in chosen]
    triples, truncated = None, None
    if scorer.embedder is not None:
        triples, flags = _embed(scorer.embedder, chosen, texts, against, images)
        truncated = np.zeros(len(studies), dtype=bool)
        truncated[rows] = flags
    found = scorer.plan.values(Batch(texts, against, triples))
    numbers = np.full((len(studies), layout.width), np.nan)
    names = [str(metric) for metric in scorer.metrics]
    reasons = {row: dict.fromkeys(names, str(error)) for row, error in failures.items()}
    for metric, values in found.items():
        numbers[rows, layout.columns(metric)] = np.stack(list(values.columns.values()), axis=1)
        if values.statistics is not None:
            numbers[rows, layout.statistics(metric)] = values.statistics
        for k, reason in values.failures.items():
            reasons.setdefault(rows[k], {})[str(metric)] = str(reason)
    return SystemValues(numbers, truncated, reasons)


def _embed(
    embedder: StudyEmbedder,
    studies: Sequence[Study],
    texts: Sequence[str],
    references: Sequence[str] | None,
    images: StudyVectors | None,
) -> tuple[EmbeddingTriples, NDArray[np.bool_]]:
    failures: dict[int, VLScoreError] = {}
    g = embedder.embed_texts(texts)
    r: EmbeddedRows | None = None
    if references is not None:
        r = embedder.embed_texts(references)
    for part in (g, r):
        failures |= part.failures if part is not None else {}
    i = None
    if images is not None:
        i, missing = vectors_of(studies, images, embedder.dim)
        failures |= missing
    triples = EmbeddingTriples(
        i,
        g.vectors,
        None if r is None else r.vectors,
        embedder.signature,
        embedder.C,
        failures,
    )
    return triples, g.truncated.numpy()


def vectors_of(
    studies: Sequence[Study], images: StudyVectors, dim: int
) -> tuple[torch.Tensor, Mapping[int, VLScoreError]]:
    """(n, d) embeddings of the studies' images, nan where there is none, and why."""
    vectors = torch.full((len(studies), dim), torch.nan)
    failures: dict[int, VLScoreError] = {}
    for row, study in enumerate(studies):
        if study.id in images.vectors:
            vectors[row] = images.vectors[study.id]
        else:
            failures[row] = images.failures.get(study.id) or InvalidStudy(
                f"study {study.id}: no image is given for it"
            )
    return vectors, failures
