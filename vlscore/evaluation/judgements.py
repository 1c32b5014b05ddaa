"""Judgements of a table of candidates and references, in a resumable folder."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vlscore.core import OnProgress, ResumableFolder, __version__, no_progress, plain, read_frame
from vlscore.data import BadRow, ColumnNames, Study, TextPolicy, columns_of, open_studies
from vlscore.errors import InvalidReport, InvalidSetting, InvalidStudy, InvalidTable
from vlscore.evaluation.row_chunks import RowFiles, RunOfRows, csv_of, join_failures, join_parts
from vlscore.metrics import (
    AnswerCounts,
    JudgeCase,
    Judgement,
    ModelJudge,
    RuleJudge,
    patient_of,
    rating,
)
from vlscore.perturb import ErrorCategory
from vlscore.stats import FAILURES, TextTable

if TYPE_CHECKING:
    import pandas


JUDGEMENTS, TOTALS, SUMMARY, _TABLES = (
    "judgements.jsonl",
    "totals.csv",
    "summary.json",
    "tables.md",
)
_NUMBERS = ("rating", "sum", "maximum", "count", "significant")
# Rows of a chunk of a model's judgements: without a cache, a kill costs so many answers.
_ROWS_OF_A_MODEL = 100
_COLUMNS = ("study_id", *_NUMBERS, *(str(category) for category in ErrorCategory))


class TokenPrices(NamedTuple):
    """Prices of a million tokens, in any one currency.

    Attributes:
        tokens_in: of questions.
        tokens_out: of answers.
    """

    tokens_in: float
    tokens_out: float

    def cost(self, counts: AnswerCounts) -> float:
        """Return the price of these answers."""
        per_token = (counts.tokens_in * self.tokens_in, counts.tokens_out * self.tokens_out)
        return sum(per_token) / 1e6


@dataclass(frozen=True)
class JudgedReports(RunOfRows):
    """Judgements of candidates, and their files.

    These are judgements.jsonl (each error of each study), totals.csv (one row a study),
    summary.json, tables.md and failures.csv.
    """

    results = (JUDGEMENTS, TOTALS, SUMMARY, FAILURES, _TABLES)

    @property
    def reports(self) -> int:
        """Return the number of reports that were judged."""
        return int(self.content["reports"])

    @property
    def means(self) -> Mapping[str, float]:
        """Return mean over studies of rating, sum, maximum, count and significant."""
        found: Mapping[str, float] = self.content["means"]
        return found

    @property
    def totals(self) -> Mapping[str, int]:
        """Return number of errors of each category, over all studies."""
        found: Mapping[str, int] = self.content["totals"]
        return found

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a study: its scores, and its errors by category. Needs pandas."""
        return read_frame(self.folder / TOTALS, texts=["study_id"])


