"""Alignment of metrics with raters, in a resumable folder of results."""

import csv
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import (
    OnProgress,
    ResumableFolder,
    file_digest,
    no_progress,
    plain_dict,
    record_cells,
    run_record,
    settings_in,
    with_former_calls,
    write_json,
)
from vlscore.data import StudyImages, StudyTable
from vlscore.errors import InvalidSetting
from vlscore.evaluation.alignment.agreement import Alignment, MeasuredMetric, alignment_of
from vlscore.evaluation.alignment.fitted import CompositeFit, fit_composite, texts_of
from vlscore.evaluation.alignment.metric_values import (
    Failures,
    check_inputs,
    columns_named,
    compute_values,
    read_chunk,
    read_values,
    write_chunk,
    write_values,
)
from vlscore.evaluation.alignment.notes import direction_notes, unequal_note
from vlscore.evaluation.alignment.rated_pairs import Array, RatedPairs
from vlscore.evaluation.alignment.tables import (
    FIGURES,
    all_tables,
    composite_table,
    draw_alignment,
    write_csv,
)
from vlscore.evaluation.command_settings import IN_SAMPLE, AlignmentSettings, check_elsewhere
from vlscore.evaluation.row_chunks import ChunkWriter
from vlscore.evaluation.study_vectors import images_of
from vlscore.metrics import (
    Composite,
    CompositeProvider,
    Metric,
    Scorer,
    named_as_in_papers,
    write_composite,
)
from vlscore.stats import (
    FAILURES,
    FIGURE_FORMATS,
    Failure,
    Run,
    TextTable,
    check_drawable,
    with_mark,
    write_tables,
)

# Pairs of one chunk where nothing is embedded; else batches.
_TEXTS_IN_CHUNK = 1000
COMPOSITE = "composite.json"


@dataclass(frozen=True)
class AlignmentRun(Run):
    """An alignment and its files; docs/alignment.md describes them.

    A row of `to_pandas` is a metric and rating: every correlation with its interval.

    Attributes:
        result, fit: the numbers; None where the run had ended before, or nothing was fitted.
    """

    content_file = "alignment.json"
    results = (
        content_file,
        COMPOSITE,
        "values.csv",
        FAILURES,
        "agreement.csv",
        "differences.csv",
        "raters.csv",
        "ceilings.csv",
        "rankings.csv",
        "tables.md",
        "tables.tex",
        *(f"{name}.{suffix}" for name in FIGURES for suffix in FIGURE_FORMATS),
    )
    rows = "agreements"

    result: Alignment | None = None
    fit: CompositeFit | None = None

    @property
    def signatures(self) -> list[str]:
        """Return what the numbers of each metric depend on."""
        return [f"{m['name']}: {m['signature']}" for m in self.content["metrics"]]

    def first_failures(self, count: int | None = None) -> list[Failure]:
        """Return the first failures; the reason of a missing value begins with its metric."""
        return [
            Failure(
                e["row"],
                e["id"] or "",
                f"{e['metric']}: {e['error']}" if e["metric"] else e["error"],
            )
            for e in self.content["failures"][:count]
        ]


def _is_of_arrays(*args: Any, **keywords: Any) -> bool:
    """Return whether a call has metrics with their values, as `alignment_of` takes them."""
    return "metrics" in keywords or (bool(args) and not isinstance(args[0], RatedPairs))


