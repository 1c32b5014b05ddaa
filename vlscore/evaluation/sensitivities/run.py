"""Sensitivity benchmark, in a resumable folder of results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import torch

from vlscore.core import (
    OnPhase,
    OnProgress,
    ResumableFolder,
    atomic_write,
    file_digest,
    frame,
    no_phase,
    no_progress,
    plain_dict,
    run_record,
    settings_in,
    table_cells,
    with_former_calls,
    write_json,
)
from vlscore.data import StudyImages, StudyTable, TextPolicy
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidSetting, MissingDependency
from vlscore.evaluation.command_settings import SensitivitySettings, check_elsewhere
from vlscore.evaluation.row_chunks import ChunkWriter, both, chunks_of_kind
from vlscore.evaluation.sensitivities.changed_pairs import (
    Pair,
    embed_pairs,
    pairs_file,
    read_pairs,
    select_pairs,
)
from vlscore.evaluation.sensitivities.image_swap import SwapResult, image_swap
from vlscore.evaluation.sensitivities.kinds_noticed import (
    Sensitivity,
    sensitivity_of_pairs,
    sensitivity_of_values,
)
from vlscore.evaluation.sensitivities.pair_values import (
    PairValues,
    all_failures,
    chosen_metrics,
    failure_reasons,
    fit_metrics,
    pair_values,
    read_pair_values,
    read_values,
    without_rows,
    write_values,
)
from vlscore.evaluation.sensitivities.tables import FIGURES, all_tables, draw_sensitivity
from vlscore.evaluation.study_vectors import StudyVectors, embed_in_chunks, embedded_in, images_of
from vlscore.metrics import EmbeddingTriples, Fit, Metric, find_metric, named_as_in_papers
from vlscore.stats import FIGURE_FORMATS, Failure, Run, TextTable, check_drawable, markdown

if TYPE_CHECKING:
    import pandas


_PAIRS_AT_ONCE = 512


@dataclass(frozen=True)
class SensitivityRun(Run):
    """The benchmark and its files: sensitivity.json, values.csv or .parquet, tables.md, figures.

    Attributes:
        result, swaps: the numbers; None and empty where the run had ended before.
    """

    content_file = "sensitivity.json"
    results = (
        content_file,
        "values.csv",
        "values.parquet",
        "tables.md",
        *(f"{name}.{format}" for name in FIGURES for format in FIGURE_FORMATS),
    )

    result: Sensitivity | None = None
    swaps: tuple[SwapResult, ...] = ()

    @property
    def signatures(self) -> list[str]:
        """Return what the numbers of each metric depend on."""
        return [metric["signature"] for metric in self.content["metrics"]]

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a metric and kind: mean value and drop with intervals, n. Needs pandas."""
        return frame(
            {"metric": metric["name"], **kind}
            for metric in self.content["metrics"]
            for kind in metric["kinds"]
        )

    def first_failures(self, count: int | None = None) -> list[Failure]:
        """Return the first studies whose pairs lack values."""
        failures = self.content["failures"].items()
        return [Failure(None, study, reason) for study, reason in failures][:count]


def _is_of_pairs(*args: Any, **keywords: Any) -> bool:
    """Return whether a call has pairs in memory, as `sensitivity_of_pairs` takes them."""
    return "pairs" in keywords or (bool(args) and not isinstance(args[0], str | Path))


