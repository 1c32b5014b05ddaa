"""Oracle search for a table of studies, into a folder of results; a stopped run can be resumed."""

import math
import time
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.csv
import pyarrow.parquet as pq

from vlscore.core import (
    OnProgress,
    ResumableFolder,
    no_progress,
    read_frame,
    run_record,
    table_cells,
    write_json,
)
from vlscore.data import ColumnNames, TextPolicy
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidSetting
from vlscore.retrieval.index_folder import Index, encoder_name_of, load_index
from vlscore.retrieval.index_oracle import OracleRun
from vlscore.retrieval.queries import (
    HITS_SCHEMA,
    Answer,
    OracleSummary,
    QueryTable,
    Tally,
    hits_table,
    read_answers,
    read_summary,
    write_answers,
)
from vlscore.retrieval.target import OracleSettings
from vlscore.retrieval.vector_search.array_oracle import Shards
from vlscore.stats import Failure, Run, interval, number

if TYPE_CHECKING:
    import pandas


_WIDTH = 78
_IDS = 30


def answer_text(answer: Answer) -> str:
    """Format one study's hits, best first, each with the numbers that the score does not show."""
    lines = [f"\n{answer.id}"]
    if not answer.hits:
        lines.append("  nothing qualifies")
    for place, hit in enumerate(answer.hits, start=1):
        found = hit.found
        facts = [f"score {found.score:.4f}"]
        for name, value in (
            ("area", found.area),
            ("foot", found.foot),
            ("h/|r-i|", found.height),
            ("|g-r|", found.distance),
        ):
            if not math.isnan(value):
                facts.append(f"{name} {value:.4g}")
        if found.distance_rank is not None:
            facts.append(f"rank {found.distance_rank}")
        if hit.verbatim:
            facts.append("VERBATIM")
        lines.append(f"  {place:>2}  {'  '.join(facts)}  [{_shortened(', '.join(hit.ids), _IDS)}]")
        lines.append(f"      {_shortened(hit.text, _WIDTH - 6)}")
    return "\n".join(lines)


def oracle_text(summary: OracleSummary) -> str:
    """Format the numbers of a search, and the signature."""
    lines = [f"{summary.searched} studies searched, {summary.failed} failed"]
    if summary.without_hits:
        lines.append(f"nothing qualifies for {summary.without_hits} of them")
    if summary.mean is not None and summary.median is not None:
        lines.append(
            f"best hits: mean score {interval(summary.mean, 4)}, median "
            f"{number(summary.median.estimate, 4)}"
        )
    if summary.compared:
        lines.append(f"{summary.verbatim} of {summary.compared} equal the reference")
    if summary.recall:
        shares = ", ".join(f"recall@{k} {share:.4f}" for k, share in summary.recall.items())
        lines.append(f"approximate search; on a sample of these studies: {shares}")
    return "\n".join([*lines, "", str(summary.signature)])


