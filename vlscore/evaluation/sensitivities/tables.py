"""Tables of the sensitivity benchmark and of swapped images; figures, which need matplotlib."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.evaluation.sensitivities.image_swap import SwapResult
from vlscore.evaluation.sensitivities.kinds_noticed import (
    COMPARISONS,
    NORMAL_KIND,
    MetricResult,
    Sensitivity,
)
from vlscore.stats import (
    COLOURS,
    Interval,
    TextTable,
    dot_plots,
    figure_style,
    finish,
    interval,
    interval_of,
    new_figure,
    note_with_mark,
    number,
    p_value,
    with_mark,
)

_CONTRAST = (
    "Δ: difference of the two mean drops, 95 % bootstrap interval over studies. ratio: of these "
    "drops, where the interval of the control's excludes 0. AUC: chance that the significant "
    "change drops further. p: Wilcoxon or Mann-Whitney (sensitivity.json says which), adjusted "
    "(Benjamini-Hochberg). n: pairs of the change and of the control."
)
_COMPARED = {
    "Table 2": "Removed sentences: a pathology's against an insignificant one",
    "Table 3": "Changed words against [UNK] for a word that says nothing",
}
_SWAP = (
    "shift: mean absolute change, in units of the metric's spread. prefers right: share of "
    "candidates that do better with the right image. rank agreement: tau_b of all candidates; "
    "within a study. detection: area under the ROC curve, significant against insignificant "
    "changes, right and wrong image."
)


def all_tables(result: Sensitivity, swaps: Sequence[SwapResult] = ()) -> list[TextTable]:
    """Return every table that has rows."""
    tables = [
        *(comparison_table(result, name) for name in _COMPARED),
        normal_table(result),
        kinds_table(result),
        swap_table(swaps),
    ]
    signatures = (metric.signature for metric in result.metrics)
    return with_mark((table for table in tables if table.rows), signatures)


def kinds_table(result: Sensitivity) -> TextTable:
    """Return mean drop of every kind there is, one column a metric; significant kinds first."""
    drops = {m.name: {kind.kind: kind for kind in m.kinds} for m in result.metrics}
    kinds = {kind.kind: kind for metric in result.metrics for kind in metric.kinds}
    ordered = sorted(kinds.values(), key=lambda kind: not kind.is_significant)
    rows = []
    for kind in ordered:
        cells = [
            interval(found.drop if (found := drops[m.name].get(kind.kind)) else None)
            for m in result.metrics
        ]
        meaning = "significant" if kind.is_significant else "insignificant"
        rows.append((kind.kind, meaning, str(kind.pairs), str(kind.studies), *cells))
    columns = ("kind", "meaning", "pairs", "studies", *(m.name for m in result.metrics))
    return TextTable("Mean drop by kind (above 0 is worse)", columns, tuple(rows))


def normal_table(result: Sensitivity) -> TextTable:
    """Return the numbers of Figure 2: normal reports against the standard normal report."""
    rows = []
    for metric in result.metrics:
        kind = next((kind for kind in metric.kinds if kind.kind == NORMAL_KIND), None)
        if kind is not None:
            quantiles = _quantiles(metric.normal)
            rows.append((metric.name, str(kind.pairs), interval(kind.value), *quantiles))
    columns = ("metric", "pairs", "mean", "5 %", "median", "95 %")
    return TextTable("Standard normal report for a normal one", columns, tuple(rows))


def swap_table(results: Sequence[SwapResult]) -> TextTable:
    """Return whether the image counts: right image against another study's and a black one."""
    rows = (
        {
            "metric": each.metric,
            "image": each.image,
            "pairs": str(each.pairs),
            "right": interval(each.right),
            "wrong": interval(each.wrong),
            "shift / sd": number(each.relative_shift),
            "prefers right": interval(each.preference),
            "rank agreement": interval(each.rank_agreement),
            "within study": interval(each.rank_agreement_within),
            "detection": f"{_estimate(each.detection_right)} / {_estimate(each.detection_wrong)}",
            "p": p_value(each.adjusted_p),
        }
        for each in results
    )
    return TextTable.of("Does the image count? Right image against a wrong one", rows, _SWAP)


