"""MIMIC-CXR-JPG: the films of MIMIC-CXR as JPEG, with split and view positions.

The layout is described on PhysioNet (mimic-cxr-jpg 2.0.0 and 2.1.0, Johnson et al. 2019): films as
`files/p10/p10000032/s50414267/DICOM_ID.jpg`, `mimic-cxr-2.0.0-metadata.csv.gz` (`dicom_id`,
`subject_id`, `study_id`, `ViewPosition`, `Rows`, `Columns`, ...) and `mimic-cxr-2.0.0-split.csv.gz`
(`dicom_id`, `study_id`, `subject_id`, `split`). The reports are part of MIMIC-CXR.
"""

from collections.abc import Iterator, Mapping

from vlscore.data.datasets.dataset_base import DatasetStudy, Omission
from vlscore.data.datasets.dataset_files import DatasetFiles
from vlscore.data.datasets.mimic_cxr import METADATA, MimicCxr, film_path, studies_of


class MimicCxrJpg(MimicCxr):
    """Reads MIMIC-CXR-JPG's tables; see this file's docstring."""

    name = "mimic-cxr-jpg"
    description = "MIMIC-CXR-JPG: the films of MIMIC-CXR as JPEG, with split and views"
    source = "https://physionet.org/content/mimic-cxr-jpg/2.1.0/"
    needs = (
        "mimic-cxr-2.0.0-metadata.csv.gz, mimic-cxr-2.0.0-split.csv.gz, files/; and MIMIC-CXR's "
        "reports, in the folder or by --reports"
    )
    film_suffixes = (".jpg", ".png", ".jpeg")

    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        """Yield the studies in the order of the metadata."""
        table = files.needed_table(METADATA)
        return studies_of(files, table, ("subject_id", "study_id", "dicom_id"), self._jpg)

    @staticmethod
    def _jpg(row: Mapping[str, str]) -> str:
        return film_path(row, ".jpg")
