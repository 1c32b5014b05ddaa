"""Figures of a comparison, drawn from the files of its folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vlscore.evaluation.comparison.paper_table import Content, chosen_numbers, heading
from vlscore.stats import (
    DEMONSTRATION,
    FIGURE_FORMATS,
    average_ranks,
    dot_plots,
    interval_of,
    is_demonstration,
    rank_diagrams,
    scatter,
)

SYSTEMS, DIFFERENCES, RANKS, STUDIES = FIGURES = ("systems", "differences", "ranks", "studies")
FIGURE_FILES = tuple(f"{name}.{suffix}" for name in FIGURES for suffix in FIGURE_FORMATS)
_LEVEL = 0.05
_BARS = "bars: 95 % bootstrap intervals"

Values = Mapping[str, Mapping[str, NDArray[np.float64]]]


def draw_comparison(
    folder: Path, content: Content, format: str, columns: Sequence[str], values: str
) -> list[Path]:
    """Draw the numbers of a comparison, their differences, and the systems' ranks.

    With two systems, the studies too: the values of one against those of the other.

    Args:
        folder: of the comparison; the figures are written there.
        content: of comparison.json.
        format: "png", "svg" or "pdf".
        columns: numbers that are drawn; see `TableSettings.columns`.
        values: name of the file with the values of every study.

    Raises: MissingDependency where matplotlib is not installed; InvalidSetting for unknown columns.
    """
    shown = chosen_numbers(content["measured"], columns)
    paths = {name: folder / f"{name}.{format}" for name in FIGURES}
    mark = is_demonstration(content["signatures"].values())
    more = f" {DEMONSTRATION}" if mark else ""
    _draw_systems(content, shown, paths[SYSTEMS], more)
    drawn = [paths[SYSTEMS]]
    by_study = _values_of(folder / values, shown)
    if content["tested"]:
        _draw_differences(content, shown, paths[DIFFERENCES], more)
        drawn.append(paths[DIFFERENCES])
    if len(content["systems"]) > 1 and _draw_ranks(content, shown, by_study, paths[RANKS], more):
        drawn.append(paths[RANKS])
    if len(content["systems"]) == 2 and by_study:
        _draw_studies(content, shown, by_study, paths[STUDIES], more)
        drawn.append(paths[STUDIES])
    return drawn


def _draw_systems(content: Content, shown: Sequence[Content], path: Path, more: str) -> None:
    panels = {
        heading(each): {name: interval_of(each["values"][name]) for name in content["systems"]}
        for each in shown
    }
    n = {each["count"] for each in shown}
    count = f"n = {min(n)}" if len(n) == 1 else f"n = {min(n, default=0)} to {max(n, default=0)}"
    dot_plots(panels, path, title="Systems", note=f"{count} studies; {_BARS}.{more}")


def _draw_differences(content: Content, shown: Sequence[Content], path: Path, more: str) -> None:
    panels: dict[str, Any] = {}
    hollow: dict[str, list[str]] = {}
    for each in shown:
        title = heading(each)
        tests = [test for test in content["tested"] if test["name"] == each["name"]]
        panels[title] = {_pair(test): interval_of(test["difference"]) for test in tests}
        hollow[title] = [_pair(test) for test in tests if not _is_significant(test)]
    note = (
        f"First less second system; {_BARS}; hollow: not "
        "significant at 5 % (paired permutation test, p adjusted by Benjamini-Hochberg where the "
        f"number is a headline).{more}"
    )
    lines = {title: {"": 0.0} for title in panels}
    dot_plots(panels, path, title="Paired differences", lines=lines, note=note, hollow=hollow)


def _pair(test: Content) -> str:
    return f"{test['first']} − {test['second']}"


def _is_significant(test: Content) -> bool:
    p = test["p_value"] if test["adjusted"] is None else test["adjusted"]
    difference = interval_of(test["difference"])
    return p is not None and p < _LEVEL and not difference.low <= 0 <= difference.high


def _draw_ranks(
    content: Content, shown: Sequence[Content], by_study: Values, path: Path, more: str
) -> bool:
    """Draw the critical-difference diagrams; returns whether any number has values of studies."""
    panels = {}
    for each in shown:
        own = by_study.get(each["name"], {})
        names = [name for name in content["systems"] if np.isfinite(own.get(name, np.nan)).any()]
        if len(names) < 2:
            continue
        matrix = np.stack([own[name] for name in names], axis=1)
        matrix = matrix[np.isfinite(matrix).all(axis=1)]
        if not len(matrix):
            continue
        found = average_ranks(matrix, higher_is_better=each["higher_is_better"])
        groups = [[names[k] for k in group] for group in found.groups]
        ranks = dict(zip(names, found.ranks.tolist(), strict=True))
        panels[f"{heading(each)} (n = {len(matrix)})"] = ranks, found.critical, groups
    if not panels:
        return False
    note = (
        "Average ranks over studies, 1 is best; a bar joins systems that do not differ at 5 % by "
        "Nemenyi's test (Demšar 2006). Metrics of the whole corpus are ranked by their values for "
        f"single studies.{more}"
    )
    rank_diagrams(panels, path, title="Ranks of the systems", note=note)
    return True


def _draw_studies(
    content: Content, shown: Sequence[Content], by_study: Values, path: Path, more: str
) -> None:
    each = next(each for each in shown if each["name"] in by_study)
    first, second = content["systems"]
    own = by_study[each["name"]]
    scatter(
        own[first].tolist(),
        own[second].tolist(),
        path,
        title=heading(each),
        labels=(first, second),
        is_same_scale=True,
        note=f"One dot a study; on the dashed line both systems have the same value.{more}",
    )


def _values_of(path: Path, shown: Sequence[Content]) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return number -> system -> values of the studies; of a corpus value, those of its metric."""
    table = pq.read_table(path)
    systems = np.array(table["system"].to_pylist())
    found: dict[str, dict[str, NDArray[np.float64]]] = {}
    for each in shown:
        column = each["metric"] if each.get("of_corpus") else each["name"]
        if column in table.column_names:
            values = table[column].to_numpy().astype(np.float64)
            found[each["name"]] = {
                str(name): values[systems == name] for name in dict.fromkeys(systems.tolist())
            }
    return found
