"""The oracle over a table of studies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from vlscore.errors import InvalidSetting, InvalidTable, VLScoreError
from vlscore.index.items import index_signature
from vlscore.index.store import Index
from vlscore.metrics import signature as metric_signature
from vlscore.oracle.exclusions import Exclusions, words
from vlscore.oracle.naming import oracle_metric
from vlscore.oracle.queries import Query, QueryBatch, QueryTable
from vlscore.oracle.text_metrics import best_texts
from vlscore.scorer import Scorer
from vlscore.search import EXACT_UP_TO, METRICS, Found, Oracle, recall
from vlscore.search.approximate import ApproximateIndex
from vlscore.search.corpus import Corpus
from vlscore.search.kernels import Array
from vlscore.search.objectives import GUARDS
from vlscore.search.sharding import Shards
from vlscore.studies import BadRow, ColumnNames

MODES = ("auto", "exact", "approximate")


@dataclass(frozen=True)
class OracleSettings:
    """What is searched for, and what may not be found.

    Attributes:
        metric: a name in METRICS, or a metric of texts such as "bleu-4".
        k: hits per study.
        guard: for vlscore, see `Line`.
        mode: "exact", "approximate", or "auto": exact up to a million rows.
        exclude_exact: never find a report that equals the reference, line breaks aside.
        exclude_ids: column that lists the ids a study must not find, its own or its patient's;
            a report goes when all studies that hold it are listed.
        candidates: metrics of texts: so many nearest by cosine are re-ranked; 0 for the whole
            corpus.
        ranks: rank each hit by its distance to the reference.
        effort: approximate mode: see `ApproximateIndex`; default: chosen for recall.
        sample: approximate mode: studies on which recall is measured.
    """

    metric: str = "vlscore"
    k: int = 10
    guard: str = "none"
    mode: str = "auto"
    exclude_exact: bool = False
    exclude_ids: str | None = None
    candidates: int = 200
    ranks: bool = True
    effort: int | None = None
    sample: int = 64

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidSetting(f"mode is one of {', '.join(MODES)}, not {self.mode!r}")
        object.__setattr__(self, "metric", oracle_metric(self.metric))
        if self.effort is not None and self.effort < 1:
            raise InvalidSetting(f"effort must be at least 1, not {self.effort}")
        if self.guard not in GUARDS:
            raise InvalidSetting(f"guard is one of {', '.join(GUARDS)}, not {self.guard!r}")
        if self.guard != "none" and self.metric != "vlscore":
            raise InvalidSetting(f"a guard belongs to vlscore, not to {self.metric}")

    @property
    def is_text_metric(self) -> bool:
        """Whether texts are compared, not embeddings."""
        return self.metric not in METRICS

    @property
    def search_metric(self) -> str:
        """The metric of the search by embeddings, which finds candidates for a metric of texts."""
        return "text-to-text" if self.is_text_metric else self.metric


@dataclass(frozen=True)
class Hit:
    """A report that was found.

    Attributes:
        found: its row and numbers.
        ids: of all reports that read like it.
        text: the report; the path, of an image.
        verbatim: whether it equals the reference, line breaks aside; None where that says nothing.
    """

    found: Found
    ids: list[str]
    text: str
    verbatim: bool | None


@dataclass(frozen=True)
class Answer:
    """One study's hits, best first, or why there are none."""

    row: int
    id: str | None
    hits: list[Hit] = field(default_factory=list)
    error: str | None = None


@dataclass(frozen=True)
class _Batch:
    """Studies ready to be searched for; travels from the first process to the others."""

    queries: list[Query]
    images: Array | None
    references: Array | None
    excluded: dict[int, list[int]]
    errors: list[Answer]