def judge(
    path: str | Path,
    out: str | Path,
    *,
    judge: RuleJudge | ModelJudge | None = None,
    columns: ColumnNames | None = None,
    age_column: str = "age",
    indication_column: str = "indication",
    text_policy: TextPolicy | None = None,
    prices: TokenPrices | None = None,
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
        prices: of a model's tokens; with them the summary has the cost.
        overwrite: make anew; earlier results stay until the new ones are complete.
        on_progress: called with (rows done, bad rows).

    Raises: InvalidTable where the table cannot be read or no row can be judged; InvalidSetting
        where `out` holds other results; FolderInUse. EndpointFailed where a model gives no more
        answers; the same call then resumes.
    """
    judge = judge or RuleJudge()
    if prices is not None and not all(0 <= price < float("inf") for price in prices):
        raise InvalidSetting(f"prices are 0 or more, not {tuple(prices)}")
    found = set(columns_of(Path(path)))
    also = [name for name in (age_column, indication_column) if name in found]
    table = open_studies(path, needs=("reference", "candidate"), columns=columns, also=also)
    key = plain(
        {
            "command": "judge",
            "vlscore": __version__,
            "judge": judge.name,
            "table_sha256": table.sha256,
            "columns": table.columns.to_dict(),
            "patient_columns": [age_column, indication_column],
            "text_policy": None if text_policy is None else str(text_policy),
        }
    )

    if prices is not None:
        key["prices"] = list(prices)

    def compute(folder: ResumableFolder) -> None:
        run = _JudgeRun(judge, text_policy, (age_column, indication_column), prices)
        run.take_all(folder, table, on_progress or no_progress)
        if run.rows == run.bad:
            raise InvalidTable(f"{table.path}: no row could be judged")
        folder.finish(lambda place: run.write(folder, place), rows=run.rows)

    notes = _notes(table.notes, judge, prices)
    return JudgedReports.make(out, key, compute, overwrite=overwrite, notes=notes)


def _notes(
    notes: Sequence[str], judge: RuleJudge | ModelJudge, prices: TokenPrices | None
) -> Iterator[str]:
    """Yield the notes of a call; it is read after the work, when the answers are counted."""
    yield from notes
    if isinstance(judge, ModelJudge) and judge.paid.answers:
        paid = judge.paid
        cost = "" if prices is None else f", at a cost of {prices.cost(paid):.4f}"
        yield (
            f"this call asked the model for {paid.answers} answers: {paid.tokens_in} tokens of "
            f"questions, {paid.tokens_out} of answers{cost}; other answers came from the cache"
        )


class _JudgeRun(RowFiles[Study]):
    """Job that judges rows and counts the errors."""

    def __init__(
        self,
        judge: RuleJudge | ModelJudge,
        text_policy: TextPolicy | None,
        patient_columns: tuple[str, str],
        prices: TokenPrices | None,
    ) -> None:
        super().__init__()
        self.judge, self.text_policy = judge, text_policy
        self.age_column, self.indication_column = patient_columns
        self.prices = prices
        self.sums: Counter[str] = Counter()
        self.severities: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        if isinstance(judge, ModelJudge):
            self.rows_in_chunk = _ROWS_OF_A_MODEL

    def count(self, rows: int, note: Mapping[str, Any]) -> None:
        super().count(rows, note)
        self.sums.update(note["sums"])
        self.severities.update(note["severities"])
        self.answers.update(note.get("answers", {}))

    def take(
        self, rows: Sequence[Study | BadRow], on_progress: OnProgress
    ) -> tuple[dict[str, str], dict[str, Any]]:
        lines: list[str] = []
        totals: list[Sequence[Any]] = []
        failures: list[tuple[int, str | None, str]] = []
        sums: Counter[str] = Counter()
        severities: Counter[str] = Counter()
        answers: Counter[str] = Counter()
        for row, judged in self._judged(rows, on_progress, answers):
            if isinstance(judged, str):
                failures.append((row.row, row.id, judged))
                continue
            record = {"study_id": row.id, "rating": rating(judged), **judged.to_dict()}
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
            numbers = {**{name: record[name] for name in _NUMBERS}, **judged.totals}
            totals.append((row.id, *numbers.values()))
            sums.update(numbers)
            severities.update(f"{error.category} {error.severity}" for error in judged.errors)
        on_progress(self.rows + len(rows), self.bad + len(failures))
        files = {JUDGEMENTS: "".join(lines), TOTALS: csv_of(totals), FAILURES: csv_of(failures)}
        note = {"failed": len(failures), "sums": dict(sums), "severities": dict(severities)}
        return files, {**note, "answers": dict(answers)} if answers else note

    def _judged(
        self, rows: Sequence[Study | BadRow], on_progress: OnProgress, answers: Counter[str]
    ) -> Iterator[tuple[Study | BadRow, Judgement | str]]:
        """Yield each row with its judgement, or with the reason why it has none.

        Args: answers: takes the counts of a model's answers.
        """
        cases = [self._case(row) for row in rows]
        done = 0

        def on_done() -> None:
            nonlocal done
            done += 1
            on_progress(self.rows + done, self.bad)

        usable = [case for case in cases if isinstance(case, JudgeCase)]
        outcomes = iter(self.judge.judge_all(usable, on_done))
        for row, case in zip(rows, cases, strict=True):
            if isinstance(case, str):
                yield row, case
                continue
            outcome = next(outcomes)
            if outcome.counts is not None:
                answers.update(outcome.counts.to_dict())
            if outcome.judgement is None:
                yield row, str(outcome.error)
            else:
                yield row, outcome.judgement

    def _case(self, row: Study | BadRow) -> JudgeCase | str:
        """Return what a row asks the judge, or why it cannot be judged."""
        if isinstance(row, BadRow):
            return row.reason
        age, indication = (row.extra.get(n) for n in (self.age_column, self.indication_column))
        try:
            patient = patient_of(age, indication, self.age_column)
            chosen = row if self.text_policy is None else row.selected(self.text_policy)
        except (InvalidReport, InvalidStudy) as error:
            return str(error)
        return JudgeCase(chosen.candidate or "", chosen.reference or "", patient)

    def _answers(self) -> tuple[dict[str, Any], list[TextTable]]:
        """Return the counts of a model's answers with their cost, and their table."""
        if not isinstance(self.judge, ModelJudge):
            return {}, []
        counts = AnswerCounts(**{n: self.answers[n] for n in AnswerCounts().to_dict()})
        found: dict[str, Any] = counts.to_dict()
        shown = [(name.replace("_", " "), str(value)) for name, value in found.items()]
        if self.prices is not None:
            found["cost"] = self.prices.cost(counts)
            shown.append(("cost", f"{found['cost']:.4f}"))
        title = "Answers of the model, also those from the cache"
        return {"answers": found}, [TextTable(title, ("number of", "all"), tuple(shown))]

    def write(self, folder: ResumableFolder, place: Path) -> dict[str, Any]:
        """Write the results, and return what is in them."""
        join_parts(folder.chunks(), JUDGEMENTS, place / JUDGEMENTS)
        join_parts(folder.chunks(), TOTALS, place / TOTALS, csv_of([_COLUMNS]))
        join_failures(folder.chunks(), place)
        reports = self.rows - self.bad
        means = {name: self.sums[name] / reports for name in _NUMBERS}
        totals = {str(category): int(self.sums[str(category)]) for category in ErrorCategory}
        answers, table = self._answers()
        tables = [_scores_table(means, reports), _errors_table(self.severities, totals), *table]
        summary = {
            "judge": self.judge.name,
            "reports": reports,
            "means": means,
            "totals": totals,
            "severities": dict(sorted(self.severities.items())),
            **answers,
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
