"""Readers of published rated sets.

ReXVal and RadEvalX have error counts by category and clinical significance.

ReXVal (Yu et al. 2023, PhysioNet rexval-dataset 1.0.0) is a folder with two tables:
50_samples_gt_and_candidates.csv has `study_id`, `gt_report`, and one column of reports for each
kind of candidate; 6_valid_raters_per_rater_error_categories.csv has `study_number` (from 0, the row
in the other table), `candidate_type` (a column there), `error_category` (1 to 6), `rater_index`,
`clinically_significant` and `num_errors`.

RadEvalX (Calamida et al. 2024, PhysioNet rad-eval-x 1.0.0) is a folder with one table for each
significance, both with `report_id`, `ground_truth`, `M2Tr-Generation` and counts in `1` to `8`; two
radiologists made them together.

ReFiSco v0 and v1: radiologists correct generated reports line by line and grade every error. v0
(PhysioNet refisco 0.0) has the columns `id`, `impression_original`, `impression_edited`, `score`,
`annotator`, `source`; "[no edit]" leaves a line, "[delete]" removes it, an empty original is an
insertion. v1 (in the repository of FineRadScore) has `data_id`, `study_id`, `report_type`,
`original_line`, `corrected_line`, `error_clinical_severity`, `annotator_id`; an empty correction
leaves the line. The corrected report is the reference of the original one, so every annotation is a
pair of its own, with the two summaries of its severities that ReFiSco's authors use.

RadPref (rajpurkarlab/CRIMSON, folder RadPref; Baharoon et al. 2026, arXiv 2603.06183) holds the
reports in preference_data.json, a list of cases with `id`, `ground_truth_report`, `C1_report`,
`C1_source` (the generator), `C2_report`, `C2_source`; and one file a radiologist
(radiologist_annotations/user_1.json), an object with "annotations": case id -> {"C1": {...},
"C2": {...}}. Each candidate has a `rating` from 1 to 5, 5 being best; `finding_errors`, each with
an `error_type` "false" and its `clinical_significance`, or "attribute" and its `attributes`, as in
{"location": "significant"}; and `missing_findings`, each with its `clinical_significance`. An error
counts as significant where the finding is urgent or actionable, or the attribute is marked
significant: those to which CRIMSON gives a weight of one half or more.
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from vlscore.core import with_noun
from vlscore.data import columns_of, name_of, number_of, read_rows, text_of
from vlscore.errors import InvalidStudy, InvalidTable
from vlscore.evaluation.alignment.rated_pairs import RatedPairs
from vlscore.evaluation.alignment.rating_rows import (
    RATING,
    RatingRow,
    Record,
    count_of,
    rated_pairs,
    rating_rows,
    require_columns,
    yes_or_no,
)

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


def read_rexval(folder: Path) -> RatedPairs:
    """Read the pairs of ReXVal; a candidate has the name of the metric that retrieved it."""
    reports, counts = folder / REPORTS, folder / COUNTS
    columns = columns_of(reports)
    require_columns(reports, ("study_id", "gt_report"))
    require_columns(counts, _COUNT_COLUMNS)
    known = [record for _, record in read_rows(reports)]
    kinds = [name for name in columns if name not in ("study_id", "gt_report")]

    def read_record(row: RatingRow, record: Record) -> None:
        # Read first: without the pair, the rater still names the rating that lacks a row.
        row.rater = name_of(record["rater_index"], "rater_index")
        number = number_of(record["study_number"], "study_number")
        if number is None or number != int(number) or not 0 <= number < len(known):
            raise InvalidStudy(
                f'column "study_number" holds {record["study_number"]!r}; {REPORTS} has rows 0 to '
                f"{len(known) - 1}"
            )
        report = known[int(number)]
        if isinstance(report, str):
            raise InvalidStudy(f"{REPORTS}, row {int(number) + 1}: {report}")
        kind = name_of(record["candidate_type"], "candidate_type")
        if kind not in kinds:
            raise InvalidStudy(f'column "candidate_type" holds {kind!r}, no column of {REPORTS}')
        row.pair = name_of(report["study_id"], "study_id"), kind
        row.reference = text_of(report["gt_report"], "gt_report") or ""
        row.text = text_of(report[kind], kind) or ""
        category = name_of(record["error_category"], "error_category")
        if category not in CATEGORIES:
            raise InvalidStudy(f'column "error_category" holds {category!r}, not 1 to 6')
        significant = yes_or_no(record["clinically_significant"], "clinically_significant")
        number = count_of(record["num_errors"], "num_errors")
        row.counts[CATEGORIES[category], significant] = number

    rows = rating_rows(read_rows(counts), read_record, f"{COUNTS}: ")
    return rated_pairs(rows, [reports, counts], is_count=True)


RADEVALX = {
    "RadEval_clinically_significant_errors.csv": True,
    "RadEval-clinically_insignificant_errors.csv": False,
}
_RADEVALX_CATEGORIES = {**CATEGORIES, "7": "7", "8": "8"}
_RADEVALX_COLUMNS = ("report_id", "ground_truth", "M2Tr-Generation")
_GENERATOR, _TOGETHER = "M2Tr", "consensus"


def read_radevalx(folder: Path) -> RatedPairs:
    """Read the pairs of RadEvalX: one candidate a study, one count of two radiologists together.

    An empty cell is read as no error of that category: the release leaves most cells empty and
    does not say what that means. `notes` has their number.
    """
    files = {folder / name: significant for name, significant in RADEVALX.items()}
    rows: list[RatingRow] = []
    empty = 0
    for path, significant in files.items():
        require_columns(path, (*_RADEVALX_COLUMNS, *_RADEVALX_CATEGORIES))

        def read_record(row: RatingRow, record: Record, significant: bool = significant) -> None:
            nonlocal empty
            row.rater = _TOGETHER
            row.pair = name_of(record["report_id"], "report_id"), _GENERATOR
            row.reference = text_of(record["ground_truth"], "ground_truth") or ""
            row.text = text_of(record["M2Tr-Generation"], "M2Tr-Generation") or ""
            for column, category in _RADEVALX_CATEGORIES.items():
                is_empty = number_of(record[column], column) is None
                empty += is_empty
                count = 0.0 if is_empty else count_of(record[column], column)
                row.counts[category, significant] = count

        rows += rating_rows(read_rows(path), read_record, f"{path.name}: ")
    both = Counter(row.pair for row in rows if row.reason is None)
    if 2 not in both.values():
        raise InvalidTable(f"{folder}: the two tables of RadEvalX have no report_id in common")
    for row in rows:
        if row.reason is None and both[row.pair] == 1:
            row.reason = "is in only one of the two tables"
    notes = [f"read as 0: {with_noun(empty, 'empty count')} of RadEvalX"] if empty else []
    return rated_pairs(rows, list(files), notes=notes, is_count=True)


# Categories of RADPEER and the ACR's work group, as ReFiSco's authors number them.
SEVERITIES = {
    "no error": 0.0,
    "not actionable": 1.0,
    "actionable nonurgent error": 2.0,
    "urgent error": 3.0,
    "emergent error": 4.0,
}
LARGEST, MEAN = "largest severity", "mean severity"
# Columns of each version: study; candidate (the last is the annotator's); original line, corrected
# line, severity; and what an unchanged line has for its correction.
REFISCO = {
    "refisco-v0": (
        "id",
        ("source", "annotator"),
        ("impression_original", "impression_edited", "score"),
        "[no edit]",
    ),
    "refisco-v1": (
        "study_id",
        ("report_type", "data_id", "annotator_id"),
        ("original_line", "corrected_line", "error_clinical_severity"),
        "",
    ),
}


def refisco_reader(path: Path) -> Callable[[Path], RatedPairs] | None:
    """Return the reader of the version of ReFiSco that a table has the columns of, or None."""
    there = set(columns_of(path))
    for version, (study, candidate, lines, _) in REFISCO.items():
        if there >= {study, *candidate, *lines}:
            return partial(_read_refisco, version=version)
    return None


def _read_refisco(path: Path, version: str) -> RatedPairs:
    """Read ReFiSco's annotations as pairs; a bad line costs its annotation."""
    study, candidate, lines, unchanged = REFISCO[version]
    annotated: dict[tuple[str, str], list[tuple[str, str, float]]] = {}

    def read_record(row: RatingRow, record: Record) -> None:
        row.rater = "annotator"
        names = (name_of(record[column], column) for column in candidate)
        row.pair = name_of(record[study], study), "/".join(names)
        original, corrected = ((text_of(record[c], c) or "").strip() for c in lines[:2])
        severity = severity_of(record[lines[2]], lines[2])
        if corrected == unchanged:
            corrected = original
        elif "[delete]" in corrected:
            corrected = ""
        elif not corrected:
            raise InvalidStudy(f'column "{lines[1]}" is empty')
        annotated.setdefault(row.pair, []).append((original, corrected, severity))

    rows = rating_rows(read_rows(path), read_record)
    spoilt = [row for row in rows if row.reason is not None]
    for pair, lines_of in annotated.items():
        originals, corrections, severities = zip(*lines_of, strict=True)
        spoilt.append(
            RatingRow(
                0,
                pair,
                "annotator",
                " ".join(filter(None, corrections)),
                " ".join(filter(None, originals)),
                scores={LARGEST: max(severities), MEAN: sum(severities) / len(severities)},
            )
        )
    return rated_pairs(spoilt, [path])


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


