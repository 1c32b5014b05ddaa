"""MIMIC-CXR (DICOM films and free-text reports) and MIMIC-CXR-JPG (the same films as JPEG).

The layout is described on PhysioNet (mimic-cxr and mimic-cxr-jpg, 2.0.0 and 2.1.0, Johnson et al.
2019). MIMIC-CXR has films as `files/p10/p10000032/s50414267/DICOM_ID.dcm`, reports as
`files/p10/p10000032/s50414267.txt` in `mimic-cxr-reports.zip`, and the list of films
`cxr-record-list.csv.gz` (`subject_id`, `study_id`, `dicom_id`, `path`). The official split and the
view positions are published with MIMIC-CXR-JPG alone; if its two tables are in the folder, they are
used.

MIMIC-CXR-JPG has films as `.../DICOM_ID.jpg`, `mimic-cxr-2.0.0-metadata.csv.gz` (`dicom_id`,
`subject_id`, `study_id`, `ViewPosition`, `Rows`, `Columns`, ...) and `mimic-cxr-2.0.0-split.csv.gz`
(`dicom_id`, `study_id`, `subject_id`, `split`). The reports are part of MIMIC-CXR.
"""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from vlscore.data.datasets.dataset_base import (
    DAMAGED,
    INCOMPLETE,
    REPORT_ABSENT,
    SECTIONS,
    Dataset,
    DatasetStudy,
    Film,
    Omission,
    StudyRows,
    relative_name,
    sections_of,
    split_named,
)
from vlscore.data.datasets.dataset_files import DatasetFiles, ReportTexts, table_rows, whole_number
from vlscore.errors import InvalidTable

RECORDS = "cxr-record-list.csv"
METADATA = "mimic-cxr-2.0.0-metadata.csv"
SPLIT = "mimic-cxr-2.0.0-split.csv"
_ARCHIVES = ("mimic-cxr-reports.zip", "mimic-cxr-reports")
_KEYS = ("subject_id", "study_id", "dicom_id")


class MimicCxr(Dataset):
    """Reads MIMIC-CXR's own tables; see this file's docstring."""

    name = "mimic-cxr"
    description = "MIMIC-CXR: DICOM films and reports of Boston's Beth Israel Deaconess center"
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
    film_suffixes = (".dcm", ".jpg", ".png")

    listed_in: ClassVar[str] = RECORDS
    published_suffix: ClassVar[str] = ".dcm"

    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        """Yield the studies in the order of the list of films.

        Raises: InvalidTable if a table, or the reports, are absent.
        """
        table = files.needed_table(self.listed_in)
        needed = (*_KEYS, "path") if self.listed_in == RECORDS else _KEYS
        texts = _report_texts(files)
        facts = _facts(files)
        found: dict[str, StudyRows] = {}
        where = relative_name(table, files.folder)
        for number, row in table_rows(table, needed):
            if row is None:
                yield Omission(where, number, None, "film", DAMAGED)
                continue
            if any(name not in row for name in _KEYS):
                yield Omission(where, number, row.get("study_id"), "film", INCOMPLETE)
                continue
            own = {**facts.get(row["dicom_id"], {}), **row}
            study = found.setdefault(row["study_id"], StudyRows(own, number))
            sizes = (whole_number(own.get(name)) for name in ("Rows", "Columns"))
            study.films.append(Film(self._path(row), own.get("ViewPosition"), *sizes))
            # The split of the first film that has one.
            if "split" in own:
                study.first.setdefault("split", own["split"])
        for id, each in found.items():
            yield _with_report(id, each, where, texts)

    def _path(self, row: Mapping[str, str]) -> str:
        """Return the path of a film: the table's, else that of the layout."""
        listed = row.get("path") if self.listed_in == RECORDS else None
        folder = study_path(row["subject_id"], row["study_id"])
        return listed or f"{folder}/{row['dicom_id']}{self.published_suffix}"


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
    listed_in = METADATA
    published_suffix = ".jpg"


def study_path(patient: str, study: str) -> str:
    """Return the path of a study in MIMIC-CXR's layout.

    >>> study_path("10000032", "50414267")
    'files/p10/p10000032/s50414267'
    """
    return f"files/p{patient[:2]}/p{patient}/s{study}"


def _with_report(
    id: str, study: StudyRows, where: str, texts: ReportTexts
) -> DatasetStudy | Omission:
    patient = study.first["subject_id"]
    name = f"{study_path(patient, id)}.txt"
    try:
        report = texts.read(name)
    except (OSError, ValueError) as error:
        return Omission(name, 0, id, "study", DAMAGED, type(error).__name__)
    if report is None:
        return Omission(where, study.number, id, "study", REPORT_ABSENT, name)
    sections, from_last = sections_of(report)
    return DatasetStudy(
        id,
        patient,
        tuple(study.films),
        sections,
        report.strip(),
        split_named(study.first.get("split")),
        file=where,
        row=study.number,
        from_last_paragraph=from_last,
    )


def _facts(files: DatasetFiles) -> dict[str, dict[str, str]]:
    """Return film -> view, size and split, as far as MIMIC-CXR-JPG's tables are in the folder."""
    facts: dict[str, dict[str, str]] = {}
    for name, columns in ((METADATA, ("ViewPosition", "Rows", "Columns")), (SPLIT, ("split",))):
        table = files.table(name)
        if table is None:
            continue
        for _, row in table_rows(table, ("dicom_id",)):
            if row is not None and "dicom_id" in row:
                own = facts.setdefault(row["dicom_id"], {})
                own |= {column: row[column] for column in columns if column in row}
    return facts


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
