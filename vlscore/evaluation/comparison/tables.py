"""How a comparison is shown: its tables and its figures."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import with_noun
from vlscore.evaluation.comparison.methods import paragraph
from vlscore.evaluation.comparison.paper_table import (
    chosen_numbers,
    heading_of,
    is_different,
    numbers_in,
)
from vlscore.evaluation.comparison.statistics import sign_of, with_directions
from vlscore.stats import (
    DEMONSTRATION,
    NOTHING,
    Presentation,
    TextTable,
    crossed,
    dot_plots,
    interval_cells,
    interval_in,
    intervals_in,
    is_demonstration,
    number,
    p_value,
    scatter,
    text_table,
)

if TYPE_CHECKING:
    import pandas

    from vlscore.stats import Result

VALUES = "values.parquet"
_DIGITS = 4
_BARS = "bars: 95 % bootstrap intervals"
# Cell of systems that never change places.
_NONE = "none"
# Of a table of groups; with more, differences have a table of their own, one row for each.
_MOST_COLUMNS = 12
_SUPPORT = (
    " support: how many times the references state what an F1 of the whole corpus is made of, for "
    "macro its rarest observation; one that neither candidates nor references mention has no F1 "
    "(-)."
)
_GROUPS = (
    "Over the n studies of the group: 95 % bootstrap intervals; p of the paired permutation test, "
    "adjusted (Benjamini-Hochberg) over all groups and primary numbers. Groups differ in n: that a "
    "difference is significant in one and not in another does not show that the groups differ."
)
Record = Mapping[Any, Any]


def comparison_tables(run: "Result") -> list[TextTable]:
    """Return all tables of a comparison but the one for a paper."""
    frames = run.frames
    systems = frames["systems"]
    return [
        *_corrected_tables(frames),
        *_subgroup_tables(frames),
        _texts_table(frames["texts"]),
        _systems_table(systems),
        _language_table(frames["language"]),
        *(_differences_tables(systems, frames["differences"]) if "differences" in frames else ()),
    ]


def _systems_table(systems: "pandas.DataFrame") -> TextTable:
    """Return one row a system, one column a number, with intervals; the last row is n."""
    rows = systems.assign(
        heading=with_directions(systems), cell=interval_cells(systems, "value", _DIGITS)
    )
    numbers = rows.drop_duplicates("metric").set_index("heading")
    supports = numbers["metric"].map(_supports(systems))
    has_supports = bool(supports.any())
    records = crossed(rows, "system", "heading", "cell").to_dict("records")
    records.append({"system": "n", **numbers["n"]})
    if has_supports:
        records.append({"system": "support", **supports})
    return text_table(
        "All numbers of the systems",
        records,
        "Means over the n studies for which every system has a value, and values of the whole "
        "corpus where the column says so, with 95 % bootstrap intervals over studies."
        + _SUPPORT
        * has_supports,
    )


def _supports(systems: "pandas.DataFrame") -> dict[str, str]:
    """Return number -> its support; a range where the text policy drops pairs of a system."""
    found = {}
    for name, counts in systems.groupby("metric", sort=False)["support"]:
        ends = {int(n) for n in (counts.min(), counts.max()) if not math.isnan(n)}
        found[str(name)] = " to ".join(map(str, sorted(ends)))
    return found


def _differences_tables(
    systems: "pandas.DataFrame", tests: "pandas.DataFrame"
) -> Iterator[TextTable]:
    """Yield a table of differences for each number, one row for every two systems."""
    primary = with_noun(int(tests["adjusted_p"].notna().sum()), "test")
    caption = (
        "Means and corpus values of the first system minus those of the second, over the same n "
        "studies: 95 % intervals by the paired bootstrap, p by the two-sided paired permutation "
        f"test. Adjusted by Benjamini and Hochberg over {primary} of the metrics' "
        f"primary numbers, and over all tests, {len(tests)}."
    )
    supports = _supports(systems)
    columns = {name: name for name in ("systems", "difference", "p")}
    columns |= {"adjusted_p": "adjusted p", "adjusted_p_all": "adjusted over all"}
    columns |= {name: name for name in ("n", "support")}
    for name, rows in tests.assign(systems=_pairs(tests)).groupby("metric", sort=False):
        if support := supports[str(name)]:
            rows = rows.assign(support=support)
        yield text_table(f"Differences in {name}", rows, caption, columns=columns, digits=_DIGITS)


def _pairs(tests: "pandas.DataFrame") -> "pandas.Series[str]":
    found: pandas.Series[str] = tests["first"] + " - " + tests["second"]
    return found


def baseline_notes(
    values: Sequence[Record], tests: Sequence[Record], baseline: str, what: str
) -> list[str]:
    """Return for each system in which primary numbers it is significantly better than a baseline.

    Args: what: the baseline in words, as in "reports that are always normal".
    """
    better = {each["metric"]: sign_of(each) for each in values}
    titles = {each["metric"]: each["title"] for each in values if each["primary"]}
    found: dict[str, tuple[list[str], list[str]]] = {}
    for test in tests:
        pair = (test["first"], test["second"])
        if test["metric"] not in titles or baseline not in pair or math.isnan(test["adjusted_p"]):
            continue
        system, sign = (pair[0], 1) if pair[1] == baseline else (pair[1], -1)
        gain = sign * better[test["metric"]] * test["difference"].estimate
        is_better = gain > 0 and is_different(test["difference"], test["adjusted_p"])
        found.setdefault(system, ([], []))[is_better].append(titles[test["metric"]])
    return [
        f"{system} is significantly better than {what} ({baseline}) in "
        f"{', '.join(wins) or 'no number'}" + (f"; not in {', '.join(losses)}" if losses else "")
        for system, (losses, wins) in found.items()
    ]


def _subgroup_tables(frames: "Mapping[str, pandas.DataFrame]") -> Iterator[TextTable]:
    """Yield a table of each column and primary number: one row a group of studies.

    Of many systems, the differences follow in a second table.
    """
    if "subgroups" not in frames:
        return
    from pandas import concat

    numbers = frames["subgroups"]
    # A system may be called "n", or like a heading of a test.
    parts = [
        numbers.assign(key="n", heading="n", cell=numbers["n"].astype(str)),
        numbers.assign(
            key="of " + numbers["system"],
            heading=numbers["system"],
            cell=interval_cells(numbers, "number"),
        ),
    ]
    if "subgroup_differences" in frames:
        tests = frames["subgroup_differences"]
        pairs, p = _pairs(tests), map(p_value, tests["adjusted_p"])
        tested = [
            tests.assign(
                key="apart " + pairs, heading=pairs, cell=interval_cells(tests, "difference")
            ),
            tests.assign(key="p " + pairs, heading="p of " + pairs, cell=list(p)),
        ]
        # Each difference stands before its p value.
        parts.append(concat(tested).sort_index(kind="stable"))
    names = ["metric", "column", "value", "key"]
    cells = concat(parts).drop_duplicates(names)
    for (name, column), rows in cells.groupby(["metric", "column"], sort=False):
        apart = rows[rows["key"].str.startswith("apart ")]
        is_wide = rows["key"].nunique() > _MOST_COLUMNS
        shown = rows[~rows["key"].str.startswith(("apart ", "p "))] if is_wide else rows
        columns = {"value": str(column), **dict(zip(shown["key"], shown["heading"], strict=True))}
        wide = crossed(shown, "value", "key", "cell")
        yield text_table(f"{name} by {column}", wide, _GROUPS, columns=columns)
        if is_wide and len(apart):
            p = rows["cell"][rows["key"].str.startswith("p ")].tolist()
            columns = {"value": str(column), "heading": "systems", "cell": "difference", "p": "p"}
            title = f"Differences in {name} by {column}"
            yield text_table(title, apart.assign(p=p), _GROUPS, columns=columns)


def _corrected_tables(frames: "Mapping[str, pandas.DataFrame]") -> Iterator[TextTable]:
    """Yield the numbers without errors of the references, pairs of systems, and the rates."""
    if "reference_errors_rates" not in frames:
        return
    for metric, rates in frames["reference_errors_rates"].groupby("metric", sort=False):
        own = rates.iloc[0]
        title, source = own["title"], own["source"]
        parts = (frames[f"reference_errors{part}"] for part in ("", "_pairs"))
        numbers, pairs = (
            rows[rows["metric"] == own["primary"]] if len(rows) else rows for rows in parts
        )
        known = pairs.to_dict("records")
        of_pair = {frozenset((each["first"], each["second"])): _place(each) for each in known}
        place = (
            "share of wrong references (with at least one wrong observation) at which the order is "
            "no more the one as scored, where all rates grow together; none: not up to "
            f"{pairs['searched_to'].max() if len(pairs) else 0:.2f}, the most that the systems' "
            "agreement with the references allows."
        )
        if len(numbers):
            numbers = numbers.sort_values("scored", ascending=False, kind="stable")
            after = [*numbers["system"], ""][1:]
            both = map(frozenset, zip(numbers["system"], after, strict=True))
            yield text_table(
                f"{title} without errors of the references",
                numbers.assign(next=[of_pair.get(each, NOTHING) for each in both]),
                f"Rates of {source}. Corrected: 95 % intervals over studies and over what is not "
                "known of the rates. P(first): share of draws in which the system is the best. "
                f"Overtaken at, by the next system: {place}",
                columns={"system": "system", "scored": "as scored", "corrected": "corrected",
                         "rank_1": "P(first)", "next": "overtaken at"},
            )  # fmt: skip
        if len(pairs):
            yield text_table(
                f"{title} without errors of the references: two systems",
                pairs.assign(pair=_pairs(pairs), at=list(map(_place, known))),
                f"Change places at: {place}",
                columns={"pair": "systems", "scored": "as scored", "corrected": "corrected",
                         "first_better": "P(first is better)", "at": "change places at"},
            )  # fmt: skip
        yield text_table(
            f"{metric}: errors of the references",
            rates.drop(columns=["metric", "title", "primary", "source", "sources"]),
            "Stated, present: shares of films in which the references state a finding, in which it "
            "is. Missed: share of present findings that the references do not state. False "
            f"discovery: share of their statements that are false. Source: {own['sources']}.",
        )


def _place(pair: Record) -> str:
    """Return the share of wrong references at which two systems change places, as text."""
    if not pair["scored"]:
        return NOTHING
    value = interval_in(pair, "place")
    ends = (value.estimate, value.low, value.high)
    shown = [_NONE if math.isnan(each) else f"{each:.2f}" for each in ends]
    return _NONE if set(shown) == {_NONE} else f"{shown[0]} [{shown[1]}, {shown[2]}]"


def _texts_table(texts: "pandas.DataFrame") -> TextTable:
    """Return the table of facts about candidates as texts."""
    has_encoder = bool(texts["truncated"].notna().any())
    columns = ["system", "words", "distinct", "verbatim", "unfinished"]
    columns += [*["truncated"] * has_encoder, "empty"]
    rows = texts.assign(words=[number(mean, 1) for mean in texts["mean_words"]])
    if texts["without_value"].any():
        columns.append("without a value")
        rows["without a value"] = texts["without_value"].replace("", "0")
    return text_table(
        "Candidates as texts",
        rows,
        f"Mean words of the {texts['n'][0]} candidates, and the shares that are different; equal "
        "to some reference of the table or report of the training table; not ending a sentence"
        + ("; cut by the encoder." if has_encoder else "."),
        columns=columns,
    )


def _language_table(facts: "pandas.DataFrame") -> TextTable:
    """Return the table of the language of the systems and of the references."""
    return text_table(
        "Language of the candidates",
        facts.rename(columns=lambda name: name.replace("_", " ")),
        "Share of reports that repeat a word three times, or a phrase twice, in a row; numbers of "
        "different words and sentences; share of the most frequent report; share of reports that "
        f"speak of an earlier image, of {facts['n_without_earlier'][0]} studies whose reference "
        "speaks of none and whose row has none.",
        columns=["system", "repeated", "vocabulary", "sentences", "most frequent", "earlier image"],
    )


def draw_comparison(result: "Result", format: str, columns: Sequence[str] = ()) -> list[Path]:
    """Draw the numbers of a comparison and their differences, and return the paths.

    With two systems, the studies too: the values of one against those of the other.

    Args:
        format: "png", "svg" or "pdf".
        columns: numbers that are drawn; see `TableSettings.columns`.

    Raises: MissingDependency where matplotlib is not installed; InvalidSetting for unknown columns.
    """
    shown = {heading_of(each): each for each in chosen_numbers(numbers_in(result), columns)}
    values = intervals_in(result.frame("systems"), "metric", "system", "value")
    more = f" {DEMONSTRATION}" if is_demonstration(result.signatures.values()) else ""
    paths = [result.folder / f"systems.{format}"]
    counts = sorted({int(each["n"]) for each in shown.values()})
    n = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    panels = {heading: values[own["metric"]] for heading, own in shown.items()}
    systems = [*next(iter(panels.values()))]
    dot_plots(panels, paths[0], title="Systems", note=f"n = {n} studies; {_BARS}.{more}")
    if "differences" in result.frames:
        paths.append(result.folder / f"differences.{format}")
        tests = result.frame("differences")
        # Only tests of primary numbers are adjusted.
        tests = tests.assign(
            pair=tests["first"] + " − " + tests["second"], p=tests["adjusted_p"].fillna(tests["p"])
        )
        differences = intervals_in(tests, "metric", "pair", "difference")
        tested = {name: own for name, own in shown.items() if own["metric"] in differences}
        panels = {heading: differences[own["metric"]] for heading, own in tested.items()}
        hollow = {
            heading: [
                pair
                for pair, p in tests[tests["metric"] == own["metric"]][["pair", "p"]].to_numpy()
                if not is_different(panels[heading][pair], p)
            ]
            for heading, own in tested.items()
        }
        note = (
            f"First minus second system; {_BARS}; hollow: not "
            "significant at 5 % (paired permutation test, p adjusted by Benjamini-Hochberg where "
            f"the number is a metric's primary one).{more}"
        )
        lines = {title: {"": 0.0} for title in panels}
        title = "Paired differences"
        dot_plots(panels, paths[-1], title=title, lines=lines, note=note, hollow=hollow)
    if len(systems) == 2:
        paths.append(result.folder / f"studies.{format}")
        rows, (title, first) = result.rows(VALUES), next(iter(shown.items()))
        # Values of the whole corpus have none of single studies: those of the metric are drawn.
        column = first["of" if first["of_corpus"] else "metric"]
        x, y = (rows.loc[rows["system"] == name, column].tolist() for name in systems)
        scatter(
            x,
            y,
            paths[-1],
            title=title,
            labels=(systems[0], systems[1]),
            is_same_scale=True,
            note=f"One dot a study; on the dashed line both systems have the same value.{more}",
        )
    return paths


PRESENTATION = Presentation(
    comparison_tables, draw_comparison, paragraph, "vlscore.pages.command_views:compare_view"
)
