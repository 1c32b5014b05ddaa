"""Failure modes of a rated set into a folder of results."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore._files import file_digest, plain, write_json
from vlscore._frames import frame
from vlscore._record import run_record
from vlscore._resumable import ResumableFolder
from vlscore.alignment.failure_modes import RATE, CategoryMean, FailureModes, failure_modes
from vlscore.alignment.pairs import RatedPairs
from vlscore.alignment.tables import write_csv
from vlscore.display import TextTable, interval, markdown, p_value

if TYPE_CHECKING:
    import pandas

_CONTENT = "failure_modes.json"
_RESULTS = (_CONTENT, "means.csv", "tests.csv", "tables.md", "tables.tex")
_MEANS = (
    "Mean errors of a report, by the metric that chose it: fewer are better. 95 % bootstrap "
    "intervals over studies. n: rated reports."
)
_TESTS = (
    "Reports of the first metric have more errors than those of the other, by a one-sided paired t "
    "test over n studies, at a false discovery rate of {rate:g} (p: adjusted over {count} tests, "
    "Benjamini-Hochberg). tests.csv has every pair of metrics."
)


@dataclass(frozen=True)
class FailureRun:
    """Failure modes and their files.

    Attributes:
        folder: with failure_modes.json, the tables and run.json; docs/alignment.md describes them.
        content: of failure_modes.json.
        tables: as they are printed.
        notes: what a user should know besides.
        result: the numbers; None where the run had ended before.
        unchanged: everything was there already.
    """

    folder: Path
    content: dict[str, Any]
    tables: list[TextTable]
    notes: tuple[str, ...]
    result: FailureModes | None = None
    unchanged: bool = False

    def to_pandas(self) -> "pandas.DataFrame":
        """One row a metric that chose, significance and category: mean errors, n. Needs pandas."""
        return frame(self.content["means"])

    def first_failures(self, count: int) -> list[tuple[int, str, str]]:
        """(row, id, reason) of the first rows that could not be used."""
        failures = self.content["failures"][:count]
        return [(each["row"], each["id"] or "", each["reason"]) for each in failures]


def run_failure_modes(
    pairs: RatedPairs,
    out: str | Path,
    *,
    rate: float = RATE,
    resamples: int = 1000,
    seed: int = 0,
    overwrite: bool = False,
) -> FailureRun:
    """Compare the errors of the oracles of a rated set, and write tables and all numbers.

    Args:
        pairs: what `read_ratings` read; candidates are called by the metrics that chose them.
        out: folder for the results.
        rate: false discovery rate.
        resamples, seed: of the bootstrap.
        overwrite: replace earlier results.

    Raises: InvalidSetting, FolderInUse.
    """
    began = time.monotonic()
    key = {
        "files": {file.name: file_digest(file) for file in pairs.files},
        "pairs_sha256": pairs.sha256,
        "rate": rate,
        "resamples": resamples,
        "seed": seed,
    }
    with ResumableFolder(out, key, results=_RESULTS, overwrite=overwrite) as folder:
        if folder.record is not None:
            return _read(folder.out, folder.record)
        result = failure_modes(pairs, rate=rate, resamples=resamples, seed=seed)
        tables = failure_tables(result)
        content: dict[str, Any] = plain(
            {
                "pairs": len(pairs),
                "studies": len(set(pairs.studies)),
                "raters": pairs.raters,
                "candidates": result.candidates,
                "rate": rate,
                "means": result.means,
                "tests": result.tests,
                "tables": tables,
                "failures": pairs.bad,
            }
        )

        def write(place: Path) -> dict[str, Any]:
            write_json(place / _CONTENT, content)
            write_csv(place / "means.csv", result.means)
            write_csv(place / "tests.csv", result.tests)
            (place / "tables.md").write_text(markdown(tables), encoding="utf-8")
            latex = "\n".join(table.latex() for table in tables)
            (place / "tables.tex").write_text(latex, encoding="utf-8")
            return run_record(
                files=[str(file.resolve()) for file in pairs.files],
                notes=list(pairs.notes),
                seconds=round(time.monotonic() - began, 3),
            )

        folder.finish(write, rows=0)
        return FailureRun(folder.out, content, tables, pairs.notes, result)


def failure_tables(found: FailureModes) -> list[TextTable]:
    """A table of means for each significance, and one of the oracles that are worse."""
    tables = []
    for which in dict.fromkeys(each.which for each in found.means):
        means = [each for each in found.means if each.which == which]
        tables.append(_means(which, found.candidates, means))
        tests = [each for each in found.tests if each.which == which]
        rows = tuple(
            (
                each.candidate,
                each.other,
                each.category,
                str(each.n),
                f"{each.difference:+.3f}",
                p_value(each.adjusted_p),
            )
            for each in tests
            if each.is_worse
        )
        if rows:
            columns = ("metric", "other", "category", "n", "more errors", "p")
            caption = _TESTS.format(rate=found.rate, count=len(tests))
            tables.append(TextTable(f"More errors: {_named(which)}", columns, rows, caption))
    return tables


def _means(which: str, candidates: Sequence[str], means: Sequence[CategoryMean]) -> TextTable:
    known = {(each.candidate, each.category): each for each in means}
    categories = list(dict.fromkeys(each.category for each in means))
    rows = []
    for name in candidates:
        cells = [known.get((name, category)) for category in categories]
        counts = sorted({each.n for each in cells if each is not None})
        shown = "-".join(map(str, counts)) if counts else "0"
        rows.append((name, shown, *(interval(None if c is None else c.mean) for c in cells)))
    columns = ("metric", "n", *categories)
    return TextTable(f"Errors of the chosen reports: {_named(which)}", columns, tuple(rows), _MEANS)


def _named(which: str) -> str:
    return f"{which} errors"


def _read(out: Path, record: Mapping[str, Any]) -> FailureRun:
    """A finished run, from its files."""
    content = json.loads((out / _CONTENT).read_text(encoding="utf-8"))
    tables = [
        TextTable(t["title"], tuple(t["columns"]), tuple(map(tuple, t["rows"])), t["caption"])
        for t in content["tables"]
    ]
    return FailureRun(out, content, tables, tuple(record["notes"]), unchanged=True)
