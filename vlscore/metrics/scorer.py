"""Scorer of studies: applies the text policy, embeds, computes metrics, returns scores."""

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from numpy.typing import NDArray

from vlscore.core import Cache, Signature, check_word, first_of, warn_caller
from vlscore.data import (
    StudyTable,
    TextPolicy,
    check_texts,
    select,
    select_from_parts,
)
from vlscore.errors import InvalidReport, InvalidSetting, InvalidStudy, VLScoreError
from vlscore.metrics.arguments import Item, items_of, row_labels
from vlscore.metrics.batch import Batch, EmbeddingTriples
from vlscore.metrics.embedded_studies import embed_triples, stored_triples
from vlscore.metrics.metric import Metric
from vlscore.metrics.others import drawn_others, has_percentile, percentiles
from vlscore.metrics.plan import Plan
from vlscore.metrics.registry import find_metrics, read_presets, with_constant
from vlscore.metrics.scores import Score, ScoreTable, geometry
from vlscore.metrics.stored_vectors import check_vectors

if TYPE_CHECKING:
    from typing import Self

    from vlscore.data import ImagePolicy
    from vlscore.embedding import StudyEmbedder
    from vlscore.encoders import JointEncoder, Precision


DEFAULT_METRIC = "vlscore"
OnError = Literal["raise", "keep"]

_DEFAULTS = {"precision": "fp32", "views": "first-frontal", "cache": True}


class EmbedderOptions(TypedDict, total=False):
    """Options of `StudyEmbedder`, which describes them."""

    device: str | None
    precision: "Precision"
    batch_size: int | None
    image_policy: "ImagePolicy | str | None"
    views: str
    weights: str | None
    tokenizer: str | None
    cache: Cache | bool | str | os.PathLike[str]


