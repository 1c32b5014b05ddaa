"""Tables of a comparison: all numbers of the systems, their differences, candidates as texts."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from vlscore.core import counted
from vlscore.stats import NOTHING, TextTable, interval, number, p_value

_DIGITS = 4
_SUPPORT = (
    " support: how many times the references state what an F1 of the whole corpus is made of, for "
    "macro its rarest observation; one that neither candidates nor references mention has no F1 "
    "(-)."
)

Record = Mapping[str, Any]


def systems_table(measured: Sequence[Record], systems: Sequence[str]) -> TextTable:
    """Return one row a system, one column a number, with intervals; the last row is n."""
    numbers = list({each["metric"]: each for each in measured}.values())
    cells = {(each["metric"], each["system"]): each for each in measured}
    columns = [
        each["metric"] + ("" if each["higher_is_better"] else " (lower is better)")
        for each in numbers
    ]
    rows = [
        (name, *(interval(cells[each["metric"], name]["value"], _DIGITS) for each in numbers))
        for name in systems
    ]
    rows.append(("n", *(str(each["n"]) for each in numbers)))
    supports = [support_of(measured, each["metric"]) for each in numbers]
    if any(supports):
        rows.append(("support", *supports))
    return TextTable(
        "All numbers of the systems",
        ("system", *columns),
        tuple(rows),
        "Means over the n studies for which every system has a value, and values of the whole "
        "corpus where the column says so, with 95 % bootstrap intervals over studies."
        + (_SUPPORT if any(supports) else ""),
    )


def support_of(measured: Sequence[Record], name: str) -> str:
    """Return the support, equal for all systems; a range where the text policy drops pairs."""
    found = (each["support"] for each in measured if each["metric"] == name)
    counts = sorted({count for count in found if count is not None})
    if len(counts) > 1:
        return f"{counts[0]} to {counts[-1]}"
    return str(counts[0]) if counts else ""


def differences_tables(measured: Sequence[Record], tested: Sequence[Record]) -> list[TextTable]:
    """Return a table of differences for each number, one row for every two systems."""
    primary = sum(not math.isnan(test["adjusted_p"]) for test in tested)
    caption = (
        "Means and corpus values of the first system less those of the second, over the same n "
        "studies: 95 % intervals by the paired bootstrap, p by the two-sided paired permutation "
        f"test. Adjusted by Benjamini and Hochberg over {counted(primary, 'test')} of the metrics' "
        f"primary numbers, and over all tests, {len(tested)}."
    )
    tables = []
    for name in dict.fromkeys(test["metric"] for test in tested):
        support = support_of(measured, name)
        rows = [
            (
                f"{test['first']} - {test['second']}",
                interval(test["difference"], _DIGITS),
                *(p_value(test[p]) for p in ("p", "adjusted_p", "adjusted_p_all")),
                str(test["n"]),
                *([support] if support else []),
            )
            for test in tested
            if test["metric"] == name
        ]
        columns = ("systems", "difference", "p", "adjusted p", "adjusted over all", "n")
        heads = (*columns, *(["support"] if support else []))
        tables.append(TextTable(f"Differences in {name}", heads, tuple(rows), caption))
    return tables


def subgroup_tables(measured: Sequence[Record], tested: Sequence[Record]) -> list[TextTable]:
    """Return a table of each column and primary number: one row a group of studies."""
    tables = []
    for column, name in dict.fromkeys((each["column"], each["metric"]) for each in measured):
        rows: dict[str, dict[str, str]] = {}
        for each in measured:
            if (each["column"], each["metric"]) == (column, name):
                row = rows.setdefault(each["value"], {column: each["value"], "n": str(each["n"])})
                row[each["system"]] = interval(each["number"])
        for test in tested:
            if (test["column"], test["metric"]) == (column, name):
                pair = f"{test['first']} - {test['second']}"
                rows[test["value"]][pair] = interval(test["difference"])
                rows[test["value"]][f"p of {pair}"] = p_value(test["adjusted_p"])
        caption = (
            "Over the n studies of the group: 95 % bootstrap intervals; p of the paired "
            "permutation test, adjusted (Benjamini-Hochberg) over all groups and primary numbers. "
            "Groups differ in n: that a difference is significant in one and not in another does "
            "not show that the groups differ."
        )
        heads = tuple(dict.fromkeys(head for row in rows.values() for head in row))
        cells = tuple(tuple(row.get(head, NOTHING) for head in heads) for row in rows.values())
        tables.append(TextTable(f"{name} by {column}", heads, cells, caption))
    return tables


def texts_table(texts: Sequence[Record]) -> TextTable:
    """Return the table of facts about candidates as texts."""
    has_encoder = any(each["truncated"] is not None for each in texts)
    lacking = any(each["without_value"] for each in texts)
    rows = []
    for each in texts:
        shares = ["distinct", "verbatim", "unfinished", *["truncated"] * has_encoder]
        cells = [number(each["mean_words"], 1), *(number(each[share]) for share in shares)]
        cells.append(str(each["empty"]))
        if lacking:
            cells.append(each["without_value"] or "0")
        rows.append((each["system"], *cells))
    columns = ["system", "words", "distinct", "verbatim", "unfinished"]
    columns += ["truncated"] * has_encoder + ["empty"] + ["without a value"] * lacking
    caption = (
        f"Mean words of the {texts[0]['n']} candidates, and the shares that are different; equal "
        "to some reference of the table or report of the training table; not ending a sentence"
    )
    caption += "; cut by the encoder." if has_encoder else "."
    return TextTable("Candidates as texts", tuple(columns), tuple(rows), caption)
