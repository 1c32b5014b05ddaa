"""ReXVal and RadEvalX: error counts by category and clinical significance.

ReXVal (Yu et al. 2023, PhysioNet rexval-dataset 1.0.0) is a folder with two tables:
50_samples_gt_and_candidates.csv has `study_id`, `gt_report`, and one column of reports for each
kind of candidate; 6_valid_raters_per_rater_error_categories.csv has `study_number` (from 0, the row
in the other table), `candidate_type` (a column there), `error_category` (1 to 6), `rater_index`,
`clinically_significant` and `num_errors`.

RadEvalX (Calamida et al. 2024, PhysioNet rad-eval-x 1.0.0) is a folder with one table for each
significance, both with `report_id`, `ground_truth`, `M2Tr-Generation` and counts in `1` to `8`; two
radiologists made them together.
"""

from pathlib import Path
from typing import Any

from vlscore.alignment.building import (
    Builder,
    Pair,
    count_of,
    missing_columns,
    name_of,
    number_of,
    yes_or_no,
)
from vlscore.alignment.pairs import RatedPairs
from vlscore.errors import InvalidStudy, InvalidTable
from vlscore.studies import columns_of, read_rows
from vlscore.studies.cells import text_of

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
    """The pairs of ReXVal: studies by `study_id`, candidates by the metric that retrieved them.

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
            report, kind = _report_of(record, rows, found)
            pair = (name_of(report["study_id"], "study_id"), kind)
            rater = name_of(record["rater_index"], "rater_index")
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
    """The row of reports that a row of counts speaks of, and the column of its candidate."""
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
    """The pairs of RadEvalX: one candidate a study, one count of two radiologists together.

    An empty cell is read as no error of that category: the release leaves most cells empty and
    does not say what that means. `notes` tells how many there were.

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
        builder.refuse(0, "stands in one of the two tables only", pair)
    if empty:
        builder.notes.append(f"{empty} empty counts of RadEvalX are read as 0")
    if not seen[True] & seen[False]:
        raise InvalidTable(f"{folder}: the two tables of RadEvalX have no report_id in common")
    return builder.build()