RADPREF_FOLDER, RADPREF_REPORTS = "radiologist_annotations", "preference_data.json"
_CANDIDATES = ("C1", "C2")
_FALSE, _MISSED, _ATTRIBUTE = "false finding", "missed finding", "wrong attribute"
_SIGNIFICANT = {
    "urgent": True,
    "actionable_not_urgent": True,
    "not_actionable_not_urgent": False,
    "benign_expected": False,
}
_ATTRIBUTE_SIGNIFICANT = {"significant": True, "negligible": False}


def read_radpref(folder: Path) -> RatedPairs:
    """Read the errors and ratings of RadPref; cases marked "needs_review" are left out.

    Candidates are called by their generator; without preference_data.json, "C1" and "C2", and there
    are no reports then.

    Args: folder: that has radiologist_annotations/*.json, or these files themselves.
    Raises: InvalidTable where there is no such file, or one is no json of that form.
    """
    inner, reports = folder / RADPREF_FOLDER, folder / RADPREF_REPORTS
    source = inner if inner.is_dir() else folder
    files = [
        path
        for path in sorted(source.glob("*.json"))
        if path.name != RADPREF_REPORTS and not path.name.startswith("radjudge")
    ]
    if not files:
        raise InvalidTable(f"{folder}: no {RADPREF_FOLDER}/*.json, one file a radiologist")
    cases = _radpref_cases(reports) if reports.is_file() else None
    rows: list[RatingRow] = []
    waiting = 0
    for path in files:
        content = _json(path)
        annotations = content.get("annotations", content) if isinstance(content, dict) else None
        if not isinstance(annotations, dict):
            raise InvalidTable(f'{path}: is no object with "annotations", one entry a case')
        judged = []
        for number, (case, entry) in enumerate(annotations.items(), start=1):
            if isinstance(entry, dict) and entry.get("needs_review"):
                waiting += 1
            else:
                judged += [(number, (str(case), name, entry)) for name in _CANDIDATES]

        def read_record(row: RatingRow, record: Any, rater: str = path.stem) -> None:
            case, name, annotation = record
            row.rater = rater
            known = None if cases is None else cases.get(case)
            row.pair = case, name if known is None else known["names"][name]
            if cases is not None and known is None:
                raise InvalidStudy(f"{RADPREF_REPORTS} has no such case {case}")
            if known is not None:
                row.reference, row.text = known["reference"], known["texts"][name]
            entry = annotation.get(name) if isinstance(annotation, dict) else None
            if not isinstance(entry, dict):
                raise InvalidStudy(f'case {case}: no entry "{name}"')
            try:
                rating = number_of(entry.get(RATING), f"{name}.{RATING}")
                row.counts |= _radpref_errors(entry)
            except InvalidStudy as error:
                raise InvalidStudy(f"case {case}: {error}") from None
            row.scores[RATING] = rating

        rows += rating_rows(judged, read_record, f"{path.name}, ")
    notes = [f"left out: {with_noun(waiting, 'rating')} marked needs_review"] if waiting else []
    has_counts = any(row.counts for row in rows)
    if cases is None:
        notes.append(f"RadPref has no {RADPREF_REPORTS} here, so there are no reports")
    return rated_pairs(
        rows,
        [*([reports] if cases is not None else []), *files],
        meaning="errors" if has_counts else "quality",
        qualities=[RATING] if has_counts else [],
        notes=notes,
    )


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidTable(f"{path}: cannot be read as json ({error})") from None


