"""Figures in the one style of the package, for a paper; matplotlib is imported on first use.

Each function draws plain numbers into a file, so that a figure can be made from finished results.
"""

import contextlib
import io
import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vlscore.core import atomic_write
from vlscore.errors import InvalidSetting, MissingDependency
from vlscore.stats.intervals import Interval

#: Suffixes of the files that figures are written to.
FIGURE_FORMATS = ("png", "svg", "pdf")
#: Colours that colour-blind readers tell apart (Okabe, Ito 2008, Color Universal Design).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
_GREY, _DARK = "#999999", "#333333"
# Inches: a column and a page of a paper of two columns, in whose size figures are printed.
_COLUMN, _PAGE = 3.4, 7.0
_ROW = 0.19
_COLUMNS = 3
_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 7.5,
    "figure.titlesize": 9,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": _DARK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.linewidth": 0.4,
    "grid.color": "#DDDDDD",
    "axes.axisbelow": True,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "figure.dpi": 200,
    "savefig.dpi": 200,
    # Text in a pdf is text, in fonts that publishers accept; the bytes of a figure repeat.
    "pdf.fonttype": 42,
    "svg.hashsalt": "vlscore",
}
_NEEDED = "figures need matplotlib: pip install matplotlib, or pip install 'vlscore[plots]'"


def check_format(name: str) -> None:
    """Raise InvalidSetting for an unknown format of figures."""
    if name not in FIGURE_FORMATS:
        raise InvalidSetting(f"figure must be one of {', '.join(FIGURE_FORMATS)}, not {name!r}")


def check_drawable(name: str) -> None:
    """Refuse a figure that cannot be drawn, before anything is computed.

    Raises: InvalidSetting for an unknown format; MissingDependency without matplotlib.
    """
    check_format(name)
    _matplotlib()


def _matplotlib() -> Any:
    try:
        import matplotlib.figure
    except ImportError as error:
        raise MissingDependency(_NEEDED) from error
    return matplotlib


@contextlib.contextmanager
def figure_style() -> Iterator[None]:
    """Use the style of the package for what is drawn and written within.

    Raises: MissingDependency if matplotlib is not installed.
    """
    matplotlib = _matplotlib()
    from cycler import cycler

    style: Any = {**_STYLE, "axes.prop_cycle": cycler(color=COLOURS)}
    with matplotlib.rc_context(style):
        yield


def new_figure(rows: float, columns: int = 1) -> Any:
    """Make an empty figure with room for so many rows of text.

    Args: columns: panels next to each other; one has the width of a column, more that of a page.
    Raises: MissingDependency if matplotlib is not installed.
    """
    width = _COLUMN if columns == 1 else _PAGE
    size = (width, 0.6 + _ROW * max(rows, 1))
    return _matplotlib().figure.Figure(figsize=size, layout="constrained")


def save(figure: Any, path: str | Path) -> None:
    """Write a figure by its suffix, whole or not at all; equal figures give equal bytes."""
    path = Path(path)
    format = path.suffix.removeprefix(".")
    check_format(format)
    drawn = io.BytesIO()
    when = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(format, {})
    figure.savefig(drawn, format=format, bbox_inches="tight", pad_inches=0.03, metadata=when)
    with atomic_write(path, "wb") as stream:
        stream.write(drawn.getvalue())


