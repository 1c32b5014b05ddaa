"""RadPref: errors by finding and overall quality of two candidates a case, by three radiologists.

Its repository (rajpurkarlab/CRIMSON, folder RadPref; Baharoon et al. 2026, arXiv 2603.06183) holds
the reports in preference_data.json, a list of cases with `id`, `ground_truth_report`, `C1_report`,
`C1_source` (the generator), `C2_report`, `C2_source`; and one file a radiologist
(radiologist_annotations/user_1.json), an object with "annotations": case id -> {"C1": {...},
"C2": {...}}. Each candidate has a `rating` from 1 to 5, 5 being best; `finding_errors`, each with
an `error_type` "false" and its `clinical_significance`, or "attribute" and its `attributes`, as in
{"location": "significant"}; and `missing_findings`, each with its `clinical_significance`.

An error counts as significant where the finding is urgent or actionable, or the attribute is marked
significant: those to which CRIMSON gives a weight of one half or more.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.data import number_of
from vlscore.errors import InvalidStudy, InvalidTable
from vlscore.evaluation.alignment.rated_pairs import RatedPairs
from vlscore.evaluation.alignment.rating_builder import Builder

FOLDER = "radiologist_annotations"
REPORTS = "preference_data.json"
RATING = "rating"
_CANDIDATES = ("C1", "C2")
_FALSE, _MISSED, _ATTRIBUTE = "false finding", "missed finding", "wrong attribute"
_SIGNIFICANT = {
    "urgent": True,
    "actionable_not_urgent": True,
    "not_actionable_not_urgent": False,
    "benign_expected": False,
}
_ATTRIBUTE_SIGNIFICANT = {"significant": True, "negligible": False}


@dataclass(frozen=True)
class _RadPrefCase:
    """The reports of one case.

    Attributes:
        reference: the ground truth.
        texts: candidate ("C1") -> its report.
        names: candidate -> its name in results, that of its generator.
    """

    reference: str
    texts: Mapping[str, str]
    names: Mapping[str, str]


def read_radpref(folder: str | Path) -> RatedPairs:
    """Read the errors and ratings of RadPref; cases marked "needs_review" are left out.

    Candidates are called by their generator; without preference_data.json, "C1" and "C2", and there
    are no reports then.

    Args: folder: that has radiologist_annotations/*.json, or these files themselves.

    Raises: InvalidTable where there is no such file, or one is no json of that form.
    """
    folder = Path(folder)
    inner = folder / FOLDER
    reports = folder / REPORTS
    place = inner if inner.is_dir() else folder
    files = [path for path in sorted(place.glob("*.json")) if _is_of_a_rater(path)]
    if not files:
        raise InvalidTable(f"{folder}: no {FOLDER}/*.json, one file a radiologist")
    cases = _read_cases(reports) if reports.is_file() else None
    builder = Builder((*([reports] if cases is not None else []), *files))
    waiting, counted = 0, False
    for path in files:
        for number, (case, annotation) in enumerate(_annotations(path).items(), start=1):
            if isinstance(annotation, dict) and annotation.get("needs_review"):
                waiting += 1
                continue
            for candidate in _CANDIDATES:
                counted |= _read_candidate(
                    builder, path, number, (str(case), candidate), annotation, cases
                )
    if waiting:
        builder.notes.append(f"{waiting} ratings are marked needs_review and are left out")
    if counted:
        builder.qualities = frozenset({RATING})
        builder.notes.append(
            "an error of RadPref counts as significant where its finding is urgent or actionable, "
            "or its attribute is marked significant"
        )
    else:
        builder.meaning = "quality"
    if cases is None:
        builder.notes.append(
            f"RadPref has no {REPORTS} here, so there are no reports: give --values"
        )
    return builder.build()


def _read_candidate(
    builder: Builder,
    path: Path,
    number: int,
    key: tuple[str, str],
    annotation: Any,
    cases: Mapping[str, _RadPrefCase] | None,
) -> bool:
    """Add the ratings of one rater for one candidate; return whether errors were counted."""
    case, candidate = key
    known = None if cases is None else cases.get(case)
    pair = (case, candidate if known is None else known.names[candidate])
    try:
        if cases is not None and known is None:
            raise InvalidStudy(f"{REPORTS} has no such case")
        entry = _entry(annotation, candidate)
        rating = number_of(entry.get(RATING), f"{candidate}.{RATING}")
        errors = _errors(entry)
        if known is None:
            builder.add_pair(pair)
        else:
            builder.add_pair(pair, known.reference, known.texts[candidate])
        builder.add_score(pair, path.stem, RATING, rating)
        for (category, significant), count in errors.items():
            builder.add_count(pair, path.stem, category, significant, count)
    except InvalidStudy as error:
        builder.refuse(number, f"{path.name}, case {case}: {error}", pair, path.stem)
        return False
    return bool(errors)


def _errors(entry: Mapping[str, Any]) -> dict[tuple[str, bool], int]:
    """Return (category, whether significant) -> errors, 0 for none; empty if nobody counted any."""
    if "finding_errors" not in entry and "missing_findings" not in entry:
        return {}
    found = Counter({(c, s): 0 for c in (_FALSE, _MISSED, _ATTRIBUTE) for s in (True, False)})
    for error in _objects(entry, "finding_errors"):
        kind = error.get("error_type")
        if kind == "false":
            found[_FALSE, _known(_SIGNIFICANT, error.get("clinical_significance"))] += 1
        elif kind == "attribute" and isinstance(error.get("attributes"), dict):
            for value in error["attributes"].values():
                found[_ATTRIBUTE, _known(_ATTRIBUTE_SIGNIFICANT, value)] += 1
        else:
            raise InvalidStudy('an error of a finding is neither "false" nor has "attributes"')
    for error in _objects(entry, "missing_findings"):
        found[_MISSED, _known(_SIGNIFICANT, error.get("clinical_significance"))] += 1
    return dict(found)


def _objects(entry: Mapping[str, Any], name: str) -> Iterator[dict[str, Any]]:
    inner = entry.get(name, {})
    if not isinstance(inner, dict) or not all(isinstance(each, dict) for each in inner.values()):
        raise InvalidStudy(f'"{name}" is no object of objects')
    yield from inner.values()


def _known(words: Mapping[str, bool], word: Any) -> bool:
    if not isinstance(word, str) or word not in words:
        raise InvalidStudy(f"an error's significance is none of {', '.join(words)}")
    return words[word]


def _is_of_a_rater(path: Path) -> bool:
    """Return whether a file may hold a rater's annotations; other files are not read."""
    return path.name != REPORTS and not path.name.startswith("radjudge")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidTable(f"{path}: cannot be read as json ({error})") from None


def _read_cases(path: Path) -> dict[str, _RadPrefCase]:
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
        texts = {each: case[f"{each}_report"] for each in _CANDIDATES}
        found[str(case["id"])] = _RadPrefCase(case["ground_truth_report"], texts, names)
    return found


def _annotations(path: Path) -> dict[str, Any]:
    content = _json(path)
    found = content.get("annotations", content) if isinstance(content, dict) else None
    if not isinstance(found, dict):
        raise InvalidTable(f'{path}: is no object with "annotations", one entry a case')
    return found


def _entry(annotation: Any, candidate: str) -> dict[str, Any]:
    entry = annotation.get(candidate) if isinstance(annotation, dict) else None
    if not isinstance(entry, dict):
        raise InvalidStudy(f'no entry "{candidate}"')
    return entry
