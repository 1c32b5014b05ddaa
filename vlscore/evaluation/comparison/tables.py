"""Tables of a comparison: to read, to paste, and with all digits for programs; notes; files."""

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vlscore.core import Signature, Stamps, atomic_write, cells, from_cell, plain_dict, write_json
from vlscore.data import Study
from vlscore.evaluation.command_settings import TableSettings
from vlscore.evaluation.comparison.comparison_figures import FIGURE_FILES
from vlscore.evaluation.comparison.known import NUMBERS, write_numbers
from vlscore.evaluation.comparison.paper_table import paper_table
from vlscore.evaluation.comparison.statistics import Comparison, Measured, Tested
from vlscore.evaluation.comparison.system_values import MetricElsewhere, NumberLayout, SystemValues
from vlscore.evaluation.finished_folders import METHODS, REFERENCES
from vlscore.metrics import Metric
from vlscore.stats import (
    FAILURES,
    PAPER_FORMATS,
    Failure,
    Interval,
    TextTable,
    interval,
    markdown,
    number,
    p_value,
    with_mark,
    write_changed,
)

_DIGITS = 4
_SUPPORT = (
    " support: how many times the references state what an F1 of the whole corpus is made of; an "
    "observation that neither candidates nor references mention has no F1 (-)."
)


def systems_table(result: Comparison) -> TextTable:
    """Return one row a system, one column a number, with intervals; the last row is n."""
    columns = [
        each.name + ("" if each.higher_is_better else " (lower is better)")
        for each in result.measured
    ]
    rows = [
        (name, *(interval(each.values[name], _DIGITS) for each in result.measured))
        for name in result.systems
    ]
    rows.append(("n", *(str(each.count) for each in result.measured)))
    has_support = any(each.support for each in result.measured)
    if has_support:
        rows.append(("support", *(_support(each) for each in result.measured)))
    return TextTable(
        "All numbers of the systems",
        ("system", *columns),
        tuple(rows),
        "Means over the n studies for which every system has a value, and values of the whole "
        "corpus where the column says so, with 95 % bootstrap intervals over studies."
        + (_SUPPORT if has_support else ""),
    )


def differences_tables(result: Comparison) -> list[TextTable]:
    """Return a table of differences for each number, one row for every two systems."""
    headlines = {each.name for each in result.measured if each.is_headline}
    count = sum(test.name in headlines for test in result.tested)
    caption = (
        "Means and corpus values of the first system less those of the second, over the same n "
        "studies: 95 % intervals by the paired bootstrap, p by the two-sided paired permutation "
        f"test. Adjusted by Benjamini and Hochberg over the {count} tests of the metrics' "
        f"headlines, and over all {len(result.tested)} tests."
    )
    tables = []
    for each in result.measured:
        tests = [test for test in result.tested if test.name == each.name]
        if not tests:
            continue
        columns = ["systems", "difference", "p", "adjusted p", "adjusted over all", "n"]
        rows = [_difference(test) for test in tests]
        if each.support:
            columns.append("support")
            rows = [(*row, _support(each)) for row in rows]
        below = f"{caption} {DISAGREEMENT}" if any(test.disagrees for test in tests) else caption
        tables.append(TextTable(f"Differences in {each.name}", tuple(columns), tuple(rows), below))
    return tables


def _difference(test: Tested) -> tuple[str, ...]:
    return (
        f"{test.first} - {test.second}",
        interval(test.difference, _DIGITS),
        p_value(test.p_value) + ("*" if test.disagrees else ""),
        p_value(test.adjusted),
        p_value(test.adjusted_all),
        str(test.count),
    )


def _support(measured: Measured) -> str:
    """Return the support, equal for all systems; a range where the text policy drops pairs."""
    counts = sorted(set(measured.support.values()))
    if len(counts) > 1:
        return f"{counts[0]} to {counts[-1]}"
    return str(counts[0]) if counts else ""


def texts_table(result: Comparison) -> TextTable:
    """Return the table of facts about candidates as texts."""
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
    """Return the table of the headlines, and all others; no differences of one system alone."""
    tables = [texts_table(result), systems_table(result), *differences_tables(result)]
    return [
        replace(paper_table(_numbers_of(result)), notes=()),
        *with_mark(tables, result.signatures.values()),
    ]


