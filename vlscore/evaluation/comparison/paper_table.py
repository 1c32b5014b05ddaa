"""The one table of a comparison: a primary number of each metric, the best marked, ties shown."""

import difflib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vlscore.core import counted
from vlscore.errors import InvalidSetting
from vlscore.evaluation.command_settings import TableSettings
from vlscore.metrics import Metric, corpus_name, number_signature
from vlscore.stats import (
    TextTable,
    benjamini_hochberg,
    bounds,
    interval_in,
    number,
    with_mark,
)

if TYPE_CHECKING:
    from vlscore.stats import Interval, Result

_ALL = "all"
_LEVEL = 0.05
_WIDTH = 80
_TIE, _UNTESTED = "†", "‡"


@dataclass(frozen=True)
class SystemsNumber:
    """One number of all systems, as the table shows it.

    Attributes:
        name: of the number, as in "bleu-4 corpus".
        of: name of the metric.
        primary: whether it is the metric's primary number.
        record: further facts, as in the frame "systems".
        values: system -> value.
    """

    name: str
    of: str
    primary: bool
    record: Mapping[str, Any]
    values: Mapping[str, "Interval"]

    @property
    def heading(self) -> str:
        """Return its name as papers print it, with the direction."""
        return f"{self.record['title']} {'↑' if self.record['higher_is_better'] else '↓'}"

    def ranked(self) -> list[str]:
        """Return the systems that have a value, the best first."""
        sign = -1 if self.record["higher_is_better"] else 1
        values = {name: value.estimate for name, value in self.values.items()}
        found = [name for name in values if not math.isnan(values[name])]
        return sorted(found, key=lambda name: sign * values[name])


def numbers_in(result: "Result") -> list[SystemsNumber]:
    """Return the numbers of a finished comparison."""
    found: dict[str, dict[str, Interval]] = {}
    records = result.frame("systems").to_dict("records")
    for record in records:
        found.setdefault(record["metric"], {})[record["system"]] = interval_in(record, "value")
    first = {record["metric"]: record for record in reversed(records)}
    return [
        SystemsNumber(name, first[name]["of"], bool(first[name]["primary"]), first[name], values)
        for name, values in found.items()
    ]


def check_table(
    settings: TableSettings, metrics: Iterable[Metric], precomputed: Iterable[str]
) -> None:
    """Refuse a table that the comparison will not have, before anything is computed.

    Raises: InvalidSetting for an unknown column.
    """
    expected = [SystemsNumber(name, name, True, {}, {}) for name in precomputed]
    for metric in metrics:
        named = {name: k == 0 and not metric.primary for k, name in enumerate(metric.columns)}
        named |= {corpus_name(metric, c.name): c.name == metric.primary for c in metric.corpus}
        expected += [
            SystemsNumber(name, str(metric), is_it, {}, {}) for name, is_it in named.items()
        ]
    chosen_numbers(expected, settings.columns)


def chosen_numbers(numbers: Sequence[SystemsNumber], columns: Sequence[str]) -> list[SystemsNumber]:
    """Return the named numbers; default: the primary ones. Raises InvalidSetting."""
    primary = [each for each in numbers if each.primary]
    if not columns:
        return primary
    by_name = {each.name: each for each in numbers}
    # A metric's name is that of its primary number, also where its first number has the same name.
    by_name |= {each.of: each for each in primary}
    # The mean of the first number, of a metric whose primary number is of the whole corpus.
    by_name |= {f"{each.name}.mean": each for each in numbers if each.name == each.of}
    found: list[SystemsNumber] = []
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
    return list({each.name: each for each in found}.values())


def paper_table(result: "Result", settings: TableSettings | None = None) -> TextTable:
    """Return the table of a finished comparison: systems as rows where that fits 80 characters.

    Raises: InvalidSetting for a column that the comparison does not have.
    """
    settings = settings or TableSettings()
    shown = chosen_numbers(numbers_in(result), settings.columns)
    signs, count = _signs(result, shown)
    ways = [_table(result, shown, signs, count, settings, by_system=way) for way in (True, False)]
    table = next((way for way in ways if _width(way) <= _WIDTH), min(ways, key=_width))
    signatures = result.signatures
    notes = tuple(
        dict.fromkeys(
            number_signature(signatures[each.of], each.of, each.name)
            for each in shown
            if signatures.get(each.of)
        )
    )
    (marked,) = with_mark([replace(table, notes=notes)], result.signatures.values())
    return marked


