"""ReXGradient-160K: 160,000 studies of 79 sites in the United States.

Described in Zhang et al. 2025 (arXiv 2505.00228) and
https://huggingface.co/datasets/rajpurkarlab/ReXGradient-160K:
`metadata/train_metadata_view_position.json` (and `valid_`, `test_`) is one json object, study ->
`PatientID`, `AccessionNumber`, `StudyInstanceUid`, `Indication`, `Comparison`, `Findings`,
`Impression`, `ImagePath` (several, as `../deid_png/...`) and `ImageViewPosition`. The films are
published as `deid_png.part00`, ...; joined and unpacked they are the folder `deid_png`.
"""

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
from vlscore.data.study import looks_missing
from vlscore.errors import InvalidTable

_PARTS = ("train", "valid", "test")
_SECTIONS = ("Indication", "Comparison", "Findings", "Impression")
_VIEWS = {"POSTERO_ANTERIOR": "PA", "ANTERO_POSTERIOR": "AP", "AP AXIAL": "AP"}


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
                yield _study(id, entry, part, where, number)
        if not found:
            raise InvalidTable(
                f"{files.folder}: has no metadata/train_metadata_view_position.json, nor that of "
                "valid or test; give the folder of ReXGradient-160K"
            )


def _study(id: str, entry: Any, part: str, where: str, number: int) -> DatasetStudy | Omission:
    if not isinstance(entry, dict):
        return Omission(where, number, id, "study", DAMAGED)
    paths = entry.get("ImagePath") or []
    views = entry.get("ImageViewPosition") or []
    if not isinstance(paths, list) or not isinstance(views, list):
        return Omission(where, number, id, "study", INCOMPLETE)
    if len(views) != len(paths):
        views = [None] * len(paths)
    patient = entry.get("PatientID")
    return DatasetStudy(
        id,
        None if patient is None else str(patient),
        tuple(Film(_path(path), _view(view)) for path, view in zip(paths, views, strict=True)),
        sections_present({name.lower(): present_text(entry.get(name)) for name in _SECTIONS}),
        split=split_named(part),
        file=where,
        row=number,
    )


def _path(path: Any) -> str:
    """Return a path from the folder deid_png on; the files write it from the folder metadata."""
    return str(path).removeprefix("../").removeprefix("deid_png/")


def _view(view: Any) -> str | None:
    text = str(view or "").strip()
    return None if not text or looks_missing(text) else _VIEWS.get(text.upper(), text)
