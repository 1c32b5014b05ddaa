"""RadPref: overall quality of two candidates a case, by several radiologists.

Its repository (rajpurkarlab/CRIMSON) holds one file a radiologist, as in user_1.json: an object
with "annotations": case id -> {"C1": {"rating": 4, ...}, "C2": {...}, "needs_review": ...}. What
the reports' own file calls its texts is not documented, so no texts are read: metrics come from
values that were computed elsewhere.
"""

import json
from pathlib import Path
from typing import Any

from vlscore.alignment.building import Builder, number_of
from vlscore.alignment.pairs import RatedPairs
from vlscore.errors import InvalidStudy, InvalidTable

FOLDER = "radiologist_annotations"
_CANDIDATES = ("C1", "C2")


def read_radpref(folder: str | Path) -> RatedPairs:
    """The ratings of RadPref, 1 to 5, 5 being best; cases marked "needs_review" are left out.

    Args: folder: that has radiologist_annotations/*.json, or the .json files themselves.

    Raises: InvalidTable where there is no such file, or it is no json of that form.
    """
    folder = Path(folder)
    inner = folder / FOLDER
    files = sorted((inner if inner.is_dir() else folder).glob("*.json"))
    if not files:
        raise InvalidTable(f"{folder}: no {FOLDER}/*.json, one file a radiologist")
    builder = Builder(tuple(files), "quality")
    waiting = 0
    for path in files:
        for number, (case, said) in enumerate(_annotations(path).items(), start=1):
            if isinstance(said, dict) and said.get("needs_review"):
                waiting += 1
                continue
            for candidate in _CANDIDATES:
                pair = (str(case), candidate)
                try:
                    rating = _rating(said, candidate)
                    builder.add_pair(pair)
                    builder.add_score(pair, path.stem, "rating", rating)
                except InvalidStudy as error:
                    builder.refuse(number, f"{path.name}, case {case}: {error}", pair, path.stem)
    if waiting:
        builder.notes.append(f"{waiting} ratings are marked needs_review and are left out")
    builder.notes.append("RadPref is read without report texts: give --values")
    return builder.build()


def _annotations(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidTable(f"{path}: cannot be read as json ({error})") from None
    found = content.get("annotations", content) if isinstance(content, dict) else None
    if not isinstance(found, dict):
        raise InvalidTable(f'{path}: is no object with "annotations", one entry a case')
    return found


def _rating(said: Any, candidate: str) -> float | None:
    entry = said.get(candidate) if isinstance(said, dict) else None
    if not isinstance(entry, dict):
        raise InvalidStudy(f'no entry "{candidate}"')
    return number_of(entry.get("rating"), f"{candidate}.rating")
