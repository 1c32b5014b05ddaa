"""PadChest: 160,000 images of San Juan hospital (Alicante), with Spanish reports.

Described in Bustos et al. 2020 (doi 10.1016/j.media.2020.101797) and on
https://bimcv.cipf.es/bimcv-projects/padchest/:
`PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv` (packed or not) has one row an image:
`ImageID`, `ImageDir` (0 to 54), `StudyID`, `PatientID`, `Projection` (PA, L, AP, AP_horizontal,
COSTAL, EXCLUDE, UNK), `Rows_DICOM`, `Columns_DICOM`, `Report` (one text without sections, lower
case, words cut to their stems), `Labels`, ... Images lie in folders named by `ImageDir`, or all in
one. No split is published. Images of the ribs (COSTAL) and those that the authors excluded are left
out.
"""

from typing import TYPE_CHECKING

from vlscore.data.datasets.dataset_base import Dataset, by_study
from vlscore.data.datasets.dataset_files import (
    OTHER_PROJECTION,
    DatasetFiles,
    frame_of,
    whole_number,
)

if TYPE_CHECKING:
    import pandas as pd

TABLES = (
    "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv",
    "PADCHEST_chest_x_ray_images_labels_160K.csv",
)
_COLUMNS = {
    "StudyID": "id",
    "PatientID": "patient",
    "Projection": "view",
    "Report": "findings",
    "Labels": "labels",
    "Rows_DICOM": "rows",
    "Columns_DICOM": "columns",
}
_NOT_CHEST = {"COSTAL", "EXCLUDE"}
# View names as in the rest of the package; "AP_horizontal" is an image of a patient lying down.
_VIEWS = {"L": "LATERAL", "AP_horizontal": "AP", "UNK": None, "": None}


class PadChest(Dataset):
    """Reads PadChest's table; see this file's docstring."""

    name = "padchest"
    description = "PadChest: 160,000 images of San Juan hospital, Spanish reports"
    source = "https://bimcv.cipf.es/bimcv-projects/padchest/"
    licence = "PadChest Dataset Research Use Agreement"
    needs = "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv(.gz), and the unpacked images"
    sections = ("findings",)
    extra = ("labels",)
    has_sizes = True
    image_folders = ("", "images", "images-224")
    image_suffixes = (".png", ".jpg")

    def studies(self, files: DatasetFiles) -> "pd.DataFrame":
        """Read the studies in the order of their first image."""
        path = files.file or files.needed(*TABLES)
        needed = ("ImageID", "ImageDir", "StudyID", "Report")
        table = files.table(path, needed, "image", _COLUMNS)
        rows = []
        for row in files.drop_incomplete(table, ["ImageID", "id"], "image").to_dict("records"):
            view = (row["view"] or "").strip()
            if view in _NOT_CHEST:
                files.leave_out_row(row, "image", OTHER_PROJECTION, view)
                continue
            sizes = {name: whole_number(row[name]) for name in ("rows", "columns")}
            image = self._image(row["ImageID"], row["ImageDir"] or "", files)
            rows.append({**row, **sizes, "image": image, "view": _VIEWS.get(view, view)})
        return by_study(frame_of(rows))

    def _image(self, name: str, folder: str, files: DatasetFiles) -> str:
        path = f"{folder.removesuffix('.0')}/{name}"
        # Resized copies are mostly in one folder.
        return (
            path
            if folder and files.image(path, self.image_folders, self.image_suffixes) is not None
            else name
        )
