"""Candidates of a baseline for a table of studies."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnProgress, Signature, __version__, frame, json_line, no_progress
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
from vlscore.retrieval import StudyBatch, embedded_batches
from vlscore.stats import Content, Failure, Result, TextTable, with_mark

CANDIDATES = "candidates.jsonl"
# Rows that are made at once, with and without images to decode.
_WITH_IMAGES, _WITHOUT = 128, 1000
# Candidates of more words are shown in part.
_SHOWN_WORDS = 30


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
) -> Result:
    """Write the candidates of a baseline for the studies of a table.

    Args:
        name: of a baseline, or a Baseline.
        studies: table of the studies that candidates are written for.
        out: folder for the results: candidates.jsonl, which `evaluate` and `compare` read, besides
            the usual ones. A row has id, candidate, what the table of studies has of reference,
            findings, impression, image and view, and the signature of the baseline. The frame
            "facts" has one row: how many candidates there are, how many differ, how long they are.
        train: table of other studies that the baseline learns from; with images if it needs them.
        settings: of the baseline.
        embedder: embeds images, where the baseline needs them; default: the default encoder.
        text_policy: section of training reports, and of references, that counts.
        columns: other column names, of both tables.
        image_root: folder that image paths of both tables start from; default: the table's own.
        workers: processes that decode images; 0 decodes in this one.
        overwrite: compute again; earlier results stay until the new ones are complete.
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

    def compute(folder: Path) -> Content:
        work = _BaselineWork(chosen, policy, embedder, workers, on_progress or no_progress)
        notes = work.learn(trained)
        facts = work.write(table, folder / CANDIDATES, str(signature))
        if not facts:
            first = work.failures[0] if work.failures else None
            reason = "it has no rows" if first is None else f"row {first.row}: {first.reason}"
            raise InvalidTable(f"{table.path}: no row has a candidate; {reason}")
        if work.shared:
            notes.append(
                f"{work.shared} studies have an id that the training table has as well: their own "
                "report may be among the training reports"
            )
        return Content(
            {"facts": frame([facts])},
            with_mark([_facts_table(facts)], [signature]),
            failures=work.failures,
            signatures={chosen.name: signature},
            notes=notes,
            facts={"table": str(table.path.resolve())},
        )

    notes = table.notes if embedder is None else (*table.notes, *embedder.notes)
    return Result.make(out, key, compute, overwrite=overwrite, notes=notes)


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


class _BaselineWork:
    """Embeds training images, fits the baseline, and writes the candidates.

    Attributes:
        failures: rows of the studies that have no candidate.
        shared: number of studies whose id the training table has as well.
    """

    def __init__(
        self,
        baseline: Baseline,
        policy: TextPolicy,
        embedder: StudyEmbedder | None,
        workers: int,
        on_progress: OnProgress,
    ) -> None:
        self._baseline, self._policy = baseline, policy
        self._embedder, self._workers, self._on_progress = embedder, workers, on_progress
        self._train_ids: set[str] = set()
        # Rows of the training table whose images were embedded, for the progress.
        self._before = 0
        self.failures: list[Failure] = []
        self.shared = 0

    def _batches(self, table: StudyTable, embedder: StudyEmbedder | None) -> Iterator[StudyBatch]:
        """Yield the rows of a table; images are embedded where there is an embedder."""
        size = _WITHOUT if embedder is None else _WITH_IMAGES
        return embedded_batches(table, embedder, self._policy, size=size, workers=self._workers)

    def learn(self, table: StudyTable | ReportTable | None) -> list[str]:
        """Fit the baseline to its training table; return what a user should know."""
        if table is None:
            return list(self._baseline.fit(TrainingReports([]), self._embedder))
        images = self._train_images(table) if isinstance(table, StudyTable) else None
        texts, whole, unusable = [], [], 0
        for row in table:
            try:
                report = self._report(row)
                selected = report.selected(self._policy).text
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
        fitted = self._baseline.fit(TrainingReports(texts, whole, vectors), self._embedder)
        return [*notes, *fitted]

    @staticmethod
    def _report(row: Study | Report | BadRow) -> Report:
        if isinstance(row, BadRow):
            raise InvalidStudy(row.reason)
        if isinstance(row, Report):
            return row
        return Report(row.id, row.reference or "", row.row, row.parts)

    def _train_images(self, table: StudyTable) -> dict[int, NDArray[np.float32]]:
        """Return row -> embedding of the training images."""
        found: dict[int, NDArray[np.float32]] = {}
        for batch in self._batches(table, self._embedder):
            assert batch.images is not None
            found |= dict(zip((study.row for study in batch.studies), batch.images, strict=True))
            self._before += batch.rows
            self._on_progress(self._before, self._before - len(found))
        return found

    def write(self, table: StudyTable, path: Path, signature: str) -> dict[str, Any]:
        """Write the candidates; return how many, how many differ, and how long they are."""
        embedder = self._embedder if IMAGES in self._baseline.needs else None
        counts: Counter[str] = Counter()
        rows, done = iter(table), 0
        with path.open("w", encoding="utf-8", newline="") as lines:
            for batch in self._batches(table, embedder):
                for study, text in self._candidates(list(islice(rows, batch.rows)), batch):
                    lines.write(json_line(_record(study, text, signature)))
                    counts[text] += 1
                done += batch.rows
                self._on_progress(self._before + done, len(self.failures))
        return _facts(counts) if counts else {}

    def _candidates(
        self, rows: Sequence[Study | BadRow], batch: StudyBatch
    ) -> Iterator[tuple[Study, str]]:
        """Yield the studies of a batch with their candidates; note the rows without one."""
        studies = {row.row: row for row in rows if isinstance(row, Study)}
        failures = [Failure(row.row, row.id or "", row.reason) for row in batch.failed]
        cases = [
            Case(
                study.row - 1,
                study.id,
                study.reference,
                None if batch.images is None else batch.images[k],
            )
            for k, study in enumerate(batch.studies)
        ]
        for case, text in zip(cases, self._baseline.candidates(cases), strict=True):
            self.shared += case.id in self._train_ids
            if isinstance(text, InvalidStudy):
                failures.append(Failure(case.position + 1, case.id, str(text)))
            else:
                yield studies[case.position + 1], text
        self.failures += sorted(failures, key=lambda failure: int(failure.row or 0))


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


def _facts(counts: Counter[str]) -> dict[str, Any]:
    """Return how many candidates there are, how many differ, and how long they are."""
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
