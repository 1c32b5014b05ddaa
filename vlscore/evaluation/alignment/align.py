"""Alignment of metrics with raters: a rated set is read, scored, and compared with its ratings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import OnPhase, OnProgress, checked_arguments, no_phase
from vlscore.data import Study, StudyTable, columns_of
from vlscore.errors import (
    Failure,
    InvalidSetting,
    InvalidStudy,
    InvalidTable,
    UnknownName,
    VLScoreError,
)
from vlscore.evaluation.alignment.agreement import compare_with_raters
from vlscore.evaluation.alignment.composite_fit import fit_composite
from vlscore.evaluation.alignment.rated_pairs import RatedPairs
from vlscore.evaluation.alignment.tables import VALUES
from vlscore.evaluation.command_settings import IN_SAMPLE, AlignmentSettings
from vlscore.evaluation.precomputed import read_precomputed
from vlscore.evaluation.score_table import score_table
from vlscore.evaluation.scored import Scored
from vlscore.evaluation.study_images import ImagesOf, images_by_study, images_of
from vlscore.metrics import (
    CompositeMetric,
    Item,
    Metric,
    Plan,
    Scorer,
    find_metric,
    find_metrics,
    write_composite,
)
from vlscore.stats import Content, Result, check_drawable

if TYPE_CHECKING:
    from pandas import DataFrame

COMPOSITE = "composite.json"
# RadEvalX's table of published values (metrcis_scores_m2tr.csv): the column of its ids, one that is
# no value, and one of which smaller values are better.
_RADEVALX = frozenset({"report_id", "radgraph_f1", "radcliq"})
_RADEVALX_ID, _RADEVALX_OTHER, _RADEVALX_LOWER = "report_id", "id", "radcliq"


@checked_arguments
def align(
    pairs: RatedPairs,
    out: str | Path,
    scorer: Scorer | None = None,
    settings: AlignmentSettings | None = None,
    *,
    studies: StudyTable | None = None,
    figure: str | None = None,
    overwrite: bool = False,
    on_phase: OnPhase = no_phase,
) -> Result:
    """Compare metrics with raters, and write tables, values and all numbers.

    Args:
        pairs: what `read_ratings` read.
        out: folder for the results.
        scorer: computes metrics for the pairs; None where `settings` names a table of values.
        studies: brings the images of the pairs' studies, by id.
        figure: "png", "svg" or "pdf": also draw tau_b of every metric with the raters' ceilings,
            and the best metric against the raters' mean. `draw` draws a run that has ended.
        overwrite: compute anew, and replace results when the new ones are complete.
        on_phase: called at the beginning of each phase: pairs, resampling.

    Returns: frames "agreements", "differences", "raters", "ceilings", "rankings" (see
        `compare_with_raters`), "metrics" (name, higher_is_better, n), with `fit` "composite"; and
        values.csv, one row a pair.
    Raises: InvalidTable, InvalidSetting, FolderInUse. A pair without a value raises nothing: it is
        in failures.csv.
    """
    settings = settings or AlignmentSettings()
    if scorer is None and settings.values is None:
        raise InvalidSetting("name metrics to compute (--metrics), or a table of values (--values)")
    if figure is not None:
        check_drawable(figure)
    shown, notes = _images(pairs, studies)
    named: list[tuple[Metric, str]] = []
    if scorer is not None:
        scorer = scorer.prepared(table=studies)
        named = columns_named(scorer.metrics, settings.columns)
        _check_inputs(scorer, pairs, shown is not None)
        notes += scorer.notes
    read = _read_values(settings, pairs, [name for _, name in named])
    key = {
        "command": "align",
        **pairs.key,
        "metrics": {n: str(s) for n, s in scorer.signatures.items()} if scorer else {},
        "studies": studies and studies.key,
        **settings.key(),
        "columns": [name for _, name in named],
        "figure": figure,
    }

    def compute(folder: Path) -> Content:
        scored = Scored(pairs.ids, {})
        if scorer is not None:
            scored = _scored(scorer, pairs, named, shown, on_phase("pairs", len(pairs)))
        scored = scored.filled(read)
        about = [*pairs.notes, *notes, *scored.notes]
        frames = compare_with_raters(scored, pairs, settings, on_phase=on_phase)
        frames["metrics"] = scored.counts()
        about += _reversed_notes(frames, pairs, read)
        if settings.fit is not None:
            _fit(settings, pairs, scorer, scored, frames, about, folder)
        return Content(
            frames,
            {VALUES: scored.rows.assign(**{f"mean {n}": each for n, each in pairs.means.items()})},
            [*pairs.bad, *pairs.failures(scored.failures)],
            scored.signatures,
            about,
            _facts(pairs, settings),
        )

    images = None if studies is None else studies.image_files
    return Result.make(out, key, compute, images=images, figure=figure, overwrite=overwrite)


def _facts(pairs: RatedPairs, settings: AlignmentSettings) -> dict[str, Any]:
    return {
        "files": [str(file.resolve()) for file in pairs.files],
        "values": settings.values and str(Path(settings.values).resolve()),
        "pairs": len(pairs),
        "studies": len(set(pairs.studies)),
        "raters": list(pairs.raters),
        "meaning": pairs.meaning,
        "ratings": list(pairs.primary),
    }


def _images(pairs: RatedPairs, studies: StudyTable | None) -> tuple[ImagesOf | None, list[str]]:
    """Return the images of the pairs' studies, None where there are none, and notes."""
    if studies is not None:
        return images_by_study(studies, set(pairs.studies), "rated pair")
    if pairs.images is None:
        return None, []
    images = zip(pairs.studies, pairs.images, strict=True)
    return images_of({study: found for study, found in images if found is not None}), []


