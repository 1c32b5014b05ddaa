"""ReXrank's manifests: the studies of the leaderboard's data sets, with reports by section.

Described in Zhang et al. 2024 (arXiv 2411.15122) and https://github.com/rajpurkarlab/ReXrank,
folder `data`: one json object, study -> `image_path`, `frontal_lateral`, `section_findings`,
`section_impression`, `context`, `split`, `subject_id`; `open_studies` reads the same files
directly. The data set is the file itself; the films' folder is a separate argument.
"""

import re
from collections.abc import Iterator
from typing import Any

from vlscore.data.datasets.dataset_base import (
    DAMAGED,
    INCOMPLETE,
    Dataset,
    DatasetStudy,
    Film,
    Omission,
    present_text,
    relative_name,
    sections_present,
    split_named,
)
from vlscore.data.datasets.dataset_files import DatasetFiles
from vlscore.data.rows import read_rows
from vlscore.errors import InvalidTable

_INDICATION = re.compile(r"Indication:\s*(.*?)\s*(?:Comparison:|$)", re.DOTALL | re.IGNORECASE)
_VIEWS = {"postero-anterior": "PA", "antero-posterior": "AP"}


class ReXrankManifest(Dataset):
    """Reads a manifest of ReXrank; see this file's docstring."""

    name = "rexrank"
    description = "ReXrank's manifests: the leaderboard's studies with reports by section"
    source = "https://github.com/rajpurkarlab/ReXrank"
    licence = "of the data set that the studies are of"
    needs = "the .json file of a manifest (give the file itself), and the films by --films"
    sections = ("indication", "findings", "impression")
    film_folders = ("", "files", "images")
    film_suffixes = (".jpg", ".png", ".dcm")

    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        """Yield the studies in the order of the file."""
        if files.file is None:
            raise InvalidTable(
                f"{files.folder}: is a folder; give ReXrank's .json file itself, and the films' "
                "folder by --films (films=)"
            )
        where = relative_name(files.file, files.folder)
        for number, record in read_rows(files.file):
            if isinstance(record, str):
                yield Omission(where, number, None, "study", DAMAGED)
            else:
                yield _study(record, where, number)


def _study(row: dict[str, Any], where: str, number: int) -> DatasetStudy | Omission:
    id, paths = row.get("id"), row.get("image")
    views = row.get("view")
    paths = [paths] if isinstance(paths, str) else paths or []
    views = [views] if isinstance(views, str) else views or []
    if id is None or not isinstance(paths, list) or not isinstance(views, list):
        return Omission(where, number, None if id is None else str(id), "study", INCOMPLETE)
    if len(views) != len(paths):
        views = [None] * len(paths)
    context = _INDICATION.search(present_text(row.get("context")) or "")
    patient = row.get("subject_id")
    return DatasetStudy(
        str(id),
        None if patient is None else str(patient),
        tuple(Film(str(path), _view(view)) for path, view in zip(paths, views, strict=True)),
        sections_present(
            {
                "findings": present_text(row.get("section_findings")),
                "impression": present_text(row.get("section_impression")),
                "indication": present_text(context[1]) if context else None,
            }
        ),
        split=split_named(present_text(row.get("split"))),
        file=where,
        row=number,
    )


def _view(view: Any) -> str | None:
    text = present_text(view)
    return None if text is None else _VIEWS.get(text.lower(), text)
