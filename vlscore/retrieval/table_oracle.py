"""Oracle search for a table of studies, into a folder of results."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import (
    Namespace,
    OnProgress,
    Signature,
    no_progress,
    open_cache,
)
from vlscore.data import Study, StudyTable, TextPolicy, as_table
from vlscore.embedding import STUDIES_AT_ONCE, EmbeddedTable, StudyEmbedder, embedded_batches
from vlscore.errors import Failure, InvalidSetting, VLScoreError
from vlscore.metrics import Plan, constant_of
from vlscore.retrieval.approximate import ApproximateIndex
from vlscore.retrieval.corpus import Array, Corpus
from vlscore.retrieval.exclusions import Exclusions, words
from vlscore.retrieval.index import FAISS, REPORTS, VECTORS, Index, load_index
from vlscore.retrieval.oracle_settings import OracleSettings
from vlscore.retrieval.text_search import TextSearch
from vlscore.retrieval.vector_oracle import EXACT_UP_TO, Found, Oracle, recall
from vlscore.stats import (
    Content,
    Presentation,
    Result,
    TextTable,
    bootstrap_mean,
    bootstrap_median,
    text_table,
)

if TYPE_CHECKING:
    import pandas

HITS = "hits.parquet"
# Batch size for searches that compare every study with a whole corpus of texts: seconds a study.
_SLOW_AT_ONCE = 16
# Studies on which the recall of approximate search is measured.
_SAMPLE = 64
# Studies whose hits are printed, and the characters of a report there.
_SHOWN, _WIDTH = 10, 48
_NUMBERS = tuple(each.name for each in fields(Found))
# Columns of hits.parquet, and their types.
_COLUMNS = {
    "study_row": "int64",
    "study_id": "string",
    "rank": "int64",
    "row": "int64",
    **dict.fromkeys(_NUMBERS[1:-1], "Float64"),
    "distance_rank": "Int64",
    "verbatim": "boolean",
    "ids": "string",
    "text": "string",
}


def oracle(
    studies: str | Path | StudyTable,
    out: str | Path,
    index: Index | str | Path,
    embedder: StudyEmbedder | None = None,
    settings: OracleSettings | None = None,
    *,
    text_policy: TextPolicy | str | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> Result:
    """Find for every study of a table the rows of an index that score highest.

    hits.parquet has a row for each hit: study, rank (1 is the best), the numbers of `Found`,
    whether the text equals the reference except for line breaks, the ids of all reports with this
    text (with ";"), and the text; of an index of images, the path. The hits of each batch of
    studies are in the cache the moment they are found, so that a call that was killed repeats in a
    fraction of its time.

    Args:
        studies: table with columns id, image, reference, as far as the metric uses them.
        out: folder for the results.
        index: as `index_build` made it.
        embedder: with the encoder and policies that made the index; default: the index's encoder.
            Exact search uses its device.
        settings: settings of the search.
        text_policy: which section of a reference is used, the same as for the index's reports.
        workers: processes that decode images; 0 decodes in this one.
        overwrite: search again; earlier results remain until the new ones are complete.
        on_progress: called with (rows done, rows failed).

    Raises:
        InvalidTable: the table cannot be read at all.
        InvalidIndex: the index was made with another encoder or other policies, or is damaged.
        InvalidSetting: a setting is not possible here; `out` holds another run's results.
        FolderInUse: another run is writing there.
        A study that cannot be searched for raises nothing: it is one of the result's failures.
    """
    settings = settings or OracleSettings()
    opened = index if isinstance(index, Index) else load_index(index)
    if embedder is None and settings.uses_embeddings:
        embedder = StudyEmbedder(opened.encoder_name("embedder=StudyEmbedder(NAME)"))
    policy = TextPolicy.named(text_policy)
    used = embedder if settings.uses_embeddings else None
    search = _Search(opened, used, settings, policy)
    also = () if settings.exclude_ids is None else (settings.exclude_ids,)
    table = as_table(studies, settings.needs, settings.wants, also=also)
    key = {
        "command": "oracle",
        **table.key,
        **search.facts,
    }
    notes = table.notes
    if embedder is not None and "image" in table.roles:
        notes = (*notes, *embedder.notes)

    def compute(path: Path) -> Content:
        return search.run(table, workers, on_progress or no_progress)

    return Result.make(
        out, key, compute, images=table.image_files, overwrite=overwrite, notes=notes
    )


class _Search:
    """Search of an index with some settings.

    Raises: InvalidIndex if the index was made with another encoder or other policies;
    InvalidSetting.
    """

    def __init__(
        self,
        index: Index,
        embedder: StudyEmbedder | None,
        settings: OracleSettings,
        policy: TextPolicy,
    ) -> None:
        self._index, self._embedder = index, embedder
        self._settings, self._policy = settings, policy
        if index.facts.kind != settings.rows:
            raise InvalidSetting(
                f"{settings.name} searches an index of {settings.rows}s; {index.folder} holds "
                f"{index.facts.kind}s"
            )
        if embedder is None:
            index.check_text_policy(policy)
        else:
            index.check_made_with(embedder, policy)
        is_large = len(index) > EXACT_UP_TO and FAISS in index.digests
        self._is_approximate = embedder is not None and (
            settings.mode == "approximate" or (settings.mode == "auto" and is_large)
        )
        if self._is_approximate and FAISS not in index.digests:
            raise InvalidSetting(
                f"{index.folder} has no approximate index: build one with --approximate, or "
                "search exactly"
            )
        scored, C = settings.scored, None
        if settings.target is not None and "C" in scored.settings:
            C = constant_of(scored, None if embedder is None else embedder.C)
        self._C = C
        self._exclusions = Exclusions(index, settings)

    @property
    def facts(self) -> dict[str, Any]:
        """What the hits depend on, besides the study."""
        names = (VECTORS, REPORTS, *((FAISS,) if self._is_approximate else ()))
        return {
            "signature": str(self.signature),
            "index": {name: self._index.digests[name] for name in names},
            "k": self._settings.k,
        }

    @cached_property
    def signature(self) -> Signature:
        """What the scores depend on."""
        settings, embedder = self._settings, self._embedder
        target = settings.target
        plan = Plan([settings.scored], text=self._policy.signature())
        # The index names the corpus to which `TextSearch` fits the metric.
        fit = "corpus" if plan.needs_fit else None
        signature = plan.signature_of(settings.scored, embedder).plus(fit=fit)
        if target is not None and not target.is_metric:
            views = "first" if target.rows == "image" else None
            signature = signature.of(target.name).plus(views=views)
        elif target is None and embedder is not None:
            # The candidates that are scored depend on the encoder that found them.
            flags = [name for name, value in embedder.signature if value is None]
            embeddings = embedder.signature.without("img", "views", *flags)
            signature = signature.plus(embeddings).flagged(*flags)
        flags = [name for name, value in signature if value is None]
        effort = f"(effort={settings.effort})" if settings.effort is not None else ""
        return (
            signature.without(*flags)
            .plus(
                oracle=f"approximate{effort}" if self._is_approximate else "exact",
                guard=settings.guard if settings.searched_by == "vlscore" else None,
                excl=self._exclusions.printed,
                index=self._index.digests[VECTORS][:12],
                candidates=(settings.candidates or "all") if target is None else None,
            )
            .flagged(*flags)
        )

    def run(self, table: StudyTable, workers: int, on_progress: OnProgress) -> Content:
        """Search for all studies of a table."""
        import pandas

        is_slow = self._settings.target is None and not self._settings.candidates
        size = _SLOW_AT_ONCE if is_slow else STUDIES_AT_ONCE
        hits: list[tuple[Any, ...]] = []
        failures: list[Failure] = []
        shares: dict[int, float] = {}
        done = 0
        on_progress(0, 0)
        for batch in embedded_batches(
            table, self._embedder, self._policy, size=size, workers=workers
        ):
            found, errors = self._search(batch)
            hits += found
            failures += errors
            if self._is_approximate and batch.studies and not shares:
                shares = self._recall(batch)
            done += batch.rows
            on_progress(done, len(failures))
        frame = pandas.DataFrame(hits, columns=list(_COLUMNS)).astype(_COLUMNS)
        return self._content(table, frame, done, failures, shares)

    def _search(self, batch: EmbeddedTable) -> tuple[list[tuple[Any, ...]], list[Failure]]:
        """Return the rows of the hits' table for a batch, and the studies that failed."""
        failures = list(batch.failed)
        excluded: dict[int, list[int]] = {}
        for position, study in enumerate(batch.studies):
            try:
                excluded[position] = self._exclusions.of(study)
            except VLScoreError as error:
                failures.append(Failure(study.row, study.id, str(error)))
        contents = [_content_of(batch, k, rows) for k, rows in excluded.items()]
        positions = dict(zip(contents, excluded, strict=True))

        def make(contents: Sequence[tuple[str, ...]]) -> Iterable[Any]:
            return self._found(batch, [positions[each] for each in contents], excluded)

        names = self._known
        values: Iterable[Any] = ()
        if contents:
            values = make(contents) if names is None else names.many(contents, make)
        rows: list[tuple[Any, ...]] = []
        for position, value in zip(excluded, values, strict=True):
            study = batch.studies[position]
            if isinstance(value, str):
                failures.append(Failure(study.row, study.id, value))
            else:
                rows += self._rows(study, np.asarray(value))
        return rows, sorted(failures, key=lambda failure: int(failure.row or 0))

    @cached_property
    def _known(self) -> Namespace | None:
        """The hits of earlier calls, in the cache of the embedder or of the user."""
        embedder = self._embedder
        cache = open_cache() if embedder is None else embedder.cache
        # A metric of the user's own may change without another name.
        is_ours = type(self._settings.scored).__module__.startswith("vlscore.metrics.library.")
        if cache is None or not is_ours:
            return None
        return cache.namespace({"holds": "hits", **self.facts})

    @cached_property
    def _oracle(self) -> Oracle:
        """The search by embeddings; made on first use, because it reads the corpus."""
        settings, approximate, embedder = self._settings, None, self._embedder
        device = embedder.device if embedder is not None else "cpu"
        corpus = Corpus(self._index.vectors, device=device)
        if self._is_approximate:
            path = self._index.folder / FAISS
            approximate = ApproximateIndex(path, corpus, effort=settings.effort)
        return Oracle(
            corpus,
            metric=settings.searched_by,
            C=self._C,
            image=float(settings.scored.settings.get("image") or 1.0),
            guard=settings.guard,
            approximate=approximate,
        )

    @cached_property
    def _texts(self) -> TextSearch:
        return TextSearch(self._settings.scored, self._index.texts())

    def _found(
        self, batch: EmbeddedTable, positions: Sequence[int], excluded: dict[int, list[int]]
    ) -> list[Any]:
        """Return for each study the numbers of its hits (m, 7), or why there are none."""
        barred = {number: excluded[position] for number, position in enumerate(positions)}
        images, references = (
            None if vectors is None else vectors[list(positions)]
            for vectors in (batch.vectors.get(role) for role in ("image", "reference"))
        )
        if self._settings.target is not None:
            ranks = self._index.facts.kind == "report"
            found = self._oracle.search(
                images, references, k=self._settings.k, excluded=barred, ranks=ranks
            )
        else:
            texts = [batch.studies[position].reference or "" for position in positions]
            found = self._search_texts(texts, references, barred)
        return [str(hits) if isinstance(hits, VLScoreError) else _numbers(hits) for hits in found]

    def _search_texts(
        self, texts: Sequence[str], references: Array | None, barred: dict[int, list[int]]
    ) -> list[Any]:
        settings = self._settings
        rows: list[Sequence[int]] | None = None
        if settings.candidates:
            depth = max(settings.candidates, settings.k)
            hits = self._oracle.hits(None, references, k=depth, excluded=barred)
            rows = [found[found >= 0].tolist() for found in hits.rows]
        ranked = self._texts.search(texts, k=settings.k, rows=rows, excluded=barred)
        return [
            found if isinstance(found, VLScoreError) else [Found(*pair) for pair in found]
            for found in ranked
        ]

    def _rows(self, study: Study, numbers: Array) -> Iterator[tuple[Any, ...]]:
        for rank, (row, *others, place) in enumerate(numbers.tolist(), start=1):
            text = self._index.text(int(row))
            is_compared = self._index.facts.kind == "report" and study.reference is not None
            verbatim = words(text) == words(study.reference or "") if is_compared else None
            distance_rank = None if np.isnan(place) else int(place)
            ids = ";".join(self._index.ids(int(row)))
            start = (study.row, study.id, rank, int(row))
            yield (*start, *others, distance_rank, verbatim, ids, text)

    def _recall(self, batch: EmbeddedTable) -> dict[int, float]:
        """Return k -> share of the true hits that are found, on the first studies."""
        vectors = [
            x if x is None else x[:_SAMPLE]
            for x in (batch.vectors.get(role) for role in ("image", "reference"))
        ]
        return {k: recall(self._oracle, *vectors, k=k) for k in sorted({1, self._settings.k})}

    def _content(
        self,
        table: StudyTable,
        hits: "pandas.DataFrame",
        studies: int,
        failures: list[Failure],
        shares: dict[int, float],
    ) -> Content:
        import pandas

        best = hits[hits["rank"] == 1]
        summary: dict[str, Any] = {
            "studies": studies,
            "searched": studies - len(failures),
            "failed": len(failures),
            "without_hits": studies - len(failures) - len(best),
        }
        if len(best):
            mean = bootstrap_mean(best["score"].to_numpy(float))
            median = bootstrap_median(best["score"].to_numpy(float))
            for name, found in (("mean", mean), ("median", median)):
                bounds = (found.estimate, found.low, found.high)
                summary |= zip((name, f"{name}.low", f"{name}.high"), bounds, strict=True)
        verbatim = best["verbatim"].dropna().tolist()
        summary |= {"compared": len(verbatim), "verbatim": sum(verbatim)}
        summary |= {f"recall@{k}": share for k, share in shares.items()}
        frames = {"summary": pandas.DataFrame([summary])}
        if len(best):
            frames["first_hits"] = _first_hits(hits)
        embedder = self._embedder
        facts = {
            "table": str(table.path.resolve()),
            "index_folder": str(self._index.folder.resolve()),
            "encoder": embedder.card.to_dict() if embedder is not None else None,
        }
        return Content(
            frames=frames,
            rows={HITS: hits},
            failures=failures,
            signatures={self._settings.name: self.signature},
            facts=facts,
        )


