"""R2Gen's annotation.json: the Indiana University collection, or MIMIC-CXR, divided for training.

Described in https://github.com/cuhksz-nlp/R2Gen (Chen et al. 2020): one json object with the lists
`train`, `val` and `test`; an entry has `id`, `report`, `image_path` (several, from the folder
`images`) and `split`; for MIMIC-CXR also `study_id` and `subject_id`. The report is the findings
alone. The view of a film is not published: for the Indiana collection, `0.png` and `1.png` are
two views.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vlscore.data.datasets.dataset_base import (
    DAMAGED,
    INCOMPLETE,
    Dataset,
    DatasetStudy,
    Film,
    Omission,
    relative_name,
    sections_present,
    split_named,
)
from vlscore.data.datasets.dataset_files import DatasetFiles, read_json
from vlscore.errors import InvalidTable

ANNOTATION = "annotation.json"
_UID = re.compile(r"CXR(\d+)_")


class R2Gen(Dataset):
    """Reads annotation.json; see this file's docstring."""

    name = "r2gen"
    description = "R2Gen's annotation.json: Indiana University chest X-rays, or MIMIC-CXR"
    source = "https://github.com/cuhksz-nlp/R2Gen"
    licence = "of the collection: CC BY-NC-ND 4.0 (Open-i), or PhysioNet's for MIMIC-CXR"
    needs = "annotation.json and images/"
    sections = ("findings",)
    extra = ("uid",)
    film_folders = ("images", "", "images300")
    film_suffixes = (".png", ".jpg")

    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        """Yield the studies part by part, in the order of the file."""
        path = files.file or files.folder / ANNOTATION
        where = relative_name(path, files.folder)
        for part, entries in _parts(path).items():
            for number, entry in enumerate(entries, start=1):
                yield _study(entry, part, where, number)


def _parts(path: Path) -> dict[str, list[Any]]:
    content = read_json(path)
    parts = {} if not isinstance(content, dict) else content
    if not parts or not all(isinstance(each, list) for each in parts.values()):
        raise InvalidTable(f"{path}: is no object with the lists train, val and test")
    return parts


def _study(entry: Any, part: str, where: str, number: int) -> DatasetStudy | Omission:
    place = f"{where}:{part}"
    if not isinstance(entry, dict):
        return Omission(place, number, None, "study", DAMAGED)
    id, paths, report = entry.get("id"), entry.get("image_path"), entry.get("report")
    if isinstance(paths, str):
        paths = [paths]
    if id is None or not isinstance(paths, list) or not isinstance(report, str | None):
        return Omission(place, number, None if id is None else str(id), "study", INCOMPLETE)
    uid = _UID.match(str(id))
    patient = entry.get("subject_id")
    return DatasetStudy(
        str(id),
        str(patient) if patient is not None else f"CXR{uid[1]}" if uid else None,
        tuple(Film(str(each)) for each in paths),
        sections_present({"findings": report}),
        split=split_named(str(entry.get("split") or part)),
        extra={"uid": uid[1] if uid else ""},
        file=place,
        row=number,
    )
