"""Figures of estimates with their intervals; matplotlib is imported on first use."""

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vlscore.core import atomic_write
from vlscore.errors import InvalidSetting, MissingDependency
from vlscore.stats.intervals import Interval

#: Suffixes of the files that figures are written to.
FIGURE_FORMATS = ("png", "svg", "pdf")
_COLUMNS = 3
_NEEDED = "figures need matplotlib: pip install matplotlib, or pip install 'vlscore[plots]'"


def check_format(name: str) -> None:
    """Raise InvalidSetting for an unknown format of figures."""
    if name not in FIGURE_FORMATS:
        raise InvalidSetting(f"figure is one of {', '.join(FIGURE_FORMATS)}, not {name!r}")


def check_drawable(name: str) -> None:
    """Refuse a figure that cannot be drawn, before anything is computed.

    Raises: InvalidSetting for an unknown format; MissingDependency without matplotlib.
    """
    check_format(name)
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise MissingDependency(_NEEDED) from error


def interval_of(content: Mapping[str, Any] | None) -> Interval:
    """Return an interval from the plain data of a result file; null becomes nan.

    >>> interval_of({"estimate": 0.5, "low": None, "high": None})
    Interval(estimate=0.5, low=nan, high=nan)
    """
    found = content or {}
    numbers = (found.get(name) for name in ("estimate", "low", "high"))
    return Interval(*(math.nan if number is None else float(number) for number in numbers))


def new_figure(rows: float, columns: int = 1) -> Any:
    """Make an empty figure with room for so many rows of text.

    Raises: MissingDependency if matplotlib is not installed.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependency(_NEEDED) from error
    matplotlib.rcParams["svg.hashsalt"] = "vlscore"
    width = 7 if columns == 1 else 3.6 * columns
    return Figure(figsize=(width, 1.2 + 0.4 * max(rows, 1)), dpi=150)


def save(figure: Any, path: str | Path) -> None:
    """Write a figure by its suffix, whole or not at all; equal figures give equal bytes."""
    path = Path(path)
    format = path.suffix.removeprefix(".")
    check_format(format)
    drawn = io.BytesIO()
    when = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(format, {})
    figure.savefig(drawn, format=format, bbox_inches="tight", metadata=when)
    with atomic_write(path, "wb") as stream:
        stream.write(drawn.getvalue())


def dot_plots(
    panels: Mapping[str, Mapping[str, Interval]],
    path: str | Path,
    *,
    title: str,
    lines: Mapping[str, Mapping[str, float]] | None = None,
    note: str = "",
) -> None:
    """Draw estimates as dots with intervals as bars: one panel a number, one row a name.

    Args:
        panels: title of a panel -> name of a row -> estimate; nan is left out.
        path: path of a .png, .svg or .pdf file.
        lines: title of a panel -> label -> position of a dashed line, such as a ceiling.
        note: text below the figure.

    Raises: MissingDependency if matplotlib is not installed.
    """
    names = list(dict.fromkeys(name for rows in panels.values() for name in rows))
    columns = min(len(panels), _COLUMNS) or 1
    deep = -(-len(panels) // columns) or 1
    figure = new_figure((len(names) + 2) * deep, columns)
    axes = figure.subplots(deep, columns, squeeze=False, sharey=True).ravel()
    for axis, (heading, rows) in zip(axes, panels.items(), strict=False):
        _draw(axis, names, rows, (lines or {}).get(heading, {}))
        axis.set_title(heading, loc="left", fontsize="medium")
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    figure.suptitle(title, x=0.01, ha="left")
    if note:
        figure.text(0.01, -0.02, note, fontsize="small")
    figure.tight_layout()
    save(figure, path)


def _draw(
    axis: Any, names: Sequence[str], rows: Mapping[str, Interval], lines: Mapping[str, float]
) -> None:
    for place, name in enumerate(names):
        value = rows.get(name)
        if value is None or math.isnan(value.estimate):
            continue
        if not math.isnan(value.low):
            axis.plot([value.low, value.high], [place, place], color="C0", linewidth=1.5)
        axis.plot([value.estimate], [place], "o", color="C0", markersize=5)
    for k, (label, where) in enumerate(lines.items()):
        if not math.isnan(where):
            axis.axvline(where, color=f"C{k + 1}", linestyle="--", linewidth=1, label=label)
    if lines:
        axis.legend(fontsize="x-small", loc="best")
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axis.grid(axis="x", linewidth=0.3)
