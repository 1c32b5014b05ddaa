"""Evaluation of a table of studies into a folder of results."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import (
    IMAGES,
    OnProgress,
    check_names,
    checked_arguments,
    first_of,
    frame,
    key_difference,
    no_progress,
    with_noun,
)
from vlscore.data import (
    Study,
    StudyTable,
    as_table,
    texts_by_role,
)
from vlscore.errors import Failure, InvalidSetting, InvalidTable
from vlscore.evaluation.score_table import VIEW_GUESSED, Engine, item_of, rows_of_part, score_table
from vlscore.evaluation.scored import ID, ROW, Scored, own_names
from vlscore.evaluation.scoring.row_facts import (
    check_groups,
    counts_of,
    noticed_notes,
    read_own,
    section_notes,
)
from vlscore.evaluation.scoring.summary import common_means, subgroups_of, summary_of
from vlscore.metrics import Scorer
from vlscore.stats import Content, Result

if TYPE_CHECKING:
    import pandas

FORMATS = ("parquet", "csv")
_PART = re.compile(r"([1-9]\d*)/([1-9]\d*)")


@checked_arguments
def evaluate(
    table: str | Path | StudyTable,
    out: str | Path,
    scorer: Scorer | None = None,
    *,
    format: str = "parquet",
    keep: Sequence[str] = (),
    by: Sequence[str] = (),
    patient: str | None = None,
    part: str | None = None,
    engine: Engine | None = None,
    workers: int = 0,
    overwrite: bool = False,
    keep_going: bool = False,
    on_progress: OnProgress = no_progress,
) -> Result:
    """Compute the metrics of a scorer for every study of a table.

    A run that was killed and is repeated takes from the cache what is slow. Called again when it
    has ended, it changes nothing.

    Args:
        table: .jsonl, .csv, ... with columns id, image, reference, candidate, as far as the metrics
            look at them; docs/tables.md has the rules. Or what `open_studies` returned.
        out: folder for the results; docs/results.md describes them.
        scorer: what scores; default: VLScore by the default encoder.
        format: "parquet" or "csv", of the scores; a part is always parquet.
        keep: columns of the table that are copied into the scores.
        by: columns of the table of which each value has a table of its own.
        patient: column with the patient of each study; intervals then resample patients.
        part: "K/N": only the K-th of N parts of the rows, for machines that share no process;
            `join_parts` makes the results of all parts.
        engine: computes elsewhere, as `OnRay` does.
        workers: processes that decode images; 0 decodes in this one.
        overwrite: compute again; earlier results stay until the new ones are complete.
        keep_going: continue even if the first hundred rows all fail for one reason.
        on_progress: called with (rows done, rows failed).

    Returns: the result with the frames "summary", "counts", "common" (means over the rows that
        every metric has, where they differ) and "subgroups".
    Raises:
        InvalidTable: the table cannot be read at all, or lacks a column.
        InvalidSetting: `out` holds another run's results, or numbers of image files that were
            replaced since; or the first hundred rows fail alike.
        FolderInUse: another run is writing there.
        A row that cannot be scored raises nothing: it is listed in failures.csv.
    """
    scorer = scorer if scorer is not None else Scorer()
    studies = as_table(table, scorer.needs.roles).required(scorer.required)
    share = (1, 1) if part is None else part_of(part)
    if format not in FORMATS:
        raise InvalidSetting(f"format is {' or '.join(FORMATS)}, not {format!r}")
    if part is not None:
        format = "parquet"  # Parts are joined; `join_parts` writes the format that is asked for.
    check_names("keep", keep)
    check_names("by", by)
    own_columns = {"keep": list(keep), "by": list(by), "patient": patient}
    names = own_names(own_columns)
    own = read_own(names, studies, scorer.metrics)
    for column in by:
        check_groups(column, own[column].values())
    rows = list(studies)
    if scorer.vectors is not None and len(scorer.vectors.candidates) != len(rows):
        raise InvalidSetting(
            f"there are vectors of {len(scorer.vectors.candidates)} studies, but {studies.path} "
            f"has {len(rows)} rows; both must be of the same studies in one order"
        )
    items = [item_of(row, scorer, position) for position, row in enumerate(rows)]
    scorer = scorer.prepared(items, studies, ranked=True)
    batches = rows_of_part(items, scorer, share)
    mine = sorted(position for batch in batches for position in batch)
    key = {
        "command": "evaluate",
        **studies.key,
        "format": format,
        "metrics": {name: str(signature) for name, signature in scorer.signatures.items()},
        "own_columns": own_columns if names else None,
        "part": part,
        **({"others": len(scorer.others)} if scorer.others else {}),
    }

    embedder = scorer.embedder
    about_training = () if embedder is None else embedder.training_notes(studies)

    def image_files() -> Iterator[Path]:
        for row in (rows[k] for k in mine):
            if isinstance(row, Study):
                yield from row.files

    def compute(path: Path) -> Content:
        began, work = time.monotonic(), scorer.work
        values = score_table(
            items,
            scorer,
            workers=workers,
            on_progress=on_progress,
            keep_going=keep_going,
            names=lambda k: f"row {rows[k].row}" + (f" ({rows[k].id})" if rows[k].id else ""),
            batches=batches,
            engine=engine,
        )
        scored = Scored.of(values, _names(rows, own))
        scored = scored if part is None else scored.at(mine)
        files = scored.files(format)
        facts = {
            **_facts(studies, scorer, rows),
            "work": {name: n - work[name] for name, n in scorer.work.items()} or None,
            "seconds": round(time.monotonic() - began, 3),
        }
        counts = counts_of([rows[k] for k in mine], scored, scorer)
        return _content(scored, counts, own_columns, files, facts)

    return Result.make(
        out,
        key,
        compute,
        images=image_files if scorer.needs.images else None,
        overwrite=overwrite,
        notes=(*studies.notes, *scorer.notes, *about_training),
    )


def _names(
    rows: Sequence[Study | Failure], own: Mapping[str, Mapping[Any, str | None]]
) -> dict[str, Any]:
    """Return what names each row in the scores: its number, its id, and the user's own columns.

    Args: own: name of a user's own column -> number of a row -> its text.
    """
    import pandas

    texts = {
        ID: [row.id or None for row in rows],
        **{name: [column[row.row] for row in rows] for name, column in own.items()},
    }
    found = {name: pandas.Series(column, dtype=object) for name, column in texts.items()}
    return {ROW: [row.row for row in rows], **found}


def join_parts(
    parts: Sequence[str | Path],
    out: str | Path,
    *,
    format: str = "parquet",
    overwrite: bool = False,
) -> Result:
    """Join the folders of all parts of an evaluation to the results that one run has.

    Args:
        parts: folders that `evaluate(part="K/N")` wrote, all N of them, in any order.
        out, format, overwrite: as of `evaluate`.

    Raises: InvalidSetting where a part is absent or of another run; ChecksumMismatch where one was
        changed.
    """
    runs = [_part_run(folder) for folder in parts]
    keys = [{**run.key, "part": None} for run in runs]
    for run, each in zip(runs, keys, strict=True):
        if each != keys[0]:
            raise InvalidSetting(
                f"{run.folder} is a part of another run than {runs[0].folder}: "
                f"{key_difference(keys[0], each)}"
            )
    found = {run.key["part"]: run for run in runs}
    count = part_of(runs[0].key["part"])[1]
    wanted = [f"{number}/{count}" for number in range(1, count + 1)]
    if sorted(found) != sorted(wanted) or len(runs) != count:
        lacking = ", ".join(each for each in wanted if each not in found)
        raise InvalidSetting(
            f"the folders are the parts {', '.join(run.key['part'] for run in runs)}; all of "
            f"{', '.join(wanted)} are needed" + (f", and {lacking} is absent" if lacking else "")
        )
    key = {**keys[0], "format": format}

    def compute(path: Path) -> Content:
        import numpy as np
        import pandas

        scored = Scored.joined([Scored.read(run) for run in runs])
        scored = scored.at(np.argsort(scored.rows[ROW].to_numpy()).tolist())
        scores = scored.rows
        if VIEW_GUESSED in scores:
            # Parts in which nothing was guessed lack the column.
            scores[VIEW_GUESSED] = scores[VIEW_GUESSED].eq(True)
        texts = scores.select_dtypes("str").columns
        scores[texts] = scores[texts].astype(object).where(scores[texts].notna(), None)
        files = scored.files(format)
        # A part without rows wrote no images.
        if read := [run for run in runs if IMAGES in run.digests]:
            images = [pandas.read_parquet(run.file(IMAGES)) for run in read]
            files[IMAGES] = pandas.concat(images).drop_duplicates("path")
        counts = pandas.concat([run.frame("counts") for run in runs])
        counts = counts.groupby("what", sort=False)["n"].sum().reset_index()
        own = keys[0]["own_columns"] or {}
        facts = {
            **{
                name: runs[0].record[name]
                for name in ("presets", "table", "image_root", "encoder", "language")
            },
            "parts": [str(run.folder.resolve()) for run in runs],
        }
        return _content(scored, counts.to_dict("records"), own, files, facts)

    return Result.make(out, key, compute, overwrite=overwrite)


def _facts(studies: StudyTable, scorer: Scorer, rows: Sequence[Study | Failure]) -> dict[str, Any]:
    """Return the entries of run.json on the table, the language of its reports and the encoder."""
    facts = {
        "presets": list(scorer.preset_notes),
        "table": str(studies.path.resolve()),
        "image_root": str(studies.root.resolve()),
        "language": scorer.language_notes(texts_by_role(rows)),
    }
    if (embedder := scorer.embedder) is None:
        return {**facts, "encoder": None}
    return {
        **facts,
        "encoder": embedder.card.to_dict(),
        "device": str(embedder.device),
        "batch_size": embedder.batch_size,
    }


def part_of(part: str) -> tuple[int, int]:
    """Return (k, n) of "K/N". Raises: InvalidSetting."""
    found = _PART.fullmatch(part)
    if found is None or int(found[1]) > int(found[2]):
        raise InvalidSetting(f"a part is K/N, as in 1/4, not {part!r}")
    return int(found[1]), int(found[2])


def _content(
    scored: Scored,
    counts: list[dict[str, Any]],
    own: Mapping[str, Any],
    files: Mapping[str, Any],
    facts: Mapping[str, Any],
) -> Content:
    """Return the summary of rows, with their files."""
    scores, patients = scored.rows, None
    numbers = {str(each["what"]): int(each["n"]) for each in counts}
    notes = [
        *facts["presets"],
        *facts["language"],
        *noticed_notes(numbers),
        *section_notes(numbers, len(scores), len(scores)),
    ]
    if VIEW_GUESSED in scores:
        notes.append(_guessed_note(scores[scores[VIEW_GUESSED]]))
    if own.get("patient"):
        column = scores[own["patient"]]
        # A row without a patient is a patient of its own.
        patients = [f"\0{k}" if p is None or p != p else str(p) for k, p in enumerate(column)]
        alone = sum(each.startswith("\0") for each in patients)
        without = f"; {with_noun(alone, 'row')} without one count each on its own" if alone else ""
        notes.append(
            f"intervals resample the {len(set(patients)) - alone} patients of the column "
            f"{own['patient']}, not the studies{without}"
        )
    summary = summary_of(scored, patients)
    by = own.get("by")
    subgroups = subgroups_of(scored, by, patients) if by else []
    common = [{"metric": m, "mean": mean} for m, mean in common_means(scored).items()]
    return Content(
        {
            "summary": frame(summary),
            "counts": frame(counts),
            **({"common": frame(common)} if common else {}),
            **({"subgroups": frame(subgroups)} if subgroups else {}),
        },
        files,
        scored.failed(ROW, ID),
        scored.signatures,
        notes,
        facts,
    )


def _guessed_note(found: "pandas.DataFrame") -> str:
    """Return the note on rows of which it is unknown which image is frontal."""
    count = len(found)
    named = [str(id or f"row {row}") for row, id in zip(found[ROW], found[ID], strict=True)]
    return (
        f"{count} {'studies have' if count > 1 else 'study has'} several images, and neither a "
        f"column nor a DICOM header states their views ({first_of(named)}): the first image was "
        "used as the frontal one. State the views in a column (--rename view=NAME), or use all "
        "images with --views mean"
    )


def _part_run(folder: str | Path) -> Result:
    run = Result.open(folder)
    if not run.key.get("part"):
        raise InvalidTable(f"{folder} is not the folder of a finished `vlscore evaluate --part`")
    return run
