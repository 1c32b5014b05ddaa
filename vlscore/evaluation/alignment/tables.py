"""The tables of an alignment, as they are printed and pasted."""

import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vlscore.core import flat, plain, record_cells
from vlscore.evaluation.alignment.agreement import Alignment, MetricAgreement
from vlscore.evaluation.alignment.fitted import CompositeFit
from vlscore.evaluation.command_settings import IN_SAMPLE
from vlscore.stats import (
    Interval,
    TextTable,
    dot_plots,
    interval,
    interval_of,
    note_with_mark,
    number,
    p_value,
    scatter,
)

_HEADLINES = 2
AGREEMENT_CAPTION = (
    "Larger is more agreement with the mean of the raters. 95 % bootstrap intervals over studies. "
    "Those of tau_b over pairs, as papers publish it, are too narrow where a study has several "
    "candidates. n: pairs with a value and a rating."
)
_DIFFERENCES = (
    "tau_b of the first metric less that of the other, on the n pairs that both have; 95 % "
    "bootstrap interval over studies. p: two-sided, adjusted over all pairs of metrics "
    "(Benjamini-Hochberg). differences.csv has every pair of metrics."
)
_RATERS = (
    "tau_b with each rater alone, 95 % bootstrap interval over studies, n pairs behind it. "
    "Compare it with the raters' tau_b with each other."
)
_CEILINGS = (
    "tau_b of raters. between two: mean over all pairs of raters. one against the others: mean "
    "over raters of one against the mean of the others. ties: the largest tau_b with the raters' "
    "mean that values without ties can have. n: pairs that two raters rated."
)
_RANKINGS = (
    "One comparison is one rater's order of two candidates of one study. same: better, worse or "
    "equal for both. right: of the n decided comparisons, where the rater prefers one; a tie of "
    "the metric counts one half. 95 % bootstrap intervals over studies."
)


def all_tables(found: Alignment, note: str = "") -> list[TextTable]:
    """Return every table that has rows.

    Args: note: on metrics without a value for some pairs, for captions.
    """
    ratings = list(dict.fromkeys(each.rating for each in found.agreements))
    ranked = list(dict.fromkeys(each.rating for each in found.rankings))
    first = list(found.headlines) or (ratings or ranked)[:_HEADLINES]
    rated = [rating for rating in first if rating in ratings]
    tables = [
        *(_noted(agreement_table(found, rating), note) for rating in rated),
        further_table(found, [rating for rating in ratings if rating not in first]),
        *(difference_table(found, rating) for rating in rated),
        *(rater_table(found, rating) for rating in rated),
        ceiling_table(found),
        *(
            _noted(ranking_table(found, rating), "" if rated else note)
            for rating in first
            if rating in ranked
        ),
    ]
    return [table for table in tables if table.rows]


def _noted(table: TextTable, note: str) -> TextTable:
    return replace(table, caption=f"{table.caption} {note}") if note else table


def agreement_table(found: Alignment, rating: str) -> TextTable:
    """Return all correlations of every metric with the raters' mean of one rating."""
    rows = (
        {
            "metric": each.metric,
            "n": str(each.n),
            "studies": str(each.studies),
            "tau_b": interval(each.by_study["tau_b"]),
            "tau_c": interval(each.by_study["tau_c"]),
            "Spearman": interval(each.by_study["spearman"]),
            "Pearson": interval(each.by_study["pearson"]),
            "tau_b by pair": interval(each.by_pair["tau_b"]),
        }
        for each in _sorted(found, rating)
    )
    return TextTable.of(f"Agreement with raters: {rating}", rows, AGREEMENT_CAPTION)


