"""Sensitivity of metrics to changes of reports: pairs are read, scored, and compared by kind."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import LIMIT, OnPhase, checked_arguments, no_phase
from vlscore.data import Study, StudyTable
from vlscore.errors import Failure, InvalidSetting, InvalidTable, MissingDependency
from vlscore.evaluation.command_settings import SensitivitySettings
from vlscore.evaluation.controlled_sentences.controlled import reading_by_own_rules
from vlscore.evaluation.precomputed import read_precomputed
from vlscore.evaluation.scored import Scored
from vlscore.evaluation.sensitivities.changed_pairs import (
    ENDS,
    TRUNCATED,
    drop_of,
    images_of_pairs,
    read_pairs,
    score_pairs,
)
from vlscore.evaluation.sensitivities.image_swap import image_swap
from vlscore.evaluation.sensitivities.kinds_noticed import compare_kinds, has_every_value
from vlscore.evaluation.study_images import ImagesOf, images_by_study, images_of
from vlscore.metrics import Scorer, usable_metrics
from vlscore.stats import Content, Result, check_drawable

if TYPE_CHECKING:
    from pandas import DataFrame


@checked_arguments
def sensitivity(
    perturbations: str | Path,
    out: str | Path,
    scorer: Scorer | None = None,
    settings: SensitivitySettings | None = None,
    *,
    studies: StudyTable | None = None,
    image_root: str | Path | None = None,
    figure: str | None = None,
    format: str = "csv",
    limit: int | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_phase: OnPhase = no_phase,
) -> Result:
    """Measure which changes of reports metrics notice, and write tables, values and a figure.

    All metrics are compared on the same pairs: those that each has both values for.

    Args:
        perturbations: folder that `vlscore perturb` wrote, or a file like those in it; or tables
            with the columns Path_frontal, gt, output, as the VLScore paper's authors make them.
        out: folder for the results.
        scorer: metrics, encoder and section of the reports; default: every free metric of texts.
        settings: what the numbers depend on.
        studies: with the images of the perturbed studies, for metrics that look at them.
        image_root: folder from which the images' paths in the authors' tables start, where
            `studies` is None; default: the current one.
        figure: "png", "svg" or "pdf"; default: "png" where matplotlib is installed, else none, and
            a note says so. `draw` draws a run that has ended.
        format: of the values, "csv" or "parquet".
        limit: read only so many perturbations, the first ones; None for all.
        workers: processes that decode images.
        overwrite: compute anew, and replace results when the new ones are complete.
        on_phase: called at the beginning of each phase: pairs, resampling.

    Returns: frames "kinds" (a metric and kind: mean value and drop), "contrasts" (of the paper's
        comparisons), "normal" (values for normal reports) and "swaps"; values.csv has every pair.
    Raises: InvalidTable, InvalidSetting, MissingDependency, FolderInUse. A pair without a value
        raises nothing: it is in failures.csv.
    """
    settings = settings or SensitivitySettings()
    drawn, without_figure = _formats(figure, format)
    scorer = scorer or Scorer(metrics=usable_metrics()[0])
    pairs = read_pairs(perturbations, limit)
    shown, files, notes = _images(scorer, settings, pairs, studies, image_root)
    read = _read_values(settings, pairs, scorer)
    notes += without_figure
    key = {
        "command": "sensitivity",
        "perturbations_sha256": pairs.attrs["sha256"],
        **({} if limit is None else {LIMIT: limit}),
        "studies": studies and studies.key,
        "image_root": None if image_root is None else str(image_root),
        "metrics": {name: str(each) for name, each in scorer.signatures.items()},
        "embeddings": scorer.embedder and str(scorer.embedder.signature),
        **settings.key(),
        "figure": figure,
        "format": format,
    }

    def compute(folder: Path) -> Content:
        on_pairs, originals = on_phase("pairs", len(pairs)), pairs["original"]
        scored = score_pairs(pairs, scorer, shown, workers=workers, on_progress=on_pairs)
        scored = scored.filled(read)
        _check_some_common(scored, Path(perturbations))
        frames = compare_kinds(pairs, scored, settings, on_phase=on_phase)
        if settings.swap_images:
            frames["swaps"] = image_swap(pairs, scorer, shown, settings, workers=workers)
        return Content(
            frames,
            {f"values.{format}": _values_frame(pairs, scored)},
            [Failure(k + 1, pairs["study_id"][k], why) for k, why in scored.reasons.items()],
            scored.signatures,
            [*notes, *scorer.language_notes({"original reports": originals}), *scored.notes],
            _facts(Path(perturbations), studies, scorer, pairs, scored),
        )

    return Result.make(out, key, compute, images=files, figure=drawn, overwrite=overwrite)


def _formats(figure: str | None, format: str) -> tuple[str | None, list[str]]:
    """Return the format that is drawn, None where matplotlib is not installed; and a note.

    Raises: InvalidSetting for an unknown format; MissingDependency where figures were asked for.
    """
    if format not in ("csv", "parquet"):
        raise InvalidSetting(f"format is csv or parquet, not {format!r}")
    try:
        check_drawable(figure or "png")
    except MissingDependency as error:
        if figure is not None:
            raise
        return None, [f"no figure: {error}"]
    return figure or "png", []


def _read_values(
    settings: SensitivitySettings, pairs: "DataFrame", scorer: Scorer
) -> Scored | None:
    """Read values that were computed elsewhere, for the changes; None without a table."""
    return read_precomputed(
        settings.values,
        {"study_id": list(pairs["study_id"]), "kind": list(pairs["kind"])},
        lower_is_better=settings.lower_is_better,
        computed=[str(metric) for metric in scorer.metrics],
        suffixes=ENDS,
        ignored=("significant", "category"),
        is_repeated=True,
        row_name="study and kind of the perturbations",
    )


def _facts(
    place: Path,
    studies: StudyTable | None,
    scorer: Scorer,
    pairs: "DataFrame",
    scored: Scored,
) -> dict[str, Any]:
    # How many distinct reports the encoder did not read to the end.
    columns = {end[1:]: TRUNCATED + end for end in ENDS if TRUNCATED + end in scored.rows}
    cut = (pairs[name][scored.rows[flag].to_numpy()] for name, flag in columns.items())
    return {
        "perturbations": str(place.resolve()),
        "studies": studies and str(studies.path.resolve()),
        "in_sample": sorted(reading_by_own_rules(scorer)),
        "truncated": len({text for texts in cut for text in texts}),
        "pairs": len(pairs),
    }


def _check_some_common(scored: Scored, place: Path) -> None:
    """Raise InvalidTable where no change has a value of every metric; it says why the first."""
    if not has_every_value(scored).any():
        why = next(iter(scored.reasons.values()), "a metric gives no value")
        raise InvalidTable(
            f"{place}: no change has a value of every metric, so none can be compared. The first: "
            f"{why}"
        )


def _images(
    scorer: Scorer,
    settings: SensitivitySettings,
    pairs: "DataFrame",
    studies: StudyTable | None,
    image_root: str | Path | None,
) -> tuple[ImagesOf, Callable[[], Iterable[Path]] | None, list[str]]:
    """Return the images of the perturbed studies, a function that lists their files, and notes.

    Raises: InvalidSetting where a metric or setting lacks an encoder or images.
    """
    embedder, own = scorer.embedder, dict[str, Study]()
    if studies is None and "image" in pairs and embedder is not None:
        own = images_of_pairs(pairs, image_root)
    has_images = bool(own) or (studies is not None and embedder is not None)
    if settings.swap_images and not has_images:
        raise InvalidSetting("swapping images needs images: name a table of studies (--studies)")
    if studies is not None and embedder is None:
        raise InvalidSetting("only an encoder uses the studies' images; name one (--encoder)")
    for metric in scorer.metrics:
        if metric.uses_image and not has_images:
            raise InvalidSetting(
                f"{metric} cannot be computed: it needs the image, but there are no images. Give "
                "the studies' images (--studies) and an encoder (--encoder)"
            )
    if embedder is None or not has_images:
        return images_of({}), None, []
    if studies is None:
        files = [file for study in own.values() for file in study.files]
        return images_of(own), lambda: files, [*embedder.notes]
    shown, notes = images_by_study(studies, set(pairs["study_id"]), "perturbed report")
    return shown, studies.image_files, [*notes, *embedder.notes]


def _values_frame(pairs: "DataFrame", scored: Scored) -> "DataFrame":
    """Return one row a pair: both values of every metric, and how much worse the second is."""
    names = {"is_significant": "significant"}
    found = pairs[["study_id", "kind", "is_significant", "category"]].rename(columns=names)
    for name in scored.higher_is_better:
        own = {end: scored.rows[name + end] for end in ENDS} | {".drop": drop_of(scored, name)}
        for end, column in own.items():
            found[name + end] = column.to_numpy()
    return found