@with_former_calls(_is_of_pairs, sensitivity_of_pairs)
def sensitivity(
    perturbations: str | Path,
    out: str | Path,
    *,
    metrics: Any = None,
    embedder: StudyEmbedder | None = None,
    studies: StudyTable | None = None,
    text_policy: TextPolicy | str | None = None,
    C: float | None = None,
    values: str | Path | None = None,
    lower_is_better: Sequence[str] = (),
    swap_images: bool = False,
    figure: str | None = None,
    format: str = "csv",
    resamples: int = 2000,
    seed: int = 0,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
    on_phase: OnPhase = no_phase,
) -> SensitivityRun:
    """Measure which changes of reports metrics notice, and write tables, values and a figure.

    Called again after a stop with the same arguments, it resumes where it was.

    Args:
        perturbations: folder that `vlscore perturb` wrote, or a file like those in it.
        out: folder for the results.
        metrics: names; default: every free metric that can be computed here.
        embedder: for metrics that look at embeddings.
        studies: with the images of the perturbed studies, for metrics that look at them.
        text_policy: what of the reports is compared, by every metric.
        C: constant of VLScore; default: the encoder's.
        values, lower_is_better, swap_images, resamples, seed: see `SensitivitySettings`; `values`
            is read as by `read_pair_values`.
        figure: "png", "svg" or "pdf", drawn of a run that has ended, too; default: "png" where
            matplotlib is installed, else none, and a note says so.
        format: of the values, "csv" or "parquet".
        workers: processes that decode images.
        overwrite: compute anew, and replace results when the new ones are complete.
        on_progress: called with (images and pairs done, how many of them failed).
        on_phase: called at the beginning of each phase: images, pairs, resampling.

    Raises: InvalidTable, InvalidSetting, MissingDependency, FolderInUse.
    """
    settings = settings_in(SensitivitySettings, locals())
    if figure is not None:
        check_drawable(figure)
    if format not in ("csv", "parquet"):
        raise InvalidSetting(f"format is csv or parquet, not {format!r}")
    if swap_images and (studies is None or embedder is None):
        raise InvalidSetting("swapping images needs images: name a table of studies (--studies)")
    if studies is not None and embedder is None:
        raise InvalidSetting("only an encoder uses the studies' images; name one (--encoder)")
    policy = TextPolicy.named(text_policy)
    run = _SensitivityJob(read_pairs(perturbations), policy, embedder, studies, C, settings)
    run.choose(metrics)
    run.take_values()
    key = {"perturbations_sha256": file_digest(pairs_file(perturbations)), **run.key(format)}

    def compute(folder: ResumableFolder) -> dict[str, Any]:
        done = run.compute(folder, workers, on_progress or no_progress, on_phase)
        ended = run.results(folder, on_phase)

        def write(place: Path) -> dict[str, Any]:
            ended.write(place, format)
            return run_record(
                resumed_from=folder.resumed_from,
                perturbations=str(Path(perturbations).resolve()),
                studies=str(studies.path.resolve()) if studies is not None else None,
                notes=ended.notes,
            )

        folder.finish(write, rows=done)
        return {"result": ended.result, "swaps": tuple(ended.swaps)}

    return _with_figures(SensitivityRun.make(out, key, compute, overwrite=overwrite), figure)


def _with_figures(run: SensitivityRun, figure: str | None) -> SensitivityRun:
    """Draw the figures of a run that has ended, into its folder."""
    format = figure or "png"
    try:
        draw_sensitivity(run.folder, run.content, format)
    except MissingDependency as error:
        return replace(run, call_notes=(f"no figure: {error}",))
    return run


@dataclass
class _Ended:
    """Results that are computed and not written yet."""

    pairs: Sequence[Pair]
    result: Sensitivity
    swaps: list[SwapResult]
    notes: tuple[str, ...]

    @property
    def tables(self) -> list[TextTable]:
        return all_tables(self.result, self.swaps)

    def content(self) -> dict[str, Any]:
        return plain_dict(
            {
                **self.result.to_dict(),
                "swaps": [swap.to_dict() for swap in self.swaps],
                "tables": self.tables,
            }
        )

    def write(self, place: Path, format: str) -> None:
        write_json(place / SensitivityRun.content_file, self.content())
        signatures = [metric.signature for metric in self.result.metrics]
        with atomic_write(place / "tables.md") as stream:
            stream.write(markdown(list(map(named_as_in_papers, self.tables)), signatures))
        self._write_values(place / f"values.{format}")

    def _write_values(self, path: Path) -> None:
        """Write one row a pair: both values of every metric, and how much worse the second is."""
        columns: dict[str, Any] = {
            "study_id": [pair.study_id for pair in self.pairs],
            "kind": [pair.kind for pair in self.pairs],
            "significant": [pair.is_significant for pair in self.pairs],
            "category": [pair.category for pair in self.pairs],
        }
        for each in self.result.values:
            name = str(each.metric)
            for which, values in (
                ("original", each.originals),
                ("perturbed", each.perturbed),
                ("drop", each.drops),
            ):
                columns[f"{name}.{which}"] = pa.array(values, mask=~np.isfinite(values))
        table = pa.table(columns)
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            pyarrow.csv.write_csv(table_cells(table), path)