@with_former_calls(_is_of_arrays, alignment_of)
def align(
    pairs: RatedPairs,
    out: str | Path,
    *,
    scorer: Scorer | None = None,
    columns: Sequence[str] = (),
    values: str | Path | None = None,
    lower_is_better: Sequence[str] = (),
    studies: StudyTable | None = None,
    fit: str | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
    figure: str | None = None,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> AlignmentRun:
    """Compare metrics with raters, and write tables, values and all numbers.

    Called again after a stop with the same arguments, it resumes where it was; called again when it
    has ended, it changes nothing.

    Args:
        pairs: what `read_ratings` read.
        out: folder for the results.
        scorer: computes metrics for the pairs.
        columns: which of their numbers are compared, as in "findings-f1.precision"; default: the
            first of each metric.
        values, lower_is_better, fit, level, resamples, seed: see `AlignmentSettings`; `values` is
            read as by `read_values`.
        studies: brings the images of the pairs' studies, by id.
        figure: "png", "svg" or "pdf": also draw tau_b of every metric with the raters' ceilings,
            and the best metric against the raters' mean; also of a run that has ended.
        overwrite: compute anew, and replace results when the new ones are complete.
        on_progress: called with (pairs done, values that are missing).

    Raises: InvalidTable, InvalidSetting, FolderInUse. A pair without a value raises nothing: it is
        in failures.csv.
    """
    settings = settings_in(AlignmentSettings, locals())
    if scorer is None and values is None:
        raise InvalidSetting("name metrics to compute (--metrics), or a table of values (--values)")
    if figure is not None:
        check_drawable(figure)
    run = _AlignmentJob(pairs, scorer, columns, studies, settings)

    def compute(folder: ResumableFolder) -> dict[str, Any]:
        done = run.compute(folder, on_progress or no_progress)
        metrics, failures = run.metrics(folder)
        result = alignment_of(metrics, pairs, level=level, resamples=resamples, seed=seed)
        tables = all_tables(result, unequal_note(result, pairs))
        run.notes += direction_notes(result, pairs, run.read_names)
        fitted = None
        if fit is not None:
            fitted = run.fit(metrics, fit)
            tables.append(composite_table(fitted))
        tables = with_mark(tables, (metric.signature for metric in result.metrics))

        def write(place: Path) -> dict[str, Any]:
            _write(place, result, run.pairs, tables, failures)
            if fitted is not None:
                write_composite(place / COMPOSITE, fitted.composite)
            return run_record(
                files=[str(file.resolve()) for file in pairs.files],
                values=None if values is None else str(Path(values).resolve()),
                notes=run.notes,
                seconds=round(time.monotonic() - run.began, 3),
            )

        folder.finish(write, rows=done)
        return {"result": result, "fit": fitted}

    ended = AlignmentRun.make(out, run.key(), compute, overwrite=overwrite)
    if figure is not None:
        draw_alignment(ended.folder, ended.content, figure)
    return ended


class _AlignmentJob:
    """Job that computes the values of metrics in chunks, and reads those computed elsewhere."""

    def __init__(
        self,
        pairs: RatedPairs,
        scorer: Scorer | None,
        columns: Sequence[str],
        studies: StudyTable | None,
        settings: AlignmentSettings,
    ) -> None:
        self.began = time.monotonic()
        self.notes = list(pairs.notes)
        self.pairs, self._studies, self._settings = pairs, studies, settings
        self._scorer = scorer
        if studies is not None:
            self.pairs = pairs.with_images(self._images(studies))
        self._columns = columns_named(scorer.metrics if scorer is not None else (), columns)
        if scorer is not None:
            self.notes += scorer.notes
            check_inputs(scorer, self.pairs)
            if scorer.plan.needs_fit and self.pairs.references is not None:
                # Fitted to all references, so that no number depends on the chunks.
                scorer = self._scorer = scorer.fit(self.pairs.references)
        values, lower = settings.values, settings.lower_is_better
        self._read: list[MeasuredMetric] = []
        self._read_failures: Failures = {}
        if values is not None:
            self._read, self._read_failures, notes = read_values(
                values, pairs, lower_is_better=lower
            )
            self.notes += notes
        computed = (name for _, name in self._columns)
        check_elsewhere(values, lower, (metric.name for metric in self._read), computed)

    @property
    def read_names(self) -> list[str]:
        """Return the names of the metrics that were computed elsewhere."""
        return [metric.name for metric in self._read]

    def key(self) -> dict[str, Any]:
        """Return the settings that must match before a stopped run can be resumed."""
        scorer, studies, settings = self._scorer, self._studies, self._settings
        values = settings.values
        return {
            "files": {file.name: file_digest(file) for file in self.pairs.files},
            "pairs_sha256": self.pairs.sha256,
            "metrics": {n: str(s) for n, s in scorer.signatures.items()} if scorer else {},
            "columns": [name for _, name in self._columns],
            "values_sha256": file_digest(values) if values is not None else None,
            "lower_is_better": sorted(settings.lower_is_better),
            "studies_sha256": studies.sha256 if studies is not None else None,
            "studies_columns": studies.columns.to_dict() if studies is not None else None,
            "image_root": str(studies.root.resolve()) if studies is not None else None,
            "level": settings.level,
            "resamples": settings.resamples,
            "seed": settings.seed,
            **({} if settings.fit is None else {"fit": settings.fit}),
        }

    def compute(self, folder: ResumableFolder, on_progress: OnProgress) -> int:
        """Compute what no chunk holds yet; returns the rows of all chunks."""
        if self._scorer is None:
            return 0
        size = _TEXTS_IN_CHUNK
        if self._scorer.embedder is not None:
            size = self._scorer.embedder.engine.rows_at_once
        chunks = ChunkWriter(folder, on_progress)
        for begin in range(chunks.done, len(self.pairs), size):
            rows = range(begin, min(begin + size, len(self.pairs)))
            found, failures = compute_values(self._scorer, self.pairs, rows, self._columns)
            with chunks.append(len(rows), len(failures), self._inputs(rows)) as place:
                write_chunk(place, found, failures)
        return chunks.done

    def metrics(self, folder: ResumableFolder) -> tuple[list[MeasuredMetric], Failures]:
        """Return all metrics with their values, and what is missing."""
        computed: list[MeasuredMetric] = []
        failures = dict(self._read_failures)
        if self._scorer is not None:
            parts = [read_chunk(chunk.path) for chunk in folder.chunks()]
            numbers = np.concatenate([values for values, _ in parts], axis=1)
            for _, found in parts:
                failures |= found
            computed = [
                self._measured(metric, name, numbers[k])
                for k, (metric, name) in enumerate(self._columns)
            ]
        return [*computed, *self._read], dict(sorted(failures.items()))

    def fit(self, metrics: Sequence[MeasuredMetric], rating: str) -> CompositeFit:
        """Fit a composite of the computed metrics that are no composites themselves."""
        names = (
            {str(m) for m in self._scorer.metrics if not _composite_of(m)} if self._scorer else ()
        )
        of = [metric for metric in metrics if metric.name in names]
        if others := [metric.name for metric in metrics if metric.name not in names]:
            self.notes.append(
                f"{', '.join(others)} can be no part of a composite: it is made of metrics that "
                "vlscore computes, and not of composites"
            )
        resamples, seed = self._settings.resamples, self._settings.seed
        found = fit_composite(of, self.pairs, rating, resamples=resamples, seed=seed)
        self.notes += [f"{name} is left out: {why}" for name, why in found.left_out.items()]
        return found

    def _measured(self, metric: Metric, name: str, values: Array) -> MeasuredMetric:
        """Return the values of a metric, marked if it is a composite fitted to these pairs."""
        assert self._scorer is not None
        signature = str(self._scorer.signatures[str(metric)])
        output = metric.outputs[metric.columns.index(name)]
        found = MeasuredMetric(name, values, output.higher_is_better, signature)
        composite = _composite_of(metric)
        texts = [texts_of(self.pairs, row) for row in range(len(self.pairs))]
        if composite is None or not (seen := composite.has_seen(self.pairs.studies, texts)):
            return found
        self.notes.append(f"{metric} was fitted to {seen} of these {len(texts)} pairs: {IN_SAMPLE}")
        return replace(found, name=f"{found.name} ({IN_SAMPLE})")

    def _inputs(self, rows: range) -> list[Path]:
        if self.pairs.images is None or not self._scorer or not self._scorer.plan.needs.images:
            return []
        shown = (self.pairs.images[row] for row in rows)
        return list(dict.fromkeys(path for each in shown if each for path in each.images))

    def _images(self, studies: StudyTable) -> dict[str, StudyImages]:
        wanted = set(self.pairs.studies)
        found, bad = images_of(studies, wanted)
        self.notes += studies.notes
        self.notes += [f"{studies.path}, row {r.row}: {r.reason}" for r in bad if r.id in wanted]
        if not found:
            raise InvalidSetting(f"{studies.path}: none of its studies has the id of a rated pair")
        return found


def _composite_of(metric: Metric) -> Composite | None:
    provider = metric.provider
    return provider.composite if isinstance(provider, CompositeProvider) else None


def _content(
    result: Alignment, pairs: RatedPairs, tables: Sequence[TextTable], failures: Failures
) -> dict[str, Any]:
    return plain_dict(
        {
            "pairs": len(pairs),
            "studies": len(set(pairs.studies)),
            "raters": pairs.raters,
            "meaning": pairs.meaning,
            "metrics": [
                {
                    "name": metric.name,
                    "higher_is_better": metric.higher_is_better,
                    "signature": metric.signature,
                    "n": int(np.isfinite(metric.values).sum()),
                }
                for metric in result.metrics
            ],
            "agreements": result.agreements,
            "differences": result.differences,
            "per_rater": result.per_rater,
            "ceilings": result.ceilings,
            "rankings": result.rankings,
            "tables": list(tables),
            "failures": [
                *(
                    {"row": row.row, "id": row.id, "metric": None, "error": row.reason}
                    for row in pairs.bad
                ),
                *(
                    {
                        "row": pairs.rows[row] if pairs.rows is not None else None,
                        "id": f"{pairs.studies[row]}, {pairs.candidates[row]}",
                        "metric": name,
                        "error": why,
                    }
                    for (row, name), why in failures.items()
                ),
            ],
        }
    )


def _write(
    place: Path,
    result: Alignment,
    pairs: RatedPairs,
    tables: Sequence[TextTable],
    failures: Failures,
) -> None:
    content = _content(result, pairs, tables, failures)
    write_json(place / AlignmentRun.content_file, content)
    write_values(place / "values.csv", pairs, result.metrics)
    write_csv(place / "agreement.csv", result.agreements)
    write_csv(place / "differences.csv", result.differences)
    write_csv(place / "raters.csv", result.per_rater)
    write_csv(place / "ceilings.csv", result.ceilings)
    write_csv(place / "rankings.csv", result.rankings)
    signatures = [f"{metric.name}: {metric.signature}" for metric in result.metrics]
    write_tables(place, list(map(named_as_in_papers, tables)), signatures)
    with (place / FAILURES).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, ["row", "id", "metric", "error"])
        writer.writeheader()
        writer.writerows(map(record_cells, content["failures"]))