def _shortened(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


FORMATS = ("parquet", "csv")
ANSWERS, SUMMARY = "hits.jsonl", "summary.json"
# Every file that a run can write, so that none of an earlier run remains.
RESULTS = (ANSWERS, *(f"hits.{format}" for format in FORMATS), SUMMARY)

_RECALL = "recall"
# Number of answers that are converted to a table of hits at a time.
_AT_ONCE = 256


class OracleResult(Run):
    """Result of an oracle search: hits.jsonl, hits.parquet (or .csv), summary.json, run.json."""

    content_file = SUMMARY
    results = RESULTS

    @cached_property
    def summary(self) -> OracleSummary:
        """The numbers."""
        return read_summary(self.summary_file)

    @property
    def format(self) -> str:
        """Format of the table of hits: "parquet" or "csv"."""
        return str(self.facts["key"]["format"])

    @property
    def signatures(self) -> list[str]:
        """Settings that the hits depend on."""
        return [str(self.summary.signature)]

    @property
    def answers_file(self) -> Path:
        """Path of hits.jsonl: one study a line, with its hits or why there are none."""
        return self.folder / ANSWERS

    @property
    def hits_file(self) -> Path:
        """Path of the table of hits, one a row."""
        return self.folder / f"hits.{self.format}"

    @property
    def summary_file(self) -> Path:
        """Path of summary.json."""
        return self.folder / SUMMARY

    @property
    def record(self) -> Path:
        """Path of run.json."""
        return self.folder / "run.json"

    def answers(self, count: int | None = None) -> Iterator[Answer]:
        """Yield the first `count` answers in the order of the table."""
        return read_answers(self.answers_file, count)

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a hit: study_id, place (1 is best), score... Needs pandas."""
        texts = ("study_id", "ids", "text")
        return read_frame(self.hits_file, texts, {"score": self.summary.signature})

    def first_failures(self, count: int | None = None) -> list[Failure]:
        """Return the first studies that could not be searched for; all without a count."""
        failed = (Failure(a.row, str(a.id), a.error) for a in self.answers() if a.error is not None)
        return list(islice(failed, count))


def oracle(
    studies: str | Path,
    out: str | Path,
    index: Index | str | Path,
    embedder: StudyEmbedder | None = None,
    settings: OracleSettings | None = None,
    *,
    text_policy: TextPolicy | str | None = None,
    columns: ColumnNames | None = None,
    image_root: str | Path | None = None,
    format: str = "parquet",
    workers: int = 0,
    overwrite: bool = False,
    shards: Shards | None = None,
    device: str = "cpu",
    on_progress: OnProgress | None = None,
) -> OracleResult:
    """Find for every study of a table the rows of an index that score highest.

    A call with the same arguments resumes a stopped run; after the end of a run it changes nothing.

    Args:
        studies: table with columns id, image, reference, as far as the metric uses them.
        out: folder for the results.
        index: as `index_build` made it.
        embedder: with the encoder and policies that made the index; default: the index's encoder.
        settings: settings of the search.
        text_policy: which section of a reference is used, the same as for the index's reports.
        columns: other column names.
        image_root: folder that image paths start from; default: the table's.
        format: "parquet" or "csv", of the table of hits.
        workers: processes that decode images; 0 decodes in this one.
        overwrite: search again; earlier results remain until the new ones are complete.
        shards: rank of this process, the first of several; the others call `serve_oracles`.
        device: device of the matrix products of exact search.
        on_progress: called with (rows done, rows failed).

    Raises:
        InvalidTable: the table cannot be read at all.
        InvalidIndex: the index was made with another encoder or other policies, or is damaged.
        InvalidSetting: a setting is not possible here; `out` holds another run's results.
        FolderInUse: another run is writing there.
        A study that cannot be searched for raises nothing: its line of hits.jsonl has the reason.
    """
    if format not in FORMATS:
        raise InvalidSetting(f"format is {' or '.join(FORMATS)}, not {format!r}")
    settings = settings or OracleSettings()
    opened = index if isinstance(index, Index) else load_index(index)
    if embedder is None and settings.uses_embeddings:
        embedder = StudyEmbedder(
            encoder_name_of(opened.path, opened.manifest, "embedder=StudyEmbedder(NAME)")
        )
    run = OracleRun(
        opened, embedder, settings, text_policy=text_policy, shards=shards, device=device
    )
    queries = run.open(studies, columns=columns, image_root=image_root)
    key = _key(run, queries, format, image_root)

    is_searched = False

    def search(folder: ResumableFolder) -> None:
        nonlocal is_searched
        _search(run, queries, folder, format, workers, on_progress or no_progress)
        is_searched = True

    notes = queries.studies.notes
    if embedder is not None and "image" in {*settings.needs, *settings.wants}:
        notes = (*notes, *embedder.notes)
    result = OracleResult.make(out, key, search, overwrite=overwrite, notes=notes)
    if not is_searched:
        run.release()
    return result


def serve_oracles(
    index: Index | str | Path, settings: OracleSettings, shards: Shards, *, device: str = "cpu"
) -> None:
    """Search one part of an index for the first process, which calls `oracle`."""
    opened = index if isinstance(index, Index) else load_index(index)
    OracleRun(opened, None, settings, shards=shards, device=device).serve()


def _key(
    run: OracleRun, queries: QueryTable, format: str, image_root: str | Path | None
) -> dict[str, Any]:
    """Return the settings that must match before a stopped run can be resumed."""
    settings, files = run.settings, run.index.manifest.files
    searched = ("vectors", "table", *(("approximate",) if run.is_approximate else ()))
    return {
        "table_sha256": queries.studies.sha256,
        "columns": queries.studies.columns.to_dict(),
        "image_root": str(Path(image_root).resolve()) if image_root is not None else None,
        "format": format,
        "signature": str(run.signature),
        "index": {name: files[name].sha256 for name in searched},
        "k": settings.k,
        "ranks": settings.ranks,
        "describe": settings.describe,
        "sample": settings.sample if run.is_approximate else None,
    }


def _search(
    run: OracleRun,
    queries: QueryTable,
    folder: ResumableFolder,
    format: str,
    workers: int,
    on_progress: OnProgress,
) -> None:
    began = time.monotonic()
    signature = run.signature
    tally = Tally()
    for chunk in folder.chunks():
        tally.add(read_answers(chunk.path / ANSWERS))
        run.recall = run.recall or {int(k): share for k, share in chunk.note[_RECALL].items()}
    on_progress(tally.studies, tally.failed)
    for batch in run.batches(queries, skip=folder.rows, workers=workers):
        note = {_RECALL: run.recall}
        with folder.append(len(batch.answers), note, inputs=batch.inputs) as place:
            write_answers(place / ANSWERS, batch.answers, str(signature))
        tally.add(batch.answers)
        on_progress(tally.studies, tally.failed)

    def write(place: Path) -> dict[str, Any]:
        folder.join(ANSWERS, place / ANSWERS)
        _write_hits(place / f"hits.{format}", read_answers(place / ANSWERS))
        write_json(place / SUMMARY, tally.summary(signature, run.recall).to_dict())
        embedder = queries.embedder
        return run_record(
            table=str(queries.studies.path.resolve()),
            index_folder=str(run.index.path.resolve()),
            signature=signature.to_dict(),
            encoder=embedder.encoder.card.to_dict() if embedder is not None else None,
            device=str(embedder.encoder.device) if embedder is not None else None,
            batch_size=embedder.engine.batch_size if embedder is not None else None,
            processes=run.shards.count,
            seconds=round(time.monotonic() - began, 3),
            resumed_from=folder.resumed_from,
        )

    folder.finish(write, rows=tally.studies)


def _write_hits(path: Path, answers: Iterator[Answer]) -> None:
    """Write the table of hits in the format of the file's suffix."""
    is_csv = path.suffix == ".csv"
    kind = pyarrow.csv.CSVWriter if is_csv else pq.ParquetWriter
    with kind(path, HITS_SCHEMA) as writer:
        while some := list(islice(answers, _AT_ONCE)):
            table = hits_table(some)
            writer.write_table(table_cells(table) if is_csv else table)
