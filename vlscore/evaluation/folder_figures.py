"""Figures of any finished folder, drawn from the numbers in its files."""

import csv
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq

from vlscore.core import FinishedRun, finished_run
from vlscore.errors import InvalidTable, VLScoreError
from vlscore.evaluation.alignment.tables import draw_alignment
from vlscore.evaluation.comparison.comparison_figures import draw_comparison
from vlscore.evaluation.scoring.results import SUMMARY
from vlscore.evaluation.scoring.summary import Summary, read_summary
from vlscore.metrics import metric_from_file
from vlscore.stats import (
    check_drawable,
    curves,
    histograms,
    note_with_mark,
)

DISTRIBUTIONS, CURVES = "distributions", "curves"


def draw(folder: str | Path, format: str = "pdf", *, columns: Sequence[str] = ()) -> list[Path]:
    """Draw the figures of a finished folder into it, and return their paths.

    The folder is one of evaluate (how each metric's values are distributed), compare (systems,
    paired differences, ranks; with two systems their studies), align (agreement with raters, the
    best metric against them), sensitivity (drops, normal reports) or train (learning curves).

    Args:
        format: "png", "svg" or "pdf".
        columns: of a comparison, the numbers that are drawn; see `TableSettings`.

    Raises: InvalidTable for a folder without figures; InvalidSetting for an unknown format or
        column; MissingDependency where matplotlib is not installed.
    """
    check_drawable(format)
    run = finished_run(folder)
    if run is None:
        raise InvalidTable(f"{folder} is not the folder of a finished command: it has no run.json")
    place = run.folder
    drawings: dict[str, Callable[[Path], list[Path]]] = {
        "comparison.json": lambda path: draw_comparison(
            place, _json(path), format, columns, "values.parquet"
        ),
        "alignment.json": lambda path: draw_alignment(place, _json(path), format),
        "sensitivity.json": lambda path: _draw_sensitivity(place, _json(path), format),
        SUMMARY: lambda path: [_draw_scores(run, read_summary(path), format)],
        "log.csv": lambda path: [_draw_training(place, format)],
    }
    for name, drawing in drawings.items():
        if name in run.digests:
            return drawing(place / name)
    raise InvalidTable(
        f"{folder} has no figures: name a folder of evaluate, compare, align, sensitivity or train"
    )


def _draw_sensitivity(place: Path, content: dict[str, object], format: str) -> list[Path]:
    # It loads torch, which evaluations of texts do without.
    from vlscore.evaluation.sensitivities.tables import draw_sensitivity

    return draw_sensitivity(place, content, format)


def _json(path: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _draw_scores(run: FinishedRun, summary: Summary, format: str) -> Path:
    """Draw how the first number of every metric is distributed over the studies."""
    source = run.folder / next(name for name in run.digests if name.startswith("scores."))
    table = pq.read_table(source) if source.suffix == ".parquet" else pyarrow.csv.read_csv(source)
    values, means = {}, {}
    for name, metric in summary.metrics.items():
        first = next(iter(metric.values.values()))
        title = f"{_printed(name, source)} {'↑' if first.higher_is_better else '↓'}"
        values[title] = [
            math.nan if value is None else float(value) for value in table[name].to_pylist()
        ]
        if first.mean is not None:
            means[title] = first.mean
    note = "Values of single studies; line and band: mean and its 95 % bootstrap interval."
    note = note_with_mark(note, (metric.signature for metric in summary.metrics.values()))
    path = run.folder / f"{DISTRIBUTIONS}.{format}"
    histograms(values, path, title="Scores", means=means, note=note)
    return path


def _printed(name: str, source: Path) -> str:
    """Return the name of a metric's first number as papers print it."""
    try:
        return metric_from_file(name, source).printed()
    except VLScoreError:
        # A user's own metric that is not registered here.
        return name


def _draw_training(folder: Path, format: str) -> Path:
    """Draw loss and retrieval by step."""
    log = _columns(folder / "log.csv")
    panels = {"Loss": {"training": (log["step"], log["loss"])}}
    if (folder / "validation.csv").is_file():
        checked = _columns(folder / "validation.csv")
        steps = checked["step"]
        panels["Loss"]["validation"] = (steps, checked["loss"])
        recalls = {name: (steps, values) for name, values in checked.items() if "R@" in name}
        panels["Validation: recall"] = {
            "mean recall": (steps, checked["mean recall"]),
            **dict(list(recalls.items())[:3]),
        }
    path = folder / f"{CURVES}.{format}"
    curves(panels, path, title="Training", label="step")
    return path


def _columns(path: Path) -> dict[str, list[float]]:
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {name: [float(row[name] or "nan") for row in rows] for name in (rows[0] if rows else ())}
