"""Figures, where matplotlib is installed."""

import io
from pathlib import Path
from typing import Any

from vlscore._files import atomic_write
from vlscore.errors import MissingDependency
from vlscore.meta.sensitivity import Sensitivity


def draw_normal_distribution(result: Sensitivity, path: str | Path) -> None:
    """Figure 2: how each metric scores normal reports replaced by the standard normal report.

    Metrics whose values have no common scale (lower is better, or no upper bound) are left out.

    Args:
        path: of a .png, .svg or .pdf file.

    Raises: MissingDependency where matplotlib is not installed.
    """
    path = Path(path)
    shown = [metric for metric in result.metrics if metric.normal and metric.higher_is_better]
    figure = _new_figure(len(shown))
    axes = figure.subplots()
    if shown:
        axes.boxplot([m.normal for m in shown], orientation="horizontal", whis=(5, 95))
        axes.set_yticks(range(1, len(shown) + 1), [m.name for m in shown])
    axes.invert_yaxis()
    axes.set_xlabel("value for a standard normal report against the normal report it replaces")
    axes.set_title("Normal reports: box, quartiles; whiskers, 5 % and 95 %", loc="left")
    if any("DEMONSTRATION" in metric.signature for metric in shown):
        figure.text(0.01, 0.0, "demonstration encoder: no statement about real radiographs")
    # In memory first: the file appears whole or not at all. A fixed time keeps its bytes equal.
    drawn = io.BytesIO()
    format = path.suffix.removeprefix(".")
    when = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(format, {})
    figure.savefig(drawn, format=format, bbox_inches="tight", metadata=when)
    with atomic_write(path, "wb") as stream:
        stream.write(drawn.getvalue())


def _new_figure(rows: int) -> Any:
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("figures need matplotlib: pip install 'vlscore[plots]'") from error
    matplotlib.rcParams["svg.hashsalt"] = "vlscore"
    return Figure(figsize=(7, 1.2 + 0.4 * max(rows, 1)), dpi=150)
