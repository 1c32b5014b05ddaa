"""The oracle over a table of studies."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.metrics import find_metric
from vlscore.oracle.approximate import ApproximateIndex
from vlscore.oracle.corpus import Corpus
from vlscore.oracle.oracle import EXACT_UP_TO, METRICS, Found, Oracle, recall
from vlscore.oracle.rows import Array
from vlscore.oracle.sharding import Shards
from vlscore.oracle.store import Index
from vlscore.oracle.text_metrics import best_texts
from vlscore.reports import select
from vlscore.scorer import Item, Scorer
from vlscore.studies import BadRow, ColumnNames, Study, read_rows, read_studies

MODES = ("auto", "exact", "approximate")
_STUDIES_AT_ONCE = 128


@dataclass(frozen=True)
class OracleSettings:
    """What is searched for, and what may not be found.

    Attributes:
        metric: a name in METRICS, or a metric of texts such as "bleu-4".
        k: hits per study.
        guard: for vlscore, see `Line`.
        mode: "exact", "approximate", or "auto": exact up to a million rows.
        exclude_exact: never find a report that equals the reference.
        exclude_ids: column that lists the ids a study must not find, its own or its patient's;
            a report goes when all studies that hold it are listed.
        candidates: metrics of texts: so many nearest by cosine are re-ranked; 0 for the whole
            corpus.
        ranks: count for each hit the reports nearer to the reference.
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
    sample: int = 64

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InvalidSetting(f"mode is one of {', '.join(MODES)}, not {self.mode!r}")
        if self.metric not in METRICS:
            find_metric(self.metric)


@dataclass(frozen=True)
class Hit:
    """A report that was found, and whether it equals the reference word for word."""

    found: Found
    ids: list[str]
    text: str
    verbatim: bool


@dataclass(frozen=True)
class Answer:
    """One study's hits, best first, or why there are none."""

    row: int
    id: str | None
    hits: list[Hit] = field(default_factory=list)
    error: str | None = None


@dataclass
class _Batch:
    """Studies ready to be searched; travels from the first process to the others."""

    rows: list[tuple[int, str | None, str]]
    images: Array
    references: Array
    excluded: dict[int, list[int]]
    errors: list[Answer]


