"""Tables of a comparison: all numbers of the systems, their differences, candidates as texts."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from vlscore.core import counted
from vlscore.stats import NOTHING, TextTable, interval, number, p_value

_DIGITS = 4
# A difference is significant below this adjusted p, with an interval without 0.
_LEVEL = 0.05
_SUPPORT = (
    " support: how many times the references state what an F1 of the whole corpus is made of, for "
    "macro its rarest observation; one that neither candidates nor references mention has no F1 "
    "(-)."
)

Record = Mapping[str, Any]


def systems_table(measured: Sequence[Record], systems: Sequence[str]) -> TextTable:
    """Return one row a system, one column a number, with intervals; the last row is n."""
    rows = {name: {"system": name} for name in (*systems, "n", "support")}
    for each in measured:
        heading = each["metric"] + ("" if each["higher_is_better"] else " (lower is better)")
        rows[each["system"]][heading] = interval(each["value"], _DIGITS)
        rows["n"][heading] = str(each["n"])
        rows["support"][heading] = support_of(measured, each["metric"])
    has_support = any(list(rows["support"].values())[1:])
    if not has_support:
        del rows["support"]
    return TextTable.of(
        "All numbers of the systems",
        rows.values(),
        "Means over the n studies for which every system has a value, and values of the whole "
        "corpus where the column says so, with 95 % bootstrap intervals over studies."
        + _SUPPORT
        * has_support,
    )


def support_of(measured: Sequence[Record], name: str) -> str:
    """Return the support, equal for all systems; a range where the text policy drops pairs."""
    counts = {each["support"] for each in measured if each["metric"] == name} - {None}
    return " to ".join(str(count) for count in sorted({min(counts), max(counts)} if counts else ()))


def differences_tables(measured: Sequence[Record], tested: Sequence[Record]) -> list[TextTable]:
    """Return a table of differences for each number, one row for every two systems."""
    primary = sum(not math.isnan(test["adjusted_p"]) for test in tested)
    caption = (
        "Means and corpus values of the first system minus those of the second, over the same n "
        "studies: 95 % intervals by the paired bootstrap, p by the two-sided paired permutation "
        f"test. Adjusted by Benjamini and Hochberg over {counted(primary, 'test')} of the metrics' "
        f"primary numbers, and over all tests, {len(tested)}."
    )
    tables: dict[str, list[dict[str, str]]] = {}
    for test in tested:
        support = support_of(measured, test["metric"])
        tables.setdefault(test["metric"], []).append(
            {
                "systems": _pair(test),
                "difference": interval(test["difference"], _DIGITS),
                "p": p_value(test["p"]),
                "adjusted p": p_value(test["adjusted_p"]),
                "adjusted over all": p_value(test["adjusted_p_all"]),
                "n": str(test["n"]),
                **({"support": support} if support else {}),
            }
        )
    return [TextTable.of(f"Differences in {n}", rows, caption) for n, rows in tables.items()]


def baseline_notes(
    measured: Sequence[Record], tested: Sequence[Record], baseline: str, what: str
) -> list[str]:
    """Return for each system in which primary numbers it is significantly better than a baseline.

    Args: what: the baseline in words, as in "reports that are always normal".
    """
    better = {each["metric"]: 1 if each["higher_is_better"] else -1 for each in measured}
    titles = {each["metric"]: each["title"] for each in measured if each["primary"]}
    found: dict[str, tuple[list[str], list[str]]] = {}
    for test in tested:
        pair = (test["first"], test["second"])
        if test["metric"] not in titles or baseline not in pair or math.isnan(test["adjusted_p"]):
            continue
        system, sign = (pair[0], 1) if pair[1] == baseline else (pair[1], -1)
        gain = sign * better[test["metric"]] * test["difference"].estimate
        is_apart = not test["difference"].low <= 0 <= test["difference"].high
        is_better = gain > 0 and is_apart and test["adjusted_p"] < _LEVEL
        found.setdefault(system, ([], []))[is_better].append(titles[test["metric"]])
    return [
        f"{system} is significantly better than {what} ({baseline}) in "
        f"{', '.join(wins) or 'no number'}" + (f"; not in {', '.join(losses)}" if losses else "")
        for system, (losses, wins) in found.items()
    ]


def subgroup_tables(measured: Sequence[Record], tested: Sequence[Record]) -> list[TextTable]:
    """Return a table of each column and primary number: one row a group of studies."""
    caption = (
        "Over the n studies of the group: 95 % bootstrap intervals; p of the paired "
        "permutation test, adjusted (Benjamini-Hochberg) over all groups and primary numbers. "
        "Groups differ in n: that a difference is significant in one and not in another does "
        "not show that the groups differ."
    )
    tables: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
    for each in measured:
        rows = tables.setdefault((each["metric"], each["column"]), {})
        row = rows.setdefault(each["value"], {each["column"]: each["value"], "n": str(each["n"])})
        row[each["system"]] = interval(each["number"])
    for test in tested:
        row, pair = tables[test["metric"], test["column"]][test["value"]], _pair(test)
        row |= {pair: interval(test["difference"]), f"p of {pair}": p_value(test["adjusted_p"])}
    found = []
    for (name, column), groups in tables.items():
        heads = dict.fromkeys(head for row in groups.values() for head in row)
        records = [{head: row.get(head, NOTHING) for head in heads} for row in groups.values()]
        found.append(TextTable.of(f"{name} by {column}", records, caption))
    return found


def _pair(test: Record) -> str:
    return f"{test['first']} - {test['second']}"


def texts_table(texts: Sequence[Record]) -> TextTable:
    """Return the table of facts about candidates as texts."""
    has_encoder = any(each["truncated"] is not None for each in texts)
    lacking = any(each["without_value"] for each in texts)
    shares = ["distinct", "verbatim", "unfinished", *["truncated"] * has_encoder]
    return TextTable.of(
        "Candidates as texts",
        [
            {
                "system": each["system"],
                "words": number(each["mean_words"], 1),
                **{share: number(each[share]) for share in shares},
                "empty": str(each["empty"]),
                **({"without a value": each["without_value"] or "0"} if lacking else {}),
            }
            for each in texts
        ],
        f"Mean words of the {texts[0]['n']} candidates, and the shares that are different; equal "
        "to some reference of the table or report of the training table; not ending a sentence"
        + ("; cut by the encoder." if has_encoder else "."),
    )


def language_table(facts: Sequence[Record]) -> TextTable:
    """Return the table of the language of the systems and of the references."""
    return TextTable.of(
        "Language of the candidates",
        [
            {
                "system": each["system"],
                "repeated": number(each["repeated"]),
                "vocabulary": str(each["vocabulary"]),
                "sentences": str(each["sentences"]),
                "most frequent": number(each["most_frequent"]),
                "earlier image": number(each["earlier_image"]),
            }
            for each in facts
        ],
        "Share of reports that repeat a word three times, or a phrase twice, in a row; numbers of "
        "different words and sentences; share of the most frequent report; share of reports that "
        f"speak of an earlier image, of {facts[0]['n_without_earlier']} studies whose reference "
        "speaks of none and whose row has none.",
    )