_SYSTEMS = ("system", "metric", "value", "low", "high", "n", "support", "better")


def systems_rows(result: Comparison) -> TextTable:
    """Return one row a system and number, with all digits."""
    rows = [
        (
            name,
            each.name,
            *_exact(each.values[name]),
            str(each.count),
            str(each.support.get(name, "")),
            "higher" if each.higher_is_better else "lower",
        )
        for each in result.measured
        for name in result.systems
    ]
    return TextTable("", _SYSTEMS, tuple(rows))


def differences_rows(result: Comparison) -> TextTable:
    """Return one row a test, with all digits."""
    supports = {each.name: _support(each) for each in result.measured}
    rows = [
        (
            test.name,
            test.first,
            test.second,
            *_exact(test.difference),
            _digits(test.p_value),
            _digits(test.adjusted),
            _digits(test.adjusted_all),
            str(test.count),
            supports[test.name],
        )
        for test in result.tested
    ]
    columns = ("metric", "first", "second", "difference", "low", "high", "p", "adjusted_p")
    return TextTable("", (*columns, "adjusted_p_all", "n", "support"), tuple(rows))


def _exact(value: Interval) -> Sequence[str]:
    return [_digits(each) for each in (value.estimate, value.low, value.high)]


def _digits(value: float) -> str:
    return repr(value) if math.isfinite(value) else ""


CONTENT, VALUES = "comparison.json", "values.parquet"
MARKDOWN, LATEX = "tables.md", "tables.tex"
SYSTEMS, DIFFERENCES, TEXTS = "systems.csv", "differences.csv", "texts.csv"
PAPER = "table"
# Every file that a comparison can ever write.
RESULTS = (
    NUMBERS,
    *(CONTENT, VALUES, FAILURES, MARKDOWN, LATEX, SYSTEMS, DIFFERENCES, TEXTS),
    *(f"{PAPER}.{suffix}" for suffix in PAPER_FORMATS),
    *(*FIGURE_FILES, METHODS, REFERENCES),
)


def write_results(
    place: Path,
    result: Comparison,
    values: Mapping[str, SystemValues],
    studies: Sequence[Study],
    signatures: Mapping[Metric, Signature],
    given: Sequence[MetricElsewhere] = (),
    images: Stamps | None = None,
) -> None:
    """Write every result file into a folder.

    Args:
        given: metrics that were computed elsewhere.
        images: what the image files were like that the values were computed from.
    """
    tables = all_tables(result)
    write_json(place / CONTENT, content_of(result))
    texts = {
        MARKDOWN: markdown(tables, result.signatures.values()),
        LATEX: "\n".join(
            [
                *(table.latex() for table in tables),
                *(f"% {s}" for s in result.signatures.values()),
                "",
            ]
        ),
        SYSTEMS: systems_rows(result).csv(),
        DIFFERENCES: differences_rows(result).csv(),
        TEXTS: texts_table(result).csv(),
    }
    for name, text in texts.items():
        with atomic_write(place / name) as stream:
            stream.write(text)
    _write_values(place / VALUES, values, studies, signatures, given)
    write_numbers(place / NUMBERS, values, signatures, studies, images or {})
    with atomic_write(place / FAILURES) as stream:
        writer = csv.writer(stream)
        writer.writerow(["system", "id", "metric", "error"])
        for name, each in values.items():
            for row, reasons in sorted(each.failures.items()):
                for metric, reason in reasons.items():
                    writer.writerow(cells([name, studies[row].id, metric, reason]))


def write_paper_table(folder: Path, content: Mapping[str, Any], settings: TableSettings) -> None:
    """Write the one table of a comparison in every format, where a file differs from it.

    Args: content: of comparison.json.
    Raises: InvalidSetting as `paper_table`.
    """
    table = paper_table(content, settings)
    for suffix in PAPER_FORMATS:
        write_changed(folder / f"{PAPER}.{suffix}", table.formatted(suffix))


def content_of(result: Comparison) -> dict[str, Any]:
    """Return the content of comparison.json."""
    texts = {"notes": result.notes, "texts": result.texts, "failed": result.failed}
    return plain_dict({**_numbers_of(result), **texts, "tables": all_tables(result)})


