"""Judgements of a table of candidates and references."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vlscore.claims import claims_of, evidence_digest, read_evidence
from vlscore.core import OnProgress, __version__, frame, json_line, no_progress
from vlscore.data import Study, StudyTable, TextPolicy, as_table
from vlscore.errors import Failure, InvalidReport, InvalidSetting, InvalidStudy
from vlscore.findings import language_notes
from vlscore.metrics import (
    CANDIDATE,
    NOBODY,
    REFERENCE,
    SEVERITIES,
    TRUST,
    AnswerCounts,
    ImageFindings,
    JudgeCase,
    Judgement,
    ModelJudge,
    RuleJudge,
    ask_image_judge,
    findings_seen,
    patient_of,
    rating,
    rating_with_image,
)
from vlscore.perturb import ErrorCategory
from vlscore.stats import (
    UNDEFINED,
    Content,
    Presentation,
    Result,
    TextTable,
    bootstrap_mean,
    text_table,
)

if TYPE_CHECKING:
    import pandas

    from vlscore.embedding import StudyEmbedder


JUDGEMENTS, TOTALS = "judgements.jsonl", "totals.csv"
_SCORES = ("rating", "grade", "sum", "maximum", "count", "significant")
#: Score of a study with evidence of its image.
IMAGE_RATING = "rating_with_image"
# Findings in the printed table.
_MOST_FINDINGS = 15
# Rows of which a model gets all questions at once.
_ROWS_AT_ONCE = 1000


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


def judge(
    studies: str | Path | StudyTable,
    out: str | Path,
    *,
    judge: RuleJudge | ModelJudge | None = None,
    evidence: str | Path | None = None,
    embedder: "StudyEmbedder | None" = None,
    trust: float = TRUST,
    age_column: str = "age",
    indication_column: str = "indication",
    text_policy: TextPolicy | None = None,
    prices: TokenPrices | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> Result:
    """Judge every candidate of a table against its reference.

    Args:
        studies: table with `reference` and `candidate`; see `open_studies`.
        out: folder for the results: judgements.jsonl (each error of each study) and totals.csv (one
            row a study: scores, errors by category) besides the usual ones. The frame "scores" has
            the means over studies, "errors" the errors by category and severity, "findings" those
            by finding, "answers" the counts of a model's answers.
        judge: what judges; default: by rules, with the shipped tables.
        evidence: evidence.npz of `claims`: each error then says whether the image sides with the
            candidate or the reference, and each study has the rating with the image.
        embedder: encoder and policies that the evidence was fitted with.
        trust: probability that the reference is right before the image is looked at.
        age_column, indication_column: of the patient; used where the table has them. An age is
            in years, or as DICOM writes it ("072Y", "003M").
        text_policy: which section of the reports is judged; default: all of the text.
        prices: of a model's tokens; with them the summary has the cost.
        workers: processes that decode images.
        overwrite: compute again; earlier results stay until the new ones are complete.
        on_progress: called with (rows done, rows failed).

    Raises: InvalidTable where the table cannot be read; InvalidSetting where `out` holds other
        results; FolderInUse. EndpointFailed where a model gives no more answers; the same call then
        asks only what the cache does not hold. A row that cannot be judged raises nothing: it is
        listed in failures.csv, also where there is no other.
    """
    judge = judge or RuleJudge()
    if prices is not None and not all(0 <= price < float("inf") for price in prices):
        raise InvalidSetting(f"prices are 0 or more, not {tuple(prices)}")
    patient_columns = age_column, indication_column
    opened = as_table(studies)
    table = as_table(
        opened,
        {"reference", "candidate"} | ({"image"} if evidence is not None else set()),
        also=[name for name in patient_columns if name in opened.found],
    )
    key: dict[str, Any] = {
        "vlscore": __version__,
        "command": "judge",
        "judge": judge.name,
        **table.key,
        "patient_columns": list(patient_columns),
        "text_policy": None if text_policy is None else str(text_policy),
    }
    if prices is not None:
        key["prices"] = list(prices)
    signatures = {"judge": judge.name}
    if evidence is not None:
        from vlscore.embedding import StudyEmbedder  # loads torch

        embedder = (embedder or StudyEmbedder()).for_table(table)
        signatures["image"] = str(embedder.signature)
        key["image"] = [evidence_digest(evidence), trust, str(embedder.signature)]
    work = _JudgeWork(judge, text_policy, patient_columns, trust)

    def compute(folder: Path) -> Content:
        show, rows_read = on_progress or no_progress, 0
        if evidence is not None:
            assert embedder is not None
            rows_read = work.look(table, embedder, evidence, workers, show)
        totals = work.write(
            table, folder / JUDGEMENTS, lambda done, failed: show(rows_read + done, failed)
        )
        return _content(work, table, totals, signatures, prices)

    notes = _notes(table.notes, judge, prices)
    return Result.make(
        out,
        key,
        compute,
        images=None if evidence is None else table.image_files,
        overwrite=overwrite,
        notes=notes,
    )


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


class _JudgeWork:
    """Judges rows, counts severities and answers, and notes the rows that fail."""

    def __init__(
        self,
        judge: RuleJudge | ModelJudge,
        text_policy: TextPolicy | None,
        patient_columns: tuple[str, str],
        trust: float,
    ) -> None:
        self.judge, self.text_policy, self.trust = judge, text_policy, trust
        self.age_column, self.indication_column = patient_columns
        # What each row's image says, or why it could not be read; None without evidence.
        self.seen: dict[int | str | None, ImageFindings | str] | None = None
        self.failures: list[Failure] = []
        # Category, severity and finding of each error, and with whom the image sides.
        self.errors: list[tuple[ErrorCategory, int, str, str | None]] = []
        self._answers: Counter[str] = Counter()

    @property
    def answers(self) -> AnswerCounts:
        """Counts of a model's answers."""
        return AnswerCounts(**{name: self._answers[name] for name in AnswerCounts().to_dict()})

    def look(
        self,
        table: StudyTable,
        embedder: "StudyEmbedder",
        evidence: str | Path,
        workers: int,
        on_progress: OnProgress,
    ) -> int:
        """Read what the image of each row says about findings; return the number of rows.

        Raises: InvalidSetting for evidence of another encoder; InvalidTable without any image.
        """
        from vlscore.embedding import embed_table  # loads torch

        found = read_evidence(evidence, str(embedder.signature))
        images = embed_table(
            table, embedder, None, roles=["image"], workers=workers, on_progress=on_progress
        )
        said = findings_seen(found, images.vectors["image"].astype(float))
        seen: dict[int | str | None, ImageFindings | str] = {
            each.row: each.reason for each in images.failed
        }
        seen.update(zip((each.row for each in images.studies), said, strict=True))
        self.seen = seen
        return len(seen)

    def write(self, table: StudyTable, path: Path, on_progress: OnProgress) -> "pandas.DataFrame":
        """Write each study's errors as a line; return its scores, and errors by category."""
        totals = []
        names = ["study_id", *_SCORES, *([IMAGE_RATING] if self.seen is not None else [])]
        with path.open("w", encoding="utf-8", newline="") as lines:
            for row, case, judged in self._judged(table, on_progress):
                if isinstance(case, str) or isinstance(judged, str):
                    self.failures.append(Failure(row.row, row.id, str(judged)))
                    continue
                record = {"study_id": row.id, "rating": rating(judged), **judged.to_dict()}
                sides: list[str | None] = [None] * len(judged.errors)
                if self.seen is not None:
                    sides = self._ask_image(record, case, judged, self.seen[row.row])
                lines.write(json_line(record))
                totals.append({name: record[name] for name in names} | judged.totals)
                self.errors += [
                    (error.category, error.severity, error.finding, side)
                    for error, side in zip(judged.errors, sides, strict=True)
                ]
        if totals:
            return frame(totals)
        # Every row failed: failures.csv says why.
        import pandas

        return pandas.DataFrame(columns=[*names, *map(str, ErrorCategory)], dtype=float)

    def _ask_image(
        self, record: dict[str, Any], case: JudgeCase, judged: Judgement, seen: ImageFindings | str
    ) -> list[str | None]:
        """Add what the image says to the record of a study; return with whom it sides."""
        assert not isinstance(seen, str)
        claims = claims_of(case.candidate), claims_of(case.reference)
        answers = ask_image_judge(judged, *claims, seen, trust=self.trust)
        record[IMAGE_RATING] = rating_with_image(judged, answers, self.trust)
        for error, each in zip(record["errors"], answers, strict=True):
            error["sides_with"] = each.sides_with
            error["reference_is_right"] = each.reference_is_right
        return [each.sides_with for each in answers]

    def _judged(
        self, table: StudyTable, on_progress: OnProgress
    ) -> Iterator[tuple[Study | Failure, JudgeCase | str, Judgement | str]]:
        """Yield each row with its reports and its judgement, or with the reason why it has none."""
        rows, start, done = iter(table), 0, 0

        def on_judged() -> None:
            nonlocal done
            done += 1
            on_progress(done, len(self.failures))

        while some := list(islice(rows, _ROWS_AT_ONCE)):
            cases = [self._case(row) for row in some]
            usable = [case for case in cases if isinstance(case, JudgeCase)]
            outcomes = iter(self.judge.judge_all(usable, on_judged))
            for row, case in zip(some, cases, strict=True):
                if isinstance(case, str):
                    yield row, case, case
                    continue
                outcome = next(outcomes)
                if outcome.counts is not None:
                    self._answers.update(outcome.counts.to_dict())
                yield row, case, outcome.judgement or str(outcome.error)
            start = done = start + len(some)
            on_progress(done, len(self.failures))

    def _case(self, row: Study | Failure) -> JudgeCase | str:
        """Return what a row asks the judge, or why it cannot be judged."""
        if isinstance(row, Failure):
            return row.reason
        if self.seen is not None and isinstance(reason := self.seen[row.row], str):
            return reason
        age, indication = (row.extra.get(n) for n in (self.age_column, self.indication_column))
        try:
            patient = patient_of(age, indication, self.age_column)
            chosen = row if self.text_policy is None else row.selected(self.text_policy)
        except (InvalidReport, InvalidStudy) as error:
            return str(error)
        return JudgeCase(chosen.candidate or "", chosen.reference or "", patient)


