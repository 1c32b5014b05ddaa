"""The one table of a comparison: a headline of each metric, the best marked, ties shown."""

import difflib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from string import ascii_lowercase
from typing import Any

from vlscore.errors import InvalidSetting
from vlscore.evaluation.baselines.baseline_base import BASELINE
from vlscore.evaluation.command_settings import TableSettings
from vlscore.metrics import Metric, corpus_name
from vlscore.stats import Interval, TextTable, benjamini_hochberg, interval_of, number, with_mark

_ALL = "all"
_LEVEL = 0.05
_WIDTH = 80
_TIE = "†"

_LETTERS = (
    "letters need tests of every two systems, and only {} was tested against the others; leave out "
    "--against, or take another --ties"
)

Content = Mapping[str, Any]


def check_table(
    settings: TableSettings,
    metrics: Iterable[Metric],
    elsewhere: Iterable[str],
    against: str | None,
) -> None:
    """Refuse a table that the comparison will not have, before anything is computed.

    Args:
        elsewhere: metrics that were computed elsewhere.
        against: the system that is tested against each other one; None: every two are tested.

    Raises: InvalidSetting as `paper_table`.
    """
    expected: list[Content] = [{"name": name, "metric": name} for name in elsewhere]
    for metric in metrics:
        name = str(metric)
        first, *further = metric.columns
        expected.append({"name": first, "metric": name, "is_headline": not metric.headline})
        expected += [{"name": each, "metric": name, "is_headline": False} for each in further]
        expected += [
            {
                "name": corpus_name(metric, each.name),
                "metric": name,
                "is_headline": each.name == metric.headline,
            }
            for each in metric.corpus
        ]
    chosen_numbers(expected, settings.columns)
    if settings.ties == "letters" and against is not None:
        raise InvalidSetting(_LETTERS.format(against))


def paper_table(content: Content, settings: TableSettings | None = None) -> TextTable:
    """Return the table of a comparison.

    Args: content: of comparison.json.
    Raises: InvalidSetting for a column that the comparison does not have, and for letters where
        not every two systems were tested.
    """
    settings = settings or TableSettings()
    shown = chosen_numbers(content["measured"], settings.columns)
    tests = _Tests(content, shown, settings)
    if settings.systems_as_rows is not None:
        table = _table(content, shown, tests, settings, by_system=settings.systems_as_rows)
    else:
        ways = [_table(content, shown, tests, settings, by_system=way) for way in (True, False)]
        table = next((way for way in ways if _width(way) <= _WIDTH), min(ways, key=_width))
    signatures = {each["metric"]: content["signatures"].get(each["metric"]) for each in shown}
    table = replace(table, notes=tuple(text for text in signatures.values() if text))
    (marked,) = with_mark([table], content["signatures"].values())
    return marked


def chosen_numbers(measured: Sequence[Content], columns: Sequence[str]) -> list[Content]:
    """Return the numbers that the columns name; raises InvalidSetting."""
    headlines = [each for each in measured if _is_headline(each)]
    if not columns:
        return headlines
    by_name = {each["name"]: each for each in measured}
    # A metric's name is that of its headline, also where its first number has the same name.
    by_name |= {each["metric"]: each for each in headlines}
    # The mean of the first number, of a metric whose headline is a value of the whole corpus.
    by_name |= {f"{each['name']}.mean": each for each in measured if each["name"] == each["metric"]}
    found: list[Content] = []
    for column in columns:
        if column == _ALL:
            found += measured
        elif column in by_name:
            found.append(by_name[column])
        else:
            near = difflib.get_close_matches(column, by_name, 3, 0.5) or list(by_name)
            raise InvalidSetting(
                f"the comparison has no number {column!r}; it has {', '.join(near)}, ..."
            )
    return list({each["name"]: each for each in found}.values())


def _is_headline(each: Content) -> bool:
    # Folders of earlier versions do not say which number is the headline.
    return bool(each.get("is_headline", each["name"] == each["metric"]))


