"""PadChest: 160,000 films of San Juan hospital (Alicante), with Spanish reports.

Described in Bustos et al. 2020 (doi 10.1016/j.media.2020.101797) and on
https://bimcv.cipf.es/bimcv-projects/padchest/:
`PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv` (packed or not) has one row a film:
`ImageID`, `ImageDir` (0 to 54), `StudyID`, `PatientID`, `Projection` (PA, L, AP, AP_horizontal,
COSTAL, EXCLUDE, UNK), `Rows_DICOM`, `Columns_DICOM`, `Report` (one text without sections, lower
case, words cut to their stems), `Labels`, ... Films lie in folders named by `ImageDir`, or all in
one. No split is published. Films of the ribs (COSTAL) and those that the authors excluded are left
out.
"""

from collections.abc import Iterator

from vlscore.data.datasets.dataset_base import (
    DAMAGED,
    INCOMPLETE,
    OTHER_PROJECTION,
    Dataset,
    DatasetStudy,
    Film,
    Omission,
    StudyRows,
    relative_name,
    sections_present,
)
from vlscore.data.datasets.dataset_files import DatasetFiles, table_rows, whole_number

TABLES = (
    "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv",
    "PADCHEST_chest_x_ray_images_labels_160K.csv",
)
_NOT_CHEST = {"COSTAL", "EXCLUDE"}
# View names as in the rest of the package; "AP_horizontal" is a film of a patient lying down.
_VIEWS = {"L": "LATERAL", "AP_horizontal": "AP", "UNK": None}


class PadChest(Dataset):
    """Reads PadChest's table; see this file's docstring."""

    name = "padchest"
    description = "PadChest: 160,000 films of San Juan hospital, Spanish reports"
    source = "https://bimcv.cipf.es/bimcv-projects/padchest/"
    licence = "PadChest Dataset Research Use Agreement"
    needs = "PADCHEST_chest_x_ray_images_labels_160K_01.02.19.csv(.gz), and the unpacked films"
    sections = ("findings",)
    extra = ("labels",)
    has_sizes = True
    film_folders = ("", "images", "images-224")
    film_suffixes = (".png", ".jpg")

    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        """Yield the studies in the order of their first film."""
        path = files.file or files.needed_table(*TABLES)
        where = relative_name(path, files.folder)
        found: dict[str, StudyRows] = {}
        for number, row in table_rows(path, ("ImageID", "ImageDir", "StudyID", "Report")):
            if row is None:
                yield Omission(where, number, None, "film", DAMAGED)
            elif "ImageID" not in row or "StudyID" not in row:
                yield Omission(where, number, row.get("StudyID"), "film", INCOMPLETE)
            elif row.get("Projection", "").strip() in _NOT_CHEST:
                detail = row["Projection"].strip()
                yield Omission(where, number, row["StudyID"], "film", OTHER_PROJECTION, detail)
            else:
                study = found.setdefault(row["StudyID"], StudyRows(row, number))
                study.films.append(_film(row, files))
        for id, study in found.items():
            yield DatasetStudy(
                id,
                study.first.get("PatientID"),
                tuple(study.films),
                sections_present({"findings": study.first.get("Report")}),
                extra={"labels": study.first.get("Labels", "")},
                file=where,
                row=study.number,
            )


def _film(row: dict[str, str], files: DatasetFiles) -> Film:
    name, folder = row["ImageID"], row.get("ImageDir", "").removesuffix(".0")
    path = f"{folder}/{name}" if folder else name
    if folder and files.film(path, PadChest.film_folders, PadChest.film_suffixes) is None:
        # Resized copies are mostly in one folder.
        path = name
    projection = row.get("Projection", "").strip()
    return Film(
        path,
        _VIEWS.get(projection, projection) or None,
        whole_number(row.get("Rows_DICOM")),
        whole_number(row.get("Columns_DICOM")),
    )