def _first_hits(hits: "pandas.DataFrame") -> "pandas.DataFrame":
    """Return the hits of the first studies, in few words."""
    studies = hits["study_row"].unique()[:_SHOWN]
    shown = hits.loc[
        hits["study_row"].isin(studies),
        ["study_id", "rank", "score", "foot", "distance_rank", "verbatim", "text"],
    ]
    lines = [words(text) for text in shown["text"]]
    texts = [x if len(x) <= _WIDTH else x[: _WIDTH - 1] + "…" for x in lines]
    return shown.assign(text=texts)


def _tables(run: Result) -> list[TextTable]:
    summary = run.frames["summary"]
    caption = (
        "Scores of the best hits, with 95 % intervals over studies; verbatim: best hits that "
        "equal the reference except for line breaks, of those that were compared."
    )
    if any(str(name).startswith("recall@") for name in summary):
        caption += " Recall: share of the true hits that approximate search found."
    tables = [text_table("Best reports of the corpus", summary, caption, digits=4)]
    if "first_hits" in run.frames:
        hits = run.frames["first_hits"]
        hits = hits.astype(object).where(hits.notna(), None)
        caption = (
            "foot: projection onto the line from image (0) to reference (1); distance_rank: among "
            "all rows, 1 is the nearest to the reference. All hits and their numbers are in "
            f"{HITS}."
        )
        table = text_table("Hits of the first studies", hits, caption, digits=4)
        tables.append(replace(table, has_texts=True))
    return tables


PRESENTATION = Presentation(_tables, page="vlscore.pages.command_views:oracle_view")


def _content_of(batch: EmbeddedTable, position: int, excluded: Sequence[int]) -> tuple[str, ...]:
    """Return what decides on the hits of a study: its reference, embeddings, excluded rows."""
    vectors = (
        "" if each is None else each[position].tobytes().hex()
        for each in (batch.vectors.get(role) for role in ("image", "reference"))
    )
    reference = batch.studies[position].reference or ""
    return (reference, *vectors, " ".join(map(str, excluded)))


def _numbers(hits: Sequence[Found]) -> Array:
    """Return the numbers of `Found` (m, 7) float64, nan for None."""
    rows = [[getattr(hit, name) for name in _NUMBERS] for hit in hits]
    return np.array(rows, dtype=np.float64).reshape(len(hits), len(_NUMBERS))
