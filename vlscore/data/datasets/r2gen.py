"""R2Gen's annotation.json: the Indiana University collection, or MIMIC-CXR, divided for training.

Described in https://github.com/cuhksz-nlp/R2Gen (Chen et al. 2020): one json object with the lists
`train`, `val` and `test`; an entry has `id`, `report`, `image_path` (several, from the folder
`images`) and `split`; for MIMIC-CXR also `study_id` and `subject_id`. The report is the findings
alone. The view of an image is not published: for the Indiana collection, `0.png` and `1.png` are
two views.
"""

import re
from typing import TYPE_CHECKING, Any

from vlscore.data.datasets.dataset_base import Dataset
from vlscore.data.datasets.dataset_files import (
    DAMAGED,
    INCOMPLETE,
    DatasetFiles,
    frame_of,
    read_json,
)
from vlscore.errors import InvalidTable

if TYPE_CHECKING:
    import pandas as pd

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
    image_folders = ("images", "", "images300")
    image_suffixes = (".png", ".jpg")

    def studies(self, files: DatasetFiles) -> "pd.DataFrame":
        """Read the studies part by part, in the order of the file."""
        path = files.file or files.folder / ANNOTATION
        content = read_json(path)
        parts = content if isinstance(content, dict) else {}
        if not parts or not all(isinstance(each, list) for each in parts.values()):
            raise InvalidTable(f"{path}: is no object with the lists train, val and test")
        rows = []
        for part, entries in parts.items():
            where = f"{files.relative(path)}:{part}"
            for number, entry in enumerate(entries, start=1):
                if not isinstance(entry, dict):
                    files.leave_out(where, number, None, "study", DAMAGED)
                elif (row := _study(entry, part)) is None:
                    files.leave_out(where, number, entry.get("id"), "study", INCOMPLETE)
                else:
                    rows.append({**row, "in_file": where, "in_row": number})
        return frame_of(rows)


def _study(entry: dict[str, Any], part: str) -> dict[str, Any] | None:
    """Return the row of a study; None if the entry has no id, no images, or no text as report."""
    id, paths, report = entry.get("id"), entry.get("image_path"), entry.get("report")
    paths = [paths] if isinstance(paths, str) else paths
    if id is None or not isinstance(paths, list) or not isinstance(report, str | None):
        return None
    uid = _UID.match(str(id))
    patient = entry.get("subject_id")
    return {
        "id": str(id),
        "patient": str(patient) if patient is not None else f"CXR{uid[1]}" if uid else None,
        "split": str(entry.get("split") or part),
        "image": [str(each) for each in paths],
        "findings": report,
        "uid": uid[1] if uid else None,
    }
