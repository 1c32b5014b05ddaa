"""Retrieval evaluation of a table of studies, into a folder of results."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import (
    RECORD,
    OnProgress,
    ResumableFolder,
    Signature,
    __version__,
    frame,
    from_plain,
    no_progress,
    plain,
    plain_dict,
    reading_result,
    run_record,
    write_json,
)
from vlscore.data import BadRow, ColumnNames, TextPolicy, open_studies
from vlscore.embedding import StudyEmbedder, training_notes
from vlscore.errors import InvalidTable
from vlscore.evaluation.row_chunks import read_arrays, write_arrays
from vlscore.retrieval import CUTS, QueryBatch, QueryTable, Retrieval, evaluate_retrieval
from vlscore.stats import Run, TextTable, interval, markdown, with_mark

if TYPE_CHECKING:
    import pandas


TABLE = "retrieval.md"


@dataclass(frozen=True)
class RetrievalResult:
    """Both directions of one table.

    Attributes:
        signature: what the numbers depend on.
        directions: "image to text" and "text to image".
        failed: rows that could not be embedded; they are neither queries nor found.
    """

    signature: Signature
    directions: dict[str, Retrieval]
    failed: list[BadRow]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for json."""
        return plain_dict(
            {
                "signature": str(self.signature),
                "failed": len(self.failed),
                "failures": self.failed,
                **self.directions,
            }
        )

    @classmethod
    def of_dict(cls, content: dict[str, Any]) -> "RetrievalResult":
        """Return the result that `to_dict` became; raise ValueError, ... for other data."""
        directions = {
            name: from_plain(Retrieval, each)
            for name, each in content.items()
            if name not in ("signature", "failed", "failures")
        }
        if not all(set(CUTS) <= each.recall.keys() for each in directions.values()):
            raise ValueError("a direction has no recall")
        failed = from_plain(list[BadRow], content["failures"])
        return cls(from_plain(Signature, content["signature"]), directions, failed)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a direction: R@1, R@5, R@10, median_rank with intervals. Needs pandas."""
        records = (
            {
                "direction": name,
                **{f"R@{k}": found for k, found in each.recall.items()},
                "median_rank": each.median_rank,
                "queries": each.queries,
                "gallery": each.gallery,
            }
            for name, each in self.directions.items()
        )
        return frame(records, {"retrieval": self.signature})

    def table(self) -> TextTable:
        """Return one row a direction."""
        rows = (
            {
                "direction": name,
                **{f"R@{k}": interval(each.recall[k]) for k in CUTS},
                "median rank": interval(each.median_rank, 1),
                "queries": str(each.queries),
                "to search": str(each.gallery),
            }
            for name, each in self.directions.items()
        )
        caption = "In brackets: 95 % bootstrap intervals over queries."
        (table,) = with_mark([TextTable.of("", rows, caption)], [self.signature])
        return table


@dataclass(frozen=True)
class RetrievalRun(Run):
    """The retrieval evaluation of a table: retrieval.json, retrieval.md and run.json."""

    content_file = "retrieval.json"
    results = (content_file, TABLE)

    @property
    def result(self) -> RetrievalResult:
        """Return the numbers."""
        with reading_result(self.folder / self.content_file):
            return RetrievalResult.of_dict(self.content)

    @property
    def tables(self) -> list[TextTable]:
        """Return one table, of both directions."""
        return [self.result.table()]

    @property
    def signatures(self) -> list[str]:
        """Return what the numbers depend on."""
        return [str(self.result.signature)]

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a direction: R@1, R@5, R@10, median_rank with intervals. Needs pandas."""
        return self.result.to_pandas()

    @property
    def files(self) -> list[Path]:
        """Return the paths of the written files."""
        return [self.folder / name for name in (*self.results, RECORD)]


