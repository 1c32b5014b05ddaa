"""CheXpert Plus: Stanford's films with their reports by section.

Described in Chambon et al. 2024 (arXiv 2405.19538) and
https://github.com/Stanford-AIMI/chexpert-plus: `df_chexpert_plus_240401.csv` has one row a film:
`path_to_image` (`train/patient42142/study5/view1_frontal.jpg`), `path_to_dcm`, `frontal_lateral`,
`ap_pa`, `deid_patient_id`, `patient_report_date_order`, `report`, `section_findings`,
`section_impression`, `section_clinical_history`, `section_history`, `section_comparison`,
`section_technique`, ..., and `split` (train or valid). The table names JPEG; the films are
published as PNG (`PNG/`) and DICOM (`DICOM/`).
"""

from collections.abc import Iterator
from pathlib import PurePosixPath

from vlscore.data.datasets.dataset_base import (
    DAMAGED,
    INCOMPLETE,
    SECTIONS,
    Dataset,
    DatasetStudy,
    Film,
    Omission,
    StudyRows,
    relative_name,
    sections_of,
    sections_present,
    split_named,
)
from vlscore.data.datasets.dataset_files import DatasetFiles, table_rows

TABLE = "df_chexpert_plus_240401.csv"
_COLUMNS = {
    "findings": "section_findings",
    "impression": "section_impression",
    "indication": "section_clinical_history",
    "history": "section_history",
    "comparison": "section_comparison",
    "technique": "section_technique",
}


class CheXpertPlus(Dataset):
    """Reads CheXpert Plus's table; see this file's docstring."""

    name = "chexpert-plus"
    description = "CheXpert Plus: Stanford's films with reports by section"
    source = "https://aimi.stanford.edu/datasets/chexpert-plus"
    licence = "Stanford University Dataset Research Use Agreement"
    needs = "df_chexpert_plus_240401.csv, and the films below PNG/ or DICOM/"
    sections = SECTIONS
    has_report = True
    film_folders = ("", "PNG", "PNG/PNG", "DICOM", "DICOM/Uncompressed")
    film_suffixes = (".png", ".jpg", ".dcm")

    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        """Yield the studies in the order of their first film."""
        path = files.file or files.needed_table(TABLE)
        where = relative_name(path, files.folder)
        found: dict[str, StudyRows] = {}
        for number, row in table_rows(path, ("path_to_image", *_COLUMNS.values())):
            if row is None:
                yield Omission(where, number, None, "film", DAMAGED)
                continue
            parts = PurePosixPath(row.get("path_to_image", "").replace("\\", "/")).parts
            if len(parts) < 3:
                yield Omission(where, number, None, "film", INCOMPLETE)
                continue
            id = f"{parts[-3]}_{parts[-2]}"
            study = found.setdefault(id, StudyRows(row, number))
            study.films.append(Film("/".join(parts), _view(row)))
        for id, study in found.items():
            yield _study(id, study, where)


def _study(id: str, listed: StudyRows, where: str) -> DatasetStudy:
    row = listed.first
    sections = sections_present({name: row.get(column) for name, column in _COLUMNS.items()})
    from_last = False
    if "findings" not in sections and "impression" not in sections:
        # Some reports have headings that the published sections miss.
        found, from_last = sections_of(row.get("report", ""))
        sections = sections_present({**found, **sections})
    return DatasetStudy(
        id,
        row.get("deid_patient_id") or id.rpartition("_")[0],
        tuple(listed.films),
        sections,
        row.get("report", "").strip(),
        split_named(row.get("split")),
        file=where,
        row=listed.number,
        from_last_paragraph=from_last,
    )


def _view(row: dict[str, str]) -> str | None:
    lateral = row.get("frontal_lateral", "").strip()
    return (row.get("ap_pa", "").strip() if lateral.lower() != "lateral" else "") or lateral or None
