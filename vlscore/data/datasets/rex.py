"""ReXGradient-160K and ReXrank's manifests, both published by rajpurkarlab.

ReXGradient-160K (160,000 studies of 79 sites in the United States) is described in Zhang et al.
2025 (arXiv 2505.00228) and https://huggingface.co/datasets/rajpurkarlab/ReXGradient-160K:
`metadata/train_metadata_view_position.json` (and `valid_`, `test_`) is one json object, study ->
`PatientID`, `AccessionNumber`, `StudyInstanceUid`, `Indication`, `Comparison`, `Findings`,
`Impression`, `ImagePath` (several, as `../deid_png/...`) and `ImageViewPosition`. The images are
published as `deid_png.part00`, ...; joined and unpacked they are the folder `deid_png`.

ReXrank's manifests (the studies of the leaderboard's data sets) are described in Zhang et al. 2024
(arXiv 2411.15122) and https://github.com/rajpurkarlab/ReXrank, folder `data`: one json object,
study -> `image_path`, `frontal_lateral`, `section_findings`, `section_impression`, `context`,
`split`, `subject_id`; `open_studies` reads the same files directly. The data set is the file
itself; the images' folder is a separate argument.
"""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.data.datasets.dataset_base import Dataset, present_text
from vlscore.data.datasets.dataset_files import (
    DAMAGED,
    INCOMPLETE,
    DatasetFiles,
    frame_of,
    read_json,
)
from vlscore.data.rows import read_rows
from vlscore.errors import InvalidTable

if TYPE_CHECKING:
    import pandas as pd

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
    image_folders = ("deid_png", "", "deid_png/deid_png")
    image_suffixes = (".png", ".jpg")

    def studies(self, files: DatasetFiles) -> "pd.DataFrame":
        """Read the studies part by part: train, valid, test, as far as the files are there."""
        rows: list[dict[str, Any]] = []
        paths = {part: self._metadata(files, part) for part in _PARTS}
        if not any(paths.values()):
            raise InvalidTable(
                f"{files.folder}: has no metadata/train_metadata_view_position.json, nor that of "
                "valid or test; give the folder of ReXGradient-160K"
            )
        for part, path in paths.items():
            content = read_json(path) if path is not None else {}
            if not isinstance(content, dict):
                raise InvalidTable(f"{path}: is no object, study -> its entry")
            for number, (id, entry) in enumerate(content.items(), start=1):
                where = files.relative(path) if path is not None else ""
                if not isinstance(entry, dict):
                    files.leave_out(where, number, id, "study", DAMAGED)
                elif images := _images(entry.get("ImagePath"), entry.get("ImageViewPosition")):
                    texts = {name.lower(): present_text(entry.get(name)) for name in _SECTIONS}
                    facts = {"id": id, "patient": entry.get("PatientID"), "split": part}
                    rows.append({**facts, **images, **texts, "in_file": where, "in_row": number})
                else:
                    files.leave_out(where, number, id, "study", INCOMPLETE)
        return frame_of(rows)

    def _metadata(self, files: DatasetFiles, part: str) -> Path | None:
        names = (f"{part}_metadata_view_position.json", f"{part}_metadata.json")
        return files.find(*(f"{folder}{name}" for name in names for folder in ("metadata/", "")))


class ReXrankManifest(Dataset):
    """Reads a manifest of ReXrank; see this file's docstring."""

    name = "rexrank"
    description = "ReXrank's manifests: the leaderboard's studies with reports by section"
    source = "https://github.com/rajpurkarlab/ReXrank"
    licence = "of the data set that the studies are of"
    needs = "the .json file of a manifest (give the file itself), and the images by --images"
    sections = ("indication", "findings", "impression")
    image_folders = ("", "files", "images")
    image_suffixes = (".jpg", ".png", ".dcm")

    def studies(self, files: DatasetFiles) -> "pd.DataFrame":
        """Read the studies in the order of the file."""
        if files.file is None:
            raise InvalidTable(
                f"{files.folder}: is a folder; give ReXrank's .json file itself, and the images' "
                "folder by --images (images=)"
            )
        where = files.relative(files.file)
        rows = []
        for number, record in read_rows(files.file):
            if isinstance(record, str):
                files.leave_out(where, number, None, "study", DAMAGED)
                continue
            images = _images(record.get("image"), record.get("view"))
            if images is None or record.get("id") is None:
                files.leave_out(where, number, record.get("id"), "study", INCOMPLETE)
                continue
            context = _INDICATION.search(present_text(record.get("context")) or "")
            rows.append(
                {
                    **images,
                    "id": record["id"],
                    "patient": record.get("subject_id"),
                    "split": present_text(record.get("split")),
                    "findings": present_text(record.get("section_findings")),
                    "impression": present_text(record.get("section_impression")),
                    "indication": present_text(context[1]) if context else None,
                    "in_file": where,
                    "in_row": number,
                }
            )
        return frame_of(rows)


def _images(paths: Any, views: Any) -> dict[str, list[Any]] | None:
    """Return the columns of images, of one path or several; None if there is no text and no list.

    ReXGradient writes paths from its folder `metadata`; here they start from `deid_png`.
    """
    paths, views = ([each] if isinstance(each, str) else each or [] for each in (paths, views))
    if not isinstance(paths, list) or not isinstance(views, list):
        return None
    if len(views) != len(paths):
        views = [None] * len(paths)
    names = [str(path).removeprefix("../").removeprefix("deid_png/") for path in paths]
    return {"image": names, "view": [_view(view) for view in views]}


def _view(view: Any) -> str | None:
    text = (present_text(view) or "").strip()
    return _VIEWS.get(text.lower(), text) or None