def further_table(found: Alignment, ratings: Sequence[str]) -> TextTable:
    """Return tau_b of every metric with the further ratings, as single categories of errors."""
    known = {(each.metric, each.rating): each for each in found.agreements}
    rows = []
    for metric in found.metrics if ratings else ():
        own = {rating: known[metric.name, rating] for rating in ratings}
        cells = {name: f"{interval(e.by_study['tau_b'])} ({e.n})" for name, e in own.items()}
        rows.append({"metric": metric.name, **cells})
    caption = "95 % bootstrap intervals over studies; n in parentheses."
    return TextTable.of("tau_b with the raters' mean of further ratings", rows, caption)


def difference_table(found: Alignment, rating: str) -> TextTable:
    """Return the differences between the metric that agrees best and each other one."""
    order = [each.metric for each in _sorted(found, rating)]
    rows = []
    for each in found.differences:
        if each.rating != rating or order[0] not in (each.metric, each.other):
            continue
        turned = each.other == order[0]
        difference = each.difference
        if turned:
            difference = Interval(-difference.estimate, -difference.high, -difference.low)
        other = each.metric if turned else each.other
        rows.append((order[0], other, str(each.n), interval(difference), p_value(each.adjusted_p)))
    rows.sort(key=lambda row: order.index(row[1]))
    columns = ("metric", "other", "n", "difference of tau_b", "p")
    return TextTable(f"Differences between metrics: {rating}", columns, tuple(rows), _DIFFERENCES)


def rater_table(found: Alignment, rating: str) -> TextTable:
    """Return tau_b of every metric with every rater, and the mean of these."""
    mine = [each for each in found.per_rater if each.rating == rating]
    raters = list(dict.fromkeys(each.rater for each in mine))
    rows = []
    for metric in dict.fromkeys(each.metric for each in mine):
        own = [each for each in mine if each.metric == metric]
        taus = [e.tau_b.estimate for e in own if not math.isnan(e.tau_b.estimate)]
        mean = number(sum(taus) / len(taus)) if taus else number(None)
        rows.append((metric, mean, *(f"{interval(e.tau_b)} ({e.n})" for e in own)))
    columns = ("metric", "mean of raters", *(f"rater {name} (n)" for name in raters))
    return TextTable(f"Agreement with single raters: {rating}", columns, tuple(rows), _RATERS)


def ceiling_table(found: Alignment) -> TextTable:
    """Return the agreement of the raters with each other."""
    rows = (
        {
            "rating": each.rating,
            "raters": str(each.raters),
            "n": str(each.n),
            "between two": interval(each.between),
            "one against the others": interval(each.against_others),
            "ties": number(each.ties),
        }
        for each in found.ceilings
    )
    return TextTable.of("The raters' own agreement", rows, _CEILINGS)


def ranking_table(found: Alignment, rating: str) -> TextTable:
    """Return how often metrics order two candidates of a study as the raters do."""
    rows = (
        {
            "metric": each.metric,
            "n": str(each.comparisons),
            "studies": str(each.studies),
            "same": interval(each.same),
            "right": interval(each.right),
            "n decided": str(each.decided),
            "rater ties": number(each.rater_ties),
            "metric ties": number(each.metric_ties),
        }
        for each in found.rankings
        if each.rating == rating
    )
    return TextTable.of(f"Ranking two candidates of a study: {rating}", rows, _RANKINGS)


def composite_table(fit: CompositeFit) -> TextTable:
    """Return the inputs of a composite, and its agreement with the raters."""
    composite = fit.composite
    count = str(composite.pairs)
    rows = [
        (each.metric, number(each.weight), interval(fit.alone[each.metric]), count)
        for each in sorted(composite.inputs, key=lambda each: -each.weight)
    ]
    rows.append(("composite, cross-validated", "", interval(fit.cross_validated), count))
    rows.append((f"composite ({IN_SAMPLE})", "", interval(fit.told), count))
    caption = (
        f"tau_b with the raters' mean on the {composite.pairs} pairs of {composite.studies} "
        "studies that have all values, 95 % bootstrap intervals over studies. Cross-validated: for "
        "studies left out, by composites that were fitted to the others."
    )
    title = f"A composite fitted to {composite.rating}"
    return TextTable(title, ("metric", "weight", "tau_b", "n"), tuple(rows), caption)