class Scorer(Plan):
    """Scorer of candidates against image and reference; the encoder stays loaded between calls.

    It is a plan of metrics with a text policy and an encoder.

    Args:
        encoder: name, or a loaded JointEncoder or StudyEmbedder; default: VLSCORE_ENCODER, else
            the bundled demonstration encoder, which warns. No encoder is loaded if no metric looks
            at embeddings. Or vectors of a table's rows that were computed elsewhere, as
            `open_embeddings` returns them; then no image is read.
        metrics: one metric or several, as in "vlscore" (Eq. 2) or "vlscore,cosine,bleu-4"; the
            first is the score.
        C: constant of Eq. 2, for the metric vlscore; default: the encoder's published one.
        text_policy: which section of a report is scored; see TextPolicy. Default: that of a preset
            among the metrics, else the whole report.
        comparisons: "ignored": as of `find_metrics`.
        options: device, precision, batch_size, image_policy, views, weights, tokenizer and
            cache, as in `StudyEmbedder`.

    Attributes:
        text_policy: which section of a report is scored.
        preset_notes: what a user must know of presets among the metrics, one sentence each.
        preset_columns: the numbers of presets and further metrics in a table of systems; empty
            without a preset.
        others: candidates with which those of studies are compared; see `prepared`.
        embedder: the StudyEmbedder; None if no metric looks at embeddings, or there are vectors.
        vectors: those that were computed elsewhere, or None.

    Raises:
        UnknownName, InvalidSetting: a name that does not exist, or a value that cannot be used.
        MissingDependency: a metric's library is absent.
        WeightsNotFound and others of `load_encoder`.
    """

    def __init__(
        self,
        encoder: "str | JointEncoder | StudyEmbedder | EmbeddingTriples | None" = None,
        *,
        metrics: Any = None,
        C: float | None = None,
        text_policy: TextPolicy | str | None = None,
        comparisons: str | None = None,
        **options: Unpack[EmbedderOptions],
    ) -> None:
        if unknown := set(options) - set(EmbedderOptions.__annotations__):
            raise TypeError(f"Scorer has no argument {', '.join(sorted(unknown))}")
        section, self.preset_notes, self.preset_columns = read_presets(
            metrics, sections_may_differ=text_policy is not None
        )
        self.text_policy = TextPolicy.named(section if text_policy is None else text_policy)
        self.vectors = encoder if isinstance(encoder, EmbeddingTriples) else None
        embedder: Any = None
        if not (encoder is None or self.vectors or isinstance(encoder, str)):
            from vlscore.embedding import StudyEmbedder

            embedder = encoder if isinstance(encoder, StudyEmbedder) else None
        cache = options.get("cache", True) if embedder is None else embedder.cache or False
        chosen = find_metrics(DEFAULT_METRIC if metrics is None else metrics, comparisons)
        if C is not None:
            chosen = with_constant(chosen, C)
        super().__init__(chosen, text=self.text_policy.signature(), cache=cache)
        self.others: list[str] = []
        self.require()
        self.embedder: StudyEmbedder | None = None
        if self.vectors is not None:
            _refuse_options(options, "the vectors were computed elsewhere")
            check_vectors(self.vectors, self.steps)
            self.needs = replace(self.needs, images=False)
        elif embedder is not None:
            _refuse_options(options, "the StudyEmbedder has its own value")
            self.embedder = embedder if self.needs.embeddings else None
        elif self.needs.embeddings:
            from vlscore.embedding import StudyEmbedder  # loads torch

            self.embedder = StudyEmbedder(encoder, **options)  # type: ignore[arg-type]
        else:
            files = {name: options.get(name) for name in ("weights", "tokenizer")}
            _refuse_options(files, "no metric needs an encoder")
        _ = self.signatures  # Raises where a metric lacks its constant.

    @property
    def signatures(self) -> dict[str, Signature]:
        """Return metric -> what its values depend on."""
        source = self.vectors or self.embedder
        return {str(metric): self.signature_of(metric, source) for metric in self.metrics}

    @property
    def signature(self) -> Signature:
        """Return what the first metric's values depend on."""
        return next(iter(self.signatures.values()))

    @property
    def work(self) -> dict[str, int]:
        """Return counts of what was computed, and of what was in the cache."""
        found = self.embedder.work.to_dict() if self.embedder is not None else {}
        return {
            **found,
            "reports_annotated": self.memo.reports_annotated,
            "annotations_from_cache": self.memo.annotations_from_cache,
        }

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes for the user on images and on C, one sentence each."""
        if self.embedder is None:
            return ()
        from vlscore.embedding import constant_notes

        notes = self.embedder.notes if self.needs.images else ()
        uses_published_C = any(m.settings.get("C", 0.0) is None for m in self.steps)
        return (*notes, *constant_notes(self.embedder)) if uses_published_C else notes

    def language_notes(self, texts: Mapping[str, Iterable[str | None]]) -> list[str]:
        """Return notes where metrics read few sentences, or no word, of texts in other languages.

        Args: texts: role, as in "candidates", -> texts.
        """
        distinct = {role: [*dict.fromkeys(own)] for role, own in texts.items()}
        notes = [
            f"{metric} finds no word in {len(blind)} of {len(own)} different {role}, and scores "
            "them as empty; rouge-l(tokens=blanks) reads all that stands between blanks"
            for metric in self.steps
            if type(metric).is_blind_to is not Metric.is_blind_to
            for role, own in distinct.items()
            if (blind := [text for text in own if text and metric.is_blind_to(text)])
        ]
        readers = [
            str(metric)
            for metric in self.steps
            # A judge by a language model reads by no rules.
            if metric.uses_findings and not metric.settings.get("model")
        ]
        if not readers:
            return notes
        from vlscore.findings import language_notes

        return [*notes, *language_notes(distinct, readers)]

    def with_metrics(self, metrics: Sequence[Metric]) -> "Scorer":
        """Return a scorer of some of these metrics, with the same encoder and policies."""
        source: EmbeddingTriples | StudyEmbedder | None = self.embedder
        if self.vectors is not None and Plan(metrics).needs.embeddings:
            source = self.vectors
        other = Scorer(source, metrics=metrics, text_policy=self.text_policy)
        other.memo, other.fits, other.others = self.memo, self.fits, self.others
        return other

    def prepared(
        self,
        rows: "Iterable[str | Item | VLScoreError] | None" = None,
        table: StudyTable | None = None,
        *,
        ranked: bool = False,
    ) -> "Scorer":
        """Return the scorer for one run: fitted to its rows, with the images of its table.

        With `ranked`, `score_items` has a column "METRIC.percentile" of each metric that embeds the
        image: the rank of each candidate among those of other studies (`vlscore.metrics.others`).

        Args:
            rows: every study, or reference, of the run; read once, errors are left out. None:
                metrics such as CIDEr-D, which were not fitted yet, are fitted later.
            table: whose earlier images are used if possible; see `StudyEmbedder.for_table`.
        """
        other = copy(self)
        if table is not None and self.embedder is not None and self.needs.images:
            other.embedder = self.embedder.for_table(table)
        if rows is None or not (other.needs_fit or ranked):
            return other
        known = [row for row in rows if not isinstance(row, VLScoreError)]
        if other.needs_fit:
            other = other._fit(known)
        if ranked and self.embedder is not None and any(map(has_percentile, self.metrics)):
            texts: list[str] = []
            for row in known:
                with contextlib.suppress(VLScoreError):
                    candidate = row.candidate if isinstance(row, Item) else row
                    texts.append(select(candidate, self.text_policy, "candidate"))
            other.others = drawn_others(texts)
        return other

    def fit(self, references: Iterable[str | Item]) -> "Self":
        """Return the scorer with its metrics fitted to the references of a whole run.

        Metrics such as CIDEr-D weigh words by the number of references that contain them; without
        `fit` they are fitted to each batch separately. The text policy is applied here.

        Args: references: those of every study, read once; unreadable ones are left out.
        Raises: InvalidReport for one text, a dict, a set or a table in place of a list, and for
            references of which none can be read.
        """
        check_texts("references", references)
        given = list(references)
        fitted = self._fit(given)
        if any(fit.references == 0 for fit in fitted.fits.values()):
            raise InvalidReport(f"none of {len(given)} references can be read")
        return fitted

    def _fit(self, references: Iterable[str | Item]) -> "Self":
        """Return the scorer fitted to those references that can be read, even if none can."""
        usable: list[str] = []
        for each in references:
            with contextlib.suppress(VLScoreError):
                usable.append(self._reference(each if isinstance(each, Item) else Item("", each)))
        return super().fit(usable)

    @overload
    def score(
        self,
        image: list[Any],
        candidate: Any,
        reference: Any = None,
        *,
        on_error: OnError = "raise",
    ) -> ScoreTable: ...
    @overload
    def score(
        self,
        image: Any,
        candidate: str,
        reference: str | None = None,
        *,
        on_error: OnError = "raise",
    ) -> Score: ...
    @overload
    def score(
        self, image: Any, candidate: Any, reference: Any = None, *, on_error: OnError = "raise"
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
                several views, and so is a folder of images; a list is a batch, and so is an array
                (n, height, width) if there are n texts. None if no metric looks at images.
            candidate: generated report, or several: a list, tuple, array or Series.
            reference: reference report, or several.
            on_error: in a batch, "raise" the first error, or "keep" going: the table then lists
                the failures and holds nan in their place.

        Returns: a Score for a single study, a ScoreTable for a batch. If some arguments are lists,
            a single value applies to every entry. Of a Series, the table has the index.
        Raises: UnreadableImage, InvalidReport, InvalidStudy, InvalidSetting; ChecksumMismatch if
            the checkpoint changed since its digest was computed.
        """
        check_word("on_error", on_error, ("raise", "keep"))
        all_texts = on_error == "raise"
        items, is_batch = items_of(image, candidate, reference, self.needs, all_texts=all_texts)
        labels = None
        if is_batch:
            labels = row_labels(candidates=candidate, references=reference, images=image)
        table = replace(self.score_items(items), labels=labels)
        guessed = [k for k, item in enumerate(items) if item.shown and item.shown.guessed]
        if guessed:
            which = f" (of this call, counted from 0: {first_of(guessed)})" if is_batch else ""
            warn_caller(
                f"it is unknown which image is frontal in {len(guessed)} "
                f"{'studies' if len(guessed) > 1 else 'study'} with several images{which}; the "
                'first image was scored. Name one image, or choose views="mean" (--views mean)'
            )
        if is_batch and on_error == "keep":
            return table
        for position, error in table.failures.items():
            if is_batch:
                raise type(error)(f"study {position}: {error}") from error
            raise error
        return table if is_batch else table[0]

    def score_items(self, items: Sequence[Item]) -> ScoreTable:
        """Score a batch; failures are listed in the table, never raised.

        A study that lacks a reference or an image has the values of the metrics that do without.
        """
        if self.needs.references and "reference" not in self.required:
            items = [self._noted(item) for item in items]
        groups: dict[frozenset[str], list[int]] = {frozenset(): []}
        for row, item in enumerate(items):
            groups.setdefault(frozenset(item.lacking), []).append(row)
        if len(groups) == 1:
            return self._score_whole(items)
        found = self._score_whole([items[row] for row in groups.pop(frozenset())])
        rows = [row for row, item in enumerate(items) if not item.lacking]
        failures = {
            row: InvalidStudy("; ".join(item.lacking.values()))
            for row, item in enumerate(items)
            if item.lacking
        }
        table = found.spread(rows, len(items), failures)
        for lacking, own in groups.items():
            able = [m for m in self.metrics if not self._roles_of(m) & lacking]
            if able:
                part = self.with_metrics(able)._score_whole([items[row] for row in own])
                table = table.filled(part, own)
        return table

    def _noted(self, item: Item) -> Item:
        """Return the study; if its reference cannot be scored, with the reason in `lacking`."""
        if "reference" in item.lacking:
            return item
        try:
            self._reference(item)
        except VLScoreError as error:
            return replace(item, lacking={**item.lacking, "reference": str(error)})
        return item

    def _score_whole(self, items: Sequence[Item]) -> ScoreTable:
        """Score studies that have all that the metrics look at."""
        rows: list[int] = []
        candidates: list[str] = []
        references: list[str] = []
        failures: dict[int, VLScoreError] = {}
        for row, item in enumerate(items):
            try:
                candidate = select(item.candidate, self.text_policy, "candidate")
                if self.needs.references:
                    references.append(self._reference(item))
            except VLScoreError as error:
                failures[row] = error
            else:
                rows.append(row)
                candidates.append(candidate)
        texts = references if self.needs.references else None
        triples: EmbeddingTriples | None = None
        described: dict[str, NDArray[Any]] = {}
        if self.vectors is not None:
            triples = stored_triples(self.vectors, [items[row] for row in rows])
            described = geometry(triples)
        elif self.embedder is not None:
            shown = [items[row].shown for row in rows]
            triples, truncated = embed_triples(self.embedder, self.needs, candidates, texts, shown)
            described = {**geometry(triples), **truncated}
        batch = Batch(candidates, texts, triples, memo=self.memo)
        values = self.values(batch)
        if self.embedder is not None and self.others:
            own = {m: each.columns[0] for m, each in values.items() if has_percentile(m)}
            vectors = self.embedder.embed_texts(self.others).vectors
            described = {**percentiles(batch, own, self.others, vectors), **described}
        table = ScoreTable(values, described)
        return table.spread(rows, len(items), failures) if failures else table

    def _reference(self, item: Item) -> str:
        if item.parts is not None:
            return select_from_parts(item.parts, self.text_policy, role="reference")
        return select(item.reference, self.text_policy, "reference")  # type: ignore[arg-type]


def _refuse_options(options: Mapping[str, Any], reason: str) -> None:
    for name, value in options.items():
        if value != _DEFAULTS.get(name):
            raise InvalidSetting(f"{name}={value} was passed, but {reason}; leave it out")
