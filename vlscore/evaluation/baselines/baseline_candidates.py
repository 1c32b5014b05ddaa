"""Candidates of a baseline for a table of studies."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import (
    OnProgress,
    Signature,
    __version__,
    checked_arguments,
    frame,
    json_line,
    no_progress,
)
from vlscore.data import (
    ColumnNames,
    Report,
    ReportTable,
    Study,
    StudyTable,
    TextPolicy,
    as_table,
    open_reports,
    shared_ids_note,
    split_failures,
)
from vlscore.errors import Failure, InvalidSetting, InvalidStudy, InvalidTable, VLScoreError
from vlscore.evaluation.baselines.baseline_base import (
    IMAGES,
    OWN_REPORT,
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
from vlscore.evaluation.scored import BASELINE
from vlscore.stats import Content, Presentation, Result, TextTable, text_table

if TYPE_CHECKING:
    from vlscore.embedding import StudyEmbedder

CANDIDATES = "candidates.jsonl"
# Candidates that are made at once.
_AT_ONCE = 1000
# Candidates of more words are shown in part.
_SHOWN_WORDS = 30


@checked_arguments
def baseline(
    name: AnyBaseline,
    studies: str | Path | StudyTable,
    out: str | Path,
    *,
    train: str | Path | StudyTable | None = None,
    settings: BaselineSettings | None = None,
    embedder: "StudyEmbedder | None" = None,
    text_policy: TextPolicy | str | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress = no_progress,
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
        from vlscore.embedding import StudyEmbedder  # loads torch

        embedder = StudyEmbedder()
    # References and images are copied where the table has them.
    needed = {role for role, need in (("image", IMAGES), ("reference", REFERENCE)) if need in needs}
    table = as_table(studies, needed, {"image", "reference"} - needed)
    trained = _training_table(chosen, train)
    signature = _signature(chosen, trained, policy, embedder)
    key = {
        "command": "baseline",
        "signature": str(signature),
        **table.key,
        "train": None if trained is None else trained.key,
    }

    def compute(folder: Path) -> Content:
        learnt, before, about = training_reports(trained, policy, embedder, workers, on_progress)
        about += chosen.fit(learnt, embedder)

        def on_rows(done: int, bad: int) -> None:
            on_progress(before + done, bad)

        found, failures, shared = _candidates(
            chosen, learnt, trained, table, policy, embedder, workers, on_rows
        )
        records = (json_line(_record(study, text, str(signature))) for study, text in found)
        (folder / CANDIDATES).write_text("".join(records), encoding="utf-8", newline="")
        return Content(
            {"facts": frame([_facts([text for _, text in found])])},
            failures=failures,
            signatures={chosen.name: signature},
            notes=[*about, *shared],
            facts={"table": str(table.path.resolve())},
        )

    def images() -> Iterator[Path]:
        read = (table if IMAGES in needs else None, trained)
        return chain.from_iterable(t.image_files() for t in read if isinstance(t, StudyTable))

    if embedder is None:
        return Result.make(out, key, compute, overwrite=overwrite, notes=table.notes)
    notes = (*table.notes, *embedder.notes)
    return Result.make(out, key, compute, images=images, overwrite=overwrite, notes=notes)


def _training_table(
    chosen: Baseline, table: str | Path | StudyTable | None
) -> StudyTable | ReportTable | None:
    if TRAIN not in chosen.needs:
        if table is not None:
            raise InvalidSetting(
                f"{chosen.name} learns nothing with these settings; leave the training table out"
            )
        return None
    if table is None:
        raise InvalidSetting(
            f"{chosen.name} learns from other reports; name a training table with train (--train)"
        )
    if TRAIN_IMAGES in chosen.needs:
        return as_table(table, {"image", "reference"})
    # A table of reports may have them in a column of another name.
    opened = as_table(table)
    columns = opened.columns
    named = columns.reference if columns.reference != ColumnNames.reference else None
    return open_reports(opened.path, id_column=columns.id, text_column=named)


def _signature(
    chosen: Baseline,
    trained: StudyTable | ReportTable | None,
    policy: TextPolicy,
    embedder: "StudyEmbedder | None",
) -> Signature:
    digest = None if trained is None else trained.sha256[:12]
    signature = Signature(f"{BASELINE}{chosen.name}").plus(chosen.facts(), train=digest)
    signature = signature.plus(txt=policy.signature())
    return signature.plus(None if embedder is None else embedder.signature).plus(v=__version__)


def _rows(
    table: StudyTable | ReportTable,
    embedder: "StudyEmbedder | None",
    workers: int,
    on_progress: OnProgress,
) -> tuple[list[Any], NDArray[np.float32] | None, list[Failure]]:
    """Return the studies or reports that can be read, vectors of their images, and the others."""
    if embedder is None or not isinstance(table, StudyTable):
        rows, bad = split_failures(table)
        return rows, None, bad
    from vlscore.embedding import embed_table  # loads torch

    found = embed_table(
        table, embedder, None, roles=["image"], workers=workers, on_progress=on_progress
    )
    return list(found.studies), found.vectors["image"], list(found.failed)


def training_reports(
    table: StudyTable | ReportTable | None,
    policy: TextPolicy,
    embedder: "StudyEmbedder | None",
    workers: int,
    on_progress: OnProgress = no_progress,
) -> tuple[TrainingReports, int, list[str]]:
    """Read what a baseline learns from; return it, the number of rows, and notes."""
    if table is None:
        return TrainingReports([]), 0, []
    rows, images, failed = _rows(table, embedder, workers, on_progress)
    why = f"; row {failed[0].row}: {failed[0].reason}" if failed else ""
    texts, good, whole = [], [], []
    for k, row in enumerate(rows):
        if isinstance(row, Study):
            row = Report(row.id, row.reference or "", row.row, row.parts)
        try:
            texts.append(row.selected(policy).text)
        except VLScoreError as error:
            why = why or f"; row {row.row}: {error}"
        else:
            good.append(k)
            whole.append(row)
    if not texts:
        raise InvalidTable(f"{table.path}: no row can be learnt from{why}")
    count = len(rows) + len(failed)
    bad = count - len(texts)
    notes = [f"{table.path}: {bad} rows cannot be used"] if bad else []
    learnt = TrainingReports(texts, whole, None if images is None else images[good])
    return learnt, count, notes


def _candidates(
    chosen: Baseline,
    learnt: TrainingReports,
    trained: StudyTable | ReportTable | None,
    table: StudyTable,
    policy: TextPolicy,
    embedder: "StudyEmbedder | None",
    workers: int,
    on_progress: OnProgress,
) -> tuple[list[tuple[Study, str]], list[Failure], list[str]]:
    """Return each study with its candidate, failures, and a note on ids among those learnt from.

    Raises: InvalidTable where no study has a candidate.
    """
    own = embedder if IMAGES in chosen.needs else None
    studies, images, failures = _rows(table, own, workers, on_progress)
    cases: dict[int, Case] = {}
    for k, row in enumerate(studies):
        try:
            reference = row.selected(policy).reference
        except VLScoreError as error:
            reference = None
            if REFERENCE in chosen.needs:
                failures.append(Failure(row.row, row.id, str(error)))
                continue
        image = None if images is None else images[k]
        cases[k] = Case(row.row - 1, row.id, reference, image)
    found: list[tuple[Study, str]] = []
    for start in range(0, len(cases), _AT_ONCE):
        some = dict(islice(cases.items(), start, start + _AT_ONCE))
        texts = chosen.candidates(list(some.values()))
        for study, text in zip(map(studies.__getitem__, some), texts, strict=True):
            if isinstance(text, InvalidStudy):
                failures.append(Failure(study.row, study.id, str(text)))
            else:
                found.append((study, text))
        on_progress(start + len(some), len(failures))
    failures.sort(key=lambda failure: int(failure.row or 0))
    if not found:
        why = f"row {failures[0].row}: {failures[0].reason}" if failures else "it has no rows"
        raise InvalidTable(f"{table.path}: no row has a candidate; {why}")
    if trained is None:
        return found, failures, []
    ids = (case.id for case in cases.values())
    theirs = (report.id for report in learnt.whole)
    return found, failures, shared_ids_note(table, ids, trained, theirs, OWN_REPORT)


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


def _facts(texts: Sequence[str]) -> dict[str, Any]:
    """Return how many candidates there are, how many differ, and how long they are."""
    counts = Counter(texts)
    most, times = counts.most_common(1)[0]
    return {
        "candidates": len(texts),
        "distinct": len(counts),
        "mean_words": sum(len(text.split()) for text in texts) / len(texts),
        "most_frequent": most,
        "most_frequent_share": times / len(texts),
    }


def _tables(run: Result) -> list[TextTable]:
    (facts,) = run.frames["facts"].to_dict("records")
    words = facts["most_frequent"].split()
    shown = " ".join(words[:_SHOWN_WORDS]) + (" ..." if len(words) > _SHOWN_WORDS else "")
    values = {
        "studies": str(facts["candidates"]),
        "different candidates": str(facts["distinct"]),
        "mean words": f"{facts['mean_words']:.1f}",
        "share of the most frequent": f"{facts['most_frequent_share']:.3f}",
    }
    records = [{"fact": name, "value": value} for name, value in values.items()]
    table = text_table("Candidates", records, f"The most frequent: {shown}")
    return [replace(table, has_texts=True)]


PRESENTATION = Presentation(_tables)
