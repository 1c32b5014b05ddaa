"""Sensitivity of metrics to changes of reports: pairs are read, scored, and compared by kind."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import OnPhase, file_digest, no_phase
from vlscore.data import StudyTable, TextPolicy
from vlscore.errors import Failure, InvalidSetting, MissingDependency
from vlscore.evaluation.controlled_sentences.run import reading_by_own_rules
from vlscore.evaluation.precomputed import Precomputed, check_names, read_precomputed
from vlscore.evaluation.sensitivities.changed_pairs import (
    ScoredPairs,
    pairs_file,
    read_pairs,
    score_pairs,
)
from vlscore.evaluation.sensitivities.kinds_noticed import (
    compare_kinds,
    draw_sensitivity,
    image_swap,
    sensitivity_tables,
)
from vlscore.evaluation.study_images import images_by_study
from vlscore.metrics import (
    EmbeddingTriples,
    Metric,
    Scorer,
    find_metrics,
    lacks,
    usable_metrics,
)
from vlscore.stats import Content, Result, check_drawable

if TYPE_CHECKING:
    from pandas import DataFrame

    from vlscore.embedding import StudyEmbedder

_WHICH = (".original", ".perturbed")


def sensitivity(
    perturbations: str | Path,
    out: str | Path,
    *,
    metrics: Any = None,
    embedder: "StudyEmbedder | None" = None,
    studies: StudyTable | None = None,
    text_policy: TextPolicy | str | None = None,
    C: float | None = None,
    comparisons: str | None = None,
    values: str | Path | None = None,
    lower_is_better: Sequence[str] = (),
    swap_images: bool = False,
    figure: str | None = None,
    format: str = "csv",
    resamples: int = 2000,
    seed: int = 0,
    workers: int = 0,
    overwrite: bool = False,
    on_phase: OnPhase = no_phase,
) -> Result:
    """Measure which changes of reports metrics notice, and write tables, values and a figure.

    All metrics are compared on the same pairs: those that each has both values for.

    Args:
        perturbations: folder that `vlscore perturb` wrote, or a file like those in it.
        out: folder for the results.
        metrics: names; default: every free metric that can be computed here.
        embedder: for metrics that look at embeddings.
        studies: with the images of the perturbed studies, for metrics that look at them.
        text_policy: what of the reports is compared, by every metric.
        C: constant of VLScore; default: the encoder's.
        comparisons: "ignored": metrics that read findings leave comparisons with earlier
            examinations out of both reports.
        values: table of values computed elsewhere, with the columns study_id, kind, and
            NAME.original and NAME.perturbed of each metric; rows of one study and kind are in the
            order of the perturbations.
        lower_is_better: metrics of `values` of which smaller values are better.
        swap_images: also show every pair another study's image, and a black one.
        figure: "png", "svg" or "pdf"; default: "png" where matplotlib is installed, else none, and
            a note says so. `draw` draws a run that has ended.
        format: of the values, "csv" or "parquet".
        resamples, seed: of the bootstrap over studies; `seed` also chooses the other studies.
        workers: processes that decode images.
        overwrite: compute anew, and replace results when the new ones are complete.
        on_phase: called at the beginning of each phase: pairs, resampling.

    Returns: frames "kinds" (a metric and kind: mean value and drop), "contrasts" (of the paper's
        comparisons), "normal" (values for normal reports) and "swaps"; values.csv has every pair.
    Raises: InvalidTable, InvalidSetting, MissingDependency, FolderInUse. A pair without a value
        raises nothing: it is in failures.csv.
    """
    if figure is not None:
        check_drawable(figure)
    if format not in ("csv", "parquet"):
        raise InvalidSetting(f"format is csv or parquet, not {format!r}")
    if swap_images and (studies is None or embedder is None):
        raise InvalidSetting("swapping images needs images: name a table of studies (--studies)")
    if studies is not None and embedder is None:
        raise InvalidSetting("only an encoder uses the studies' images; name one (--encoder)")
    path, pairs = pairs_file(perturbations), read_pairs(perturbations)
    chosen, left_out = _chosen(metrics, embedder, studies is not None, C, comparisons)
    scorer = Scorer(embedder, metrics=chosen, text_policy=text_policy, C=C)
    in_sample = reading_by_own_rules(scorer)
    check_names(values, lower_is_better, lower_is_better)
    read = values and _read_values(values, pairs, lower_is_better, chosen)
    shown, notes = images_by_study(studies, set(pairs["study_id"]), "perturbed report")
    notes += embedder.notes if embedder and studies else ()
    key = {
        "command": "sensitivity",
        "perturbations_sha256": file_digest(path),
        "studies": studies and studies.key,
        "metrics": {name: str(each) for name, each in scorer.signatures.items()},
        "embeddings": embedder and str(embedder.signature),
        "swap_images": swap_images,
        "resamples": resamples,
        "seed": seed,
        "figure": figure,
        "values": values and [file_digest(values), sorted(lower_is_better)],
        "format": format,
    }

    def compute(folder: Path) -> Content:
        scored = score_pairs(
            pairs, scorer, shown, workers=workers, on_progress=on_phase("pairs", len(pairs))
        )
        if read:
            scored.add(read, _WHICH)
        frames = compare_kinds(pairs, scored, resamples=resamples, seed=seed, on_phase=on_phase)
        if swap_images:
            frames["swaps"] = image_swap(
                pairs, scorer, shown, resamples=resamples, seed=seed, workers=workers
            )
        try:
            draw_sensitivity(frames, scored.signatures, folder, figure or "png")
        except MissingDependency as error:
            notes.append(f"no figure: {error}")
        return Content(
            frames,
            sensitivity_tables(frames, scored.signatures, in_sample),
            {f"values.{format}": _values_frame(pairs, scored)},
            [Failure(k + 1, pairs["study_id"][k], why) for k, why in scored.reasons.items()],
            scored.signatures,
            [
                *notes,
                *scorer.language_notes({"original reports": pairs["original"]}),
                *(read.notes if read else ()),
            ],
            {
                "perturbations": str(Path(perturbations).resolve()),
                "studies": studies and str(studies.path.resolve()),
                "left_out": left_out,
                "in_sample": sorted(in_sample),
                "truncated": scored.truncated,
                "pairs": len(pairs),
            },
        )

    return Result.make(
        out,
        key,
        compute,
        images=None if studies is None else studies.image_files,
        overwrite=overwrite,
    )


def _chosen(
    names: Any,
    embedder: "StudyEmbedder | None",
    has_images: bool,
    C: float | None,
    comparisons: str | None,
) -> tuple[Sequence[Metric], dict[str, str]]:
    """Return the metrics to compute, and why others of the default cannot be."""
    triples = None
    if embedder is not None:
        import torch

        none = torch.empty(0, embedder.dim)
        triples = EmbeddingTriples(
            none if has_images else None, none, none, embedder.signature, C or embedder.C
        )
    if names is None:
        found, left_out = usable_metrics(triples, comparisons)
        if not found:
            raise InvalidSetting("no metric can be computed here: name an encoder or the studies")
        return found, left_out
    chosen = find_metrics(names, comparisons)
    for metric in chosen:
        if (reason := lacks(metric, triples)) is not None:
            raise InvalidSetting(
                f"{metric} cannot be computed: {reason}. Give the studies' images (--studies) and "
                "an encoder (--encoder), as far as they are missing"
            )
    return chosen, {}


def _read_values(
    path: str | Path, pairs: "DataFrame", lower_is_better: Sequence[str], chosen: Sequence[Metric]
) -> Precomputed:
    """Read values that were computed elsewhere, for the changed reports."""
    return read_precomputed(
        path,
        {"study_id": list(pairs["study_id"]), "kind": list(pairs["kind"])},
        lower_is_better=lower_is_better,
        computed=[str(metric) for metric in chosen],
        suffixes=_WHICH,
        ignored=("significant", "category"),
        is_repeated=True,
        row_name="study and kind of the perturbations",
    )


def _values_frame(pairs: "DataFrame", scored: ScoredPairs) -> "DataFrame":
    """Return one row a pair: both values of every metric, and how much worse the second is."""
    names = {"is_significant": "significant"}
    found = pairs[["study_id", "kind", "is_significant", "category"]].rename(columns=names)
    for name, both in scored.values.items():
        for which, column in zip((*_WHICH, ".drop"), (*both, scored.drop(name)), strict=True):
            found[name + which] = np.where(np.isfinite(column), column, np.nan)
    return found
