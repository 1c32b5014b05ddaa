"""What metrics lose by each kind of change; tables and figures of it.

Source: Dawidowicz, Hirsch, Tal, "VLScore", NeurIPS 2024: Table 2 (removing a pathology's sentence
against an insignificant one), Table 3 (another place or severity against [UNK] for a word that
says nothing), Figure 2 (normal reports replaced by a standard normal report).
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnPhase, frame, no_phase
from vlscore.evaluation.command_settings import IN_SAMPLE, SensitivitySettings
from vlscore.evaluation.scored import Scored
from vlscore.evaluation.sensitivities.changed_pairs import ENDS, drop_of
from vlscore.metrics import named_as_in_papers, paper_name
from vlscore.perturb import KINDS
from vlscore.stats import (
    COLOURS,
    Array,
    Interval,
    Presentation,
    TextTable,
    auc,
    crossed,
    dot_plots,
    figure_style,
    finish,
    grouped_auc,
    grouped_mean,
    grouped_means,
    interval_cells,
    intervals_in,
    new_figure,
    paired_p_value,
    text_table,
    two_sample_p_value,
    with_adjusted_p,
    with_demonstration,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from vlscore.stats import Result

NORMAL_KIND = "standard-normal"
WILCOXON = "Wilcoxon signed-rank"
#: Table of the paper, significant kind and its control.
COMPARISONS = (
    ("Table 2", "remove-pathology", "remove-insignificant"),
    ("Table 3", "change-location", "replace-uninformative"),
    ("Table 3", "change-severity", "replace-uninformative"),
)


def compare_kinds(
    pairs: "DataFrame",
    scored: Scored,
    settings: SensitivitySettings | None = None,
    *,
    on_phase: OnPhase = no_phase,
) -> "dict[str, DataFrame]":
    """Return what every metric loses by each kind of change; intervals resample studies.

    Returns:
        "kinds": metric, kind, is_significant, pairs, studies, value (mean of the perturbed
            reports), drop (mean loss against the unperturbed report; above 0 is worse).
        "contrasts": of a kind and its control: delta (difference of their mean drops), ratio (of
            these, nan where the interval of the control's holds 0), auc (chance that the
            significant change drops further), test, p_value; adjusted_p (Benjamini-Hochberg over
            all contrasts of the run).
        "normal": value of every normal report against the standard one.
        "strengths": a row a metric: sees (chance that a significant change costs more than a
            harmless one; .5: it cannot tell them apart), ignores (1 minus the mean absolute change
            by a harmless one over the mean drop of a significant one; 1: harmless changes move
            nothing), significant and harmless (numbers of pairs).
        "metrics": name, higher_is_better, n (pairs with both values).
    """
    from pandas import DataFrame, concat

    common = has_every_value(scored)
    columns = pairs[["study_id", "kind", "is_significant"]]
    options = drawn_by(settings)
    kinds, contrasts, strengths, normal = [], [], [], [DataFrame(columns=["metric", "value"])]
    resampling = on_phase("resampling metrics", len(scored.higher_is_better))
    for number, metric in enumerate(scored.higher_is_better, start=1):
        values = scored.rows[metric + ENDS[1]].to_numpy()
        rows = columns.assign(value=values, drop=drop_of(scored, metric).to_numpy())[common]
        found = dict(iter(rows.groupby("kind", sort=False)))
        of = {kind: found[kind] for kind in dict.fromkeys([*KINDS, *found]) if kind in found}
        means = {kind: _mean(own, "value", options) for kind, own in of.items()}
        kinds += [
            {
                "metric": metric,
                "kind": kind,
                "is_significant": bool(own["is_significant"].iloc[-1]),
                "pairs": len(own),
                "studies": own["study_id"].nunique(),
                "value": means[kind],
                "drop": _mean(own, "drop", options),
            }
            for kind, own in of.items()
        ]
        if NORMAL_KIND in of:
            normal.append(of[NORMAL_KIND][["value"]].assign(metric=metric))
        strengths += _strengths(metric, rows[rows["kind"] != NORMAL_KIND], options)
        contrasts += [
            {
                "metric": metric,
                "table": table,
                "significant": kind,
                "control": control,
                "value": means[kind],
                "control_value": means[control],
                **_contrast(of[kind], of[control], options),
            }
            for table, kind, control in COMPARISONS
            if {kind, control} <= of.keys()
        ]
        resampling(number, 0)
    frames = {"kinds": kinds, "contrasts": with_adjusted_p(contrasts), "strengths": strengths}
    return {
        "metrics": scored.counts(ENDS),
        "normal": concat(normal, ignore_index=True)[["metric", "value"]].astype({"value": float}),
        **{name: frame(records) for name, records in frames.items()},
    }


def drawn_by(settings: SensitivitySettings | None) -> dict[str, Any]:
    """Return the options of a bootstrap: how many resamples, and the seed."""
    chosen = settings or SensitivitySettings()
    return {"resamples": chosen.resamples, "seed": chosen.seed}


def has_every_value(scored: Scored) -> NDArray[np.bool_]:
    """Return (n,) whether a pair has both values of every metric."""
    columns = [name + end for name in scored.higher_is_better for end in ENDS]
    return np.asarray(np.isfinite(scored.rows[columns].to_numpy(float)).all(axis=1))


def _drops(rows: "DataFrame") -> tuple[Array, list[str]]:
    """Return the loss by each change, and its study."""
    return rows["drop"].to_numpy(), rows["study_id"].tolist()


def _mean(rows: "DataFrame", column: str, options: Mapping[str, Any]) -> Interval:
    return grouped_mean(rows[column], rows["study_id"].tolist(), **options)


def _strengths(metric: str, rows: "DataFrame", options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return how well a metric tells all significant changes from all harmless ones.

    Args: rows: of all changes but the standard normal report in place of a normal one, which is
        another text, so neither.
    """
    # The draws of the bootstrap depend on the order: that of the kinds.
    order = {kind: k for k, kind in enumerate(dict.fromkeys([*KINDS, *rows["kind"]]))}
    rows = rows.iloc[np.argsort(rows["kind"].map(order), kind="stable")]
    is_so = rows["is_significant"].to_numpy(dtype=bool)
    if is_so.all() or not is_so.any():
        return []
    (drop, studies), (other, other_studies) = map(_drops, (rows[is_so], rows[~is_so]))
    moved = np.abs(other), other_studies
    cost = grouped_means(np.divide, moved, (drop, studies), **options)
    sees = grouped_auc(
        np.concatenate([drop, other]),
        np.arange(len(rows)) < len(drop),
        [*studies, *other_studies],
        **options,
    )
    ignores = Interval(1 - cost.estimate, 1 - cost.high, 1 - cost.low)
    counts = {"significant": len(drop), "harmless": len(other)}
    return [{"metric": metric, "sees": sees, "ignores": ignores, **counts}]


