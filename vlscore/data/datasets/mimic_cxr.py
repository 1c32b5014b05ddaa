"""MIMIC-CXR: DICOM films and free-text reports.

The layout is described on PhysioNet (mimic-cxr 2.0.0 and 2.1.0, Johnson et al. 2019): films as
`files/p10/p10000032/s50414267/DICOM_ID.dcm`, reports as `files/p10/p10000032/s50414267.txt` in
`mimic-cxr-reports.zip`, and the list of films `cxr-record-list.csv.gz` (`subject_id`, `study_id`,
`dicom_id`, `path`). The official split and the view positions are published with MIMIC-CXR-JPG
alone; if its two tables are in the folder, they are used.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vlscore.data.datasets.dataset_base import (
    DAMAGED,
    INCOMPLETE,
    REPORT_ABSENT,
    SECTIONS,
    Dataset,
    DatasetStudy,
    Film,
    Omission,
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

PathOf = Callable[[Mapping[str, str]], str]


@dataclass
class MimicStudy:
    """The films of one study as its tables list them.

    Attributes:
        patient: subject_id.
        row: row of its first film.
        films: films in the order of the table.
        split: split of its first film.
    """

    patient: str
    row: int
    films: list[Film] = field(default_factory=list)
    split: str | None = None


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

    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        """Yield the studies in the order of the list of films."""
        table = files.needed_table(RECORDS)
        return studies_of(files, table, (*_KEYS, "path"), self._path)

    @staticmethod
    def _path(row: Mapping[str, str]) -> str:
        return row.get("path") or film_path(row, ".dcm")


def film_path(row: Mapping[str, str], suffix: str) -> str:
    """Return the path of a film in MIMIC-CXR's layout."""
    return f"{study_path(row['subject_id'], row['study_id'])}/{row['dicom_id']}{suffix}"


def study_path(patient: str, study: str) -> str:
    """Return the path of a study in MIMIC-CXR's layout.

    >>> study_path("10000032", "50414267")
    'files/p10/p10000032/s50414267'
    """
    return f"files/p{patient[:2]}/p{patient}/s{study}"


def studies_of(
    files: DatasetFiles, table: Path, needed: Iterable[str], path_of: PathOf
) -> Iterator[DatasetStudy | Omission]:
    """Yield the studies whose films a table lists, with their reports.

    Args:
        table: table with one row a film.
        needed: columns that it must have.
        path_of: function that returns a film's path from its row.

    Raises: InvalidTable if a table, or the reports, are absent.
    """
    texts = _report_texts(files)
    facts = _facts(files)
    found: dict[str, MimicStudy] = {}
    where = relative_name(table, files.folder)
    for number, row in table_rows(table, tuple(needed)):
        if row is None:
            yield Omission(where, number, None, "film", DAMAGED)
            continue
        if any(name not in row for name in _KEYS):
            yield Omission(where, number, row.get("study_id"), "film", INCOMPLETE)
            continue
        own = {**facts.get(row["dicom_id"], {}), **row}
        study = found.setdefault(row["study_id"], MimicStudy(row["subject_id"], number))
        study.films.append(
            Film(
                path_of(row),
                own.get("ViewPosition"),
                whole_number(own.get("Rows")),
                whole_number(own.get("Columns")),
            )
        )
        study.split = study.split or split_named(own.get("split"))
    for id, each in found.items():
        yield _with_report(id, each, where, texts)


def _with_report(
    id: str, study: MimicStudy, where: str, texts: ReportTexts
) -> DatasetStudy | Omission:
    name = f"{study_path(study.patient, id)}.txt"
    try:
        report = texts.read(name)
    except (OSError, ValueError) as error:
        return Omission(name, 0, id, "study", DAMAGED, type(error).__name__)
    if report is None:
        return Omission(where, study.row, id, "study", REPORT_ABSENT, name)
    sections, from_last = sections_of(report)
    return DatasetStudy(
        id,
        study.patient,
        tuple(study.films),
        sections,
        report.strip(),
        study.split,
        file=where,
        row=study.row,
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