#: Names of the figures, without suffix.
FIGURES = ("agreement", "pairs")


def draw_alignment(folder: Path, content: Mapping[str, Any], format: str) -> list[Path]:
    """Draw the figures of an alignment into its folder, and return their paths.

    Args: content: of alignment.json.
    Raises: MissingDependency where matplotlib is not installed.
    """
    agreement, pairs = (folder / f"{name}.{format}" for name in FIGURES)
    draw(content, agreement)
    draw_scatter(content, folder / "values.csv", pairs)
    return [path for path in (agreement, pairs) if path.is_file()]


def draw(content: Mapping[str, Any], path: Path) -> None:
    """Draw tau_b of every metric, a panel a rating.

    Dashed lines are what raters reach themselves, and what values without ties can reach.

    Args: content: of alignment.json.
    Raises: MissingDependency where matplotlib is not installed.
    """
    panels: dict[str, dict[str, Interval]] = {}
    lines: dict[str, dict[str, float]] = {}
    for rating in dict.fromkeys(each["rating"] for each in content["agreements"]):
        mine = [each for each in content["agreements"] if each["rating"] == rating]
        taus = {each["metric"]: interval_of(each["by_study"]["tau_b"]) for each in mine}
        title = f"{rating} (n = {max(each['n'] for each in mine)})"
        panels[title] = dict(sorted(taus.items(), key=lambda row: _place(row[1].estimate)))
        for ceiling in content["ceilings"]:
            if ceiling["rating"] == rating:
                ties = ceiling["ties"]
                lines[title] = {
                    "one rater against the others": interval_of(ceiling["against_others"]).estimate,
                    "ceiling by ties": math.nan if ties is None else ties,
                }
    note = "tau_b with the raters' mean; bars: 95 % bootstrap intervals over studies."
    note = note_with_mark(note, (metric["signature"] for metric in content["metrics"]))
    dot_plots(panels, path, title="Agreement with raters", lines=lines, note=note)


def draw_scatter(content: Mapping[str, Any], values: Path, path: Path) -> None:
    """Draw the metric that agrees best with the raters against their mean: one dot a pair.

    Args:
        content: of alignment.json.
        values: path of values.csv.
    Raises: MissingDependency where matplotlib is not installed.
    """
    first = next(iter(each["rating"] for each in content["agreements"]), None)
    mine = [each for each in content["agreements"] if each["rating"] == first]
    mine.sort(key=lambda each: _place(interval_of(each["by_study"]["tau_b"]).estimate))
    if not mine:
        return
    name, tau = mine[0]["metric"], interval_of(mine[0]["by_study"]["tau_b"])
    with values.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    x, y = ([float(row[c] or "nan") for row in rows] for c in (name, f"mean {first}"))
    note = f"One dot a pair of candidate and reference; tau_b {interval(tau)}."
    note = note_with_mark(note, (metric["signature"] for metric in content["metrics"]))
    labels = (name, f"raters' mean: {first}")
    scatter(x, y, path, title="Metric and raters", labels=labels, note=note)


def write_csv(path: Path, records: Iterable[Any]) -> None:
    """Write dataclasses as rows, with columns as `frame` names them; what is undefined is empty."""
    rows = [flat(plain(record)) for record in records]
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names, restval="")
        writer.writeheader()
        writer.writerows(map(record_cells, rows))


def _sorted(found: Alignment, rating: str) -> list[MetricAgreement]:
    """Return the metrics that agree best first; those without a tau_b last."""
    mine = [each for each in found.agreements if each.rating == rating]
    return sorted(mine, key=lambda each: _place(each.by_study["tau_b"].estimate))


def _place(tau: float) -> float:
    return math.inf if math.isnan(tau) else -tau
