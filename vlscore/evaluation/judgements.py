"""Judgements of a table of candidates and references."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.claims import claims_of, evidence_digest, read_evidence
from vlscore.core import OnProgress, __version__, checked_arguments, frame, no_progress
from vlscore.data import Study, StudyTable, TextPolicy, as_table, texts_by_role
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
    Outcome,
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
SCORES = ("rating", "grade", "sum", "maximum", "count", "significant")
#: Score of a study with evidence of its image.
IMAGE_RATING = "rating_with_image"
# Findings in the printed table.
_MOST_FINDINGS = 15
# Rows of which a model gets all questions at once.
_ROWS_AT_ONCE = 1000

# Number of a row -> what its image says about findings, or why it could not be read.
SeenByRow = Mapping[int | str | None, ImageFindings | str]


@checked_arguments
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
    prices: tuple[float, float] | None = None,
    workers: int = 0,
    overwrite: bool = False,
    on_progress: OnProgress = no_progress,
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
        prices: of a million tokens of a model's questions, and of its answers, in any one currency;
            with them the results have the cost.
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
        raise InvalidSetting(f"prices are 0 or more, not {prices}")
    patient, opened = (age_column, indication_column), as_table(studies)
    table = as_table(
        opened,
        {"reference", "candidate"} | ({"image"} if evidence is not None else set()),
        also=[name for name in patient if name in opened.found],
    )
    key: dict[str, Any] = {
        "vlscore": __version__,
        "command": "judge",
        "judge": judge.name,
        **table.key,
        "patient_columns": list(patient),
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

    def compute(folder: Path) -> Content:
        rows_read, seen = 0, None
        if evidence is not None:
            assert embedder is not None
            seen = _findings_of_images(table, embedder, evidence, workers, on_progress)
            rows_read = len(seen)
        case_of = partial(_case, columns=patient, text_policy=text_policy, seen=seen)
        judged = _judged(table, judge, case_of, lambda n, bad: on_progress(rows_read + n, bad))
        frames, rows, failures, answers = _frames(judged, seen, trust)
        about = []
        if isinstance(judge, ModelJudge):
            cost = {} if prices is None else {"cost": answers.cost(*prices)}
            frames["answers"] = frame([answers.to_dict() | cost])
        else:
            # A note where the rules read few sentences of the table's reports.
            about = language_notes(texts_by_role(table), ["judge"])
        facts = {"table": str(table.path.resolve()), "reports": len(rows[TOTALS])}
        return Content(frames, rows, failures, signatures, about, facts)

    def notes() -> Iterator[str]:
        """Yield the notes of the call; they are read after the work: the answers are counted."""
        yield from table.notes
        if isinstance(judge, ModelJudge) and judge.paid.answers:
            paid = judge.paid
            cost = "" if prices is None else f", at a cost of {paid.cost(*prices):.4f}"
            yield (
                f"this call asked the model for {paid.answers} answers: {paid.tokens_in} tokens of "
                f"questions, {paid.tokens_out} of answers{cost}; other answers came from the cache"
            )

    images = None if evidence is None else table.image_files
    return Result.make(out, key, compute, images=images, overwrite=overwrite, notes=notes())


def _findings_of_images(
    table: StudyTable,
    embedder: "StudyEmbedder",
    evidence: str | Path,
    workers: int,
    on_progress: OnProgress,
) -> SeenByRow:
    """Return what the image of each row says about findings.

    Raises: InvalidSetting for evidence of another encoder; InvalidTable without any image.
    """
    from vlscore.embedding import embed_table  # loads torch

    found = read_evidence(evidence, str(embedder.signature))
    images = embed_table(
        table, embedder, None, roles=["image"], workers=workers, on_progress=on_progress
    )
    seen: dict[int | str | None, ImageFindings | str] = {
        each.row: each.reason for each in images.failed
    }
    said = findings_seen(found, images.vectors["image"].astype(float))
    seen.update(zip((each.row for each in images.studies), said, strict=True))
    return seen


def _case(
    row: Study | Failure,
    columns: tuple[str, str],
    text_policy: TextPolicy | None,
    seen: SeenByRow | None,
) -> JudgeCase:
    """Return what a row asks the judge. Raises: InvalidReport, InvalidStudy where it cannot be."""
    if isinstance(row, Failure):
        raise InvalidStudy(row.reason)
    if seen is not None and isinstance(reason := seen[row.row], str):
        raise InvalidStudy(reason)
    age, indication = (row.extra.get(name) for name in columns)
    patient = patient_of(age, indication, columns[0])
    chosen = row if text_policy is None else row.selected(text_policy)
    return JudgeCase(chosen.candidate or "", chosen.reference or "", patient)


def _judged(
    table: StudyTable,
    judge: RuleJudge | ModelJudge,
    case_of: Callable[[Study | Failure], JudgeCase],
    on_progress: OnProgress,
) -> Iterator[tuple[Study | Failure, JudgeCase, Outcome]]:
    """Yield each row with its reports and the outcome; without reports where it cannot be judged.

    Args: case_of: as `_case`.
    """
    rows, done, failed = iter(table), 0, 0

    def on_judged() -> None:
        nonlocal done
        done += 1
        on_progress(done, failed)

    while some := list(islice(rows, _ROWS_AT_ONCE)):
        cases: dict[int, JudgeCase] = {}
        outcomes: dict[int, Outcome] = {}
        for k, row in enumerate(some):
            try:
                cases[k] = case_of(row)
            except (InvalidReport, InvalidStudy) as error:
                outcomes[k] = Outcome(None, error)
        end = done + len(some)
        found = judge.judge_all(list(cases.values()), on_judged)
        outcomes |= zip(cases, found, strict=True)
        for k, row in enumerate(some):
            failed += outcomes[k].judgement is None
            yield row, cases.get(k, JudgeCase("", "")), outcomes[k]
        done = end
        on_progress(done, failed)


def _frames(
    judged: Iterable[tuple[Study | Failure, JudgeCase, Outcome]],
    seen: SeenByRow | None,
    trust: float,
) -> "tuple[dict[str, pandas.DataFrame], dict[str, pandas.DataFrame], list[Failure], AnswerCounts]":
    """Return what is counted of all studies, and the rows of single studies.

    Returns: also the rows without a judgement, and counts of a model's answers.
    """
    import pandas

    records: list[dict[str, Any]] = []
    failures: list[Failure] = []
    answers = Counter(AnswerCounts().to_dict())
    for row, case, (judgement, error, counts) in judged:
        answers.update({} if counts is None else counts.to_dict())
        if judgement is None:
            failures.append(Failure(row.row, row.id, str(error)))
            continue
        record = {"study_id": row.id, "rating": rating(judgement), **judgement.to_dict()}
        if seen is not None:
            _add_image(record, case, judgement, seen[row.row], trust)
        records.append(record)
    names = ["study_id", *SCORES, *([IMAGE_RATING] if seen is not None else [])]
    totals = [{name: each[name] for name in names} | each["totals"] for each in records]
    # Where every row failed, failures.csv says why.
    empty = pandas.DataFrame(columns=[*names, *map(str, ErrorCategory)], dtype=float)
    scores = frame(totals) if totals else empty
    errors = [error for each in records for error in each["errors"]]
    frames = _counts(scores, errors)
    rows = {JUDGEMENTS: pandas.DataFrame(records), TOTALS: scores}
    return frames, rows, failures, AnswerCounts(**answers)


def _add_image(
    record: dict[str, Any],
    case: JudgeCase,
    judged: Judgement,
    seen: ImageFindings | str,
    trust: float,
) -> None:
    """Add what the image says to the record of a study."""
    assert not isinstance(seen, str)
    claims = claims_of(case.candidate), claims_of(case.reference)
    answers = ask_image_judge(judged, *claims, seen, trust=trust)
    record[IMAGE_RATING] = rating_with_image(judged, answers, trust)
    for error, each in zip(record["errors"], answers, strict=True):
        error["supports"] = each.supports
        error["reference_is_right"] = each.reference_is_right


def _counts(
    totals: "pandas.DataFrame", errors: Sequence[Mapping[str, Any]]
) -> "dict[str, pandas.DataFrame]":
    """Return the means of the scores, and errors by category, finding, and side of the image."""
    import pandas

    names = [name for name in (*SCORES, IMAGE_RATING) if name in totals]
    all_errors = pandas.DataFrame(errors, columns=["category", "severity", "finding", "supports"])

    def by_category(column: str, values: Collection[Any]) -> "pandas.DataFrame":
        """Count the errors of each category by the values of a column."""
        counts = pandas.crosstab(all_errors["category"], all_errors[column])
        counts = counts.reindex(
            index=list(map(str, ErrorCategory)), columns=list(values), fill_value=0
        )
        return counts.rename(columns=str).rename_axis(columns=None).reset_index()

    frames = {
        "scores": frame(
            {"score": name, "mean": bootstrap_mean(totals[name]) if len(totals) else UNDEFINED}
            for name in names
        ),
        "errors": by_category("severity", SEVERITIES),
    }
    frames["errors"]["all"] = [int(totals[str(category)].sum()) for category in ErrorCategory]
    if errors:
        frames["findings"] = _findings(all_errors)
    if IMAGE_RATING in totals:
        frames["image"] = by_category("supports", (CANDIDATE, REFERENCE, NOBODY))
    return frames


def _findings(errors: "pandas.DataFrame") -> "pandas.DataFrame":
    """Return one row a finding, those of the largest sum of severities first."""
    import pandas

    kinds = {
        str(ErrorCategory.OMITTED_FINDING): "missed",
        str(ErrorCategory.FALSE_FINDING): "false",
    }
    kind, total = errors["category"].map(kinds).fillna("other errors"), "sum of severities"
    found = pandas.crosstab(errors["finding"], kind)
    found = found.reindex(columns=["missed", "false", "other errors"], fill_value=0)
    found[total] = errors.groupby("finding")["severity"].sum()
    ordered = found.sort_values(total, ascending=False, kind="stable")
    return ordered.rename_axis(columns=None).reset_index()


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
