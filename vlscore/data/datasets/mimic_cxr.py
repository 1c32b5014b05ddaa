"""MIMIC-CXR (DICOM images and free-text reports) and MIMIC-CXR-JPG (the same images as JPEG).

The layout is described on PhysioNet (mimic-cxr and mimic-cxr-jpg, 2.0.0 and 2.1.0, Johnson et al.
2019). MIMIC-CXR has images as `files/p10/p10000032/s50414267/DICOM_ID.dcm`, reports as
`files/p10/p10000032/s50414267.txt` in `mimic-cxr-reports.zip`, and the list of images
`cxr-record-list.csv.gz` (`subject_id`, `study_id`, `dicom_id`, `path`). The official split and the
view positions are published with MIMIC-CXR-JPG alone; if its two tables are in the folder, they are
used.

MIMIC-CXR-JPG has images as `.../DICOM_ID.jpg`, `mimic-cxr-2.0.0-metadata.csv.gz` (`dicom_id`,
`subject_id`, `study_id`, `ViewPosition`, `Rows`, `Columns`, ...) and `mimic-cxr-2.0.0-split.csv.gz`
(`dicom_id`, `study_id`, `subject_id`, `split`). The reports are part of MIMIC-CXR.
"""

from typing import TYPE_CHECKING, Any, ClassVar

from vlscore.data.datasets.dataset_base import SECTIONS, Dataset, by_study, sections_of
from vlscore.data.datasets.dataset_files import (
    DAMAGED,
    REPORT_ABSENT,
    DatasetFiles,
    ReportTexts,
    frame_of,
    whole_number,
)
from vlscore.errors import InvalidTable

if TYPE_CHECKING:
    import pandas as pd

RECORDS = "cxr-record-list.csv"
METADATA = "mimic-cxr-2.0.0-metadata.csv"
SPLIT = "mimic-cxr-2.0.0-split.csv"
_ARCHIVES = ("mimic-cxr-reports.zip", "mimic-cxr-reports")
_KEYS = {"subject_id": "patient", "study_id": "id", "dicom_id": "dicom_id"}
# Table -> the columns that are read of it besides the keys, and their names here.
_FACTS = {
    RECORDS: {"path": "path"},
    METADATA: {"ViewPosition": "view", "Rows": "rows", "Columns": "columns"},
    SPLIT: {"split": "split"},
}


class MimicCxr(Dataset):
    """Reads MIMIC-CXR's own tables; see this file's docstring."""

    name = "mimic-cxr"
    description = "MIMIC-CXR: DICOM images and reports of Boston's Beth Israel Deaconess center"
    source = "https://physionet.org/content/mimic-cxr/2.1.0/"
    licence = "PhysioNet Credentialed Health Data License 1.5.0"
    needs = (
        "cxr-record-list.csv.gz, files/, mimic-cxr-reports.zip (unpacked or not); "
        "MIMIC-CXR-JPG's split and metadata tables, where you have them"
    )
    sections = SECTIONS
    has_report = True
    has_sizes = True
    takes_reports = True
    image_suffixes = (".dcm", ".jpg", ".png")

    listed_in: ClassVar[str] = RECORDS
    # Tables with further facts about the images, as far as they are in the folder.
    joined: ClassVar[tuple[str, ...]] = (METADATA, SPLIT)
    suffix: ClassVar[str] = ".dcm"

    def studies(self, files: DatasetFiles) -> "pd.DataFrame":
        """Read the studies in the order of the list of images.

        Raises: InvalidTable if a table, or the reports, are absent.
        """
        path = files.needed(self.listed_in)
        texts = _report_texts(files)
        images = files.table(path, [*_KEYS], "image", {**_KEYS, **_FACTS[self.listed_in]})
        images = files.drop_incomplete(images, [*_KEYS.values()], "image")
        for name in self.joined:
            if (found := files.find(name)) is not None:
                facts = files.table(found, ("dicom_id",), "image", _FACTS[name])
                facts = facts.drop_duplicates("dicom_id").drop(columns=["in_file", "in_row"])
                images = images.merge(facts, how="left", on="dicom_id")
        every = (name for names in _FACTS.values() for name in names.values())
        images = images.reindex(columns=list(dict.fromkeys([*images, *every])))
        images = images.astype(object).where(images.notna(), None)
        rows = []
        for row in images.to_dict("records"):
            sizes = {name: whole_number(row[name]) for name in ("rows", "columns")}
            rows.append({**row, **sizes, "image": self._path(row)})
        studies = by_study(frame_of(rows)).to_dict("records")
        usable = (_with_report(row, texts, files) for row in studies)
        return frame_of([row for row in usable if row is not None])

    def _path(self, row: dict[str, Any]) -> str:
        """Return the path of an image: the table's, else that of the layout."""
        folder = study_path(row["patient"], row["id"])
        return row["path"] or f"{folder}/{row['dicom_id']}{self.suffix}"


class MimicCxrJpg(MimicCxr):
    """Reads MIMIC-CXR-JPG's tables; see this file's docstring."""

    name = "mimic-cxr-jpg"
    description = "MIMIC-CXR-JPG: the images of MIMIC-CXR as JPEG, with split and views"
    source = "https://physionet.org/content/mimic-cxr-jpg/2.1.0/"
    needs = (
        "mimic-cxr-2.0.0-metadata.csv.gz, mimic-cxr-2.0.0-split.csv.gz, files/; and MIMIC-CXR's "
        "reports, in the folder or by --reports"
    )
    image_suffixes = (".jpg", ".png", ".jpeg")
    listed_in = METADATA
    joined = (SPLIT,)
    suffix = ".jpg"


def study_path(patient: str, study: str) -> str:
    """Return the path of a study in MIMIC-CXR's layout.

    >>> study_path("10000032", "50414267")
    'files/p10/p10000032/s50414267'
    """
    return f"files/p{patient[:2]}/p{patient}/s{study}"


def _with_report(
    row: dict[str, Any], texts: ReportTexts, files: DatasetFiles
) -> dict[str, Any] | None:
    """Return the row of a study with its report; None, and left out, if it has none."""
    name = f"{study_path(row['patient'], row['id'])}.txt"
    try:
        report = texts.read(name)
    except (OSError, ValueError) as error:
        files.leave_out(name, 0, row["id"], "study", DAMAGED, type(error).__name__)
        return None
    if report is None:
        files.leave_out_row(row, "study", REPORT_ABSENT, name)
        return None
    return {**row, **sections_of(report), "full_report": report}


def _report_texts(files: DatasetFiles) -> ReportTexts:
    if files.reports is not None:
        return ReportTexts(files.reports)
    for name in _ARCHIVES:
        if (files.folder / name).exists():
            return ReportTexts(files.folder / name)
    if any(files.folder.glob("files/p1*/p*/s*.txt")):
        return ReportTexts(files.folder)
    raise InvalidTable(
        f"{files.folder}: has no reports (mimic-cxr-reports.zip, or files/p10/p.../s....txt). They "
        "are part of MIMIC-CXR, not of MIMIC-CXR-JPG: give their folder or .zip with --reports "
        "(reports=)"
    )
