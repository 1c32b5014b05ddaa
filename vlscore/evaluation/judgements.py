"""From a table of candidates and references to a folder of judgements, resumably."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import OnProgress, ResumableFolder, __version__, no_progress, plain, read_frame
from vlscore.data import (
    BadRow,
    ColumnNames,
    Study,
    TextPolicy,
    columns_of,
    open_studies,
)
from vlscore.errors import InvalidReport, InvalidStudy, InvalidTable
from vlscore.evaluation.row_files import (
    RowFiles,
    bad_rows_of,
    csv_of,
    join_failures,
    join_parts,
)
from vlscore.metrics import Judgement, RuleJudge, patient_of, rating
from vlscore.perturb import ErrorCategory
from vlscore.stats import FAILURES, Run, TextTable

if TYPE_CHECKING:
    import pandas


JUDGEMENTS, TOTALS, SUMMARY, _TABLES = (
    "judgements.jsonl",
    "totals.csv",
    "summary.json",
    "tables.md",
)
_NUMBERS = ("rating", "sum", "maximum", "count", "significant")
_COLUMNS = ("study_id", *_NUMBERS, *(str(category) for category in ErrorCategory))


@dataclass(frozen=True)
class JudgedReports(Run):
    """Judgements of candidates, and their files.

    These are judgements.jsonl (each error of each study), totals.csv (one row a study),
    summary.json, tables.md and failures.csv.
    """

    results = (JUDGEMENTS, TOTALS, SUMMARY, FAILURES, _TABLES)

    @property
    def reports(self) -> int:
        """How many were judged."""
        return int(self.content["reports"])

    @property
    def bad_rows(self) -> list[BadRow]:
        """Rows that could not be judged."""
        return bad_rows_of(self)

    @property
    def means(self) -> Mapping[str, float]:
        """Mean over studies of rating, sum, maximum, count and significant."""
        found: Mapping[str, float] = self.content["means"]
        return found

    @property
    def totals(self) -> Mapping[str, int]:
        """Number of errors of each category, over all studies."""
        found: Mapping[str, int] = self.content["totals"]
        return found

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
    on_progress: OnProgress | None = None,
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

    def compute(folder: ResumableFolder) -> None:
        run = _JudgeRun(judge, text_policy, age_column, indication_column)
        run.take_all(folder, table, on_progress or no_progress)
        if run.rows == run.bad:
            raise InvalidTable(f"{table.path}: no row could be judged")
        folder.finish(lambda place: run.write(folder, place), rows=run.rows)

    return JudgedReports.make(out, key, compute, overwrite=overwrite, notes=table.notes)


class _JudgeRun(RowFiles[Study]):
    """Judges rows, and counts the errors."""

    def __init__(
        self,
        judge: RuleJudge,
        text_policy: TextPolicy | None,
        age_column: str,
        indication_column: str,
    ) -> None:
        super().__init__()
        self.judge, self.text_policy = judge, text_policy
        self.age_column, self.indication_column = age_column, indication_column
        self.sums: Counter[str] = Counter()
        self.severities: Counter[str] = Counter()

    def count(self, rows: int, note: Mapping[str, Any]) -> None:
        super().count(rows, note)
        self.sums.update(note["sums"])
        self.severities.update(note["severities"])

    def take(
        self, rows: Sequence[Study | BadRow], on_progress: OnProgress
    ) -> tuple[dict[str, str], dict[str, Any]]:
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
            FAILURES: csv_of(failures),
        }
        note = {"bad": len(failures), "sums": dict(sums), "severities": dict(severities)}
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
        join_parts(folder.chunks(), JUDGEMENTS, place / JUDGEMENTS)
        join_parts(folder.chunks(), TOTALS, place / TOTALS, csv_of([_COLUMNS]))
        join_failures(folder.chunks(), place)
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
