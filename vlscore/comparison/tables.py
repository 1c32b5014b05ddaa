"""A comparison as tables: to read and to paste, and with all digits for programs."""

import math
from collections.abc import Sequence

from vlscore.comparison.result import Comparison
from vlscore.display import TextTable, interval, number, p_value
from vlscore.stats import Interval

_DIGITS = 4


def systems_table(result: Comparison) -> TextTable:
    """One row a system, one column a number, with intervals; n stands below."""
    columns = [
        each.name + ("" if each.higher_is_better else " (lower is better)")
        for each in result.measured
    ]
    rows = [
        (name, *(interval(each.values[name], _DIGITS) for each in result.measured))
        for name in result.systems
    ]
    rows.append(("n", *(str(each.count) for each in result.measured)))
    return TextTable(
        "Systems",
        ("system", *columns),
        tuple(rows),
        "Means over the n studies for which every system has a value, and values of the whole "
        "corpus where the column says so, with 95 % bootstrap intervals over studies.",
    )


def differences_tables(result: Comparison) -> list[TextTable]:
    """Every two systems, a table a number."""
    caption = (
        "Means and corpus values of the first system less those of the second, over the same n "
        "studies: 95 % intervals by the paired bootstrap, p by the two-sided paired permutation "
        f"test, adjusted by Benjamini and Hochberg over all {len(result.tested)} tests."
    )
    names = dict.fromkeys(test.name for test in result.tested)
    return [
        TextTable(
            f"Differences in {name}",
            ("systems", "difference", "p", "adjusted p", "n"),
            tuple(
                (
                    f"{test.first} - {test.second}",
                    interval(test.difference, _DIGITS),
                    p_value(test.p_value),
                    p_value(test.adjusted),
                    str(test.count),
                )
                for test in result.tested
                if test.name == name
            ),
            caption,
        )
        for name in names
    ]


def texts_table(result: Comparison) -> TextTable:
    """What the candidates are like as texts."""
    has_encoder = any(facts.truncated is not None for facts in result.texts.values())
    lacking = any(result.failed.values())
    rows = []
    for name, facts in result.texts.items():
        cells = [
            name,
            number(facts.mean_words, 1),
            *(number(share) for share in (facts.distinct, facts.verbatim, facts.unfinished)),
        ]
        if has_encoder:
            cells.append(number(facts.truncated))
        cells.append(str(facts.empty))
        if lacking:
            failed = result.failed[name].items()
            cells.append(", ".join(f"{metric} {count}" for metric, count in failed) or "0")
        rows.append((*cells, str(facts.count)))
    columns = ["system", "mean words", "distinct", "verbatim", "unfinished"]
    columns += ["truncated"] * has_encoder + ["empty"] + ["without a value"] * lacking + ["n"]
    caption = (
        "Shares of the candidates: different ones; equal to some reference of the table or report "
        "of the training table; not ending a sentence"
    )
    caption += "; cut by the encoder." if has_encoder else "."
    return TextTable("Candidates as texts", tuple(columns), tuple(rows), caption)


def all_tables(result: Comparison) -> list[TextTable]:
    """Those that are printed; without differences where there is one system alone."""
    return [systems_table(result), texts_table(result), *differences_tables(result)]


def systems_rows(result: Comparison) -> TextTable:
    """One row a system and number, with all digits."""
    rows = [
        (
            name,
            each.name,
            *_exact(each.values[name]),
            str(each.count),
            "higher" if each.higher_is_better else "lower",
        )
        for each in result.measured
        for name in result.systems
    ]
    return TextTable("", ("system", "metric", "value", "low", "high", "n", "better"), tuple(rows))


def differences_rows(result: Comparison) -> TextTable:
    """One row a test, with all digits."""
    rows = [
        (
            test.name,
            test.first,
            test.second,
            *_exact(test.difference),
            _digits(test.p_value),
            _digits(test.adjusted),
            str(test.count),
        )
        for test in result.tested
    ]
    columns = ("metric", "first", "second", "difference", "low", "high", "p", "adjusted_p", "n")
    return TextTable("", columns, tuple(rows))


def _exact(value: Interval) -> Sequence[str]:
    return [_digits(each) for each in (value.estimate, value.low, value.high)]


def _digits(value: float) -> str:
    return repr(value) if math.isfinite(value) else ""