def _contrast(of: "DataFrame", control: "DataFrame", options: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the drops of a kind with those of its control."""
    mine, theirs = (each.groupby("study_id")["drop"].mean() for each in (of, control))
    both = mine.index.intersection(theirs.index)
    # Wilcoxon's test over the studies that have both kinds, where these are at least half.
    if 2 * len(both) >= len(mine.index.union(theirs.index)):
        test, p_value = WILCOXON, paired_p_value(mine[both], theirs[both])
    else:
        test, p_value = "Mann-Whitney U", two_sample_p_value(mine, theirs)
    means = [_mean(of, "drop", options), _mean(control, "drop", options)]
    excludes_0 = means[1].low > 0 or means[1].high < 0
    drops = _drops(of), _drops(control)
    return {
        "delta": grouped_means(np.subtract, *drops, **options),
        "significant_drop": means[0],
        "control_drop": means[1],
        "pairs": len(of),
        "control_pairs": len(control),
        "ratio": means[0].estimate / means[1].estimate if excludes_0 else float("nan"),
        "auc": auc(drops[0][0], drops[1][0]),
        "test": test,
        "p_value": p_value,
    }


_STRENGTHS = (
    "sees: chance that a significant change costs more than a harmless one (.5: the metric cannot "
    "tell them apart). ignores: 1 minus the mean absolute change by a harmless one over the mean "
    "drop of a significant one (1: harmless changes move nothing; below 0: they move more). 95 % "
    "bootstrap intervals over studies; pairs of each."
)
_CONTRAST = (
    "Δ: difference of the two mean drops, 95 % bootstrap interval over studies. ratio: of these "
    "drops, where the interval of the control's excludes 0. AUC: chance that the significant "
    "change drops further. p: Wilcoxon or Mann-Whitney (result.json says which), adjusted "
    "(Benjamini-Hochberg). n: pairs of the change and of the control."
)
_COMPARED = {
    "Table 2": "Removed sentences: a pathology's against an insignificant one",
    "Table 3": "Changed words against [UNK] for a word that says nothing",
}
_IN_SAMPLE = (
    f"{IN_SAMPLE}: the metric reads reports by the rules that found what to change, so it notices "
    "what these rules read, and its numbers are no evidence of quality."
)
_CONTRAST_COLUMNS = {"metric": "metric", "significant": "change", "value": "mean",
    "control_value": "control's mean", "drop": "drop", "other": "control's drop", "delta": "Δ",
    "ratio": "ratio", "auc": "AUC", "adjusted_p": "p", "n": "n"}  # fmt: skip
_SWAP_COLUMNS = {"metric": "metric", "image": "image", "pairs": "pairs", "right": "right",
    "wrong": "wrong", "relative_shift": "shift / sd", "preference": "prefers right",
    "rank_agreement": "rank agreement", "rank_agreement_within": "within study",
    "detection_right": "detection", "detection_wrong": "wrong image's detection",
    "adjusted_p": "p"}  # fmt: skip
_SWAP = (
    "shift: mean absolute change, in units of the metric's spread. prefers right: share of "
    "candidates that do better with the right image. rank agreement: tau_b of all candidates; "
    "within a study. detection: area under the ROC curve, significant against insignificant "
    "changes, right and wrong image."
)


def sensitivity_tables(
    frames: "Mapping[str, DataFrame]", in_sample: Collection[str]
) -> list[TextTable]:
    """Return the tables of the paper, of all kinds, and of swapped images; those that have rows.

    Args: in_sample: metrics that read reports by the rules which found what was changed; tables
        mark them.
    """
    tables = [
        text_table("What a metric sees, what it ignores", frames["strengths"], _STRENGTHS),
        *_contrast_tables(frames["contrasts"]),
        *_normal_table(frames["kinds"], frames["normal"]),
        *_kinds_table(frames["kinds"]),
    ]
    if "swaps" in frames:
        # Right image against another study's and a black one.
        title = "Does the image count? Right image against a wrong one"
        tables.append(text_table(title, frames["swaps"], _SWAP, columns=_SWAP_COLUMNS))
    names = {paper_name(name) for name in in_sample}
    return [_marked(named_as_in_papers(table), names) for table in tables if table.rows]


def _marked(table: TextTable, names: Collection[str]) -> TextTable:
    """Return the table with a mark at these metrics, and what it means."""

    def mark(cell: str) -> str:
        return f"{cell} ({IN_SAMPLE})" if cell in names else cell

    rows = tuple((mark(row[0]), *row[1:]) for row in table.rows)
    columns = tuple(map(mark, table.columns))
    if (rows, columns) == (table.rows, table.columns):
        return table
    caption = f"{table.caption} {_IN_SAMPLE}".strip()
    return replace(table, rows=rows, columns=columns, caption=caption)


def _contrast_tables(contrasts: "DataFrame") -> Iterator[TextTable]:
    """Yield Tables 2 and 3 of the paper."""
    for name, rows in contrasts.groupby("table") if len(contrasts) else ():
        shown = rows.assign(
            drop=rows["significant_drop"],
            other=rows["control_drop"],
            n=rows["pairs"].astype(str) + " / " + rows["control_pairs"].astype(str),
        )
        title = f"{name}. {_COMPARED[str(name)]}"
        yield text_table(title, shown, _CONTRAST, columns=_CONTRAST_COLUMNS)


def _normal_table(kinds: "DataFrame", normal: "DataFrame") -> Iterator[TextTable]:
    """Yield the numbers of Figure 2: normal reports against the standard normal report."""
    if len(normal):
        quantiles = normal.groupby("metric")["value"].quantile([0.05, 0.5, 0.95]).unstack()
        quantiles.columns = ["5 %", "median", "95 %"]
        rows = kinds[kinds["kind"] == NORMAL_KIND]
        rows = rows.merge(quantiles, left_on="metric", right_index=True)
        columns = ("metric", "pairs", "mean", *quantiles)
        rows = rows.rename(columns=lambda name: name.replace("value", "mean"))
        yield text_table("Standard normal report for a normal one", rows, columns=columns)


def _kinds_table(kinds: "DataFrame") -> Iterator[TextTable]:
    """Yield mean drop of every kind there is, one column a metric; significant kinds first."""
    if len(kinds):
        meaning = kinds["is_significant"].map({True: "significant", False: "insignificant"})
        rows = kinds.assign(meaning=meaning, cell=interval_cells(kinds, "drop"))
        wide = crossed(rows, ["kind", "meaning", "pairs", "studies"], "metric", "cell")
        wide = wide.sort_values("meaning", ascending=False, kind="stable")
        yield text_table("Mean drop by kind (above 0 is worse)", wide)


def draw_sensitivity(run: "Result", format: str, columns: Sequence[str] = ()) -> list[Path]:
    """Draw drops by kind, and Figure 2 of the paper, into a result's folder; return their paths.

    Raises: MissingDependency where matplotlib is not installed.
    """
    frames, signatures = run.frames, run.signatures
    drops, normal = (run.folder / f"{name}.{format}" for name in ("drops", "normal_reports"))
    kinds = frames["kinds"].sort_values("is_significant", ascending=False, kind="stable")
    wanted = kinds["is_significant"].map({True: " (should notice)", False: " (should not notice)"})
    panels = intervals_in(kinds.assign(shown=kinds["kind"] + wanted), "metric", "shown", "drop")
    note = with_demonstration(
        "Above 0 is worse; bars: 95 % bootstrap intervals over studies.", signatures.values()
    )
    lines = {name: {"": 0.0} for name in panels}
    dot_plots(panels, drops, title="Mean drop by kind", lines=lines, note=note)
    if frames["normal"].empty:
        return [drops]
    # Metrics of which lower is better have no common scale.
    metrics = frames["metrics"].query("higher_is_better")["name"]
    by_metric = {str(name): rows for name, rows in frames["normal"].groupby("metric", sort=False)}
    shown = {
        name: rows["value"].tolist() for name, rows in by_metric.items() if name in set(metrics)
    }
    note = with_demonstration("Box: quartiles; whiskers: 5 % and 95 %.", signatures.values())
    with figure_style():
        figure = new_figure(len(shown) + 2)
        axes = figure.subplots()
        if shown:
            axes.boxplot(
                list(shown.values()),
                orientation="horizontal",
                whis=(5, 95),
                medianprops={"color": COLOURS[1]},
                flierprops={"markersize": 2},
            )
            axes.set_yticks(range(1, len(shown) + 1), list(shown))
        axes.invert_yaxis()
        axes.set_xlabel("value for a standard normal report")
        finish(figure, normal, "Normal reports", note)
    return [drops, normal]


PRESENTATION = Presentation(
    lambda run: sensitivity_tables(run.frames, run.record["in_sample"]),
    draw_sensitivity,
    page="vlscore.pages.command_views:sensitivity_view",
)