class OracleRun:
    """Searches an index for every study of a table.

    Args:
        index: the corpus.
        scorer: embeds the studies; None in other processes than the first.
        settings: what is searched for.
        shards: this process's place, where several share the corpus.
        device: where exact search multiplies.

    Attributes:
        recall: approximate mode, once the first studies are searched: k -> recall@k on a sample of
            them, for 1 and the k of the settings.

    Raises: InvalidIndex where the index was made with another encoder or other policies;
    InvalidSetting.
    """

    def __init__(
        self,
        index: Index,
        scorer: Scorer | None,
        settings: OracleSettings,
        *,
        shards: Shards | None = None,
        device: str = "cpu",
    ) -> None:
        self.index, self.settings = index, settings
        self.shards = shards or Shards()
        self._scorer = scorer
        self._check_fit()
        self._exclusions = Exclusions(
            index, exact=settings.exclude_exact, ids_column=settings.exclude_ids
        )
        self.oracle = self._make_oracle(device)
        self.recall: dict[int, float] = {}

    @property
    def is_approximate(self) -> bool:
        """Whether hits come from approximate search."""
        return self.oracle.approximate is not None

    @property
    def signature(self) -> str:
        """What the hits depend on, in one line; the first process knows it."""
        assert self._scorer is not None
        settings = self.settings
        excluded = [
            *(["exact"] if settings.exclude_exact else []),
            *([f"ids({settings.exclude_ids})"] if settings.exclude_ids is not None else []),
        ]
        effort = f"(effort={settings.effort})" if settings.effort is not None else ""
        parts = [
            str(replace(self._scorer.signature, similarity=settings.search_metric)),
            f"oracle:{'approximate' + effort if self.is_approximate else 'exact'}",
            *([f"guard:{settings.guard}"] if settings.metric == "vlscore" else []),
            *([f"excl:{'+'.join(excluded)}"] if excluded else []),
            f"index:{self.index.manifest.files['vectors'].sha256[:12]}",
        ]
        if settings.is_text_metric:
            depth = settings.candidates or "all"
            parts += [f"candidates:{depth}", f"metric:{metric_signature(settings.metric)}"]
        return "|".join(parts)

    def answers(
        self,
        table: str | Path,
        *,
        columns: ColumnNames | None = None,
        image_root: str | Path | None = None,
    ) -> Iterator[Answer]:
        """One answer a row of the table, in order. Sets `recall` in approximate mode."""
        root = Path(image_root) if image_root is not None else None
        queries = QueryTable(Path(table), columns or ColumnNames(), root)
        for batch in self._batches(queries):
            yield from sorted([*self._search(batch), *batch.errors], key=lambda a: a.row)

    def _check_fit(self) -> None:
        manifest, metric = self.index.manifest, self.settings.metric
        kind = "image" if metric == "text-to-image" else "report"
        if manifest.kind != kind:
            raise InvalidSetting(
                f"{metric} searches an index of {kind}s; {self.index.path} holds {manifest.kind}s"
            )
        if self.settings.is_text_metric and self.shards.count > 1:
            raise InvalidSetting(f"{metric} runs in one process, not under torchrun")
        if self._scorer is not None:
            encoder, engine = self._scorer.encoder, self._scorer.engine
            signature = index_signature(engine, kind, self._scorer.text_policy)
            self.index.check_made_with(encoder.card.name, encoder.checksum, signature)

    def _make_oracle(self, device: str) -> Oracle:
        settings, part = self.settings, self.shards.range(len(self.index))
        has_approximate = self.index.manifest.approximate is not None
        is_large = len(self.index) > EXACT_UP_TO and has_approximate
        approximately = settings.mode == "approximate" or (settings.mode == "auto" and is_large)
        if approximately and self.shards.count > 1:
            raise InvalidSetting("shards search exactly; choose mode exact")
        if approximately and not has_approximate:
            raise InvalidSetting(
                f"{self.index.path} has no approximate index: build one with --approximate, or "
                "search exactly"
            )
        corpus = Corpus(self.index.vectors[part], device=device, start=part.start)
        C = self._scorer.C if self._scorer is not None else None
        approximate = None
        if approximately:
            path = self.index.file("approximate")
            approximate = ApproximateIndex(path, corpus, effort=settings.effort)
        return Oracle(
            corpus,
            metric=settings.search_metric,
            C=self.shards.broadcast(C),
            guard=settings.guard,
            approximate=approximate,
            shards=self.shards,
        )

    def _batches(self, table: QueryTable) -> Iterator[_Batch]:
        """The first process reads and embeds; all search for the same batch."""
        if self._scorer is None:
            while (received := self.shards.broadcast(None)) is not None:
                yield received
            return
        column = self.settings.exclude_ids
        if column is not None and column not in (there := table.columns_there()):
            raise InvalidTable(
                f"{table.path}: no column {column} to exclude ids by; found: "
                f"{', '.join(sorted(there))}"
            )
        metric = self.settings.search_metric
        also = () if column is None else (column,)
        for embedded in table.batches(self._scorer, metric, METRICS[metric], also):
            yield self.shards.broadcast(self._prepare(embedded))
        self.shards.broadcast(None)

    def _prepare(self, batch: QueryBatch) -> _Batch:
        errors = [_failed(row) for row in batch.failed]
        excluded: dict[int, list[int]] = {}
        good: list[int] = []
        for position, query in enumerate(batch.queries):
            try:
                excluded[len(good)] = self._exclusions.of(query)
                good.append(position)
            except VLScoreError as error:
                errors.append(Answer(query.row, query.id, error=str(error)))
        return _Batch(
            # A row's other columns stay here.
            [replace(batch.queries[position], record=None) for position in good],
            None if batch.images is None else batch.images[good],
            None if batch.references is None else batch.references[good],
            excluded,
            errors,
        )

    def _search(self, batch: _Batch) -> list[Answer]:
        if not batch.queries:
            return []
        if self.settings.is_text_metric:
            found = self._search_texts(batch)
        else:
            found = self.oracle.search(
                batch.images,
                batch.references,
                k=self.settings.k,
                excluded=batch.excluded,
                ranks=self.settings.ranks and self.index.manifest.kind == "report",
            )
        if self.is_approximate and not self.recall:
            self.recall = self._measure_recall(batch)
        return [
            Answer(query.row, query.id, [self._hit(one, query.reference) for one in hits])
            for query, hits in zip(batch.queries, found, strict=True)
        ]

    def _measure_recall(self, batch: _Batch) -> dict[int, float]:
        part = slice(0, self.settings.sample)
        sample = [x if x is None else x[part] for x in (batch.images, batch.references)]
        return {k: recall(self.oracle, *sample, k=k) for k in sorted({1, self.settings.k})}

    def _search_texts(self, batch: _Batch) -> list[list[Found]]:
        settings = self.settings
        rows: list[Sequence[int] | None] = [None] * len(batch.queries)
        if settings.candidates:
            depth = max(settings.candidates, settings.k)
            hits = self.oracle.hits(
                batch.images, batch.references, k=depth, excluded=batch.excluded
            )
            rows = [found[found >= 0].tolist() for found in hits.rows]
        return [
            [
                Found(row, score)
                for row, score in best_texts(
                    settings.metric,
                    query.reference or "",
                    _Texts(self.index),
                    k=settings.k,
                    rows=rows[position],
                    excluded=batch.excluded[position],
                )
            ]
            for position, query in enumerate(batch.queries)
        ]

    def _hit(self, found: Found, reference: str | None) -> Hit:
        text = self.index.text(found.row)
        is_report = self.index.manifest.kind == "report" and reference is not None
        verbatim = words(text) == words(reference or "") if is_report else None
        return Hit(found, self.index.ids(found.row), text, verbatim)


class _Texts(Sequence[str]):
    """The texts of an index, fetched as they are asked for."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        return self._index.text(row)


def _failed(row: BadRow) -> Answer:
    return Answer(row.row, row.id, error=row.reason)
