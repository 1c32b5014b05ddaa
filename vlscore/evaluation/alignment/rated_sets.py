"""Readers of ReXVal, RadEvalX and ReFiSco, and of reports from tables of their own.

ReXVal and RadEvalX have error counts by category and clinical significance.

ReXVal (Yu et al. 2023, PhysioNet rexval-dataset 1.0.0) is a folder with two tables:
50_samples_gt_and_candidates.csv has `study_id`, `gt_report`, and one column of reports for each
kind of candidate; 6_valid_raters_per_rater_error_categories.csv has `study_number` (from 0, the row
in the other table), `candidate_type` (a column there), `error_category` (1 to 6), `rater_index`,
`clinically_significant` and `num_errors`.

RadEvalX (Calamida et al. 2024, PhysioNet rad-eval-x 1.0.0) is a folder with one table for each
significance, both with `report_id`, `ground_truth`, `M2Tr-Generation` and counts in `1` to `8`; two
radiologists made them together.

ReFiSco v0 and v1: radiologists correct generated reports line by line and grade every error.

v0 (PhysioNet refisco 0.0) has the columns `id`, `impression_original`, `impression_edited`,
`score`, `annotator`, `source`; "[no edit]" leaves a line, "[delete]" removes it, an empty original
is an insertion. v1 (in the repository of FineRadScore) has `data_id`, `study_id`, `report_type`,
`original_line`, `corrected_line`, `error_clinical_severity`, `annotator_id`; an empty correction
leaves the line.

The corrected report is the reference of the original one, so every annotation is a pair of its own,
with the two summaries of its severities that ReFiSco's authors use.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vlscore.data import (
    BadRow,
    Study,
    StudyTable,
    columns_of,
    name_of,
    number_of,
    read_rows,
    text_of,
)
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable
from vlscore.evaluation.alignment.rated_pairs import RatedPairs
from vlscore.evaluation.alignment.rating_builder import (
    Builder,
    Pair,
    count_of,
    missing_columns,
    yes_or_no,
)


def with_reports(pairs: RatedPairs, tables: Mapping[str, StudyTable]) -> RatedPairs:
    """Return the same pairs with the reports of each candidate, by the study's id.

    A pair whose study is not in its candidate's table is left out and listed in `bad`.

    Args: tables: name of the candidate -> its studies, opened for references and candidates; any
        table will do, and so will a manifest of ReXrank.

    Raises:
        InvalidSetting: the ratings bring reports already, or a candidate has no table.
        InvalidTable: two tables differ in a study's reference, or no pair has a report.
    """
    if pairs.texts is not None:
        raise InvalidSetting(f"{pairs.source} has reports of its own; leave out other tables")
    if absent := sorted(set(pairs.candidates) - set(tables)):
        raise InvalidSetting(
            f"{pairs.source} rates {', '.join(absent[:5])}, whose reports are in no table; "
            f"there are tables of {', '.join(tables)}"
        )
    known = {name: _by_id(table) for name, table in tables.items()}
    references: dict[str, str] = {}
    for name, studies in known.items():
        for study, row in studies.items():
            reference = row.reference or ""
            if references.setdefault(study, reference).split() != reference.split():
                raise InvalidTable(
                    f"{tables[name].path}: study {study} has another reference than in an "
                    "earlier table"
                )
    found_at: list[int] = []
    texts: list[str] = []
    bad = list(pairs.bad)
    for k, (study, name) in enumerate(zip(pairs.studies, pairs.candidates, strict=True)):
        if study in known[name]:
            found_at.append(k)
            texts.append(known[name][study].candidate or "")
        else:
            reason = f"{tables[name].path} has no report of it that can be used"
            bad.append(BadRow(0, f"{study}, {name}", reason))
    if not found_at:
        raise InvalidTable(
            f"no table has a study of {pairs.source}, such as {pairs.studies[0]!r}; "
            f"{next(iter(tables.values())).path} has {', '.join(list(references)[:3])}, ..."
        )
    return replace(
        pairs.at(found_at),
        references=tuple(references[pairs.studies[k]] for k in found_at),
        texts=tuple(texts),
        bad=tuple(bad),
        files=(*pairs.files, *(table.path for table in tables.values())),
        notes=(*pairs.notes, *(note for table in tables.values() for note in table.notes)),
    )


def _by_id(table: StudyTable) -> dict[str, Study]:
    return {row.id: row for row in table if isinstance(row, Study)}


REPORTS = "50_samples_gt_and_candidates.csv"
COUNTS = "6_valid_raters_per_rater_error_categories.csv"
# Categories of Yu et al. 2023, in the order of their numbers.
CATEGORIES = {
    "1": "1 false finding",
    "2": "2 missed finding",
    "3": "3 wrong location",
    "4": "4 wrong severity",
    "5": "5 false comparison",
    "6": "6 missed comparison",
}
_COUNT_COLUMNS = (
    "study_number",
    "candidate_type",
    "error_category",
    "rater_index",
    "clinically_significant",
    "num_errors",
)

RADEVALX = {
    "RadEval_clinically_significant_errors.csv": True,
    "RadEval-clinically_insignificant_errors.csv": False,
}
_RADEVALX_CATEGORIES = {**CATEGORIES, "7": "7", "8": "8"}
_RADEVALX_COLUMNS = ("report_id", "ground_truth", "M2Tr-Generation")
_GENERATOR, _TOGETHER = "M2Tr", "consensus"


def read_rexval(folder: str | Path) -> RatedPairs:
    """Read the pairs of ReXVal; a candidate has the name of the metric that retrieved it.

    Raises: InvalidTable where a file is absent or has other columns.
    """
    reports, counts = Path(folder) / REPORTS, Path(folder) / COUNTS
    found = columns_of(reports)
    missing_columns(reports, found, ("study_id", "gt_report"))
    missing_columns(counts, columns_of(counts), _COUNT_COLUMNS)
    builder = Builder((reports, counts))
    rows = list(read_rows(reports))
    for number, record in read_rows(counts):
        if isinstance(record, str):
            builder.refuse(number, record)
            continue
        pair: Pair | None = None
        rater: str | None = None
        try:
            # Read first: without the pair, the rater still names the rating that lacks a row.
            rater = name_of(record["rater_index"], "rater_index")
            report, kind = _report_of(record, rows, found)
            pair = (name_of(report["study_id"], "study_id"), kind)
            builder.add_pair(
                pair,
                text_of(report["gt_report"], "gt_report") or "",
                text_of(report[kind], kind) or "",
            )
            category = name_of(record["error_category"], "error_category")
            if category not in CATEGORIES:
                raise InvalidStudy(f'column "error_category" holds {category!r}, not 1 to 6')
            builder.add_count(
                pair,
                rater,
                CATEGORIES[category],
                yes_or_no(record["clinically_significant"], "clinically_significant"),
                count_of(record["num_errors"], "num_errors"),
            )
        except InvalidStudy as error:
            builder.refuse(number, f"{COUNTS}: {error}", pair, rater)
    return builder.build()


def _report_of(
    record: dict[str, Any], rows: list[tuple[int, dict[str, Any] | str]], columns: list[str]
) -> tuple[dict[str, Any], str]:
    """Return the row of reports that a row of counts is about, and the column of its candidate."""
    number = number_of(record["study_number"], "study_number")
    if number is None or number != int(number) or not 0 <= number < len(rows):
        raise InvalidStudy(
            f'column "study_number" holds {record["study_number"]!r}; {REPORTS} has rows 0 to '
            f"{len(rows) - 1}"
        )
    report = rows[int(number)][1]
    if isinstance(report, str):
        raise InvalidStudy(f"{REPORTS}, row {int(number) + 1}: {report}")
    kind = name_of(record["candidate_type"], "candidate_type")
    if kind not in columns or kind in ("study_id", "gt_report"):
        raise InvalidStudy(f'column "candidate_type" holds {kind!r}, no column of {REPORTS}')
    return report, kind


def read_radevalx(folder: str | Path) -> RatedPairs:
    """Read the pairs of RadEvalX: one candidate a study, one count of two radiologists together.

    An empty cell is read as no error of that category: the release leaves most cells empty and
    does not say what that means. `notes` has their number.

    Raises: InvalidTable where a file is absent or has other columns.
    """
    files = {Path(folder) / name: significant for name, significant in RADEVALX.items()}
    builder = Builder(tuple(files))
    empty = 0
    seen: dict[bool, set[Pair]] = {True: set(), False: set()}
    for path, significant in files.items():
        missing_columns(path, columns_of(path), (*_RADEVALX_COLUMNS, *_RADEVALX_CATEGORIES))
        for number, record in read_rows(path):
            if isinstance(record, str):
                builder.refuse(number, f"{path.name}: {record}")
                continue
            pair: Pair | None = None
            try:
                pair = (name_of(record["report_id"], "report_id"), _GENERATOR)
                builder.add_pair(
                    pair,
                    text_of(record["ground_truth"], "ground_truth") or "",
                    text_of(record["M2Tr-Generation"], "M2Tr-Generation") or "",
                )
                for column, category in _RADEVALX_CATEGORIES.items():
                    is_empty = number_of(record[column], column) is None
                    empty += is_empty
                    count = 0.0 if is_empty else count_of(record[column], column)
                    builder.add_count(pair, _TOGETHER, category, significant, count)
                seen[significant].add(pair)
            except InvalidStudy as error:
                builder.refuse(number, f"{path.name}: {error}", pair)
    for pair in seen[True] ^ seen[False]:
        builder.refuse(0, "is in only one of the two tables", pair)
    if empty:
        builder.notes.append(f"{empty} empty counts of RadEvalX are read as 0")
    if not seen[True] & seen[False]:
        raise InvalidTable(f"{folder}: the two tables of RadEvalX have no report_id in common")
    return builder.build()


# Categories of RADPEER and the ACR's work group, as ReFiSco's authors number them.
SEVERITIES = {
    "no error": 0.0,
    "not actionable": 1.0,
    "actionable nonurgent error": 2.0,
    "urgent error": 3.0,
    "emergent error": 4.0,
}
LARGEST, MEAN = "largest severity", "mean severity"
_RATER = "annotator"


@dataclass(frozen=True)
class Version:
    """The columns of one version.

    Attributes:
        candidate: columns that distinguish the candidates of a study; the last is the annotator's.
        unchanged: what an unchanged line has for its correction.
    """

    study: str
    candidate: tuple[str, ...]
    original: str
    corrected: str
    severity: str
    unchanged: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Return all columns that are read."""
        return (self.study, *self.candidate, self.original, self.corrected, self.severity)


