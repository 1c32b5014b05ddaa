"""The tables of the sensitivity benchmark and of swapped images."""

import math
from collections.abc import Sequence

from rich.table import Table

from vlscore.meta import COMPARISONS, Sensitivity, SwapResult
from vlscore.meta.sensitivity import NORMAL_KIND, MetricResult
from vlscore.stats import Interval


def removal_table(result: Sensitivity) -> Table:
    """Table 2: means after removing an insignificant and a pathology's sentence, and their gap."""
    return _comparison_table(
        result,
        "Table 2",
        "Removed sentences: a pathology's against an insignificant one",
    )


def word_table(result: Sensitivity) -> Table:
    """Table 3: means after changing a location, a severity, and a word that says nothing."""
    return _comparison_table(
        result,
        "Table 3",
        "Changed words against [UNK] for a word that says nothing",
    )


def kinds_table(result: Sensitivity) -> Table:
    """Mean drop of every kind there is, one column a metric."""
    table = Table(title="Mean drop by kind (above 0 is worse)", title_justify="left")
    table.add_column("kind", no_wrap=True)
    table.add_column("pairs", justify="right")
    for metric in result.metrics:
        table.add_column(metric.name, justify="right")
    drops = {m.name: {kind.kind: kind for kind in m.kinds} for m in result.metrics}
    names = dict.fromkeys(kind.kind for metric in result.metrics for kind in metric.kinds)
    for name in names:
        found = [drops[metric.name].get(name) for metric in result.metrics]
        pairs = max(kind.pairs for kind in found if kind is not None)
        cells = [f"{kind.drop.estimate:.3f}" if kind else "-" for kind in found]
        table.add_row(name, str(pairs), *cells)
    return table


def normal_table(result: Sensitivity) -> Table:
    """Figure 2 in numbers: normal reports against the standard normal report."""
    table = Table(title="Standard normal report for a normal one", title_justify="left")
    table.add_column("metric", no_wrap=True)
    for name in ("pairs", "mean", "5 %", "median", "95 %"):
        table.add_column(name, justify="right")
    for metric in result.metrics:
        kind = next((kind for kind in metric.kinds if kind.kind == NORMAL_KIND), None)
        if kind is not None:
            low, middle, high = _quantiles(metric.normal)
            table.add_row(metric.name, str(kind.pairs), _shown(kind.value), low, middle, high)
    return table


def swap_table(results: Sequence[SwapResult]) -> Table:
    """Whether the image counts: right image against another study's and a black one."""
    table = Table(
        title="Does the image count? Right image against a wrong one",
        caption="shift: mean absolute change, in units of the metric's spread. prefers right: "
        "share of candidates that do better with the right image. rank agreement: tau_b of all "
        "candidates; within a study. detection: area under the ROC curve, significant against "
        "insignificant changes, right and wrong image.",
        title_justify="left",
        caption_justify="left",
    )
    table.add_column("metric", no_wrap=True)
    table.add_column("image", no_wrap=True)
    names = ("right", "wrong", "shift / sd", "prefers right", "rank agreement", "within study")
    for name in (*names, "detection", "p"):
        table.add_column(name, justify="right")
    for each in results:
        table.add_row(
            each.metric,
            each.image,
            _shown(each.right),
            _shown(each.wrong),
            _number(each.relative_shift),
            _shown(each.preference),
            _shown(each.rank_agreement),
            _shown(each.rank_agreement_within),
            f"{_estimate(each.detection_right)} / {_estimate(each.detection_wrong)}",
            _p_value(each.adjusted_p),
        )
    return table


def _comparison_table(result: Sensitivity, name: str, title: str) -> Table:
    table = Table(
        title=f"{name}. {title}",
        caption="Δ: difference of mean drops, 95 % bootstrap interval over studies. ratio: of mean "
        "drops. AUC: chance that the significant change drops further. p: Wilcoxon or Mann-Whitney "
        "(json says which), Benjamini-Hochberg.",
        title_justify="left",
        caption_justify="left",
    )
    comparisons = [each for each in COMPARISONS if each.table == name]
    table.add_column("metric", no_wrap=True)
    table.add_column("change", no_wrap=True)
    for column in ("mean", "control's mean", "Δ", "ratio", "AUC", "p"):
        table.add_column(column, justify="right")
    for metric in result.metrics:
        for comparison in comparisons:
            for contrast in metric.contrasts:
                if contrast.comparison == comparison:
                    table.add_row(
                        metric.name,
                        comparison.significant,
                        _shown(_value(metric, comparison.significant)),
                        _shown(_value(metric, comparison.control)),
                        _shown(contrast.delta),
                        _number(contrast.ratio),
                        _number(contrast.auc),
                        _p_value(contrast.adjusted_p),
                    )
    return table


def _value(metric: MetricResult, kind: str) -> Interval | None:
    return next((each.value for each in metric.kinds if each.kind == kind), None)


def _quantiles(values: Sequence[float]) -> list[str]:
    ordered = sorted(values)
    last = len(ordered) - 1
    return [_number(ordered[round(share * last)]) for share in (0.05, 0.5, 0.95)]


def _shown(value: Interval | None) -> str:
    if value is None:
        return "-"
    if math.isnan(value.low):
        return f"{value.estimate:.3f}"
    return f"{value.estimate:.3f} [{value.low:.3f}, {value.high:.3f}]"


def _estimate(value: Interval | None) -> str:
    return "-" if value is None else f"{value.estimate:.3f}"


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"


def _p_value(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
