"""From a table of candidates and references to a folder of judgements, resumably."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import ResumableFolder, __version__, plain, read_frame
from vlscore.data import (
    BadRow,
    ColumnNames,
    Study,
    StudyTable,
    TextPolicy,
    columns_of,
    open_studies,
)
from vlscore.errors import InvalidReport, InvalidStudy, InvalidTable
from vlscore.metrics import Judgement, RuleJudge, csv_of, failed_rows, patient_of, rating
from vlscore.perturb import ErrorCategory
from vlscore.stats import TextTable

if TYPE_CHECKING:
    import pandas


JUDGEMENTS, TOTALS, SUMMARY = "judgements.jsonl", "totals.csv", "summary.json"
_FAILURES, _TABLES = "failures.csv", "tables.md"
_RESULTS = (JUDGEMENTS, TOTALS, SUMMARY, _FAILURES, _TABLES)
# A second of work, which is what a kill can cost.
_ROWS_IN_CHUNK = 1000
_NUMBERS = ("rating", "sum", "maximum", "count", "significant")
_COLUMNS = ("study_id", *_NUMBERS, *(str(category) for category in ErrorCategory))

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class JudgedReports:
    """What `judge_table` wrote.

    Attributes:
        folder: with judgements.jsonl (each error of each study), totals.csv (one row a study),
            summary.json, tables.md and failures.csv.
        reports: how many were judged.
        bad_rows: rows that could not be judged.
        means: mean over studies of rating, sum, maximum, count and significant.
        totals: number of errors of each category, over all studies.
        tables: the same, for a terminal.
        unchanged: the folder held these judgements already.
        resumed_from: rows that an earlier, stopped call had done.
        notes: what a user should know besides.
    """

    folder: Path
    reports: int
    bad_rows: list[BadRow] = field(repr=False)
    means: Mapping[str, float]
    totals: Mapping[str, int]
    tables: list[TextTable] = field(repr=False)
    unchanged: bool = False
    resumed_from: int = 0
    notes: tuple[str, ...] = ()

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a study: its scores, and its errors by category. Needs pandas."""
        return read_frame(self.folder / TOTALS, texts=["study_id"])


def judge_table(
    path: str | Path,
    out: str | Path,
    *,
    judge: RuleJudge | None = None,
    columns: ColumnNames | None = None,
    age_column: str = "age",
    indication_column: str = "indication",
    text_policy: TextPolicy | None = None,
    overwrite: bool = False,
    on_progress: Progress | None = None,
) -> JudgedReports:
    """Judge every candidate of a table against its reference; resumable, in constant memory.

    Args:
        path: table with `reference` and `candidate`; see `open_studies`.
        out: folder for the results.
        judge: what judges; default: by rules, with the shipped tables.
        columns: other column names.
        age_column, indication_column: of the patient; used where the table has them. An age is
            in years, or as DICOM writes it ("072Y", "003M").
        text_policy: which section of the reports is judged; default: all of the text.
        overwrite: make anew; earlier results stay until the new ones are complete.
        on_progress: called with (rows done, bad rows).

    Raises: InvalidTable where the table cannot be read or no row can be judged; InvalidSetting
        where `out` holds other results; FolderInUse.
    """
    judge = judge or RuleJudge()
    found = set(columns_of(Path(path)))
    also = [name for name in (age_column, indication_column) if name in found]
    table = open_studies(path, needs=("reference", "candidate"), columns=columns, also=also)
    key = plain(
        {
            "vlscore": __version__,
            "judge": judge.name,
            "table_sha256": table.sha256,
            "columns": table.columns.to_dict(),
            "patient_columns": [age_column, indication_column],
            "text_policy": None if text_policy is None else str(text_policy),
        }
    )
    with ResumableFolder(out, key, results=_RESULTS, overwrite=overwrite) as folder:
        record = folder.record
        if record is None:
            run = _JudgeRun(judge, text_policy, age_column, indication_column)
            _judge_rows(run, folder, table, on_progress or (lambda done, bad: None))
            record = folder.finish(lambda place: run.write(folder, place), rows=run.rows)
        return JudgedReports(
            folder.out,
            record["reports"],
            failed_rows(folder.out / _FAILURES),
            record["means"],
            record["totals"],
            [
                TextTable(
                    t["title"], tuple(t["columns"]), tuple(map(tuple, t["rows"])), t["caption"]
                )
                for t in record["tables"]
            ],
            folder.unchanged,
            folder.resumed_from,
            table.notes,
        )