class _Tests:
    """Significant differences of systems, number by number."""

    def __init__(self, content: Content, shown: Sequence[Content], settings: TableSettings) -> None:
        names = {each["name"] for each in shown}
        is_all = settings.family == "all"
        family = [t for t in content["tested"] if is_all or t["name"] in names]
        family = [test for test in family if test["p_value"] is not None]
        adjusted = benjamini_hochberg([test["p_value"] for test in family])
        self.count = len(family)
        self.against: str | None = content.get("against")
        self.tested: set[tuple[str, frozenset[str]]] = set()
        self._differing: set[tuple[str, frozenset[str]]] = set()
        for test, p in zip(family, adjusted.tolist(), strict=True):
            pair = test["name"], frozenset((test["first"], test["second"]))
            self.tested.add(pair)
            difference = interval_of(test["difference"])
            # Where interval and test disagree, the difference counts as none.
            if p < _LEVEL and not difference.low <= 0 <= difference.high:
                self._differing.add(pair)

    def are_tied(self, name: str, first: str, second: str) -> bool:
        """Return whether two systems were tested, and no difference was found."""
        pair = name, frozenset((first, second))
        return pair in self.tested and pair not in self._differing

    def signs(self, each: Content, systems: Sequence[str], ties: str) -> dict[str, str]:
        """Return the sign of every system for one number."""
        name = each["name"]
        ranked = _ranked(each, systems)
        if ties == "none" or not self.count or not ranked:
            return {}
        if ties == "letters":
            if self.against is not None:
                raise InvalidSetting(_LETTERS.format(self.against))
            pairs = [frozenset(pair) for pair in combinations(ranked, 2)]
            return _letters(ranked, [pair for pair in pairs if (name, pair) in self._differing])
        to = self.against if self.against in ranked else ranked[0]
        return {s: _TIE for s in ranked if s != to and self.are_tied(name, s, str(to))}

    def sentences(self, ties: str, family: str) -> list[str]:
        """Return what the signs mean."""
        if ties == "none" or not self.count:
            return []
        over = "of this table" if family == "shown" else "of the comparison"
        how = (
            f"paired permutation tests at 5 %, p adjusted (Benjamini-Hochberg) over the "
            f"{self.count} tests {over}"
        )
        if ties == "letters":
            return [f"Systems that share a letter are not significantly different: {how}."]
        to = "the best" if self.against is None else self.against
        return [f"{_TIE}: not significantly different from {to}: {how}."]


def _ranked(each: Content, systems: Collection[str]) -> list[str]:
    """Return the systems that have a value, the best first."""
    values = {name: interval_of(each["values"][name]).estimate for name in systems}
    sign = -1 if each["higher_is_better"] else 1
    return sorted(
        (name for name in systems if not math.isnan(values[name])), key=lambda n: sign * values[n]
    )


def _letters(ranked: Sequence[str], differing: Sequence[frozenset[str]]) -> dict[str, str]:
    """Return the letters of a compact letter display: equal systems share one.

    Insert and absorb (Piepho 2004, An algorithm for a letter-based representation of all-pairwise
    comparisons).

    >>> _letters(["x", "y", "z"], [frozenset("xz")])
    {'x': 'a', 'y': 'ab', 'z': 'b'}
    """
    groups = [frozenset(ranked)]
    for pair in differing:
        split = [group - {one} for group in groups if pair <= group for one in pair]
        groups = [group for group in groups if not pair <= group] + split
        groups = [g for g in dict.fromkeys(groups) if not any(g < other for other in groups)]
    place = {name: k for k, name in enumerate(ranked)}
    groups.sort(key=lambda group: sorted(place[name] for name in group))
    found = dict.fromkeys(ranked, "")
    for k, group in enumerate(groups):
        for name in ranked:
            if name in group:
                found[name] += ascii_lowercase[k % 26]
    return found


