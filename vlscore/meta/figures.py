"""Figures, where matplotlib is installed."""

import io
from pathlib import Path
from typing import Any

from vlscore._files import atomic_write
from vlscore.errors import MissingDependency
from vlscore.meta import Sensitivity


def draw_normal_distribution(result: Sensitivity, path: str | Path) -> None:
    """Figure 2: how each metric scores normal reports replaced by the standard normal report.

    Args:
        path: of a .png, .svg or .pdf file.

    Raises: MissingDependency where matplotlib is not installed.
    """
    path = Path(path)
    shown = [metric for metric in result.metrics if metric.normal]
    figure = _new_figure(len(shown))
    axes = figure.subplots()
    names = [f"{m.name}{'' if m.higher_is_better else ' (lower is better)'}" for m in shown]
    if shown:
        axes.boxplot([m.normal for m in shown], orientation="horizontal", whis=(5, 95))
        axes.set_yticks(range(1, len(shown) + 1), names)
    axes.invert_yaxis()
    axes.set_xlabel("value for a standard normal report against the normal report it replaces")
    axes.set_title("Normal reports: box, quartiles; whiskers, 5 % and 95 %", loc="left")
    # In memory first: the file appears whole or not at all.
    drawn = io.BytesIO()
    figure.savefig(drawn, format=path.suffix.removeprefix("."), bbox_inches="tight")
    with atomic_write(path, "wb") as stream:
        stream.write(drawn.getvalue())


def _new_figure(rows: int) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency("figures need matplotlib: pip install 'vlscore[plots]'") from error
    return Figure(figsize=(7, 1.2 + 0.4 * max(rows, 1)), dpi=150)
