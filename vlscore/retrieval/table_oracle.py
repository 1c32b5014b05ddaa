"""Oracle search for a table of studies, into a folder of results."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import OnProgress, frame, no_progress, with_noun
from vlscore.data import Study, StudyTable, TextPolicy, as_table
from vlscore.embedding import EmbeddedTable, StudyEmbedder, embedded_batches
from vlscore.errors import Failure
from vlscore.retrieval.corpus import Array
from vlscore.retrieval.index import Index, load_index, words
from vlscore.retrieval.index_search import NUMBERS, IndexSearch
from vlscore.retrieval.oracle_settings import OracleSettings
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
# Studies whose hits are printed, and the characters of a report there.
_SHOWN, _WIDTH = 10, 48
# Columns of hits.parquet, and their types.
_COLUMNS = {
    "study_row": "int64",
    "study_id": "string",
    "rank": "int64",
    "row": "int64",
    **dict.fromkeys(NUMBERS[1:-1], "Float64"),
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
    on_progress: OnProgress = no_progress,
) -> Result:
    """Find for every study of a table the rows of an index that score highest.

    hits.parquet has a row for each hit: study, rank (1 is the best), the numbers of `Hit`,
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
    policy = TextPolicy.named(text_policy)
    search = IndexSearch(opened, embedder, settings, policy)
    also = () if settings.exclude_ids is None else (settings.exclude_ids,)
    table = as_table(studies, search.needs, search.wants, also=also)
    key = {"command": "oracle", **table.key, **search.facts}
    notes = table.notes
    if search.embedder is not None and "image" in table.roles:
        notes = (*notes, *search.embedder.notes)

    def compute(path: Path) -> Content:
        batches = embedded_batches(
            table, search.embedder, policy, size=search.studies_at_once, workers=workers
        )
        return _content(table, opened, search, batches, on_progress)

    return Result.make(
        out, key, compute, images=table.image_files, overwrite=overwrite, notes=notes
    )


def _content(
    table: StudyTable,
    index: Index,
    search: IndexSearch,
    batches: Iterable[EmbeddedTable],
    on_progress: OnProgress,
) -> Content:
    """Search for all studies of a table."""
    import pandas

    rows: list[tuple[Any, ...]] = []
    failures: list[Failure] = []
    shares: dict[int, float] = {}
    done = 0
    on_progress(0, 0)
    for batch in batches:
        failed = list(batch.failed)
        for study, found in search.hits(batch):
            if isinstance(found, str):
                failed.append(Failure(study.row, study.id, found))
            else:
                rows += _rows(index, study, np.asarray(found))
        failures += sorted(failed, key=lambda failure: int(failure.row or 0))
        if search.is_approximate and batch.studies and not shares:
            shares = search.recall(batch)
        done += batch.rows
        on_progress(done, len(failures))
    hits = pandas.DataFrame(rows, columns=list(_COLUMNS)).astype(_COLUMNS)
    frames = {"summary": _summary(hits, done, len(failures), shares)}
    if len(hits):
        frames["first_hits"] = _first_hits(hits)
    facts = {
        "table": str(table.path.resolve()),
        "index_folder": str(index.folder.resolve()),
        "encoder": None if search.embedder is None else search.embedder.card.to_dict(),
    }
    return Content(
        frames=frames,
        rows={HITS: hits},
        failures=failures,
        signatures={search.target.name: search.signature},
        notes=() if table.also else _own_hits_notes(table, hits),
        facts=facts,
    )


def _own_hits_notes(table: StudyTable, hits: "pandas.DataFrame") -> list[str]:
    """Return a note on studies whose best hit is a row of the index with their own id."""
    best = hits[hits["rank"] == 1]
    pairs = zip(best["study_id"], best["ids"], strict=True)
    own = sum(name in ids.split(";") for name, ids in pairs)
    if not own or table.id_column not in table.found:
        return []
    return [
        f"the best hit of {own:,} of {with_noun(len(best), 'study')} has the study's own id: "
        f"--exclude-ids {table.id_column} leaves such rows of the index out"
    ]


def _rows(index: Index, study: Study, numbers: Array) -> Iterator[tuple[Any, ...]]:
    for rank, (row, *others, place) in enumerate(numbers.tolist(), start=1):
        text = index.text(int(row))
        is_compared = index.facts.kind == "report" and study.reference is not None
        verbatim = words(text) == words(study.reference or "") if is_compared else None
        distance_rank = None if np.isnan(place) else int(place)
        ids = ";".join(index.ids(int(row)))
        start = (study.row, study.id, rank, int(row))
        yield (*start, *others, distance_rank, verbatim, ids, text)


def _summary(
    hits: "pandas.DataFrame", studies: int, failed: int, shares: Mapping[int, float]
) -> "pandas.DataFrame":
    best = hits[hits["rank"] == 1]
    summary: dict[str, Any] = {
        "studies": studies,
        "searched": studies - failed,
        "failed": failed,
        "without_hits": studies - failed - len(best),
    }
    if len(best):
        scores = best["score"].to_numpy(float)
        summary |= {"mean": bootstrap_mean(scores), "median": bootstrap_median(scores)}
    verbatim = best["verbatim"].dropna().tolist()
    summary |= {"compared": len(verbatim), "verbatim": sum(verbatim)}
    summary |= {f"recall@{k}": share for k, share in shares.items()}
    return frame([summary])


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