def _radpref_cases(path: Path) -> dict[str, dict[str, Any]]:
    """Return case -> its reference; texts and names of its candidates, by "C1" and "C2"."""
    content = _json(path)
    if not isinstance(content, list):
        raise InvalidTable(f"{path}: is no list of cases")
    found = {}
    for number, case in enumerate(content, start=1):
        reports = ("ground_truth_report", *(f"{candidate}_report" for candidate in _CANDIDATES))
        is_case = isinstance(case, dict) and "id" in case
        if not is_case or not all(isinstance(case.get(name), str) for name in reports):
            raise InvalidTable(f"{path}, case {number}: has no id, or lacks {', '.join(reports)}")
        names = {each: str(case.get(f"{each}_source") or each) for each in _CANDIDATES}
        if len(set(names.values())) < len(_CANDIDATES):
            # Two reports of one generator are distinguished by their places.
            names = {each: f"{name} {each}" for each, name in names.items()}
        found[str(case["id"])] = {
            "reference": case["ground_truth_report"],
            "texts": {each: case[f"{each}_report"] for each in _CANDIDATES},
            "names": names,
        }
    return found


def _radpref_errors(entry: Record) -> dict[tuple[str, bool | None], float | None]:
    """Return (category, whether significant) -> errors, 0 for none; empty if nobody counted any."""
    if "finding_errors" not in entry and "missing_findings" not in entry:
        return {}
    found = {(c, s): 0 for c in (_FALSE, _MISSED, _ATTRIBUTE) for s in (True, False)}

    def add(category: str, words: Mapping[str, bool], word: Any) -> None:
        if not isinstance(word, str) or word not in words:
            raise InvalidStudy(f"an error's significance is none of {', '.join(words)}")
        found[category, words[word]] += 1

    for error in _objects(entry, "finding_errors"):
        if error.get("error_type") == "false":
            add(_FALSE, _SIGNIFICANT, error.get("clinical_significance"))
        elif error.get("error_type") == "attribute" and isinstance(error.get("attributes"), dict):
            for value in error["attributes"].values():
                add(_ATTRIBUTE, _ATTRIBUTE_SIGNIFICANT, value)
        else:
            raise InvalidStudy('an error of a finding is neither "false" nor has "attributes"')
    for error in _objects(entry, "missing_findings"):
        add(_MISSED, _SIGNIFICANT, error.get("clinical_significance"))
    return {key: float(count) for key, count in found.items()}


def _objects(entry: Record, name: str) -> list[Record]:
    found = entry.get(name, {})
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        raise InvalidStudy(f'"{name}" is no object of objects')
    return list(found.values())


# Name of a set -> its reader, and files of its folder: all of them, or any.
FOLDERS: Mapping[str, tuple[Callable[[Path], RatedPairs], Callable[..., bool], Sequence[str]]] = {
    "rexval": (read_rexval, all, (REPORTS, COUNTS)),
    "radevalx": (read_radevalx, all, tuple(RADEVALX)),
    "radpref": (read_radpref, any, (RADPREF_FOLDER, RADPREF_REPORTS)),
}
