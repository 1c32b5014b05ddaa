"""Studies in, scores out."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from vlscore._signature import Signature
from vlscore.embedding import EmbeddedRows, ImageDecoder, StudyEmbedder, StudyViews
from vlscore.encoders import JointEncoder, Precision
from vlscore.errors import InvalidReport, InvalidSetting, VLScoreError
from vlscore.images import ImagePolicy
from vlscore.metrics import Batch, EmbeddingTriples, Metric, MetricValues, Plan, find_metrics
from vlscore.reports import TextPolicy, select, select_from_parts
from vlscore.scorer.arguments import items_of
from vlscore.scorer.geometry import FLAGS, geometry
from vlscore.scorer.result import Score, ScoreTable

OnError = Literal["raise", "keep"]

# Options whose scorers `vlscore.score` keeps loaded; each may hold an encoder.
_KEPT = 4


@dataclass(eq=False)
class Item:
    """One study on its way to a score.

    Attributes:
        candidate, reference: reports; a reference may be None where no metric looks at it.
        shown: its images; None where no metric looks at them.
        parts: findings and impression of the reference, where they are known apart.
    """

    candidate: str
    reference: str | None
    shown: StudyViews | None = None
    parts: Mapping[str, str] | None = None


class Scorer:
    """Scores candidates against image and reference; keeps the encoder between calls.

    Args:
        encoder: name, or a loaded JointEncoder or StudyEmbedder; default: VLSCORE_ENCODER, else
            the bundled demonstration encoder, which warns. No encoder is loaded where no metric
            looks at embeddings.
        metrics: one metric or several, as in "vlscore" (Eq. 2) or "vlscore,cosine,bleu-4"; the
            first is the score.
        similarity: the same for one metric of embeddings, under its older name.
        C: constant of Eq. 2, for the metric vlscore; default: the encoder's published one.
        text_policy: which section of a report is scored; see TextPolicy.
        device, precision, batch_size, image_policy, views, weights, tokenizer: see StudyEmbedder.

    Attributes:
        plan: the metrics and what they need.
        embedder: what embeds studies; None where no metric looks at embeddings.

    Raises:
        UnknownName, InvalidSetting: a name or value that cannot be honoured.
        MissingDependency: a metric's library is absent.
        WeightsNotFound and others of `load_encoder`.
    """

    def __init__(
        self,
        encoder: str | JointEncoder | StudyEmbedder | None = None,
        *,
        metrics: Any = None,
        similarity: str | Metric | None = None,
        C: float | None = None,
        text_policy: TextPolicy | str | None = None,
        device: str | None = None,
        precision: Precision = "fp32",
        batch_size: int = 16,
        image_policy: ImagePolicy | str | None = None,
        views: str = "first-frontal",
        weights: str | None = None,
        tokenizer: str | None = None,
    ) -> None:
        self.text_policy = TextPolicy.named(text_policy)
        self.plan = Plan(_chosen(metrics, similarity, C), text=self.text_policy.signature())
        self.plan.require()
        self.embedder: StudyEmbedder | None = None
        if isinstance(encoder, StudyEmbedder):
            self.embedder = encoder
        elif self.plan.needs.embeddings:
            self.embedder = StudyEmbedder(
                encoder,
                device=device,
                precision=precision,
                batch_size=batch_size,
                image_policy=image_policy,
                views=views,
                weights=weights,
                tokenizer=tokenizer,
            )
        self.signatures = self._signatures()

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics, the first first."""
        return self.plan.metrics

    @property
    def signature(self) -> Signature:
        """What the first metric's values depend on."""
        return next(iter(self.signatures.values()))

    def with_metrics(self, metrics: Sequence[Metric]) -> "Scorer":
        """A scorer of other metrics with the same encoder and policies; nothing is loaded again."""
        other = Scorer(
            self.embedder if self.embedder is not None else None,
            metrics=metrics,
            text_policy=self.text_policy,
        )
        return other._with_plan(other.plan.fitted_as(self.plan.fits))

    def fit(self, references: Iterable[str | Item]) -> "Scorer":
        """The same scorer, its metrics fitted to the references of a whole run.

        Metrics such as CIDEr-D weigh words by how many references hold them; without this they
        are fitted to each batch by itself. The text policy is applied here.

        Args: references: of every study, read once; those that cannot be read are left out.
        Raises: InvalidReport for one text instead of several.
        """
        if isinstance(references, str | bytes):
            raise InvalidReport("references is a list of reports, not one text")
        return self._with_plan(self.plan.fit(self._references_of(references)))

    @overload
    def score(
        self, image: Any, candidate: str, reference: str | None = None, *, on_error: OnError = ...
    ) -> Score: ...
    @overload
    def score(
        self,
        image: Any,
        candidate: Sequence[str],
        reference: Sequence[str] | str | None = None,
        *,
        on_error: OnError = ...,
    ) -> ScoreTable: ...
    def score(
        self,
        image: Any,
        candidate: Any,
        reference: Any = None,
        *,
        on_error: OnError = "raise",
    ) -> Score | ScoreTable:
        """Score one study, or a batch of them.

        Args:
            image: path, PIL image, array, tensor or Radiograph; a tuple of them is one study of
                several views; a list is a batch, and so is an array (n, height, width) beside n
                texts. None where no metric looks at images.
            candidate: generated report, or several: a list, tuple, array or Series.
            reference: reference report, or several.
            on_error: in a batch, "raise" the first error, or "keep" going: the table then lists
                the failures and holds nan in their place.

        Returns: a Score for a single study, a ScoreTable for a batch. A single value beside lists
            holds for every entry.
        Raises: UnreadableImage, InvalidReport, InvalidStudy, InvalidSetting.
        """
        if on_error not in ("raise", "keep"):
            raise InvalidSetting(f'on_error is "raise" or "keep", not {on_error!r}')
        rows, is_batch = items_of(image, candidate, reference, self.plan.needs)
        table = self.score_items(
            [Item(g, r, None if i is None else StudyViews(i)) for i, g, r in rows]
        )
        if is_batch and on_error == "keep":
            return table
        for position, error in table.failures.items():
            if is_batch:
                raise type(error)(f"study {position}: {error}") from error
            raise error
        return table if is_batch else table[0]

    def begin_decoding(self, item: Item, decoder: ImageDecoder) -> Item:
        """Choose the item's views and hand them to the decoder; errors stay with the item."""
        if self.embedder is not None and item.shown is not None:
            self.embedder.begin(item.shown, decoder)
        return item

    def score_items(self, items: Sequence[Item]) -> ScoreTable:
        """Score a batch; failures are listed in the table, never raised."""
        candidates, references, failures = self._select(items)
        rows = [row for row in range(len(items)) if row not in failures]
        texts = [candidates[row] for row in rows]
        against = [references[row] for row in rows] if self.plan.needs.references else None
        triples: EmbeddingTriples | None = None
        flags: dict[str, NDArray[Any]] = {}
        if self.plan.needs.embeddings:
            triples, flags = self._embed([items[row] for row in rows], texts, against)
        values = self.plan.values(Batch(texts, against, triples))
        numbers = geometry(triples) if triples is not None else {}
        return _spread(values, {**numbers, **flags}, rows, failures, len(items))

    def _references_of(self, references: Iterable[str | Item]) -> Iterator[str]:
        for each in references:
            item = each if isinstance(each, Item) else Item("", each)
            try:
                yield self._reference(item)
            except VLScoreError:
                continue

    def _with_plan(self, plan: Plan) -> "Scorer":
        other = copy(self)
        other.plan = plan
        other.signatures = other._signatures()
        return other

    def _signatures(self) -> dict[str, Signature]:
        return {str(metric): self._signature(metric) for metric in self.plan.metrics}

    def _signature(self, metric: Metric) -> Signature:
        embedder = self.embedder
        if embedder is None:
            return self.plan.signature(metric)
        return self.plan.signature(metric, embedder.signature, embedder.C)

    def _select(
        self, items: Sequence[Item]
    ) -> tuple[list[str], list[str], dict[int, VLScoreError]]:
        """What the text policy takes of each report, once for all metrics."""
        failures: dict[int, VLScoreError] = {}
        candidates, references = [""] * len(items), [""] * len(items)
        for row, item in enumerate(items):
            try:
                candidates[row] = select(item.candidate, self.text_policy, "candidate")
                if self.plan.needs.references:
                    references[row] = self._reference(item)
            except VLScoreError as error:
                failures[row] = error
        return candidates, references, failures

    def _reference(self, item: Item) -> str:
        if item.parts is not None:
            return select_from_parts(item.parts, self.text_policy, role="reference")
        return select(item.reference, self.text_policy, "reference")  # type: ignore[arg-type]

    def _embed(
        self, items: Sequence[Item], candidates: list[str], references: list[str] | None
    ) -> tuple[EmbeddingTriples, dict[str, NDArray[Any]]]:
        embedder = self.embedder
        assert embedder is not None
        g = embedder.embed_texts(candidates)
        r = embedder.embed_texts(references) if references is not None else None
        i: EmbeddedRows | None = None
        if self.plan.needs.images:
            i = embedder.embed_studies([item.shown or StudyViews(()) for item in items])
        failures: dict[int, VLScoreError] = {}
        for part in (g, r, i):
            if part is not None:
                failures = {**part.failures, **failures}
        triples = EmbeddingTriples(
            None if i is None else i.vectors,
            g.vectors,
            None if r is None else r.vectors,
            embedder.signature,
            embedder.C,
            failures,
        )
        flags = {"candidate_truncated": g.truncated.numpy()}
        if r is not None:
            flags["reference_truncated"] = r.truncated.numpy()
        return triples, flags


