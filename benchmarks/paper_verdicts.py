"""Numbers of the VLScore paper beside ours: digits, differences, verdicts, tables."""

import math
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vlscore.stats import Interval, TextTable, bounds, text_table

EQUAL, INSIDE, OUTSIDE = "EQUAL", "agrees", "DIFFERS"
UNKNOWN, LEFT_OUT = "no number of the paper", "left out"
MEANING = {
    EQUAL: "ours rounds to the digits that the paper prints",
    INSIDE: "the paper's number is inside our interval, but ours does not round to it",
    OUTSIDE: "the paper's number is outside our interval; where there is none, ours does not round "
    "to it",
    UNKNOWN: "the paper's number could not be established",
    LEFT_OUT: "not computed, for the reason that is given",
}


def paper_numbers() -> dict[str, Any]:
    """Return the numbers of the paper, as texts, by table."""
    path = Path(__file__).with_name("paper_numbers.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Line:
    """One number of the paper, and ours.

    Attributes:
        table: such as "Table 1".
        name: the row, as the paper calls it.
        what: which number of the row; "" where there is one.
        computed: what we computed it with, such as a metric and its parameters.
        paper: the paper's number as it is printed; None where it is not known.
        ours: our number with its interval, which may be undefined; None where it was left out.
        reason: why it was left out.
    """

    table: str
    name: str
    what: str = ""
    computed: str = ""
    paper: str | None = None
    ours: Interval | None = None
    reason: str = ""

    @property
    def difference(self) -> float:
        """Ours less the paper's; nan where one is absent."""
        if self.paper is None or self.ours is None:
            return math.nan
        return self.ours.estimate - float(self.paper)

    @property
    def verdict(self) -> str:
        """One of the keys of MEANING."""
        if self.ours is None or math.isnan(self.ours.estimate):
            return LEFT_OUT
        if self.paper is None:
            return UNKNOWN
        # Half a unit of the last digit, and what decimal fractions lose in binary.
        if abs(self.difference) <= 0.5 * 10.0 ** -digits_of(self.paper) + 1e-9:
            return EQUAL
        is_inside = self.ours.low <= float(self.paper) <= self.ours.high
        return INSIDE if is_inside else OUTSIDE

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, and difference and verdict; nan is None."""
        found = asdict(self) | {"difference": self.difference, "verdict": self.verdict}
        if self.ours is not None:
            found["ours"] = self.ours.estimate
            found["low"], found["high"] = self.ours.low, self.ours.high
        return {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in found.items()
        }


def digits_of(printed: str) -> int:
    """Return the number of digits behind the point.

    >>> digits_of("0.718"), digits_of("890")
    (3, 0)
    """
    return len(printed.partition(".")[2])


def table_of(title: str, lines: Iterable[Line]) -> TextTable:
    """Return lines as a table."""
    rows = []
    for line in lines:
        ours = Interval(math.nan, math.nan, math.nan) if line.ours is None else line.ours
        is_there = line.verdict != LEFT_OUT
        # One digit more than the paper prints, so that a rounding is seen.
        digits = 3 if line.paper is None else digits_of(line.paper) + 1
        known = not math.isnan(line.difference)
        rows.append(
            {
                "what": f"{line.name} {line.what}".strip(),
                "computed as": line.computed or "-",
                "paper": line.paper or "?",
                "ours": f"{ours.estimate:.{digits}f}" if is_there else "-",
                "95 %": bounds(ours.low, ours.high, digits) if is_there else "-",
                "difference": f"{line.difference:+.{digits}f}" if known else "-",
                "verdict": line.verdict,
            }
        )
    return text_table(title, rows)


def left_out(lines: Iterable[Line]) -> list[str]:
    """Return a text for each reason why lines were left out, with their tables and names."""
    held = defaultdict[str, list[Line]](list)
    for line in lines:
        if line.verdict == LEFT_OUT:
            held[line.reason or "no value is defined"].append(line)
    said = []
    for why, own in held.items():
        names = ", ".join(dict.fromkeys(line.name for line in own))
        tables = ", ".join(dict.fromkeys(line.table.partition(",")[0] for line in own))
        said.append(f"{LEFT_OUT}: {names} ({tables}): {why}")
    return said


def summary(lines: Iterable[Line]) -> str:
    """Return how many lines have which verdict, and what each verdict means."""
    counts = Counter(line.verdict for line in lines)
    said = [
        f"- **{verdict}** ({counts[verdict]}): {meaning}." for verdict, meaning in MEANING.items()
    ]
    return "\n".join(said)


def headline(lines: Iterable[Line]) -> str:
    """Return one sentence on the number that the paper is about: VLScore's tau on ReXVal."""
    line = next(line for line in lines if (line.table, line.name) == ("Table 1", "VLScore"))
    if line.verdict == LEFT_OUT or line.ours is None:
        return f"VLScore's tau of {line.paper} on ReXVal was not computed: {line.reason}."
    return (
        f"VLScore's tau on ReXVal: the paper prints {line.paper}, ours is "
        f"{line.ours.estimate:.4f} {bounds(line.ours.low, line.ours.high)}: {line.verdict}."
    )


def lines_of(
    table: str,
    numbers: Mapping[str, str],
    ours: Mapping[str, list[tuple[str, Interval]]],
    reasons: Mapping[str, str],
    what: str = "",
) -> list[Line]:
    """Return the lines of one number for each row of the paper's table.

    Args:
        numbers: row -> the paper's number.
        ours: row -> (what it was computed with, our number), several where the paper leaves it open
            which it used.
        reasons: row -> why there is none.
    """
    found = []
    for name in dict.fromkeys([*numbers, *ours, *reasons]):
        paper = numbers.get(name)
        if name not in ours:
            reason = reasons.get(name, "not computed")
            found.append(Line(table, name, what, paper=paper, reason=reason))
        for computed, value in ours.get(name, ()):
            found.append(Line(table, name, what, computed, paper, value))
    return found
