"""Figures of a comparison, drawn from the files of its folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vlscore.evaluation.comparison.paper_table import (
    chosen_numbers,
    heading_of,
    is_different,
    numbers_in,
)
from vlscore.stats import DEMONSTRATION, dot_plots, intervals_in, is_demonstration, scatter

if TYPE_CHECKING:
    from vlscore.stats import Result

VALUES = "values.parquet"
_BARS = "bars: 95 % bootstrap intervals"


def draw_comparison(result: "Result", format: str, columns: Sequence[str] = ()) -> list[Path]:
    """Draw the numbers of a comparison and their differences, and return the paths.

    With two systems, the studies too: the values of one against those of the other.

    Args:
        format: "png", "svg" or "pdf".
        columns: numbers that are drawn; see `TableSettings.columns`.

    Raises: MissingDependency where matplotlib is not installed; InvalidSetting for unknown columns.
    """
    shown = {heading_of(each): each for each in chosen_numbers(numbers_in(result), columns)}
    values = intervals_in(result.frame("systems"), "metric", "system", "value")
    more = f" {DEMONSTRATION}" if is_demonstration(result.signatures.values()) else ""
    paths = [result.folder / f"systems.{format}"]
    counts = sorted({int(each["n"]) for each in shown.values()})
    n = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    panels = {heading: values[own["metric"]] for heading, own in shown.items()}
    systems = [*next(iter(panels.values()))]
    dot_plots(panels, paths[0], title="Systems", note=f"n = {n} studies; {_BARS}.{more}")
    if "differences" in result.frames:
        paths.append(result.folder / f"differences.{format}")
        tests = result.frame("differences")
        # Only tests of primary numbers are adjusted.
        tests = tests.assign(
            pair=tests["first"] + " − " + tests["second"], p=tests["adjusted_p"].fillna(tests["p"])
        )
        differences = intervals_in(tests, "metric", "pair", "difference")
        panels = {heading: differences.get(own["metric"], {}) for heading, own in shown.items()}
        hollow = {
            heading: [
                pair
                for pair, p in tests[tests["metric"] == own["metric"]][["pair", "p"]].to_numpy()
                if not is_different(panels[heading][pair], p)
            ]
            for heading, own in shown.items()
        }
        note = (
            f"First minus second system; {_BARS}; hollow: not "
            "significant at 5 % (paired permutation test, p adjusted by Benjamini-Hochberg where "
            f"the number is a metric's primary one).{more}"
        )
        lines = {title: {"": 0.0} for title in panels}
        title = "Paired differences"
        dot_plots(panels, paths[-1], title=title, lines=lines, note=note, hollow=hollow)
    if len(systems) == 2:
        paths.append(result.folder / f"studies.{format}")
        rows, (title, first) = result.rows(VALUES), next(iter(shown.items()))
        # Values of the whole corpus have none of single studies: those of the metric are drawn.
        column = first["of" if first["of_corpus"] else "metric"]
        x, y = (rows.loc[rows["system"] == name, column].tolist() for name in systems)
        scatter(
            x,
            y,
            paths[-1],
            title=title,
            labels=(systems[0], systems[1]),
            is_same_scale=True,
            note=f"One dot a study; on the dashed line both systems have the same value.{more}",
        )
    return paths