@overload
def score(image: Any, candidate: str, reference: str | None = None, **options: Any) -> Score: ...
@overload
def score(
    image: Any,
    candidate: Sequence[str],
    reference: Sequence[str] | str | None = None,
    **options: Any,
) -> ScoreTable: ...
def score(image: Any, candidate: Any, reference: Any = None, **options: Any) -> Score | ScoreTable:
    """Score generated reports against image and reference.

    Args:
        image: path (DICOM, PNG, JPEG, TIFF), PIL image, array or tensor; a tuple of them is one
            study of several views; a list is a batch. None for metrics of texts alone.
        candidate: generated report, or several.
        reference: reference report, or several.
        options: as in `Scorer` (encoder, metrics, device, precision, ...), and `on_error` as in
            `Scorer.score`. The encoders of the latest four combinations of options stay loaded.

    Returns: a Score, or a ScoreTable for a batch.
    Raises: UnreadableImage, InvalidReport, InvalidStudy and those of `Scorer`.
    """
    on_error = options.pop("on_error", "raise")
    # A changed environment variable is another default.
    default = os.environ.get("VLSCORE_ENCODER")
    frozen = {n: tuple(v) if isinstance(v, list) else v for n, v in sorted(options.items())}
    scorer = _shared_scorer(default, **frozen)
    found: Score | ScoreTable = scorer.score(image, candidate, reference, on_error=on_error)
    return found


