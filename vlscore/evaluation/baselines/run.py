"""Candidates of a baseline for a table of studies, in a resumable folder."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import (
    OnProgress,
    ResumableFolder,
    Signature,
    __version__,
    no_progress,
    read_frame,
    run_record,
    write_json,
)
from vlscore.data import (
    BadRow,
    ColumnNames,
    Report,
    ReportTable,
    Study,
    StudyTable,
    TextPolicy,
    open_reports,
    open_studies,
)
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidReport, InvalidSetting, InvalidStudy, InvalidTable
from vlscore.evaluation.baselines.baseline_base import (
    BASELINE,
    IMAGES,
    REFERENCE,
    TRAIN,
    TRAIN_IMAGES,
    AnyBaseline,
    Baseline,
    BaselineSettings,
    Case,
    TrainingReports,
    find_baseline,
)
from vlscore.evaluation.row_chunks import (
    RunOfRows,
    chunks_of_kind,
    csv_of,
    join_failures,
    join_parts,
    read_arrays,
    write_arrays,
)
from vlscore.retrieval import StudyBatch, embedded_batches
from vlscore.stats import FAILURES, TextTable, markdown, with_mark

if TYPE_CHECKING:
    import pandas

CANDIDATES, SUMMARY, _TABLES = "candidates.jsonl", "summary.json", "tables.md"
# Kinds of chunks: embedded training images, and candidates.
_TRAIN, _CANDIDATES = "train", "candidates"
# Rows that are made at once, with and without images to decode.
_WITH_IMAGES, _WITHOUT = 128, 1000
# Candidates of more words are shown in part.
_SHOWN_WORDS = 30


@dataclass(frozen=True)
class BaselineRun(RunOfRows):
    """Candidates of a baseline: candidates.jsonl, summary.json, tables.md and failures.csv.

    A row of candidates.jsonl has id, candidate, what the table of studies has of reference,
    findings, impression, image and view, and the signature of the baseline.
    """

    content_file = SUMMARY
    results = (CANDIDATES, SUMMARY, _TABLES, FAILURES)

    @property
    def candidates(self) -> Path:
        """Return the table of candidates, which `vlscore evaluate` and `compare` read."""
        return self.folder / CANDIDATES

    @property
    def signatures(self) -> list[str]:
        """Return what the candidates depend on."""
        return [self.content["signature"]]

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a candidate. Needs pandas."""
        return read_frame(self.candidates, texts=["id"])


