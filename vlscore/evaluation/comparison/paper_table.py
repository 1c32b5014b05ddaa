"""The one table of a comparison: a primary number of each metric, the best marked, ties shown."""

import difflib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vlscore.core import with_noun
from vlscore.errors import InvalidSetting
from vlscore.evaluation.comparison.comparison_settings import TableSettings
from vlscore.metrics import Metric, Scorer, corpus_name, number_signature
from vlscore.stats import (
    Interval,
    TextTable,
    benjamini_hochberg,
    interval,
    interval_in,
    intervals_in,
    number,
    with_demonstration_note,
    without_rounding,
)

if TYPE_CHECKING:
    from vlscore.stats import Result

Record = Mapping[str, Any]
# Name of a number -> system -> its value.
Values = Mapping[str, Mapping[str, Interval]]

_ALL = "all"
_LEVEL = 0.05
_WIDTH = 80
_TIE, _UNTESTED = "†", "‡"


def numbers_in(result: "Result") -> list[Record]:
    """Return the facts of each number of a comparison: those of the frame "systems"."""
    found: list[Record] = result.frame("systems").drop_duplicates("metric").to_dict("records")
    return found


def heading_of(number: Record) -> str:
    """Return the name of a number as papers print it, with the direction."""
    return f"{number['title']} {'↑' if number['higher_is_better'] else '↓'}"


def with_preset_columns(settings: TableSettings, scorer: Scorer | None) -> TableSettings:
    """Return the settings with the columns of the scorer's presets, where none are named."""
    if settings.columns or scorer is None:
        return settings
    return replace(settings, columns=scorer.preset_columns)


def check_table(
    settings: TableSettings, metrics: Iterable[Metric], precomputed: Iterable[str]
) -> None:
    """Refuse a table that the comparison will not have, before anything is computed.

    Raises: InvalidSetting for an unknown column.
    """
    expected: list[Record] = [{"metric": n, "of": n, "primary": True} for n in precomputed]
    for metric in metrics:
        named = {name: k == 0 and not metric.primary for k, name in enumerate(metric.columns)}
        named |= {corpus_name(metric, c.name): c.name == metric.primary for c in metric.corpus}
        expected += [
            {"metric": name, "of": str(metric), "primary": is_it} for name, is_it in named.items()
        ]
    chosen_numbers(expected, settings.columns)


def chosen_numbers(numbers: Sequence[Record], columns: Sequence[str]) -> list[Record]:
    """Return the named numbers; default: the primary ones. Raises InvalidSetting."""
    primary = [each for each in numbers if each["primary"]]
    if not columns:
        return primary
    by_name = {each["metric"]: each for each in numbers}
    # A metric's name is that of its primary number, also where its first number has the same name.
    by_name |= {each["of"]: each for each in primary}
    # The mean of the first number, of a metric whose primary number is of the whole corpus.
    by_name |= {f"{each['metric']}.mean": each for each in numbers if each["metric"] == each["of"]}
    found: list[Record] = []
    for column in columns:
        if column == _ALL:
            found += numbers
        elif column in by_name:
            found.append(by_name[column])
        else:
            near = difflib.get_close_matches(column, by_name, 3, 0.5) or list(by_name)
            raise InvalidSetting(
                f"the comparison has no number {column!r}; it has {', '.join(near)}, ..."
            )
    return list({each["metric"]: each for each in found}.values())


def paper_table(result: "Result", settings: TableSettings | None = None) -> TextTable:
    """Return the table of a finished comparison: systems as rows where that fits 80 characters.

    Raises: InvalidSetting for a column that the comparison does not have.
    """
    settings = settings or TableSettings()
    shown = chosen_numbers(numbers_in(result), settings.columns)
    values = intervals_in(result.frame("systems"), "metric", "system", "value")
    signs, count = _signs(result, shown, values)
    caption = " ".join(_caption(result, shown, settings, count, set(signs.values())))
    table = _table(shown, values, signs, settings)

    def width(table: TextTable) -> int:
        return max(map(len, replace(table, best=()).text(10**6).splitlines()))

    if width(table) > _WIDTH:
        table = min(table, _turned(table), key=width)
    signatures = result.signatures
    notes = dict.fromkeys(
        number_signature(signatures[of], of, each["metric"])
        for each in shown
        if signatures.get(of := each["of"])
    )
    (marked,) = with_demonstration_note(
        [replace(table, caption=caption, notes=tuple(notes))], signatures.values()
    )
    return marked


def is_different(difference: Interval, p: float) -> bool:
    """Return whether the test and the interval both tell two systems apart."""
    return bool(p < _LEVEL and not difference.low <= 0 <= difference.high)