@lru_cache(maxsize=_KEPT)
def _shared_scorer(default_encoder: str | None, **options: Any) -> Scorer:
    return Scorer(**options)


def _chosen(metrics: Any, similarity: str | Metric | None, C: float | None) -> tuple[Metric, ...]:
    if metrics is not None and similarity is not None:
        raise InvalidSetting("similarity is the older name of metrics; give one of them")
    named = metrics if metrics is not None else similarity
    found = find_metrics("vlscore" if named is None else named)
    if C is None:
        return found
    if not any(_has_C(metric) for metric in found):
        raise InvalidSetting(f"none of {', '.join(map(str, found))} has a constant C")
    return tuple(metric(C=C) if _has_C(metric) else metric for metric in found)


def _has_C(metric: Metric) -> bool:
    return "C" in metric.settings


def _spread(
    values: Mapping[Metric, MetricValues],
    extra: Mapping[str, NDArray[Any]],
    rows: list[int],
    failures: Mapping[int, VLScoreError],
    count: int,
) -> ScoreTable:
    """The table of all rows from the values of those whose texts could be taken."""
    if len(rows) == count:
        return ScoreTable(values, extra)

    def numbers(column: NDArray[np.float64]) -> NDArray[np.float64]:
        full = np.full((count, *column.shape[1:]), np.nan)
        full[rows] = column
        return full

    wide = {
        metric: replace(
            each,
            columns={name: numbers(column) for name, column in each.columns.items()},
            statistics=None
            if each.statistics is None
            else np.nan_to_num(numbers(each.statistics), nan=0.0),
            failures=dict(
                sorted(
                    {
                        **failures,
                        **{rows[k]: error for k, error in each.failures.items()},
                    }.items()
                )
            ),
        )
        for metric, each in values.items()
    }
    described: dict[str, NDArray[Any]] = {}
    for name, column in extra.items():
        if name in FLAGS:
            described[name] = np.zeros(count, dtype=bool)
            described[name][rows] = column
        else:
            described[name] = numbers(column)
    return ScoreTable(wide, described)