def _scored(
    scorer: Scorer,
    pairs: RatedPairs,
    named: Sequence[tuple[Metric, str]],
    shown: ImagesOf | None,
    on_progress: OnProgress,
) -> Scored:
    """Score the pairs; return the named numbers, and notes on them."""
    items = [_item(scorer, pairs, row, shown) for row in range(len(pairs))]
    table = score_table(items, scorer.prepared(pairs.references), on_progress=on_progress)
    found, names, notes = Scored.of(table, {}), {}, []
    for metric, column in named:
        names[column] = column
        if isinstance(metric, CompositeMetric):
            texts = list(map(pairs.texts_at, range(len(pairs))))
            if seen := metric.composite.has_seen(pairs.studies, texts):
                names[column] = f"{column} ({IN_SAMPLE})"
                notes.append(
                    f"{metric} was fitted to {seen} of these {len(texts)} pairs: {IN_SAMPLE}"
                )
    reports = {"references": pairs.references or (), "candidates": pairs.texts or ()}
    return Scored(
        pairs.ids.assign(**{shown: found.rows[column] for column, shown in names.items()}),
        {names[column]: found.signatures[metric] for metric, column in named},
        {shown: found.higher_is_better[column] for column, shown in names.items()},
        {
            (row, column): why
            for metric, column in named
            for (row, of), why in found.failures.items()
            if of == str(metric)
        },
        notes=(*notes, *scorer.language_notes(reports)),
    )


def _item(
    scorer: Scorer, pairs: RatedPairs, row: int, shown: ImagesOf | None
) -> Item | VLScoreError:
    reference, text = pairs.texts_at(row)
    if scorer.needs.references and not (reference or "").strip():
        return InvalidStudy("the reference report is empty")
    if shown is None or not scorer.needs.images:
        return Item(text or "", reference)
    views = shown(pairs.studies[row])
    if views is None:
        return InvalidStudy(f"no image is known of study {pairs.studies[row]!r}")
    return Item(text or "", reference, views)


