"""The one table of a comparison: a primary number of each metric, the best marked, ties shown."""

import difflib
import math
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from vlscore.core import with_noun
from vlscore.errors import InvalidSetting
from vlscore.evaluation.comparison.comparison_settings import TableSettings
from vlscore.evaluation.comparison.statistics import sign_of
from vlscore.metrics import Scorer, number_signature
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
# Text, whether it is the best of its number, and the sign behind it.
Cell = tuple[str, bool, str]

_ALL = "all"
_LEVEL = 0.05
_WIDTH = 80
_TIE, _UNTESTED = "†", "‡"
_DIRECTIONS = ("", "↑", "↓")


def numbers_in(result: "Result") -> list[Record]:
    """Return the facts of each number of a comparison: those of the frame "systems"."""
    found: list[Record] = result.frame("systems").drop_duplicates("metric").to_dict("records")
    return found


def heading_of(number: Record) -> str:
    """Return the name of a number as papers print it, with the direction if it has one."""
    return f"{number['title']} {_DIRECTIONS[sign_of(number)]}".rstrip()


def with_preset_columns(settings: TableSettings, scorer: Scorer | None) -> TableSettings:
    """Return the settings with the columns of the scorer's presets, where none are named."""
    if settings.columns or scorer is None:
        return settings
    return replace(settings, columns=scorer.preset_columns)


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
    tests = _tests(result, [each["metric"] for each in shown])
    against = result.key.get("against")
    frame = result.frame("systems")
    values = intervals_in(frame, "metric", "system", "value")
    shows = interval if settings.intervals else lambda value, digits: number(value.estimate, digits)
    columns = [list(map(_cell, ("system", *frame["system"].unique())))]
    used: set[str] = set()
    for each in shown:
        own = values[each["metric"]]
        best, signs = _marks(each, own, tests, against)
        used |= set(signs.values())
        cells = (
            _cell(shows(value, settings.digits), name in best, signs.get(name, ""))
            for name, value in own.items()
        )
        columns.append([_cell(heading_of(each)), *cells])
    counts = [str(int(each["n"])) for each in shown]
    if len(set(counts)) > 1:
        for column, count in zip(columns, ("n", *counts), strict=True):
            column.append(_cell(count))
    table = _table(list(zip(*columns, strict=True)))

    def width(table: TextTable) -> int:
        return max(map(len, replace(table, best=()).text(10**6).splitlines()))

    if width(table) > _WIDTH:
        columns[0][0] = _cell("metric")
        table = min(table, _table(columns), key=width)
    signatures = result.signatures
    notes = dict.fromkeys(
        number_signature(signatures[of], of, each["metric"])
        for each in shown
        if signatures.get(of := each["of"])
    )
    caption = " ".join(_caption(shown, settings, len(tests), against, used))
    (marked,) = with_demonstration_note(
        [replace(table, caption=caption, notes=tuple(notes))], signatures.values()
    )
    return marked


def _cell(text: str, is_best: bool = False, sign: str = "") -> Cell:
    return text, is_best, sign


def _table(lines: Sequence[Sequence[Cell]]) -> TextTable:
    """Return the table of lines, of which the first has the headings."""
    columns, *rows = (tuple(text for text, _, _ in line) for line in lines)
    signs = tuple(tuple(sign for *_, sign in line) for line in lines[1:])
    return TextTable(
        "Systems",
        columns,
        tuple(rows),
        best=tuple(
            (r, c)
            for r, line in enumerate(lines[1:])
            for c, (_, is_best, _) in enumerate(line)
            if is_best
        ),
        signs=signs if any(map(any, signs)) else (),
        label="tab:systems",
    )


def is_different(difference: Interval, p: float) -> bool:
    """Return whether the test and the interval both tell two systems apart."""
    return bool(p < _LEVEL and not difference.low <= 0 <= difference.high)


def _tests(result: "Result", names: Collection[str]) -> list[Record]:
    """Return the tests of some numbers that have a p value, which are adjusted over these."""
    if "differences" not in result.frames:
        return []
    tests = result.frame("differences")
    tests = tests[tests["metric"].isin(names) & tests["p"].notna()]
    found: list[Record] = tests.assign(p=benjamini_hochberg(tests["p"])).to_dict("records")
    return found


def _marks(
    number: Record, values: Mapping[str, Interval], tests: Sequence[Record], against: str | None
) -> tuple[list[str], dict[str, str]]:
    """Return the systems with the best value of a number; and signs of those that may equal it.

    The signs are those of systems that no test tells from the best one, or from that of `against`,
    where the comparison has one. Two baselines are not tested against each other, and without a
    test nothing is known of a difference. Of a number without a direction, none is the best.
    """
    if not (order := -sign_of(number)):
        return [], {}
    known = {system: v.estimate for system, v in values.items() if not math.isnan(v.estimate)}
    ranked = sorted(known, key=lambda system: order * known[system])
    own = without_rounding([known[system] for system in ranked])
    best = [system for system, value in zip(ranked, own, strict=True) if value == own[0]]
    to = against if against in ranked else ranked[0] if ranked else None
    # Equal values need no test.
    same = [to, *(best if to in best else ())]
    signs = {system: _UNTESTED for system in ranked if tests and system not in same}
    for test in tests:
        if test["metric"] == number["metric"] and to in (test["first"], test["second"]):
            other = test["second" if test["first"] == to else "first"]
            if other in signs:
                is_apart = is_different(interval_in(test, "difference"), test["p"])
                signs[other] = "" if is_apart else _TIE
    # Of systems that are all equal, as of a single one, none is the best.
    return best if len(best) < len(ranked) else [], signs


def _caption(
    shown: Sequence[Record],
    settings: TableSettings,
    tests: int,
    against: str | None,
    signs: Set[str],
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
    # Signs are of tested systems: an empty one of a system that is significantly different.
    if signs & {_TIE, ""}:
        best = against or "the best"
        meaning = f"{_TIE}: not significantly different from {best}"
        if _TIE not in signs:
            meaning = f"The others are significantly different from {best}"
        found.append(
            f"{meaning}. Significant: p < 0.05 in paired permutation tests, adjusted "
            f"(Benjamini-Hochberg) over {with_noun(tests, 'test')} of this table, and a 95 % "
            "interval of the difference without 0."
        )
        if _UNTESTED in signs:
            found.append(f"{_UNTESTED}: not tested against it, as two baselines never are.")
    return found