def dot_plots(
    panels: Mapping[str, Mapping[str, Interval]],
    path: str | Path,
    *,
    title: str,
    lines: Mapping[str, Mapping[str, float]] | None = None,
    note: str = "",
    hollow: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Draw a forest plot: estimates as dots, intervals as bars; one panel a number.

    Args:
        panels: title of a panel -> name of a row -> estimate; nan is left out.
        path: path of a .png, .svg or .pdf file.
        lines: title of a panel -> label -> position of a line, such as a ceiling; one without a
            label is thin and grey, such as at no difference.
        note: text below the figure.
        hollow: title of a panel -> names of the rows whose dot is hollow.

    Raises: MissingDependency if matplotlib is not installed.
    """
    names = list(dict.fromkeys(name for rows in panels.values() for name in rows))
    labels = max((sum(map(bool, each)) for each in (lines or {}).values()), default=0)
    height = len(names) + 3.5 + labels
    with _grid(
        len(panels), path, title=title, note=note, rows=height, most=_COLUMNS, sharey=True
    ) as axes:
        for axis, (heading, rows) in zip(axes, panels.items(), strict=True):
            own = (hollow or {}).get(heading, ())
            _draw(axis, names, rows, (lines or {}).get(heading, {}), own)
            axis.set_title(heading, loc="left")


def scatter(
    x: ArrayLike,
    y: ArrayLike,
    path: str | Path,
    *,
    title: str,
    labels: tuple[str, str],
    is_same_scale: bool = False,
    note: str = "",
) -> None:
    """Draw two values of every study against each other, with a histogram of each at the sides.

    Args:
        x, y: n values each; pairs with nan are left out.
        labels: of the two axes.
        is_same_scale: both are values of one metric: the axes have one range, and a diagonal line.
        note: text below the figure.

    Raises: MissingDependency if matplotlib is not installed.
    """
    first, second = np.asarray(x, np.float64), np.asarray(y, np.float64)
    present = np.isfinite(first) & np.isfinite(second)
    first, second = first[present], second[present]
    with figure_style():
        figure = new_figure(15)
        grid = figure.add_gridspec(2, 2, width_ratios=(5, 1), height_ratios=(1, 5))
        axis = figure.add_subplot(grid[1, 0])
        above = figure.add_subplot(grid[0, 0], sharex=axis)
        beside = figure.add_subplot(grid[1, 1], sharey=axis)
        size = float(np.clip(2000 / max(len(first), 1), 3, 16))
        axis.scatter(first, second, s=size, color=COLOURS[0], alpha=0.5, linewidths=0)
        if is_same_scale and len(first):
            ends = [min(first.min(), second.min()), max(first.max(), second.max())]
            axis.plot(ends, ends, color=_GREY, linewidth=0.8, linestyle="--")
        for side, values, direction in ((above, first, "vertical"), (beside, second, "horizontal")):
            side.hist(values, bins=_bins(values), color=COLOURS[0], orientation=direction)
            side.axis("off")
        axis.set_xlabel(labels[0])
        axis.set_ylabel(labels[1])
        axis.grid()
        finish(figure, path, title, note)


def histograms(
    values: Mapping[str, Sequence[float]],
    path: str | Path,
    *,
    title: str,
    means: Mapping[str, Interval],
    note: str = "",
) -> None:
    """Draw how values are distributed, a panel a number, with their mean and its interval.

    Raises: MissingDependency if matplotlib is not installed.
    """
    with _grid(len(values), path, title=title, note=note, rows=7, most=_COLUMNS) as axes:
        for axis, (name, numbers) in zip(axes, values.items(), strict=True):
            found = np.asarray(numbers, np.float64)
            found = found[np.isfinite(found)]
            axis.hist(found, bins=_bins(found), color=COLOURS[5], zorder=2)
            mean = means.get(name)
            if mean is not None and math.isfinite(mean.estimate):
                if math.isfinite(mean.low):
                    axis.axvspan(mean.low, mean.high, color=COLOURS[1], alpha=0.3, linewidth=0)
                axis.axvline(mean.estimate, color=COLOURS[1], zorder=3)
            axis.set_title(f"{name} (n = {len(found)})", loc="left")
        for first in axes[::_COLUMNS]:
            first.set_ylabel("studies")


def curves(
    panels: Mapping[str, Mapping[str, tuple[Sequence[float], Sequence[float]]]],
    path: str | Path,
    *,
    title: str,
    label: str,
    note: str = "",
) -> None:
    """Draw learning curves, a panel a quantity.

    Args:
        panels: title of a panel -> name of a curve -> (x, y).
        label: of the x axes, as in "step".

    Raises: MissingDependency if matplotlib is not installed.
    """
    with _grid(len(panels), path, title=title, note=note, rows=10, most=2) as axes:
        for axis, (heading, drawn) in zip(axes, panels.items(), strict=True):
            for k, (name, (x, y)) in enumerate(drawn.items()):
                style = ("-", "--", ":", "-.")[k % 4]
                marker = "o" if len(x) <= 30 else None
                width = 1.2 if marker else 0.7
                axis.plot(x, y, style, marker=marker, label=name, markersize=2.5, linewidth=width)
            axis.set_title(heading, loc="left")
            axis.set_xlabel(label)
            axis.grid()
            if len(drawn) > 1:
                axis.legend()


@contextlib.contextmanager
def _grid(
    panels: int,
    path: str | Path,
    *,
    title: str,
    note: str,
    rows: float,
    most: int,
    sharey: bool = False,
) -> Iterator[Any]:
    """Yield an axis for each panel, at most so many next to each other; then write the figure.

    Args:
        rows: rows of text in a panel.
        most: largest number of columns.
        sharey: whether all panels have one vertical axis.
    """
    columns = min(panels, most) or 1
    deep = -(-panels // columns) or 1
    with figure_style():
        figure = new_figure(rows * deep, columns)
        axes = figure.subplots(deep, columns, squeeze=False, sharey=sharey).ravel()
        yield axes[:panels]
        for axis in axes[panels:]:
            axis.set_visible(False)
        finish(figure, path, title, note)


def finish(figure: Any, path: str | Path, title: str, note: str) -> None:
    """Write title and note, and save."""
    if title:
        figure.suptitle(title, x=0.01, ha="left")
    if note:
        width = round(figure.get_figwidth() * 19)
        figure.supxlabel(textwrap.fill(note, width), x=0.01, ha="left", fontsize=6.5, color=_DARK)
    save(figure, path)


def _bins(values: Any) -> Any:
    if len(values) < 2 or values.min() == values.max():
        return 10
    return np.linspace(values.min(), values.max(), int(np.clip(2 * len(values) ** 0.5, 8, 40)) + 1)


def _draw(
    axis: Any,
    names: Sequence[str],
    rows: Mapping[str, Interval],
    lines: Mapping[str, float],
    hollow: Sequence[str] = (),
) -> None:
    colour = COLOURS[0]
    for place, name in enumerate(names):
        value = rows.get(name)
        if value is None or math.isnan(value.estimate):
            continue
        if not math.isnan(value.low):
            axis.plot([value.low, value.high], [place, place], color=colour, linewidth=1.5)
        face = "white" if name in hollow else colour
        axis.plot([value.estimate], [place], "o", color=colour, markerfacecolor=face)
    for k, (label, where) in enumerate(lines.items()):
        if not label:
            axis.axvline(where, color=_GREY, linewidth=0.8, zorder=0.9)
        elif not math.isnan(where):
            style = ("--", ":", "-.")[k % 3]
            axis.axvline(where, color=COLOURS[k + 1], linestyle=style, linewidth=1, label=label)
    if any(label and not math.isnan(where) for label, where in lines.items()):
        axis.legend(loc="upper left", bbox_to_anchor=(0, -0.22), borderaxespad=0, handlelength=1.6)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axis.grid(axis="x")