def _check_inputs(scorer: Scorer, pairs: RatedPairs, has_images: bool) -> None:
    """Raise InvalidSetting where the rated set lacks what the metrics look at."""
    needs = scorer.needs
    if pairs.texts is None or (needs.references and pairs.references is None):
        raise InvalidSetting(
            f"{', '.join(map(str, scorer.metrics))} need reports, but {pairs.source} has none: "
            "name their columns (--rename reference=NAME,candidate=NAME), give each candidate's "
            "table (--reports NAME=TABLE), or values that were computed elsewhere (--values)"
        )
    if needs.images and not has_images:
        looking = [str(each) for each in scorer.metrics if Plan([each]).needs.images]
        raise InvalidSetting(
            f"{', '.join(looking)} need images, but {pairs.source} names none: give a table of the "
            "studies and their images (--studies), or the column of image paths "
            "(--rename image=NAME)"
        )


def columns_named(metrics: Sequence[Metric], names: Sequence[str]) -> list[tuple[Metric, str]]:
    """Return the named numbers of metrics, as "findings-f1.precision"; default: the first of each.

    Raises: InvalidSetting where a metric has no such number.
    """
    known = {column: (metric, column) for metric in metrics for column in metric.columns}
    # Also by the name without settings, because an option (--C) may have added a setting to it.
    known = {m.name: (m, str(m)) for m in metrics if m.settings} | known
    if unknown := [name for name in names if name not in known]:
        there = ", ".join(column for metric in metrics for column in metric.columns)
        raise InvalidSetting(f"no metric has the value {', '.join(unknown)}; there are {there}")
    return [known[name] for name in names or map(str, metrics)]


def split_values(names: Sequence[str]) -> tuple[list[Metric], list[str]]:
    """Return metrics to compute, and their numbers, from names such as "findings-f1.recall".

    The name of a metric means its first number.

    Raises: UnknownName as `find_metric`, and InvalidSetting where a metric has no such number.

    >>> metrics, columns = split_values(["bleu-4", "findings-f1.recall"])
    >>> [str(metric) for metric in metrics], columns
    (['bleu-4', 'findings-f1'], ['bleu-4', 'findings-f1.recall'])
    """
    metrics: list[Metric] = []
    columns = []
    for name in names:
        try:
            found, value = [*find_metrics([name])], ""
        except UnknownName:
            base, point, value = name.rpartition(".")
            if not point:
                raise
            found, value = [find_metric(base)], f".{value}"
        metrics += found
        columns += [f"{metric}{value}" for metric in found]
    metrics = list(dict.fromkeys(metrics))
    columns_named(metrics, columns)
    return metrics, list(dict.fromkeys(columns))


def _read_values(
    settings: AlignmentSettings, pairs: RatedPairs, computed: Sequence[str]
) -> Scored | None:
    """Read values that were computed elsewhere, for the rated pairs; None without a table."""
    found = set(columns_of(settings.values)) if settings.values is not None else set[str]()
    study, lower = "study_id", [*settings.lower_is_better]
    ignored: tuple[str, ...] = ()
    if study not in found and found >= _RADEVALX:
        study, ignored = _RADEVALX_ID, (_RADEVALX_OTHER,)
        lower.append(_RADEVALX_LOWER)
    keys: dict[str, Sequence[str]] = {study: pairs.studies}
    if "candidate_id" in found or len(set(pairs.studies)) < len(pairs):
        keys["candidate_id"] = pairs.candidates
    return read_precomputed(
        settings.values, keys, lower_is_better=lower, computed=computed, ignored=ignored,
        row_name="rated pair",
    )  # fmt: skip