def _numbers_of(result: Comparison) -> dict[str, Any]:
    """Return the part of comparison.json from which tables and figures are made."""
    return plain_dict(
        {
            "studies": result.studies,
            "systems": result.systems,
            "against": result.against,
            "measured": result.measured,
            "tested": result.tested,
            "signatures": result.signatures,
        }
    )


def first_failures(path: Path) -> list[Failure]:
    """Return the missing values, by system and id, each reason once."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = csv.DictReader(stream)
        found = dict.fromkeys(
            Failure(from_cell(r["system"]), from_cell(r["id"]), from_cell(r["error"])) for r in rows
        )
    return list(found)


def _write_values(
    path: Path,
    values: Mapping[str, SystemValues],
    studies: Sequence[Study],
    signatures: Mapping[Metric, Signature],
    given: Sequence[MetricElsewhere],
) -> None:
    """Write one row a system and study; the metadata has the signatures."""
    layout = NumberLayout(tuple(signatures))
    names = [name for metric in signatures for name in metric.columns]
    names += [each.name for each in given]
    printed = {str(metric): str(signature) for metric, signature in signatures.items()}
    printed |= {each.name: each.signature for each in given}
    schema = pa.schema(
        [
            pa.field("system", pa.string()),
            pa.field("id", pa.string()),
            *(pa.field(name, pa.float64()) for name in names),
            pa.field("error", pa.string()),
        ],
        metadata={f"vlscore.signature.{name}": text for name, text in printed.items()},
    )
    ids = [study.id for study in studies]
    with pq.ParquetWriter(path, schema) as writer:
        for name, each in values.items():
            numbers = [
                column
                for metric in signatures
                for column in each.numbers[:, layout.columns(metric)].T
            ]
            unknown = np.full(len(ids), np.nan)
            numbers += [metric.values.get(name, unknown) for metric in given]
            errors = [
                "; ".join(dict.fromkeys(each.failures[row].values()))
                if row in each.failures
                else None
                for row in range(len(ids))
            ]
            columns = [
                pa.array([name] * len(ids), pa.string()),
                pa.array(ids, pa.string()),
                *(pa.array(column, mask=~np.isfinite(column)) for column in numbers),
                pa.array(errors, pa.string()),
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))


# Values that a sentence names; the files have all of them.
_SHOWN = 3

DISAGREEMENT = (
    "Intervals come from the bootstrap and p from randomization, which can disagree near the "
    "border: * one of the two shows a difference at 5 %, the other does not."
)


def cautions(measured: Sequence[Measured], tested: Sequence[Tested]) -> list[str]:
    """Return sentences about disagreeing tests and about resamples that are left out."""
    found = []
    if differ := [test for test in tested if test.disagrees]:
        named = [f"{test.name} of {test.first} - {test.second}" for test in differ[:_SHOWN]]
        found.append(
            f"in {len(differ)} of {len(tested)} differences the 95 % interval and p < 0.05 "
            f"disagree ({_and_more(named, len(differ))}): the interval comes from the bootstrap, p "
            "from randomization; call no such difference significant"
        )
    shares = {
        each.name: max(each.left_out.values())
        for each in measured
        if any(not math.isnan(each.values[name].low) for name in each.left_out)
    }
    if shares:
        named = [f"{name} {100 * share:.0f} %" for name, share in [*shares.items()][:_SHOWN]]
        found.append(
            "some resamples hold no report that mentions the observation, so that it has no F1 in "
            f"them; intervals leave them out: {_and_more(named, len(shares))}"
        )
    return found


def families(measured: Sequence[Measured], tested: Sequence[Tested]) -> list[str]:
    """Return a sentence about the tests over which p values are adjusted."""
    headlines = {each.name for each in measured if each.is_headline}
    count = sum(test.name in headlines for test in tested)
    if count == len(tested):
        return []
    pairs = len({(test.first, test.second) for test in tested})
    return [
        f"p is adjusted over {count} tests, the headlines of {len(headlines)} metrics times "
        f"{pairs} pairs of systems; `--family all` adjusts over all {len(tested)} tests, those of "
        "labels, precision and the like, too"
    ]


def _and_more(named: Sequence[str], count: int) -> str:
    shown = ", ".join(named)
    return f"{shown}, and {count - _SHOWN} more" if count > _SHOWN else shown