def comparison_table(result: Sensitivity, name: str) -> TextTable:
    """Return a table of the VLScore paper: means after two kinds of change."""
    rows = []
    for metric in result.metrics:
        for contrast in metric.contrasts:
            comparison = contrast.comparison
            if comparison not in COMPARISONS or comparison.table != name:
                continue
            rows.append(
                {
                    "metric": metric.name,
                    "change": comparison.significant,
                    "mean": interval(_value(metric, comparison.significant)),
                    "control's mean": interval(_value(metric, comparison.control)),
                    "drop": number(contrast.significant_drop.estimate),
                    "control's drop": number(contrast.control_drop.estimate),
                    "Δ": interval(contrast.delta),
                    "ratio": number(contrast.ratio),
                    "AUC": number(contrast.auc),
                    "p": p_value(contrast.adjusted_p),
                    "n": f"{contrast.pairs} / {contrast.control_pairs}",
                }
            )
    return TextTable.of(f"{name}. {_COMPARED[name]}", rows, _CONTRAST)


def _value(metric: MetricResult, kind: str) -> Interval | None:
    return next((each.value for each in metric.kinds if each.kind == kind), None)


def _quantiles(values: Sequence[float]) -> list[str]:
    return [number(float(value)) for value in np.quantile(values, (0.05, 0.5, 0.95))]


def _estimate(value: Interval | None) -> str:
    return "-" if value is None or math.isnan(value.estimate) else f"{value.estimate:.3f}"


#: Names of the figures, without suffix.
FIGURES = ("drops", "normal_reports")


def draw_sensitivity(folder: Path, content: Mapping[str, Any], format: str) -> list[Path]:
    """Draw the figures of the benchmark into its folder, and return their paths.

    Args: content: of sensitivity.json.
    Raises: MissingDependency where matplotlib is not installed.
    """
    drops, normal = (folder / f"{name}.{format}" for name in FIGURES)
    draw_drops(content, drops)
    if not any(metric["normal"] for metric in content["metrics"]):
        return [drops]
    draw_normal_distribution(content, normal)
    return [drops, normal]


def draw_normal_distribution(content: Mapping[str, Any], path: str | Path) -> None:
    """Draw Figure 2: values of metrics for normal reports replaced by the standard one.

    Metrics whose values have no common scale (lower is better, or no upper bound) are left out.

    Args:
        content: of sensitivity.json.
        path: of a .png, .svg or .pdf file.

    Raises: MissingDependency where matplotlib is not installed.
    """
    shown = [each for each in content["metrics"] if each["normal"] and each["higher_is_better"]]
    note = "Box: quartiles; whiskers: 5 % and 95 %."
    note = note_with_mark(note, (metric["signature"] for metric in shown))
    with figure_style():
        figure = new_figure(len(shown) + 2)
        axes = figure.subplots()
        if shown:
            axes.boxplot(
                [m["normal"] for m in shown],
                orientation="horizontal",
                whis=(5, 95),
                medianprops={"color": COLOURS[1]},
                flierprops={"markersize": 2},
            )
            axes.set_yticks(range(1, len(shown) + 1), [m["name"] for m in shown])
        axes.invert_yaxis()
        axes.set_xlabel("value for a standard normal report")
        finish(figure, path, "Normal reports", note)


def draw_drops(content: Mapping[str, Any], path: str | Path) -> None:
    """Draw the mean drop of every metric by kind, significant kinds first; above 0 is worse.

    Args:
        content: of sensitivity.json.
        path: of a .png, .svg or .pdf file.

    Raises: MissingDependency where matplotlib is not installed.
    """
    panels = {metric["name"]: _drops(metric) for metric in content["metrics"]}
    note = "Above 0 is worse; bars: 95 % bootstrap intervals over studies."
    note = note_with_mark(note, (metric["signature"] for metric in content["metrics"]))
    lines = {name: {"": 0.0} for name in panels}
    title = f"Mean drop by kind ({content['pairs']} pairs of {content['studies']} studies)"
    dot_plots(panels, path, title=title, lines=lines, note=note)


def _drops(metric: Mapping[str, Any]) -> dict[str, Any]:
    """Return the drop of every kind, significant kinds first, under the name of its row."""
    kinds = sorted(metric["kinds"], key=lambda kind: not kind["is_significant"])
    return {
        f"{kind['kind']} ({'should' if kind['is_significant'] else 'should not'} notice)": (
            interval_of(kind["drop"])
        )
        for kind in kinds
    }