V0 = Version(
    study="id",
    candidate=("source", "annotator"),
    original="impression_original",
    corrected="impression_edited",
    severity="score",
    unchanged="[no edit]",
)
V1 = Version(
    study="study_id",
    candidate=("report_type", "data_id", "annotator_id"),
    original="original_line",
    corrected="corrected_line",
    severity="error_clinical_severity",
    unchanged="",
)


def read_refisco_v0(path: str | Path) -> RatedPairs:
    """Read ReFiSco v0's annotations as pairs; raise InvalidTable for other columns."""
    return _read(Path(path), V0)


def read_refisco_v1(path: str | Path) -> RatedPairs:
    """Read ReFiSco v1's annotations as pairs; raise InvalidTable for other columns."""
    return _read(Path(path), V1)


@dataclass
class _Annotation:
    original: list[str]
    corrected: list[str]
    severities: list[float]


def _read(path: Path, version: Version) -> RatedPairs:
    missing_columns(path, columns_of(path), version.columns)
    builder = Builder((path,))
    annotations: dict[Pair, _Annotation] = {}
    for number, record in read_rows(path):
        if isinstance(record, str):
            builder.refuse(number, record)
            continue
        pair: Pair | None = None
        try:
            pair = (
                name_of(record[version.study], version.study),
                "/".join(name_of(record[column], column) for column in version.candidate),
            )
            annotation = annotations.setdefault(pair, _Annotation([], [], []))
            _take(annotation, record, version)
        except InvalidStudy as error:
            builder.refuse(number, error, pair)
    for pair, annotation in annotations.items():
        builder.add_pair(pair, " ".join(annotation.corrected), " ".join(annotation.original))
        for name, value in _summaries(annotation.severities):
            builder.add_score(pair, _RATER, name, value)
    return builder.build()