def baseline(
    name: AnyBaseline,
    studies: str | Path,
    out: str | Path,
    *,
    train: str | Path | None = None,
    settings: BaselineSettings | None = None,
    embedder: StudyEmbedder | None = None,
    text_policy: TextPolicy | str | None = None,
    columns: ColumnNames | None = None,
    image_root: str | Path | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> BaselineRun:
    """Write the candidates of a baseline for the studies of a table.

    Called again after a stop with the same arguments, it resumes where it was.

    Args:
        name: of a baseline, or a Baseline.
        studies: table of the studies that candidates are written for.
        out: folder for the results.
        train: table of other studies that the baseline learns from; with images if it needs them.
        settings: of the baseline.
        embedder: embeds images, where the baseline needs them; default: the default encoder.
        text_policy: section of training reports, and of references, that counts.
        columns: other column names, of both tables.
        image_root: folder that image paths of both tables start from; default: the table's own.
        workers: processes that decode images; 0 decodes in this one.
        overwrite: make anew; earlier results stay until the new ones are complete.
        on_progress: called with (rows done, rows failed), training images included.

    Raises:
        InvalidTable: a table cannot be read, or no row has a candidate.
        InvalidSetting: a training table is missing, a setting is not of this baseline, or `out`
            holds another run's results.
        FolderInUse: another run is writing there.
    """
    chosen = find_baseline(name, settings)
    needs, policy = chosen.needs, TextPolicy.named(text_policy)
    if not needs & {TRAIN_IMAGES, IMAGES}:
        embedder = None
    elif embedder is None:
        embedder = StudyEmbedder()
    source = _BaselineSource(chosen, policy, embedder, workers)
    names = columns or ColumnNames()
    table = _studies(studies, needs, names, image_root)
    trained = _training_table(chosen, train, names, image_root)
    signature = _signature(chosen, trained, policy, embedder)
    key = {
        "command": "baseline",
        "signature": str(signature),
        "table_sha256": table.sha256,
        "train_sha256": None if trained is None else trained.sha256,
        "columns": names.to_dict(),
        "image_root": None if image_root is None else str(Path(image_root).resolve()),
    }

    def compute(folder: ResumableFolder) -> None:
        run = _BaselineJob(source, folder, signature, on_progress or no_progress)
        run.notes += run.learn(trained)
        run.write_chunks(table)
        if run.done == run.failed:
            raise InvalidTable(f"{table.path}: no row has a candidate; {run.first_reason()}")
        folder.finish(run.write, rows=folder.rows)

    notes = table.notes if embedder is None else (*table.notes, *embedder.notes)
    return BaselineRun.make(out, key, compute, overwrite=overwrite, notes=notes)


def _studies(
    path: str | Path, needs: frozenset[str], columns: ColumnNames, root: str | Path | None
) -> StudyTable:
    """Open the studies; their reference and images are copied where the table has them."""
    needed = {role for role, need in (("image", IMAGES), ("reference", REFERENCE)) if need in needs}
    wanted = {"image", "reference"} - needed
    return open_studies(path, needs=needed, wants=wanted, image_root=root, columns=columns)


def _training_table(
    chosen: Baseline, path: str | Path | None, columns: ColumnNames, root: str | Path | None
) -> StudyTable | ReportTable | None:
    if TRAIN not in chosen.needs:
        if path is not None:
            raise InvalidSetting(
                f"{chosen.name} learns nothing with these settings; leave the training table out"
            )
        return None
    if path is None:
        raise InvalidSetting(
            f"{chosen.name} learns from other reports; name a training table with train (--train)"
        )
    if TRAIN_IMAGES in chosen.needs:
        return open_studies(path, needs={"image", "reference"}, image_root=root, columns=columns)
    # A table of reports may have them in a column of another name.
    named = columns.reference if columns.reference != ColumnNames.reference else None
    return open_reports(path, id_column=columns.id, text_column=named)


def _signature(
    chosen: Baseline,
    trained: StudyTable | ReportTable | None,
    policy: TextPolicy,
    embedder: StudyEmbedder | None,
) -> Signature:
    signature = Signature(f"{BASELINE}{chosen.name}").plus(chosen.facts())
    signature = signature.plus(
        train=None if trained is None else trained.sha256[:12], txt=policy.signature()
    )
    flags: list[str] = []
    if embedder is not None:
        facts = embedder.signature
        flags = [name for name, value in facts if value is None]
        signature = signature.plus(facts.without(*flags))
    return signature.plus(v=__version__).flagged(*flags)


@dataclass(frozen=True)
class _BaselineSource:
    """A baseline, and how its inputs are read."""

    baseline: Baseline
    policy: TextPolicy
    embedder: StudyEmbedder | None
    workers: int

    def batches(self, table: StudyTable, skip: int) -> Iterator[StudyBatch]:
        """Yield the rows of a table; images are embedded where there is an embedder."""
        size = _WITHOUT if self.embedder is None else _WITH_IMAGES
        return embedded_batches(
            table, self.embedder, self.policy, skip=skip, size=size, workers=self.workers
        )


def _images_of(batch: StudyBatch) -> list[Path]:
    return [path for study in batch.studies for path in study.images]


class _BaselineJob:
    """Job that embeds training images, then writes the candidates, a chunk at a time."""

    def __init__(
        self,
        source: _BaselineSource,
        folder: ResumableFolder,
        signature: Signature,
        on_progress: OnProgress,
    ) -> None:
        self._source, self._folder = source, folder
        self._signature, self._on_progress = signature, on_progress
        self._train_ids: set[str] = set()
        # Rows of the training table whose images were embedded, for the progress.
        self._before = 0
        self.notes: list[str] = []
        self.done = self.failed = 0

    def learn(self, table: StudyTable | ReportTable | None) -> list[str]:
        """Fit the baseline to its training table; return what a user should know."""
        if table is None:
            return list(self._source.baseline.fit(TrainingReports([]), self._source.embedder))
        images = self._train_images(table) if isinstance(table, StudyTable) else None
        texts, whole, unusable = [], [], 0
        for row in table:
            try:
                report = self._report(row)
                selected = report.selected(self._source.policy).text
            except (InvalidStudy, InvalidReport):
                unusable += 1
                continue
            self._train_ids.add(report.id)
            if images is None or report.row in images:
                whole.append(report)
                texts.append(selected)
        if not texts:
            raise InvalidTable(f"{table.path}: no row can be learnt from")
        vectors = None if images is None else np.stack([images[each.row] for each in whole])
        notes = [f"{table.path}: {unusable} rows cannot be used"] if unusable else []
        if images is not None and len(texts) < len(self._train_ids):
            notes.append(
                f"{table.path}: {len(self._train_ids) - len(texts)} rows have no image that could "
                "be embedded"
            )
        fitted = self._source.baseline.fit(
            TrainingReports(texts, whole, vectors), self._source.embedder
        )
        return [*notes, *fitted]

    @staticmethod
    def _report(row: Study | Report | BadRow) -> Report:
        if isinstance(row, BadRow):
            raise InvalidStudy(row.reason)
        if isinstance(row, Report):
            return row
        return Report(row.id, row.reference or "", row.row, row.parts)

    def _train_images(self, table: StudyTable) -> dict[int, NDArray[np.float32]]:
        """Return row -> embedding of the training images; embed what no chunk holds yet."""
        known = sum(chunk.rows for chunk in chunks_of_kind(self._folder, _TRAIN))
        failed = sum(chunk.note["failed"] for chunk in chunks_of_kind(self._folder, _TRAIN))
        for batch in self._source.batches(table, known):
            assert batch.images is not None
            known, failed = known + batch.rows, failed + len(batch.failed)
            note = {"kind": _TRAIN, "failed": len(batch.failed)}
            with self._folder.append(batch.rows, note, _images_of(batch)) as place:
                write_arrays(place, [study.row for study in batch.studies], images=batch.images)
            self._on_progress(known, failed)
        self._before = known
        found: dict[int, NDArray[np.float32]] = {}
        for chunk in chunks_of_kind(self._folder, _TRAIN):
            arrays, numbers = read_arrays(chunk.path)
            found |= dict(zip(numbers, arrays["images"], strict=True))
        return found

    def write_chunks(self, table: StudyTable) -> None:
        """Write the candidates of the rows that no chunk holds yet."""
        for chunk in chunks_of_kind(self._folder, _CANDIDATES):
            self._count(chunk.rows, chunk.note)
        studies = islice(table, self.done, None)
        source = self._source
        if IMAGES not in source.baseline.needs:
            source = _BaselineSource(source.baseline, source.policy, None, 0)
        for batch in source.batches(table, self.done):
            rows = list(islice(studies, batch.rows))
            lines, failures, note = self._candidates_of(rows, batch)
            with self._folder.append(batch.rows, note, _images_of(batch)) as place:
                (place / CANDIDATES).write_bytes("".join(lines).encode("utf-8"))
                (place / FAILURES).write_bytes(csv_of(failures).encode("utf-8"))
            self._count(batch.rows, note)
            self._on_progress(self._before + self.done, self.failed)

    def _count(self, rows: int, note: Mapping[str, Any]) -> None:
        self.done += rows
        self.failed += note["failed"]

    def _candidates_of(
        self, rows: Sequence[Study | BadRow], batch: StudyBatch
    ) -> tuple[list[str], list[tuple[int, str | None, str]], dict[str, Any]]:
        """Return lines of candidates.jsonl, failures, and the note of a chunk."""
        studies = {row.row: row for row in rows if isinstance(row, Study)}
        failures = [(row.row, row.id, row.reason) for row in batch.failed]
        cases = [
            Case(
                study.row - 1,
                study.id,
                study.reference,
                None if batch.images is None else batch.images[k],
            )
            for k, study in enumerate(batch.studies)
        ]
        lines = []
        for case, text in zip(cases, self._source.baseline.candidates(cases), strict=True):
            if isinstance(text, InvalidStudy):
                failures.append((case.position + 1, case.id, str(text)))
                continue
            record = _record(studies[case.position + 1], text, str(self._signature))
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
        shared = sum(case.id in self._train_ids for case in cases)
        note = {"kind": _CANDIDATES, "failed": len(failures), "shared": shared}
        return lines, sorted(failures, key=lambda failure: failure[0]), note

    def first_reason(self) -> str:
        """Return why the first row has no candidate."""
        for chunk in chunks_of_kind(self._folder, _CANDIDATES):
            line = (chunk.path / FAILURES).read_text(encoding="utf-8").splitlines()[0]
            return f"row {line.replace(',', ', ')}"
        return "it has no rows"

    def write(self, place: Path) -> dict[str, Any]:
        """Write the results, and return what is in them."""
        chunks = chunks_of_kind(self._folder, _CANDIDATES)
        join_parts(chunks, CANDIDATES, place / CANDIDATES)
        join_failures(chunks, place)
        if shared := sum(chunk.note["shared"] for chunk in chunks):
            self.notes.append(
                f"{shared} studies have an id that the training table has as well: their own "
                "report may be among the training reports"
            )
        facts = _facts(place / CANDIDATES)
        table = _facts_table(facts)
        (table,) = with_mark([table], [self._signature])
        summary = {
            "baseline": self._source.baseline.name,
            "signature": str(self._signature),
            **facts,
            "failed": self.failed,
            "tables": [asdict(table)],
        }
        write_json(place / SUMMARY, summary)
        text = markdown([table], [str(self._signature)])
        (place / _TABLES).write_text(text, encoding="utf-8")
        return run_record(notes=self.notes)


def _record(study: Study, candidate: str, signature: str) -> dict[str, Any]:
    """Return a row of candidates.jsonl."""
    texts = study.parts if study.parts is not None else {"reference": study.reference}
    record: dict[str, Any] = {"id": study.id, "candidate": candidate}
    record |= {name: text for name, text in texts.items() if text is not None}
    if study.images:
        record["image"] = [str(path.resolve()) for path in study.images]
        if study.views is not None:
            record["view"] = list(study.views)
    return {**record, "baseline": signature}


def _facts(path: Path) -> dict[str, Any]:
    """Return how many candidates a table has, how many differ, and how long they are."""
    counts: Counter[str] = Counter()
    with path.open(encoding="utf-8") as stream:
        counts.update(json.loads(line)["candidate"] for line in stream)
    total = sum(counts.values())
    words = sum(len(text.split()) * count for text, count in counts.items())
    most, times = counts.most_common(1)[0]
    return {
        "candidates": total,
        "distinct": len(counts),
        "mean_words": words / total,
        "most_frequent": most,
        "most_frequent_share": times / total,
    }


def _facts_table(facts: Mapping[str, Any]) -> TextTable:
    words = facts["most_frequent"].split()
    shown = " ".join(words[:_SHOWN_WORDS]) + (" ..." if len(words) > _SHOWN_WORDS else "")
    return TextTable(
        "Candidates",
        ("fact", "value"),
        (
            ("studies", str(facts["candidates"])),
            ("different candidates", str(facts["distinct"])),
            ("mean words", f"{facts['mean_words']:.1f}"),
            ("share of the most frequent", f"{facts['most_frequent_share']:.3f}"),
        ),
        f"The most frequent: {shown}",
    )