def _content(
    work: _JudgeWork,
    table: StudyTable,
    totals: "pandas.DataFrame",
    signatures: Mapping[str, str],
    prices: TokenPrices | None,
) -> Content:
    """Return the summary of all judged rows."""
    names = [name for name in (*_SCORES, IMAGE_RATING) if name in totals]
    severities = Counter((category, severity) for category, severity, _, _ in work.errors)
    frames = {
        "scores": frame(
            {"score": name, "mean": bootstrap_mean(totals[name]) if len(totals) else UNDEFINED}
            for name in names
        ),
        "errors": frame(
            {
                "category": str(category),
                **{str(grade): severities[category, grade] for grade in SEVERITIES},
                "all": int(totals[str(category)].sum()),
            }
            for category in ErrorCategory
        ),
    }
    if work.errors:
        frames["findings"] = _findings(work.errors)
    if work.seen is not None:
        sides = Counter((category, side) for category, _, _, side in work.errors)
        frames["image"] = frame(
            {
                "category": str(category),
                **{side: sides[category, side] for side in (CANDIDATE, REFERENCE, NOBODY)},
            }
            for category in ErrorCategory
        )
    notes = []
    if isinstance(work.judge, ModelJudge):
        cost = {} if prices is None else {"cost": prices.cost(work.answers)}
        frames["answers"] = frame([work.answers.to_dict() | cost])
    else:
        studies = [row for row in table if isinstance(row, Study)]
        texts = {f"{n}s": [getattr(study, n) for study in studies] for n in (REFERENCE, CANDIDATE)}
        # A note where the rules read few sentences of the table's reports.
        notes = language_notes(texts, ["judge"])
    return Content(
        frames,
        {TOTALS: totals},
        work.failures,
        signatures,
        notes,
        facts={"table": str(table.path.resolve()), "reports": len(totals)},
    )