def _judge_rows(
    run: "_JudgeRun", folder: ResumableFolder, table: StudyTable, on_progress: Progress
) -> None:
    """Judge what earlier calls have left over."""
    for chunk in folder.chunks():
        run.count(chunk.rows, chunk.note)
    on_progress(run.rows, run.bad)
    rows = islice(table, folder.rows, None)
    while some := list(islice(rows, _ROWS_IN_CHUNK)):
        files, note = run.take(some, on_progress)
        with folder.append(len(some), note) as place:
            for name, content in files.items():
                (place / name).write_bytes(content.encode("utf-8"))
    if run.rows == run.bad:
        raise InvalidTable(f"{table.path}: no row could be judged")


class _JudgeRun:
    """Judges rows, and counts what comes of them."""

    def __init__(
        self,
        judge: RuleJudge,
        text_policy: TextPolicy | None,
        age_column: str,
        indication_column: str,
    ) -> None:
        self.judge, self.text_policy = judge, text_policy
        self.age_column, self.indication_column = age_column, indication_column
        self.rows = self.bad = 0
        self.sums: Counter[str] = Counter()
        self.severities: Counter[str] = Counter()

    def count(self, rows: int, note: Mapping[str, Any]) -> None:
        """Add what a chunk of rows came to."""
        self.rows += rows
        self.bad += note["bad"]
        self.sums.update(note["sums"])
        self.severities.update(note["severities"])

    def take(
        self, rows: Sequence[Study | BadRow], on_progress: Progress
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """File -> its part for these rows, and what `count` takes."""
        lines: list[str] = []
        totals: list[Sequence[Any]] = []
        failures: list[tuple[int, str | None, str]] = []
        sums: Counter[str] = Counter()
        severities: Counter[str] = Counter()
        for number, row in enumerate(rows, start=1):
            try:
                judgement = self._judged(row)
            except (InvalidReport, InvalidStudy) as error:
                failures.append((row.row, row.id, str(error)))
                continue
            record = {"study_id": row.id, "rating": rating(judgement), **judgement.to_dict()}
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
            numbers = {**{name: record[name] for name in _NUMBERS}, **judgement.totals}
            totals.append((row.id, *numbers.values()))
            sums.update(numbers)
            severities.update(f"{error.category} {error.severity}" for error in judgement.errors)
            on_progress(self.rows + number, self.bad + len(failures))
        files = {
            JUDGEMENTS: "".join(lines),
            TOTALS: csv_of(totals),
            _FAILURES: csv_of(failures),
        }
        note = {"bad": len(failures), "sums": dict(sums), "severities": dict(severities)}
        self.count(len(rows), note)
        return files, note

    def _judged(self, row: Study | BadRow) -> Judgement:
        if isinstance(row, BadRow):
            raise InvalidStudy(row.reason)
        patient = patient_of(
            row.extra.get(self.age_column), row.extra.get(self.indication_column), self.age_column
        )
        chosen = row if self.text_policy is None else row.selected(self.text_policy)
        return self.judge.judge(chosen.candidate or "", chosen.reference or "", patient)

    def write(self, folder: ResumableFolder, place: Path) -> dict[str, Any]:
        """Write the results, and return what is in them."""
        heads = {
            JUDGEMENTS: "",
            TOTALS: csv_of([_COLUMNS]),
            _FAILURES: csv_of([("row", "id", "error")]),
        }
        for name, head in heads.items():
            with (place / name).open("wb") as joined:
                joined.write(head.encode("utf-8"))
                for chunk in folder.chunks():
                    joined.write((chunk.path / name).read_bytes())
        reports = self.rows - self.bad
        means = {name: self.sums[name] / reports for name in _NUMBERS}
        totals = {str(category): int(self.sums[str(category)]) for category in ErrorCategory}
        tables = [_scores_table(means, reports), _errors_table(self.severities, totals)]
        summary = {
            "judge": self.judge.name,
            "reports": reports,
            "means": means,
            "totals": totals,
            "severities": dict(sorted(self.severities.items())),
        }
        (place / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
        (place / _TABLES).write_text("\n".join(t.markdown() for t in tables), encoding="utf-8")
        return {**summary, "tables": [asdict(table) for table in tables]}


def _scores_table(means: Mapping[str, float], reports: int) -> TextTable:
    return TextTable(
        f"Scores of {reports} reports",
        ("score", "mean"),
        tuple((name, f"{value:.4f}") for name, value in means.items()),
    )


def _errors_table(severities: Mapping[str, int], totals: Mapping[str, int]) -> TextTable:
    grades = ("1", "2", "3", "4", "5")
    return TextTable(
        "Errors by category and severity",
        ("category", *grades, "all"),
        tuple(
            (
                category.replace("_", " "),
                *(str(severities.get(f"{category} {grade}", 0)) for grade in grades),
                str(total),
            )
            for category, total in totals.items()
        ),
    )