def retrieval(
    studies: str | Path,
    out: str | Path,
    embedder: StudyEmbedder | None = None,
    *,
    text_policy: TextPolicy | str | None = None,
    columns: ColumnNames | None = None,
    image_root: str | Path | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> RetrievalRun:
    """Embed the studies of a table and evaluate the encoder on them.

    Called again after a stop with the same arguments, it resumes where it was; called again when it
    has ended, it changes nothing.

    Args:
        studies: table with columns id, image, reference.
        out: folder for the results.
        embedder: what is evaluated; default: the default encoder.
        text_policy: which section of a report counts.
        columns: other column names.
        image_root: folder that image paths start from; default: the table's.
        workers: processes that decode images; 0 decodes in this one.
        overwrite: embed anew; earlier results stay until the new ones are complete.
        on_progress: called with (rows done, rows failed).

    Raises:
        InvalidTable: the table cannot be read, or no row can be embedded.
        InvalidSetting: `out` holds another run's results.
        FolderInUse: another run is writing there.
    """
    began = time.monotonic()
    embedder = embedder or StudyEmbedder()
    policy = TextPolicy.named(text_policy)
    table = open_studies(
        studies, needs={"image", "reference"}, image_root=image_root, columns=columns
    )
    signature = _signature(embedder, policy)
    key = {
        "table_sha256": table.sha256,
        "columns": table.columns.to_dict(),
        "image_root": str(Path(image_root).resolve()) if image_root is not None else None,
        "signature": str(signature),
    }

    def compute(folder: ResumableFolder) -> None:
        queries = QueryTable(table, embedder, policy)
        _embed(queries, folder, workers, on_progress or no_progress)

        def write(place: Path) -> dict[str, Any]:
            result = _evaluated(folder, signature)
            write_json(place / RetrievalRun.content_file, result.to_dict())
            text = markdown([result.table()], [str(signature)])
            (place / TABLE).write_text(text, encoding="utf-8")
            return run_record(
                table=str(table.path.resolve()),
                signature=signature.to_dict(),
                encoder=embedder.encoder.card.to_dict(),
                device=str(embedder.encoder.device),
                batch_size=embedder.engine.batch_size,
                seconds=round(time.monotonic() - began, 3),
                resumed_from=folder.resumed_from,
            )

        folder.finish(write, rows=folder.rows)

    notes = (*table.notes, *embedder.notes, *training_notes(embedder, table.sha256))
    return RetrievalRun.make(out, key, compute, overwrite=overwrite, notes=notes)


def _signature(embedder: StudyEmbedder, policy: TextPolicy) -> Signature:
    facts = embedder.signature
    flags = [name for name, value in facts if value is None]
    signature = Signature("retrieval").plus(txt=policy.signature()).plus(facts.without(*flags))
    return signature.plus(v=__version__).flagged(*flags)


def _embed(
    queries: QueryTable, folder: ResumableFolder, workers: int, on_progress: OnProgress
) -> None:
    """Embed the rows that no chunk holds yet."""
    failed = sum(chunk.note["failed"] for chunk in folder.chunks())
    done = folder.rows
    on_progress(done, failed)
    waiting: list[QueryBatch] = []
    for batch in queries.batches(skip=folder.rows, workers=workers):
        waiting.append(batch)
        failed += len(batch.failed)
        done += batch.rows
        if folder.rows or batch.queries:
            # Rows that all fail are written with the first that does not: if none follows, the
            # run has no result, and leaves no files.
            for each in waiting:
                _write_chunk(each, folder)
            waiting.clear()
        on_progress(done, failed)
    if waiting:
        bad = waiting[0].failed[0]
        raise InvalidTable(
            f"{queries.studies.path}: no row can be embedded; row {bad.row}: {bad.reason}"
        )


def _write_chunk(batch: QueryBatch, folder: ResumableFolder) -> None:
    assert batch.images is not None
    assert batch.references is not None
    rows = {
        "texts": [query.reference for query in batch.queries],
        "failed": [plain(row) for row in batch.failed],
    }
    with folder.append(batch.rows, {"failed": len(batch.failed)}, batch.inputs) as place:
        write_arrays(place, rows, images=batch.images, reports=batch.references)


def _evaluated(folder: ResumableFolder, signature: Signature) -> RetrievalResult:
    images, reports, texts, failed = [], [], [], []
    for chunk in folder.chunks():
        arrays, rows = read_arrays(chunk.path)
        images.append(arrays["images"])
        reports.append(arrays["reports"])
        texts += rows["texts"]
        failed += [BadRow(**row) for row in rows["failed"]]
    to_text, to_image = evaluate_retrieval(np.concatenate(images), np.concatenate(reports), texts)
    directions = {"image to text": to_text, "text to image": to_image}
    return RetrievalResult(signature, directions, failed)
