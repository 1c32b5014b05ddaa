"""Figures of a comparison, drawn from the files of its folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.evaluation.comparison.paper_table import SystemsNumber, chosen_numbers, numbers_in
from vlscore.stats import DEMONSTRATION, dot_plots, interval_in, is_demonstration, scatter

if TYPE_CHECKING:
    from vlscore.stats import Result

VALUES = "values.parquet"
_LEVEL = 0.05
_BARS = "bars: 95 % bootstrap intervals"


def draw_comparison(result: "Result", format: str, columns: Sequence[str] = ()) -> list[Path]:
    """Draw the numbers of a comparison and their differences, and return the paths.

    With two systems, the studies too: the values of one against those of the other.

    Args:
        format: "png", "svg" or "pdf".
        columns: numbers that are drawn; see `TableSettings.columns`.

    Raises: MissingDependency where matplotlib is not installed; InvalidSetting for unknown columns.
    """
    shown = chosen_numbers(numbers_in(result), columns)
    more = f" {DEMONSTRATION}" if is_demonstration(result.signatures.values()) else ""
    paths = [result.folder / f"systems.{format}"]
    counts = [int(each.record["n"]) for each in shown]
    n = f"n = {counts[0]}" if len(set(counts)) == 1 else f"n = {min(counts)} to {max(counts)}"
    panels = {each.heading: dict(each.values) for each in shown}
    dot_plots(panels, paths[0], title="Systems", note=f"{n} studies; {_BARS}.{more}")
    if result.content["frames"].get("differences"):
        paths.append(result.folder / f"differences.{format}")
        _draw_differences(result, shown, paths[-1], more)
    if len(shown[0].values) == 2:
        paths.append(result.folder / f"studies.{format}")
        _draw_studies(result, shown[0], paths[-1], more)
    return paths


def _draw_differences(
    result: "Result", shown: Sequence[SystemsNumber], path: Path, more: str
) -> None:
    tests = result.frame("differences").to_dict("records")
    panels: dict[str, Any] = {}
    hollow: dict[str, list[str]] = {}
    for each in shown:
        own = {f"{t['first']} − {t['second']}": t for t in tests if t["metric"] == each.name}
        panels[each.heading] = {pair: interval_in(t, "difference") for pair, t in own.items()}
        hollow[each.heading] = [pair for pair, t in own.items() if not _is_significant(t)]
    note = (
        f"First less second system; {_BARS}; hollow: not "
        "significant at 5 % (paired permutation test, p adjusted by Benjamini-Hochberg where the "
        f"number is a metric's primary one).{more}"
    )
    lines = {title: {"": 0.0} for title in panels}
    dot_plots(panels, path, title="Paired differences", lines=lines, note=note, hollow=hollow)


def _is_significant(test: dict[Any, Any]) -> bool:
    p = test["p"] if test["adjusted_p"] != test["adjusted_p"] else test["adjusted_p"]
    difference = interval_in(test, "difference")
    return bool(p < _LEVEL and not difference.low <= 0 <= difference.high)


def _draw_studies(result: "Result", each: SystemsNumber, path: Path, more: str) -> None:
    values = result.rows(VALUES)
    first, second = each.values
    # Values of the whole corpus have none of single studies: those of the metric are drawn.
    column = each.of if each.record["of_corpus"] else each.name
    x, y = (values.loc[values["system"] == name, column].tolist() for name in (first, second))
    scatter(
        x,
        y,
        path,
        title=each.heading,
        labels=(first, second),
        is_same_scale=True,
        note=f"One dot a study; on the dashed line both systems have the same value.{more}",
    )