def _signs(
    result: "Result", shown: Collection[SystemsNumber]
) -> tuple[dict[tuple[str, str], str], int]:
    """Return (number, system) -> sign where no test tells the system from the best; count of tests.

    The best is the system of `against`, where the comparison has one. Two baselines are not tested
    against each other, and without a test nothing is known of a difference.
    """
    names = {each.name for each in shown}
    frames = result.content["frames"]
    tests = result.frame("differences").to_dict("records") if frames.get("differences") else []
    tests = [t for t in tests if t["metric"] in names and not math.isnan(t["p"])]
    adjusted = benjamini_hochberg([test["p"] for test in tests]).tolist()
    against = result.record["key"].get("against")
    found: dict[tuple[str, str], str] = {}
    for each in shown:
        ranked = each.ranked()
        to = against if against in ranked else ranked[0] if ranked else None
        # Equal values need no test.
        same = [to, *(_best_of(each) if to in _best_of(each) else ())]
        found |= {(each.name, name): _UNTESTED for name in ranked if tests and name not in same}
        for test, p in zip(tests, adjusted, strict=True):
            if test["metric"] != each.name or to not in (test["first"], test["second"]):
                continue
            cell = each.name, test["second" if test["first"] == to else "first"]
            difference = interval_in(test, "difference")
            # Where interval and test disagree, the difference counts as none.
            is_different = p < _LEVEL and not difference.low <= 0 <= difference.high
            if cell in found:
                found[cell] = "" if is_different else _TIE
    return {cell: sign for cell, sign in found.items() if sign}, len(tests)


def _table(
    result: "Result",
    shown: Sequence[SystemsNumber],
    marked: Mapping[tuple[str, str], str],
    tests: int,
    settings: TableSettings,
    *,
    by_system: bool,
) -> TextTable:
    """Return the table with one row a system, or one row a number."""
    systems = list(shown[0].values) if shown else []
    best = {(each.name, name) for each in shown for name in _best_of(each)}
    counts = {int(each.record["n"]) for each in shown}
    keys = [[(each, name) for each in shown] for name in systems]
    heads = ["system", *(each.heading for each in shown)]
    names = list(systems)
    if not by_system:
        keys = [[(each, name) for name in systems] for each in shown]
        names, heads = [each.heading for each in shown], ["metric", *systems]
    rows = [
        (name, *(_cell(each.values[s], settings) for each, s in row))
        for name, row in zip(names, keys, strict=True)
    ]
    signs = [("", *(marked.get((e.name, s), "") for e, s in row)) for row in keys]
    if len(counts) > 1 and by_system:
        rows.append(("n", *(str(int(each.record["n"])) for each in shown)))
        signs.append(("",) * len(heads))
    elif len(counts) > 1:
        heads.append("n")
        rows = [(*r, str(int(e.record["n"]))) for r, e in zip(rows, shown, strict=True)]
        signs = [(*row, "") for row in signs]
    bold = [
        (r, c)
        for r, row in enumerate(keys)
        for c, (each, name) in enumerate(row, start=1)
        if (each.name, name) in best
    ]
    return TextTable(
        "Systems",
        tuple(heads),
        tuple(rows),
        " ".join(_caption(result, shown, settings, tests, set(marked.values()))),
        best=tuple(bold),
        signs=tuple(signs) if marked else (),
        label="tab:systems",
    )


def _best_of(each: SystemsNumber) -> list[str]:
    ranked = each.ranked()
    if len(ranked) < 2:
        return []
    best = each.values[ranked[0]].estimate
    return [name for name in ranked if each.values[name].estimate == best]


def _cell(value: "Interval", settings: TableSettings) -> str:
    text = number(value.estimate, settings.digits)
    if not settings.intervals or math.isnan(value.estimate):
        return text
    return f"{text} {bounds(value.low, value.high, settings.digits)}"


def _caption(
    result: "Result",
    shown: Sequence[SystemsNumber],
    settings: TableSettings,
    tests: int,
    signs: Collection[str],
) -> list[str]:
    counts = {int(each.record["n"]) for each in shown}
    n = f"n = {counted(next(iter(counts)), 'study')}" if len(counts) == 1 else "n studies"
    corpus = [each.record["title"] for each in shown if each.record["of_corpus"]]
    found = [f"Means over {n}; {', '.join(corpus)}: values of the whole corpus."]
    if not corpus:
        found = [f"Means over {n}."]
    elif len(corpus) == len(shown):
        found = [f"Values of the whole corpus of {n}."]
    if settings.intervals:
        found.append("In brackets: 95 % bootstrap intervals.")
    if tests:
        to = result.record["key"].get("against") or "the best"
        found.append(
            f"{_TIE}: not significantly different from {to}: paired permutation tests at 5 %, p "
            f"adjusted (Benjamini-Hochberg) over {counted(tests, 'test')} of this table."
        )
        if _UNTESTED in signs:
            found.append(f"{_UNTESTED}: not tested against it, as two baselines never are.")
    return found


def _width(table: TextTable) -> int:
    """Return the columns of a terminal that the table takes."""
    body = replace(table, caption="", best=()).text(10**6)
    return max(map(len, body.splitlines()))
