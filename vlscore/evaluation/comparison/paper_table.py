"""The one table of a comparison: a primary number of each metric, the best marked, ties shown."""

import difflib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vlscore.core import counted
from vlscore.errors import InvalidSetting
from vlscore.evaluation.command_settings import TableSettings
from vlscore.metrics import Metric, Scorer, corpus_name, number_signature
from vlscore.stats import (
    TextTable,
    benjamini_hochberg,
    bounds,
    interval_in,
    number,
    with_mark,
    without_rounding,
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
        record: metric (name of the number), of (name of the metric) and the further facts of the
            frame "systems".
        values: system -> value.
    """

    record: Mapping[str, Any]
    values: dict[str, "Interval"]

    @property
    def name(self) -> str:
        """Return the name of the number, as in "bleu-4 corpus"."""
        return str(self.record["metric"])

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

    def best(self) -> list[str]:
        """Return the systems with the best value, of two or more that have one."""
        ranked = self.ranked()
        values = without_rounding([self.values[name].estimate for name in ranked])
        found = [name for name, value in zip(ranked, values, strict=True) if value == values[0]]
        return found if len(ranked) > 1 else []


def numbers_in(result: "Result") -> list[SystemsNumber]:
    """Return the numbers of a finished comparison."""
    found: dict[str, SystemsNumber] = {}
    for record in result.frame("systems").to_dict("records"):
        number = found.setdefault(record["metric"], SystemsNumber(record, {}))
        number.values[record["system"]] = interval_in(record, "value")
    return list(found.values())


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
    expected = [{"metric": name, "of": name, "primary": True} for name in precomputed]
    for metric in metrics:
        named = {name: k == 0 and not metric.primary for k, name in enumerate(metric.columns)}
        named |= {corpus_name(metric, c.name): c.name == metric.primary for c in metric.corpus}
        expected += [
            {"metric": name, "of": str(metric), "primary": is_it} for name, is_it in named.items()
        ]
    chosen_numbers([SystemsNumber(record, {}) for record in expected], settings.columns)


def chosen_numbers(numbers: Sequence[SystemsNumber], columns: Sequence[str]) -> list[SystemsNumber]:
    """Return the named numbers; default: the primary ones. Raises InvalidSetting."""
    primary = [each for each in numbers if each.record["primary"]]
    if not columns:
        return primary
    by_name = {each.name: each for each in numbers}
    # A metric's name is that of its primary number, also where its first number has the same name.
    by_name |= {each.record["of"]: each for each in primary}
    # The mean of the first number, of a metric whose primary number is of the whole corpus.
    by_name |= {f"{each.name}.mean": each for each in numbers if each.name == each.record["of"]}
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
    caption = " ".join(_caption(result, shown, settings, count, set(signs.values())))
    ways = [_table(shown, signs, caption, settings, by_system=way) for way in (True, False)]
    table = next((way for way in ways if _width(way) <= _WIDTH), min(ways, key=_width))
    signatures = result.signatures
    notes = tuple(
        dict.fromkeys(
            number_signature(signatures[of], of, each.name)
            for each in shown
            if signatures.get(of := each.record["of"])
        )
    )
    (marked,) = with_mark([replace(table, notes=notes)], signatures.values())
    return marked


def is_different(test: Mapping[Any, Any], p: float | None = None) -> bool:
    """Return whether test and interval both tell two systems apart; default p: the adjusted one."""
    difference = interval_in(test, "difference")
    p = test["adjusted_p"] if p is None else p
    return bool(p < _LEVEL and not difference.low <= 0 <= difference.high)


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
    against = result.key.get("against")
    found: dict[tuple[str, str], str] = {}
    for each in shown:
        ranked, best = each.ranked(), each.best()
        to = against if against in ranked else ranked[0] if ranked else None
        # Equal values need no test.
        same = [to, *(best if to in best else ())]
        found |= {(each.name, name): _UNTESTED for name in ranked if tests and name not in same}
        for test, p in zip(tests, adjusted, strict=True):
            if test["metric"] == each.name and to in (test["first"], test["second"]):
                cell = each.name, test["second" if test["first"] == to else "first"]
                if cell in found:
                    found[cell] = "" if is_different(test, p) else _TIE
    return {cell: sign for cell, sign in found.items() if sign}, len(tests)


def _table(
    shown: Sequence[SystemsNumber],
    marked: Mapping[tuple[str, str], str],
    caption: str,
    settings: TableSettings,
    *,
    by_system: bool,
) -> TextTable:
    """Return the table with one row a system, or one row a number."""
    systems = list(shown[0].values) if shown else []
    has_counts = len({int(each.record["n"]) for each in shown}) > 1
    keys = [[(each, name) for each in shown] for name in systems]
    heads, names = ["system", *(each.heading for each in shown)], list(systems)
    if not by_system:
        keys = [[(each, name) for name in systems] for each in shown]
        names, heads = [each.heading for each in shown], ["metric", *systems]
    rows = [
        [name, *(_cell(each.values[s], settings) for each, s in row)]
        for name, row in zip(names, keys, strict=True)
    ]
    signs = [["", *(marked.get((each.name, s), "") for each, s in row)] for row in keys]
    if has_counts and by_system:
        rows.append(["n", *(str(int(each.record["n"])) for each in shown)])
        signs.append([""] * len(heads))
    elif has_counts:
        heads.append("n")
        for row, sign, each in zip(rows, signs, shown, strict=True):
            row.append(str(int(each.record["n"])))
            sign.append("")
    bold = [
        (r, c)
        for r, row in enumerate(keys)
        for c, (each, name) in enumerate(row, start=1)
        if name in each.best()
    ]
    return TextTable(
        "Systems",
        tuple(heads),
        tuple(map(tuple, rows)),
        caption,
        best=tuple(bold),
        signs=tuple(map(tuple, signs)) if marked else (),
        label="tab:systems",
    )


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
        to = result.key.get("against") or "the best"
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