def _table(
    content: Content,
    shown: Sequence[Content],
    tests: _Tests,
    settings: TableSettings,
    *,
    by_system: bool,
) -> TextTable:
    """Return the table with one row a system, or one row a number."""
    systems = content["systems"]
    signs = {each["name"]: tests.signs(each, systems, settings.ties) for each in shown}
    lines: list[tuple[str, list[_Cell]]] = []
    counts = {each["count"] for each in shown}
    if by_system:
        heads = ["system", *(heading(each) for each in shown)]
        for name in systems:
            cells = [_cell(each, name, systems, signs, settings) for each in shown]
            lines.append((name, cells))
        if len(counts) > 1:
            lines.append(("n", [_Cell(str(each["count"])) for each in shown]))
    else:
        heads = ["metric", *systems, *(["n"] if len(counts) > 1 else [])]
        for each in shown:
            cells = [_cell(each, name, systems, signs, settings) for name in systems]
            cells += [_Cell(str(each["count"]))] * (len(counts) > 1)
            lines.append((heading(each), cells))
    caption = [
        *_of_what(shown),
        *_of_intervals(settings),
        *tests.sentences(settings.ties, settings.family),
    ]
    if settings.ties == "letters" and sum(s.startswith(BASELINE) for s in systems) > 1:
        caption.append("Two baselines are not tested against each other.")
    return _assembled(heads, lines, " ".join(caption))


@dataclass(frozen=True)
class _Cell:
    text: str
    below: str = ""
    sign: str = ""
    is_best: bool = False


def _cell(
    each: Content,
    system: str,
    systems: Sequence[str],
    signs: Mapping[str, Mapping[str, str]],
    settings: TableSettings,
) -> _Cell:
    value = interval_of(each["values"][system])
    ranked = _ranked(each, systems)
    best = interval_of(each["values"][ranked[0]]).estimate if ranked else math.nan
    text, below = _numbers(value, settings)
    sign = signs[each["name"]].get(system, "")
    return _Cell(text, below, sign, value.estimate == best and len(ranked) > 1)


def _numbers(value: Interval, settings: TableSettings) -> tuple[str, str]:
    digits = settings.digits
    text = number(value.estimate, digits)
    if settings.intervals == "none" or math.isnan(value.low):
        return text, ""
    if settings.intervals == "half":
        return f"{text} ± {(value.high - value.low) / 2:.{digits}f}", ""
    return text, f"[{value.low:.{digits}f}, {value.high:.{digits}f}]"


def _assembled(
    heads: Sequence[str], lines: Sequence[tuple[str, Sequence[_Cell]]], caption: str
) -> TextTable:
    rows: list[tuple[str, ...]] = []
    signs: list[tuple[str, ...]] = []
    best: list[tuple[int, int]] = []
    for name, cells in lines:
        best += [(len(rows), k) for k, cell in enumerate(cells, start=1) if cell.is_best]
        rows.append((name, *(cell.text for cell in cells)))
        signs.append(("", *(cell.sign for cell in cells)))
        if any(cell.below for cell in cells):
            rows.append(("", *(cell.below for cell in cells)))
            signs.append(("",) * len(rows[-1]))
    has_signs = any(any(row) for row in signs)
    return TextTable(
        "Systems",
        tuple(heads),
        tuple(rows),
        caption,
        best=tuple(best),
        signs=tuple(signs) if has_signs else (),
        label="tab:systems",
    )


def heading(each: Content) -> str:
    return f"{each.get('title', each['name'])} {'↑' if each['higher_is_better'] else '↓'}"


def _of_what(shown: Sequence[Content]) -> list[str]:
    counts = {each["count"] for each in shown}
    n = f"n = {next(iter(counts))} studies" if len(counts) == 1 else "n studies"
    corpus = [each.get("title", each["name"]) for each in shown if each.get("of_corpus")]
    if not corpus:
        return [f"Means over {n}."]
    if len(corpus) == len(shown):
        return [f"Values of the whole corpus of {n}."]
    return [f"Means over {n}; {', '.join(corpus)}: values of the whole corpus."]


def _of_intervals(settings: TableSettings) -> list[str]:
    return {
        "none": [],
        "half": ["±: half the width of the 95 % bootstrap interval."],
        "below": ["In brackets: 95 % bootstrap intervals."],
    }[settings.intervals]


def _width(table: TextTable) -> int:
    """Return the columns of a terminal that the table takes."""
    body = replace(table, caption="", best=()).text(10**6)
    return max(map(len, body.splitlines()))