def _findings(errors: Sequence[tuple[ErrorCategory, int, str, str | None]]) -> "pandas.DataFrame":
    """Return one row a finding, those of the largest sum of severities first."""
    found: dict[str, dict[str, int]] = {}
    columns = {ErrorCategory.OMITTED_FINDING: "missed", ErrorCategory.FALSE_FINDING: "false"}
    for category, severity, finding, _ in errors:
        empty = dict.fromkeys(("missed", "false", "other errors", "sum of severities"), 0)
        own = found.setdefault(finding, empty)
        own[columns.get(category, "other errors")] += 1
        own["sum of severities"] += severity
    ordered = sorted(found.items(), key=lambda item: (-item[1]["sum of severities"], item[0]))
    return frame({"finding": finding, **own} for finding, own in ordered)


def _tables(run: Result) -> list[TextTable]:
    frames = run.frames
    errors = frames["errors"]
    shown = errors.assign(category=errors["category"].str.replace("_", " "))
    tables = [
        text_table(f"Scores of {run.record['reports']} reports", frames["scores"], digits=4),
        text_table("Errors by category and severity", shown),
    ]
    if "findings" in frames:
        found, caption = frames["findings"], ""
        if len(found) > _MOST_FINDINGS:
            caption = f"The first {_MOST_FINDINGS} of {len(found)}; result.json has all."
        tables.append(text_table("Findings that cost most", found.head(_MOST_FINDINGS), caption))
    if "image" in frames:
        tables.append(text_table("Errors: the image sides with", frames["image"]))
    if "answers" in frames:
        (counts,) = frames["answers"].to_dict("records")
        rows = [{"number of": n.replace("_", " "), "all": each} for n, each in counts.items()]
        title = "Answers of the model, also those from the cache"
        tables.append(text_table(title, rows, digits=4))
    return tables


PRESENTATION = Presentation(_tables, page="vlscore.pages.command_views:judge_view")