def _reversed_notes(
    frames: "Mapping[str, DataFrame]", pairs: RatedPairs, read: Scored | None
) -> list[str]:
    """Return notes on ratings, or on metrics computed elsewhere, that look reversed."""
    is_ranked = pairs.meaning == "ranks"
    name, even = ("right", 0.5) if is_ranked else ("tau_b", 0.0)
    rows = frames["rankings" if is_ranked else "agreements"]
    if rows.empty:
        return []
    is_metric = rows["metric"].isin(frames["metrics"]["name"])
    rows = rows[is_metric & (rows["rating"] == next(iter(pairs.ratings)))]
    # A perfect correlation has no interval, because all resamples agree.
    against = rows[rows[f"{name}.high"].fillna(rows[name]) < even]["metric"].tolist()
    notes = []
    if against and (rows[name].dropna() < even).all():
        notes.append(
            f"every metric contradicts the ratings, which are read as {pairs.meaning}: are they "
            "the other way round? --ratings-are says what they are"
        )
    elsewhere = read.higher_is_better if read is not None else {}
    return notes + [
        f"{each} disagrees with the raters: is its direction right (--lower-is-better)?"
        for each in against
        if each in elsewhere
    ]


def _fit(
    settings: AlignmentSettings,
    pairs: RatedPairs,
    scorer: Scorer | None,
    scored: Scored,
    frames: "dict[str, DataFrame]",
    notes: list[str],
    folder: Path,
) -> None:
    """Fit a composite and write it; add its frame and notes."""
    metrics = scorer.metrics if scorer is not None else ()
    names = [str(metric) for metric in metrics if not isinstance(metric, CompositeMetric)]
    if others := [name for name in scored.values if name not in names]:
        notes.append(
            f"{', '.join(others)} can be no part of a composite: it is made of metrics that "
            "vlscore computes, and not of composites"
        )
    own = {name: each for name, each in scored.higher_is_better.items() if name in names}
    composite, frames["composite"], left_out = fit_composite(
        replace(scored, higher_is_better=own), pairs, settings
    )
    notes += left_out
    write_composite(folder / COMPOSITE, composite)


def with_reports(pairs: RatedPairs, tables: Mapping[str, StudyTable]) -> RatedPairs:
    """Return the same pairs with the reports of each candidate, by the study's id.

    A pair whose study is not in its candidate's table is left out and listed in `bad`.

    Args: tables: name of the candidate -> its studies, opened for references and candidates; any
        table will do, and so will a manifest of ReXrank.

    Raises:
        InvalidSetting: the ratings bring reports already, or a candidate has no table.
        InvalidTable: two tables differ in a study's reference, or no pair has a report.
    """
    if pairs.texts is not None:
        raise InvalidSetting(f"{pairs.source} has reports of its own; leave out other tables")
    if absent := sorted(set(pairs.candidates) - set(tables)):
        raise InvalidSetting(
            f"{pairs.source} rates {', '.join(absent[:5])}, whose reports are in no table; "
            f"there are tables of {', '.join(tables)}"
        )
    known = {
        name: {row.id: row for row in table if isinstance(row, Study)}
        for name, table in tables.items()
    }
    references: dict[str, str] = {}
    for name, studies in known.items():
        for study, row in studies.items():
            reference = row.reference or ""
            if references.setdefault(study, reference).split() != reference.split():
                raise InvalidTable(
                    f"{tables[name].path}: study {study} has another reference than in an "
                    "earlier table"
                )
    found, bad = [], list(pairs.bad)
    for k, (study, name) in enumerate(zip(pairs.studies, pairs.candidates, strict=True)):
        if study in known[name]:
            found.append(k)
        else:
            reason = f"{tables[name].path} has no report of it that can be used"
            bad.append(Failure(0, f"{study}, {name}", reason))
    if not found:
        raise InvalidTable(
            f"no table has a study of {pairs.source}, such as {pairs.studies[0]!r}; "
            f"{next(iter(tables.values())).path} has {', '.join(list(references)[:3])}, ..."
        )
    return replace(
        pairs.at(found),
        references=tuple(references[pairs.studies[k]] for k in found),
        texts=tuple(known[pairs.candidates[k]][pairs.studies[k]].candidate or "" for k in found),
        bad=tuple(bad),
        files=(*pairs.files, *(table.path for table in tables.values())),
        notes=(*pairs.notes, *(note for table in tables.values() for note in table.notes)),
    )
