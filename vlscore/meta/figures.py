"""Figures, where matplotlib is installed."""

from pathlib import Path

from vlscore.display.figures import DEMONSTRATION, dot_plots, new_figure, save
from vlscore.meta.sensitivity import Sensitivity


def draw_normal_distribution(result: Sensitivity, path: str | Path) -> None:
    """Figure 2: how each metric scores normal reports replaced by the standard normal report.

    Metrics whose values have no common scale (lower is better, or no upper bound) are left out.

    Args:
        path: of a .png, .svg or .pdf file.

    Raises: MissingDependency where matplotlib is not installed.
    """
    shown = [metric for metric in result.metrics if metric.normal and metric.higher_is_better]
    figure = new_figure(len(shown))
    axes = figure.subplots()
    if shown:
        axes.boxplot([m.normal for m in shown], orientation="horizontal", whis=(5, 95))
        axes.set_yticks(range(1, len(shown) + 1), [m.name for m in shown])
    axes.invert_yaxis()
    axes.set_xlabel("value for a standard normal report against the normal report it replaces")
    axes.set_title("Normal reports: box, quartiles; whiskers, 5 % and 95 %", loc="left")
    if any("DEMONSTRATION" in metric.signature for metric in shown):
        figure.text(0.01, 0.0, DEMONSTRATION)
    save(figure, path)


def draw_drops(result: Sensitivity, path: str | Path) -> None:
    """Mean drop of every metric by kind, significant kinds first; above 0 is worse.

    Args:
        path: of a .png, .svg or .pdf file.

    Raises: MissingDependency where matplotlib is not installed.
    """
    panels = {
        metric.name: {
            f"{kind.kind} ({'should' if kind.is_significant else 'should not'} notice)": kind.drop
            for kind in sorted(metric.kinds, key=lambda kind: not kind.is_significant)
        }
        for metric in result.metrics
    }
    note = "Above 0 is worse; bars: 95 % bootstrap intervals over studies."
    if any("DEMONSTRATION" in metric.signature for metric in result.metrics):
        note += f" {DEMONSTRATION}"
    lines = {metric.name: {"no change": 0.0} for metric in result.metrics}
    title = f"Mean drop by kind ({result.pairs} pairs of {result.studies} studies)"
    dot_plots(panels, path, title=title, lines=lines, note=note)
