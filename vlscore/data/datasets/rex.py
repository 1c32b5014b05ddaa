"""ReXGradient-160K and ReXrank's manifests, both published by rajpurkarlab.

ReXGradient-160K (160,000 studies of 79 sites in the United States) is described in Zhang et al.
2025 (arXiv 2505.00228) and https://huggingface.co/datasets/rajpurkarlab/ReXGradient-160K:
`metadata/train_metadata_view_position.json` (and `valid_`, `test_`) is one json object, study ->
`PatientID`, `AccessionNumber`, `StudyInstanceUid`, `Indication`, `Comparison`, `Findings`,
`Impression`, `ImagePath` (several, as `../deid_png/...`) and `ImageViewPosition`. The films are
published as `deid_png.part00`, ...; joined and unpacked they are the folder `deid_png`.

ReXrank's manifests (the studies of the leaderboard's data sets) are described in Zhang et al. 2024
(arXiv 2411.15122) and https://github.com/rajpurkarlab/ReXrank, folder `data`: one json object,
study -> `image_path`, `frontal_lateral`, `section_findings`, `section_impression`, `context`,
`split`, `subject_id`; `open_studies` reads the same files directly. The data set is the file
itself; the films' folder is a separate argument.
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
    present_text,
    relative_name,
    sections_present,
    split_named,
)
from vlscore.data.datasets.dataset_files import DatasetFiles, read_json
from vlscore.data.rows import read_rows
from vlscore.errors import InvalidTable

_PARTS = ("train", "valid", "test")
_SECTIONS = ("Indication", "Comparison", "Findings", "Impression")
_INDICATION = re.compile(r"Indication:\s*(.*?)\s*(?:Comparison:|$)", re.DOTALL | re.IGNORECASE)
_VIEWS = {
    "postero_anterior": "PA",
    "postero-anterior": "PA",
    "antero_posterior": "AP",
    "antero-posterior": "AP",
    "ap axial": "AP",
}


class ReXGradient(Dataset):
    """Reads ReXGradient's metadata; see this file's docstring."""

    name = "rexgradient-160k"
    description = "ReXGradient-160K: 160,000 studies of 79 sites in the United States"
    source = "https://huggingface.co/datasets/rajpurkarlab/ReXGradient-160K"
    licence = "ReXGradient's own, non-commercial; see its page"
    needs = "metadata/train_metadata_view_position.json, valid_..., test_..., and deid_png/"
    sections = ("indication", "comparison", "findings", "impression")
    film_folders = ("deid_png", "", "deid_png/deid_png")
    film_suffixes = (".png", ".jpg")

    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        """Yield the studies part by part: train, valid, test, as far as the files are there."""
        found = False
        for part in _PARTS:
            names = (f"{part}_metadata_view_position.json", f"{part}_metadata.json")
            folders = (files.folder / "metadata", files.folder)
            places = (folder / name for name in names for folder in folders)
            path = next(filter(Path.is_file, places), None)
            if path is None:
                continue
            found = True
            content = read_json(path)
            if not isinstance(content, dict):
                raise InvalidTable(f"{path}: is no object, study -> its entry")
            where = relative_name(path, files.folder)
            for number, (id, entry) in enumerate(content.items(), start=1):
                yield _study_of_entry(id, entry, part, where, number)
        if not found:
            raise InvalidTable(
                f"{files.folder}: has no metadata/train_metadata_view_position.json, nor that of "
                "valid or test; give the folder of ReXGradient-160K"
            )


def _study_of_entry(
    id: str, entry: Any, part: str, where: str, number: int
) -> DatasetStudy | Omission:
    if not isinstance(entry, dict):
        return Omission(where, number, id, "study", DAMAGED)
    films = _films(entry.get("ImagePath"), entry.get("ImageViewPosition"))
    if films is None:
        return Omission(where, number, id, "study", INCOMPLETE)
    patient = entry.get("PatientID")
    return DatasetStudy(
        id,
        None if patient is None else str(patient),
        films,
        sections_present({name.lower(): present_text(entry.get(name)) for name in _SECTIONS}),
        split=split_named(part),
        file=where,
        row=number,
    )


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
                yield _study_of_record(record, where, number)


def _study_of_record(row: dict[str, Any], where: str, number: int) -> DatasetStudy | Omission:
    id, films = row.get("id"), _films(row.get("image"), row.get("view"))
    if id is None or films is None:
        return Omission(where, number, None if id is None else str(id), "study", INCOMPLETE)
    context = _INDICATION.search(present_text(row.get("context")) or "")
    patient = row.get("subject_id")
    return DatasetStudy(
        str(id),
        None if patient is None else str(patient),
        films,
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


def _films(paths: Any, views: Any) -> tuple[Film, ...] | None:
    """Return the films of one path or several; None if an argument is no text and no list.

    ReXGradient writes paths from its folder `metadata`; here they start from `deid_png`.
    """
    paths, views = ([each] if isinstance(each, str) else each or [] for each in (paths, views))
    if not isinstance(paths, list) or not isinstance(views, list):
        return None
    if len(views) != len(paths):
        views = [None] * len(paths)
    return tuple(
        Film(str(path).removeprefix("../").removeprefix("deid_png/"), _view(view))
        for path, view in zip(paths, views, strict=True)
    )


def _view(view: Any) -> str | None:
    text = (present_text(view) or "").strip()
    return _VIEWS.get(text.lower(), text) or None