def _signs(
    result: "Result", shown: Sequence[Record], values: Values
) -> tuple[dict[tuple[str, str], str], int]:
    """Return (number, system) -> sign where no test tells the system from the best; count of tests.

    The best is the system of `against`, where the comparison has one. Two baselines are not tested
    against each other, and without a test nothing is known of a difference.
    """
    names = {each["metric"] for each in shown}
    tests = []
    if "differences" in result.frames:
        tests = result.frame("differences").to_dict("records")
    tests = [t for t in tests if t["metric"] in names and not math.isnan(t["p"])]
    adjusted = benjamini_hochberg([test["p"] for test in tests]).tolist()
    against = result.key.get("against")
    found: dict[tuple[str, str], str] = {}
    for each in shown:
        name = each["metric"]
        ranked, best = _ranked(each, values[name])
        to = against if against in ranked else ranked[0] if ranked else None
        # Equal values need no test.
        same = [to, *(best if to in best else ())]
        found |= {(name, system): _UNTESTED for system in ranked if tests and system not in same}
        for test, p in zip(tests, adjusted, strict=True):
            if test["metric"] == name and to in (test["first"], test["second"]):
                cell = name, test["second" if test["first"] == to else "first"]
                if cell in found:
                    difference = interval_in(test, "difference")
                    found[cell] = "" if is_different(difference, p) else _TIE
    return {cell: sign for cell, sign in found.items() if sign}, len(tests)


def _ranked(number: Record, values: Mapping[str, Interval]) -> tuple[list[str], list[str]]:
    """Return the systems that have a value, the best first; and those with the best value.

    Of a single system, none is the best.
    """
    sign = -1 if number["higher_is_better"] else 1
    known = {system: v.estimate for system, v in values.items() if not math.isnan(v.estimate)}
    ranked = sorted(known, key=lambda system: sign * known[system])
    own = without_rounding([known[system] for system in ranked])
    best = [system for system, value in zip(ranked, own, strict=True) if value == own[0]]
    return ranked, best if len(ranked) > 1 else []


def _table(
    shown: Sequence[Record],
    values: Values,
    signs: Mapping[tuple[str, str], str],
    settings: TableSettings,
) -> TextTable:
    """Return the table with one row a system."""
    names = [each["metric"] for each in shown]
    systems = [*values[names[0]]] if names else []
    cell = interval if settings.intervals else lambda value, digits: number(value.estimate, digits)
    rows = [(s, *(cell(values[name][s], settings.digits) for name in names)) for s in systems]
    marks = [("", *(signs.get((name, s), "") for name in names)) for s in systems]
    counts = [str(int(each["n"])) for each in shown]
    if len(set(counts)) > 1:
        rows.append(("n", *counts))
        marks.append(("",) * (len(names) + 1))
    best = [_ranked(each, values[each["metric"]])[1] for each in shown]
    bold = [(r, c) for r, s in enumerate(systems) for c, own in enumerate(best, 1) if s in own]
    return TextTable(
        "Systems",
        ("system", *map(heading_of, shown)),
        tuple(rows),
        best=tuple(bold),
        signs=tuple(marks) if signs else (),
        label="tab:systems",
    )


def _turned(table: TextTable) -> TextTable:
    """Return the table with one row a number."""
    (_, *heads), *rows = zip(table.columns, *table.rows, strict=True)
    signs = list(zip(*table.signs, strict=True))[1:]
    return replace(
        table,
        columns=("metric", *heads),
        rows=tuple(rows),
        best=tuple(sorted((column - 1, row + 1) for row, column in table.best)),
        signs=tuple(("", *each) for each in signs),
    )


def _caption(
    result: "Result",
    shown: Sequence[Record],
    settings: TableSettings,
    tests: int,
    signs: Collection[str],
) -> list[str]:
    counts = {int(each["n"]) for each in shown}
    n = f"n = {with_noun(next(iter(counts)), 'study')}" if len(counts) == 1 else "n studies"
    corpus = [each["title"] for each in shown if each["of_corpus"]]
    found = [f"Means over {n}; {', '.join(corpus)}: values of the whole corpus."]
    if not corpus:
        found = [f"Means over {n}."]
    elif len(corpus) == len(shown):
        found = [f"Values of the whole corpus of {n}."]
    if settings.intervals:
        found.append("In brackets: 95 % bootstrap intervals.")
    if tests:
        to = result.key.get("against") or "the best"
        found.append(
            f"{_TIE}: not significantly different from {to}: paired permutation tests at 5 %, p "
            f"adjusted (Benjamini-Hochberg) over {with_noun(tests, 'test')} of this table."
        )
        if _UNTESTED in signs:
            found.append(f"{_UNTESTED}: not tested against it, as two baselines never are.")
    return found
