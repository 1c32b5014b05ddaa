"""ReXGradient-160K: 160,000 studies of 79 sites in the United States.

Described in Zhang et al. 2025 (arXiv 2505.00228) and
https://huggingface.co/datasets/rajpurkarlab/ReXGradient-160K:
`metadata/train_metadata_view_position.json` (and `valid_`, `test_`) is one json object, study ->
`PatientID`, `AccessionNumber`, `StudyInstanceUid`, `Indication`, `Comparison`, `Findings`,
`Impression`, `ImagePath` (several, as `../deid_png/...`) and `ImageViewPosition`. The images are
published as `deid_png.part00`, ...; joined and unpacked they are the folder `deid_png`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.data.cells import looks_missing
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

_PARTS = ("train", "valid", "test")
_SECTIONS = ("Indication", "Comparison", "Findings", "Impression")
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
                    texts = {name.lower(): _text(entry.get(name)) for name in _SECTIONS}
                    facts = {"id": id, "patient": entry.get("PatientID"), "split": part}
                    rows.append({**facts, **images, **texts, "in_file": where, "in_row": number})
                else:
                    files.leave_out(where, number, id, "study", INCOMPLETE)
        return frame_of(rows)

    def _metadata(self, files: DatasetFiles, part: str) -> Path | None:
        names = (f"{part}_metadata_view_position.json", f"{part}_metadata.json")
        return files.find(*(f"{folder}{name}" for name in names for folder in ("metadata/", "")))


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
    texts = [(_text(view) or "").strip() for view in views]
    return {"image": names, "view": [_VIEWS.get(text.lower(), text) or None for text in texts]}


def _text(value: Any) -> str | None:
    """Return a text; None for other values, and for a word for a missing one such as "None"."""
    return value if isinstance(value, str) and not looks_missing(value) else None