class _SensitivityJob:
    """Job that embeds images and computes values in chunks, and joins them at the end."""

    def __init__(
        self,
        pairs: list[Pair],
        policy: TextPolicy,
        embedder: StudyEmbedder | None,
        studies: StudyTable | None,
        C: float | None,
        settings: SensitivitySettings,
    ) -> None:
        self._pairs, self._policy, self._embedder = pairs, policy, embedder
        self._selected, self._unselected = select_pairs(pairs, policy)
        self._C, self._settings, self._studies = C, settings, studies
        self._images, self._notes = _images_of(studies, {pair.study_id for pair in pairs})
        if studies is not None and embedder is not None:
            self._notes += embedder.notes
        self._metrics: list[Metric] = []
        self._fits: Mapping[Metric, Fit] = {}
        self._left_out: dict[str, str] = {}
        self._elsewhere: list[PairValues] = []
        self.signatures: dict[Metric, Any] = {}

    def choose(self, names: Any) -> None:
        """Choose the metrics; raise InvalidSetting, MissingDependency if one cannot run."""
        self._metrics, self._left_out = chosen_metrics(names, self._example())
        # Fitted to all pairs, so that no number depends on the chunks.
        there = [p for k, p in enumerate(self._selected) if k not in self._unselected]
        self._fits = fit_metrics(there, self._metrics)
        self.signatures = {
            each.metric: each.signature for each in self._values([], StudyVectors())[0]
        }

    def take_values(self) -> None:
        """Read values that were computed elsewhere, where there are some."""
        values, lower = self._settings.values, self._settings.lower_is_better
        if values is not None:
            self._elsewhere, notes = read_pair_values(values, self._pairs, lower_is_better=lower)
            self._notes += notes
        read = (str(each.metric) for each in self._elsewhere)
        check_elsewhere(values, lower, read, map(str, self._metrics))

    def key(self, format: str) -> dict[str, Any]:
        """Return the settings, not the pairs, that must match before a run can be resumed."""
        settings, studies, embedder = self._settings, self._studies, self._embedder
        values = settings.values
        lower = sorted(settings.lower_is_better)
        return {
            "studies_sha256": studies.sha256 if studies is not None else None,
            "columns": studies.columns.to_dict() if studies is not None else None,
            "image_root": str(studies.root.resolve()) if studies is not None else None,
            "metrics": {str(m): str(s) for m, s in self.signatures.items()},
            "embeddings": str(embedder.signature) if embedder is not None else None,
            "swap_images": settings.swap_images,
            "resamples": settings.resamples,
            "seed": settings.seed,
            **({} if values is None else {"values": [file_digest(values), lower]}),
            "format": format,
        }

    def compute(
        self, folder: ResumableFolder, workers: int, on_progress: OnProgress, on_phase: OnPhase
    ) -> int:
        """Compute what no chunk holds yet; returns rows of all chunks: studies, then pairs."""
        chunks, count = ChunkWriter(folder, on_progress), len(self._images)
        if self._embedder is not None and chunks.done < count:
            chunks.on_progress = both(on_progress, on_phase("images", count))
            embed_in_chunks(chunks, self._embedder, self._images, workers=workers)
        studies = self._vectors(folder)
        comparing, failed_images = on_phase("pairs", len(self._pairs)), chunks.failed

        def report(done: int, failed: int) -> None:
            comparing(done - count, failed - failed_images)

        chunks.on_progress = both(on_progress, report)
        for begin in range(chunks.done - count, len(self._pairs), _PAIRS_AT_ONCE):
            rows = range(begin, min(begin + _PAIRS_AT_ONCE, len(self._pairs)))
            values, truncated = self._values([self._selected[k] for k in rows], studies)
            unselected = {k - begin: self._unselected[k] for k in rows if k in self._unselected}
            values = [without_rows(each, unselected) for each in values]
            failures = all_failures(values)
            with chunks.append(
                len(rows), len(failures), kind="pairs", truncated=truncated
            ) as place:
                write_values(place, values, {begin + k: e for k, e in failures.items()})
        return chunks.done

    def results(self, folder: ResumableFolder, on_phase: OnPhase) -> _Ended:
        """Return the benchmark from the values of all chunks."""
        chunks = chunks_of_kind(folder, "pairs")
        parts = [read_values(chunk.path) for chunk in chunks]
        arrays = np.concatenate([numbers for numbers, _ in parts], axis=2)
        values = [
            PairValues(metric, self.signatures[metric], arrays[k, 0], arrays[k, 1])
            for k, metric in enumerate(self._metrics)
        ]
        values += self._elsewhere
        failures = all_failures(self._elsewhere)
        failures |= {k: error for _, found in parts for k, error in found.items()}
        result = sensitivity_of_values(
            self._pairs,
            values,
            left_out=self._left_out,
            failures=failure_reasons(failures, self._pairs),
            truncated=sum(chunk.note["truncated"] for chunk in chunks),
            resamples=self._settings.resamples,
            seed=self._settings.seed,
            on_progress=on_phase("resampling metrics", len(values)),
        )
        swaps = self._swaps(self._vectors(folder)) if self._settings.swap_images else []
        return _Ended(self._pairs, result, swaps, tuple(self._notes))

    def _swaps(self, studies: StudyVectors) -> list[SwapResult]:
        assert self._embedder is not None
        pairs = [p for k, p in enumerate(self._selected) if k not in self._unselected]
        embedded = embed_pairs(pairs, self._embedder, studies, C=self._C)
        chosen = [m for m in self._metrics if m.uses_embeddings and m.uses_image]
        # Cosine cannot change: it shows in the same table how a metric of texts behaves.
        control = [m for m in self._metrics if m.name == "cosine"] or [find_metric("cosine")]
        return image_swap(
            pairs,
            embedded,
            [*chosen, *control],
            text=self._policy.signature(),
            resamples=self._settings.resamples,
            seed=self._settings.seed,
        )

    def _values(self, pairs: Sequence[Pair], studies: StudyVectors) -> tuple[list[PairValues], int]:
        text = self._policy.signature()
        if self._embedder is None:
            return pair_values(pairs, self._metrics, text=text, fits=self._fits), 0
        shown = studies if self._studies is not None else None
        # A chunk's values must not depend on whether earlier chunks were computed in this call.
        self._embedder.engine.forget()
        embedded = embed_pairs(pairs, self._embedder, shown, C=self._C)
        return pair_values(
            pairs, self._metrics, embedded, text=text, fits=self._fits
        ), embedded.truncated

    def _example(self) -> EmbeddingTriples | None:
        """Return empty embeddings of the kind that the run will have."""
        if self._embedder is None:
            return None
        none = torch.empty(0, self._embedder.dim)
        C = self._embedder.C if self._C is None else self._C
        i = none if self._studies is not None else None
        return EmbeddingTriples(i, none, none, self._embedder.signature, C)

    def _vectors(self, folder: ResumableFolder) -> StudyVectors:
        if self._embedder is None or self._studies is None:
            return StudyVectors()
        return replace(embedded_in(folder), black=self._embedder.embed_black())


def _images_of(
    studies: StudyTable | None, wanted: set[str]
) -> tuple[dict[str, StudyImages], list[str]]:
    """Return the images of the studies that were perturbed, and notes about the table."""
    if studies is None:
        return {}, []
    found, bad = images_of(studies, wanted)
    if not found:
        raise InvalidSetting(
            f"{studies.path}: none of its studies has the id of a perturbed report"
        )
    return found, [*studies.notes, *(f"{studies.path}, row {r.row}: {r.reason}" for r in bad)]
