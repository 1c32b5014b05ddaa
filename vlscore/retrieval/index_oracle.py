"""Oracle search for the studies of a table, in one process or several."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from vlscore.core import Signature
from vlscore.data import ColumnNames, TextPolicy, open_studies
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.retrieval.index_folder import Index
from vlscore.retrieval.index_parts import index_signature
from vlscore.retrieval.queries import STUDIES_AT_ONCE, Answer, Hit, Query, QueryBatch, QueryTable
from vlscore.retrieval.rerank import TextSearch
from vlscore.retrieval.target import Exclusions, OracleSettings, words
from vlscore.retrieval.vector_search.approximate import ApproximateIndex
from vlscore.retrieval.vector_search.array_oracle import EXACT_UP_TO, Found, Oracle, Shards, recall
from vlscore.retrieval.vector_search.corpus import Array, Corpus

# Batch size for searches that compare every study with a whole corpus of texts: seconds a study.
_SLOW_AT_ONCE = 16


@dataclass(frozen=True)
class Answered:
    """Answers to a batch of table rows, one for each, and the images that were read for them."""

    answers: list[Answer]
    inputs: list[Path]


@dataclass(frozen=True)
class _SearchBatch:
    """Batch of studies ready to be searched for; the first process sends it to the others."""

    queries: list[Query]
    images: Array | None
    references: Array | None
    excluded: dict[int, list[int]]


class OracleRun:
    """Search of an index for every study of a table.

    Args:
        index: the corpus.
        embedder: embeds the studies, with the encoder and policies that made the index; None in
            processes other than the first, and if nothing is embedded.
        settings: settings of the search.
        text_policy: which section of a reference is used, the same as for the index's reports.
        shards: rank of this process, if several share the corpus.
        device: device of the matrix products of exact search.

    Attributes:
        recall: in approximate mode, after the search of the first studies: k -> recall@k on a
            sample of them, for 1 and the k of the settings.

    Raises: InvalidIndex if the index was made with another encoder or other policies;
    InvalidSetting.
    """

    def __init__(
        self,
        index: Index,
        embedder: StudyEmbedder | None = None,
        settings: OracleSettings | None = None,
        *,
        text_policy: TextPolicy | str | None = None,
        shards: Shards | None = None,
        device: str = "cpu",
    ) -> None:
        self.index, self.settings = index, settings or OracleSettings()
        self.text_policy = TextPolicy.named(text_policy)
        self.shards = shards or Shards()
        self.recall: dict[int, float] = {}
        self._embedder = embedder if self.settings.uses_embeddings else None
        self._device = device
        self._check_index()
        self.is_approximate = self._searches_approximately()
        C = None
        if self.shards.rank == 0:
            self._check_embedder()
            C = self.settings.target.constant(embedder)
        self._C = self.shards.broadcast(C)

    @property
    def signature(self) -> Signature:
        """Return what the hits depend on; only the first process knows it."""
        settings = self.settings
        signature = settings.target.signature(self._embedder, self.text_policy)
        flags = [name for name, value in signature if value is None]
        effort = f"(effort={settings.effort})" if settings.effort is not None else ""
        return (
            signature.without(*flags)
            .plus(
                oracle=f"approximate{effort}" if self.is_approximate else "exact",
                guard=settings.guard if settings.target.searched_by == "vlscore" else None,
                excl=settings.excluded,
                index=self.index.manifest.files["vectors"].sha256[:12],
                candidates=(settings.candidates or "all") if settings.target.is_of_texts else None,
            )
            .flagged(*flags)
        )

    @property
    def batch_size(self) -> int:
        """Return the number of studies that are searched for at a time."""
        is_slow = self.settings.target.is_of_texts and not self.settings.candidates
        return _SLOW_AT_ONCE if is_slow else STUDIES_AT_ONCE

    def open(
        self,
        table: str | Path,
        *,
        columns: ColumnNames | None = None,
        image_root: str | Path | None = None,
    ) -> QueryTable:
        """Open the table with the columns that the settings need; raise InvalidTable."""
        exclude = self.settings.exclude_ids
        studies = open_studies(
            table,
            needs=self.settings.needs,
            wants=self.settings.wants,
            image_root=image_root,
            columns=columns,
            also=() if exclude is None else (exclude,),
        )
        return QueryTable(studies, self._embedder, self.text_policy)

    def answers(
        self,
        table: str | Path,
        *,
        columns: ColumnNames | None = None,
        image_root: str | Path | None = None,
        workers: int = 0,
    ) -> Iterator[Answer]:
        """Yield one answer for each row of the table, in order; set `recall` in approximate mode.

        Args:
            columns: other column names.
            image_root: folder that image paths start from; default: the table's.
            workers: processes that decode images; 0 decodes in this one.
        """
        queries = self.open(table, columns=columns, image_root=image_root)
        return (a for part in self.batches(queries, workers=workers) for a in part.answers)

    def batches(
        self, queries: QueryTable, *, skip: int = 0, workers: int = 0
    ) -> Iterator[Answered]:
        """Yield the answers in batches of table rows, after the first `skip` rows."""
        for embedded in queries.batches(skip=skip, size=self.batch_size, workers=workers):
            errors = [Answer(row.row, row.id, error=row.reason) for row in embedded.failed]
            batch = self._prepare(embedded, errors)
            self.shards.broadcast(batch)
            found = [*self._search(batch), *errors]
            yield Answered(sorted(found, key=lambda answer: answer.row), embedded.inputs)
        self.release()

    def release(self) -> None:
        """Signal to the other processes that the search has ended."""
        self.shards.broadcast(None)

    def serve(self) -> None:
        """Search this process's shard for the queries that the first process sends."""
        while (batch := self.shards.broadcast(None)) is not None:
            self._found(batch)

    @cached_property
    def oracle(self) -> Oracle:
        """Return the search by embeddings; made on first use, because it reads the corpus."""
        part = self.shards.range(len(self.index))
        corpus = Corpus(self.index.vectors[part], device=self._device, start=part.start)
        approximate = None
        if self.is_approximate:
            path = self.index.file("approximate")
            approximate = ApproximateIndex(path, corpus, effort=self.settings.effort)
        return Oracle(
            corpus,
            metric=self.settings.target.searched_by,
            C=self._C,
            image=self.settings.target.image,
            guard=self.settings.guard,
            approximate=approximate,
            shards=self.shards,
        )

    @cached_property
    def _exclusions(self) -> Exclusions:
        settings = self.settings
        return Exclusions(self.index, exact=settings.exclude_exact, ids_column=settings.exclude_ids)

    @cached_property
    def _texts(self) -> TextSearch:
        return TextSearch(self.settings.target.metric, _IndexTexts(self.index))

    def _check_index(self) -> None:
        target, kind = self.settings.target, self.index.manifest.kind
        if kind != target.rows:
            raise InvalidSetting(
                f"{target.name} searches an index of {target.rows}s; {self.index.path} holds "
                f"{kind}s"
            )
        if target.is_of_texts and self.shards.count > 1:
            raise InvalidSetting(f"{target.name} runs in one process, not under torchrun")

    def _check_embedder(self) -> None:
        if not self.settings.uses_embeddings:
            self.index.check_text_policy(self.text_policy.signature())
            return
        if self._embedder is None:
            raise InvalidSetting(
                f"{self.settings.target.name} looks at embeddings: give a StudyEmbedder of the "
                f"index's encoder, {self.index.manifest.encoder}"
            )
        encoder = self._embedder.encoder
        signature = index_signature(self._embedder, self.settings.target.rows, self.text_policy)
        self.index.check_made_with(encoder.card.name, encoder.checksum, signature)

    def _searches_approximately(self) -> bool:
        mode = self.settings.mode
        if not self.settings.uses_embeddings:
            return False
        has_approximate = self.index.manifest.approximate is not None
        is_large = len(self.index) > EXACT_UP_TO and has_approximate
        approximately = mode == "approximate" or (mode == "auto" and is_large)
        if approximately and self.shards.count > 1:
            raise InvalidSetting("shards search exactly; choose mode exact")
        if approximately and not has_approximate:
            raise InvalidSetting(
                f"{self.index.path} has no approximate index: build one with --approximate, or "
                "search exactly"
            )
        return approximately

    def _prepare(self, batch: QueryBatch, errors: list[Answer]) -> _SearchBatch:
        """Return the studies that can be searched for, and add the others to the errors."""
        excluded: dict[int, list[int]] = {}
        good: list[int] = []
        for position, query in enumerate(batch.queries):
            try:
                excluded[len(good)] = self._exclusions.of(query)
                good.append(position)
            except VLScoreError as error:
                errors.append(Answer(query.row, query.id, error=str(error)))
        return _SearchBatch(
            # A row's other columns are not sent to the other processes.
            [replace(batch.queries[position], record=None) for position in good],
            None if batch.images is None else batch.images[good],
            None if batch.references is None else batch.references[good],
            excluded,
        )

    def _search(self, batch: _SearchBatch) -> list[Answer]:
        found = self._found(batch)
        if self.is_approximate and batch.queries and not self.recall:
            part = slice(0, self.settings.sample)
            sample = [x if x is None else x[part] for x in (batch.images, batch.references)]
            depths = sorted({1, self.settings.k})
            self.recall = {k: recall(self.oracle, *sample, k=k) for k in depths}
        return [
            Answer(query.row, query.id, error=str(hits))
            if isinstance(hits, VLScoreError)
            else Answer(query.row, query.id, [self._hit(one, query.reference) for one in hits])
            for query, hits in zip(batch.queries, found, strict=True)
        ]

    def _found(self, batch: _SearchBatch) -> Sequence[list[Found] | VLScoreError]:
        if not batch.queries:
            return []
        if self.settings.target.is_of_texts:
            return self._search_texts(batch)
        return self.oracle.search(
            batch.images,
            batch.references,
            k=self.settings.k,
            excluded=batch.excluded,
            ranks=self.settings.ranks and self.index.manifest.kind == "report",
        )

    def _search_texts(self, batch: _SearchBatch) -> list[list[Found] | VLScoreError]:
        settings = self.settings
        rows: list[Sequence[int]] | None = None
        if settings.candidates:
            depth = max(settings.candidates, settings.k)
            hits = self.oracle.hits(None, batch.references, k=depth, excluded=batch.excluded)
            rows = [found[found >= 0].tolist() for found in hits.rows]
        references = [query.reference or "" for query in batch.queries]
        ranked = self._texts.search(references, k=settings.k, rows=rows, excluded=batch.excluded)
        return [
            found
            if isinstance(found, VLScoreError)
            else [Found(row, score) for row, score in found]
            for found in ranked
        ]

    def _hit(self, found: Found, reference: str | None) -> Hit:
        text = self.index.text(found.row)
        is_report = self.index.manifest.kind == "report" and reference is not None
        verbatim = words(text) == words(reference or "") if is_report else None
        return Hit(found, self.index.ids(found.row), text, verbatim)


class _IndexTexts(Sequence[str]):
    """Sequence of an index's texts, each read on access."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, row: int) -> str:  # type: ignore[override]
        return self._index.text(row)