class OracleRun:
    """Searches an index for every study of a table.

    Args:
        index: the corpus.
        scorer: embeds the studies; None in other processes than the first.
        settings: what is searched for.
        shards: this process's place, where several share the corpus.

    Raises: InvalidIndex where the index was made with another encoder; InvalidSetting.
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
        self.is_text_metric = settings.metric not in METRICS
        if scorer is not None:
            index.check_made_with(scorer.encoder.card.name, scorer.encoder.checksum)
        kind = "image" if settings.metric == "text-to-image" else "report"
        if index.manifest.kind != kind:
            raise InvalidSetting(
                f"{settings.metric} searches an index of {kind}s; {index.path} holds "
                f"{index.manifest.kind}s"
            )
        if self.is_text_metric and self.shards.count > 1:
            raise InvalidSetting(f"{settings.metric} runs in one process, not under torchrun")
        self._texts = index.texts() if self.is_text_metric else []
        self._row_of_text = {t: row for row, t in enumerate(index.texts())}
        self._rows_of_id = self._invert_ids() if settings.exclude_ids else {}
        self.oracle = self._make_oracle(device)
        self.recall: float | None = None

    @property
    def is_approximate(self) -> bool:
        """Whether hits come from approximate search."""
        return self.oracle.approximate is not None

    def answers(
        self,
        table: str | Path,
        *,
        columns: ColumnNames | None = None,
        image_root: str | Path | None = None,
    ) -> Iterator[Answer]:
        """One answer a row of the table, in order. Sets `recall` in approximate mode."""
        for batch in self._batches(Path(table), columns or ColumnNames(), image_root):
            yield from sorted([*self._search(batch), *batch.errors], key=lambda a: a.row)

    def _make_oracle(self, device: str) -> Oracle:
        settings, part = self.settings, self.shards.range(len(self.index))
        is_large = len(self.index) > EXACT_UP_TO and self.index.manifest.approximate is not None
        approximately = settings.mode == "approximate" or (settings.mode == "auto" and is_large)
        if approximately and self.shards.count > 1:
            raise InvalidSetting("shards search exactly; choose mode exact")
        corpus = Corpus(self.index.vectors[part], device=device, start=part.start)
        C = self._scorer.C if self._scorer is not None else None
        return Oracle(
            corpus,
            metric="text-to-text" if self.is_text_metric else settings.metric,
            C=self.shards.broadcast(C),
            guard=settings.guard,
            approximate=(
                ApproximateIndex(self.index.file("approximate"), corpus) if approximately else None
            ),
            shards=self.shards,
        )

    def _batches(
        self, table: Path, columns: ColumnNames, image_root: str | Path | None
    ) -> Iterator[_Batch]:
        """The first process reads and embeds; all search the same batch."""
        if self.shards.rank > 0:
            while (received := self.shards.broadcast(None)) is not None:
                yield received
            return
        # The oracle needs no candidate; the reference stands in for it.
        names = replace(columns, candidate=columns.reference)
        studies = read_studies(table, image_root=image_root, columns=names)
        rows = zip(studies, read_rows(table), strict=False)
        while chunk := list(islice(rows, _STUDIES_AT_ONCE)):
            yield self.shards.broadcast(self._prepare(chunk))
        self.shards.broadcast(None)

    def _prepare(self, chunk: list[Any]) -> _Batch:
        assert self._scorer is not None
        errors = [
            Answer(row.row, row.id, error=row.reason) for row, _ in chunk if isinstance(row, BadRow)
        ]
        studies = [(row, record) for row, (_, record) in chunk if isinstance(row, Study)]
        embedded = self._scorer.embed_items(
            [Item(s.images, s.reference, s.reference, s.views) for s, _ in studies]
        )
        vectors = np.stack([embedded.images.numpy(), embedded.references.numpy()])
        good = []
        for position, (study, _) in enumerate(studies):
            failure: VLScoreError | str | None = embedded.failures.get(position)
            if failure is None and not np.isfinite(vectors[:, position]).all():
                failure = "the encoder returned an embedding that is not finite"
            if failure is None:
                good.append(position)
            else:
                errors.append(Answer(study.row, study.id, error=str(failure)))
        rows: list[tuple[int, str | None, str]] = []
        excluded = {}
        for number, position in enumerate(good):
            study, record = studies[position]
            reference = select(study.reference, self._scorer.text_policy)
            rows.append((study.row, study.id, reference))
            excluded[number] = self._excluded(reference, record)
        return _Batch(rows, vectors[0][good], vectors[1][good], excluded, errors)

    def _excluded(self, reference: str, record: Any) -> list[int]:
        barred = set()
        if self.settings.exclude_exact and reference in self._row_of_text:
            barred.add(self._row_of_text[reference])
        if self.settings.exclude_ids:
            ids = _listed(record, self.settings.exclude_ids)
            for row in {row for id in ids for row in self._rows_of_id.get(id, ())}:
                if set(self.index.ids(row)) <= ids:
                    barred.add(row)
        return sorted(barred)

    def _search(self, batch: _Batch) -> list[Answer]:
        if not batch.rows:
            return []
        if self.is_text_metric:
            found = self._search_texts(batch)
        else:
            found = self.oracle.search(
                batch.images,
                batch.references,
                k=self.settings.k,
                excluded=batch.excluded,
                ranks=self.settings.ranks and self.index.manifest.kind == "report",
            )
        if self.is_approximate and self.recall is None:
            part = slice(0, self.settings.sample)
            self.recall = recall(self.oracle, batch.images[part], batch.references[part])
        return [
            Answer(row, id, [self._hit(one, reference) for one in hits])
            for (row, id, reference), hits in zip(batch.rows, found, strict=True)
        ]

    def _search_texts(self, batch: _Batch) -> list[list[Found]]:
        settings = self.settings
        rows: list[Any] = [None] * len(batch.rows)
        if settings.candidates:
            depth = max(settings.candidates, settings.k)
            hits = self.oracle.hits(
                batch.images, batch.references, k=depth, excluded=batch.excluded
            )
            rows = [found[found >= 0].tolist() for found in hits.rows]
        none = float("nan")
        return [
            [
                Found(row, score, none, none, none, none)
                for row, score in best_texts(
                    settings.metric,
                    reference,
                    self._texts,
                    k=settings.k,
                    rows=rows[position],
                    excluded=batch.excluded[position],
                )
            ]
            for position, (_, _, reference) in enumerate(batch.rows)
        ]

    def _hit(self, found: Found, reference: str) -> Hit:
        text = self.index.text(found.row)
        return Hit(found, self.index.ids(found.row), text, text == reference)

    def _invert_ids(self) -> dict[str, list[int]]:
        rows: dict[str, list[int]] = {}
        for row, ids in enumerate(self.index.all_ids()):
            for id in ids:
                rows.setdefault(id, []).append(row)
        return rows


def embed_studies(
    table: str | Path,
    scorer: Scorer,
    *,
    columns: ColumnNames | None = None,
    image_root: str | Path | None = None,
) -> tuple[Array, Array, list[str], list[Answer]]:
    """Images and references of a table: both (n, d), the n texts, and an answer per bad row."""
    columns = columns or ColumnNames()
    names = replace(columns, candidate=columns.reference)
    images, reports, texts, errors = [], [], [], []
    studies = read_studies(table, image_root=image_root, columns=names)
    while chunk := list(islice(studies, _STUDIES_AT_ONCE)):
        good = []
        for row in chunk:
            if isinstance(row, BadRow):
                errors.append(Answer(row.row, row.id, error=row.reason))
            else:
                good.append(row)
        embedded = scorer.embed_items(
            [Item(s.images, s.reference, s.reference, s.views) for s in good]
        )
        for position, study in enumerate(good):
            if position in embedded.failures:
                reason = str(embedded.failures[position])
                errors.append(Answer(study.row, study.id, error=reason))
            else:
                images.append(embedded.images[position].numpy())
                reports.append(embedded.references[position].numpy())
                texts.append(select(study.reference, scorer.text_policy))
    empty = np.empty((0, scorer.encoder.card.dim), np.float32)
    stacked = [np.stack(rows) if rows else empty for rows in (images, reports)]
    return stacked[0], stacked[1], texts, errors


def _listed(record: Any, column: str) -> set[str]:
    """Ids in a column: one, a list, or several separated by semicolons."""
    if not isinstance(record, dict) or column not in record:
        raise InvalidSetting(f'the table has no column "{column}" to exclude ids by')
    value = record[column]
    if value is None:
        return set()
    values = value if isinstance(value, list) else str(value).split(";")
    return {str(item).strip() for item in values} - {""}
