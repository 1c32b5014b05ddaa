"""CheXpert Plus: Stanford's images with their reports by section.

Described in Chambon et al. 2024 (arXiv 2405.19538) and
https://github.com/Stanford-AIMI/chexpert-plus: `df_chexpert_plus_240401.csv` has one row an image:
`path_to_image` (`train/patient42142/study5/view1_frontal.jpg`), `path_to_dcm`, `frontal_lateral`,
`ap_pa`, `deid_patient_id`, `patient_report_date_order`, `report`, `section_findings`,
`section_impression`, `section_clinical_history`, `section_history`, `section_comparison`,
`section_technique`, ..., and `split` (train or valid). The table names JPEG; the images are
published as PNG (`PNG/`) and DICOM (`DICOM/`).
"""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from vlscore.data.datasets.dataset_base import (
    DISAGREEING,
    SECTIONS,
    Dataset,
    by_study,
    sections_of,
    stripped,
)
from vlscore.data.datasets.dataset_files import INCOMPLETE, DatasetFiles, frame_of

if TYPE_CHECKING:
    import pandas as pd

TABLE = "df_chexpert_plus_240401.csv"
_COLUMNS = {
    "section_findings": "findings",
    "section_impression": "impression",
    "section_clinical_history": "indication",
    "section_history": "history",
    "section_comparison": "comparison",
    "section_technique": "technique",
    "report": "full_report",
    "deid_patient_id": "patient",
    **{name: name for name in ("frontal_lateral", "ap_pa", "split")},
}


class CheXpertPlus(Dataset):
    """Reads CheXpert Plus's table; see this file's docstring."""

    name = "chexpert-plus"
    description = "CheXpert Plus: Stanford's images with reports by section"
    source = "https://aimi.stanford.edu/datasets/chexpert-plus"
    licence = "Stanford University Dataset Research Use Agreement"
    needs = "df_chexpert_plus_240401.csv, and the images below PNG/ or DICOM/"
    sections = SECTIONS
    has_report = True
    image_folders = ("", "PNG", "PNG/PNG", "DICOM", "DICOM/Uncompressed")
    image_suffixes = (".png", ".jpg", ".dcm")

    def studies(self, files: DatasetFiles) -> "pd.DataFrame":
        """Read the studies in the order of their first image."""
        path = files.file or files.needed(TABLE)
        needed = ["path_to_image", *list(_COLUMNS)[: len(SECTIONS)]]
        table = files.table(path, needed, "image", _COLUMNS)
        rows = []
        for row in table.to_dict("records"):
            parts = PurePosixPath((row["path_to_image"] or "").replace("\\", "/")).parts
            if len(parts) < 3:
                files.leave_out_row(row, "image", INCOMPLETE)
            else:
                id = f"{parts[-3]}_{parts[-2]}"
                rows.append({**row, "id": id, "image": "/".join(parts), "view": _view(row)})
        return frame_of([_study(row) for row in by_study(frame_of(rows)).to_dict("records")])


def _study(row: dict[str, Any]) -> dict[str, Any]:
    sections = stripped({name: row[name] for name in SECTIONS})
    whole = row["full_report"] or ""
    if "findings" not in sections and "impression" not in sections:
        # Some reports have headings that the published sections miss.
        sections = {**sections_of(whole), **sections}
    facts = {name: row[name] for name in ("id", "image", "view", "in_file", "in_row", DISAGREEING)}
    patient = row["patient"] or row["id"].rpartition("_")[0]
    own = {"patient": patient, "split": row["split"], "full_report": whole}
    return {**facts, **sections, **own}


def _view(row: dict[str, Any]) -> str | None:
    lateral = (row.get("frontal_lateral") or "").strip()
    own = (row.get("ap_pa") or "").strip() if lateral.lower() != "lateral" else ""
    return own or lateral or None