def _take(annotation: _Annotation, record: dict[str, Any], version: Version) -> None:
    """Add one line; raises InvalidStudy before anything is added."""
    severity = severity_of(record[version.severity], version.severity)
    original = (text_of(record[version.original], version.original) or "").strip()
    corrected = (text_of(record[version.corrected], version.corrected) or "").strip()
    if corrected == version.unchanged:
        corrected = original
    elif "[delete]" in corrected:
        corrected = ""
    elif not corrected:
        raise InvalidStudy(f'column "{version.corrected}" is empty')
    annotation.severities.append(severity)
    annotation.original += [original] if original else []
    annotation.corrected += [corrected] if corrected else []


def severity_of(value: Any, column: str) -> float:
    """Return 0 to 4 from a category's name or number; raise InvalidStudy for anything else."""
    named = SEVERITIES.get(str(value).strip().lower())
    if named is not None:
        return named
    number = number_of(value, column)
    if number is None or number not in SEVERITIES.values():
        known = ", ".join(SEVERITIES)
        raise InvalidStudy(f'column "{column}" holds {value!r}, not 0 to 4 or one of {known}')
    return number


def _summaries(severities: list[float]) -> Iterator[tuple[str, float]]:
    if severities:
        yield LARGEST, max(severities)
        yield MEAN, sum(severities) / len(severities)
