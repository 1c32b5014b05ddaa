"""Indiana University collection of chest X-rays, as Open-i and as Kaggle publish it.

Open-i's edition (`IuOpenI`) is described in Demner-Fushman et al. 2016 (doi 10.1093/jamia/ocv080)
and on https://openi.nlm.nih.gov/faq ("Collection of chest x-rays"): `NLMCXR_reports.tgz` unpacks to
`ecgen-radiology/NUMBER.xml`, `NLMCXR_png.tgz` to PNG files. A report's XML has `<uId id="CXR1"/>`,
`<AbstractText Label="FINDINGS">`, `<parentImage id="CXR1_1_IM-0001-3001">` for each film, and its
manual coding as `<MeSH><major>`. No file has the view of a film; if the Kaggle edition's
`indiana_projections.csv` is in the folder, it is used.

Kaggle's edition (`IuKaggle`) is described on
https://www.kaggle.com/datasets/raddar/chest-xrays-indiana-university: `indiana_reports.csv` (`uid`,
`MeSH`, `Problems`, `image`, `indication`, `comparison`, `findings`, `impression`),
`indiana_projections.csv` (`uid`, `filename`, `projection`: Frontal or Lateral), films in
`images/images_normalized/`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from vlscore.data.datasets.dataset_base import (
    DAMAGED,
    INCOMPLETE,
    Dataset,
    DatasetStudy,
    Film,
    Omission,
    relative_name,
    sections_present,
)
from vlscore.data.datasets.dataset_files import DatasetFiles, packed_members, table_rows
from vlscore.errors import InvalidTable

_FOLDERS = (
    "ecgen-radiology",
    "NLMCXR_reports/ecgen-radiology",
    "reports/ecgen-radiology",
    "reports",
)
_ARCHIVES = ("NLMCXR_reports.tgz", "NLMCXR_reports.tar.gz")
PROJECTIONS = "indiana_projections.csv"
REPORTS = "indiana_reports.csv"
_NUMBER = re.compile(r"\d+")


class IuOpenI(Dataset):
    """Reads Open-i's XML files; see this file's docstring."""

    name = "iu-openi"
    description = "Indiana University chest X-rays as Open-i publishes them: XML and PNG"
    source = "https://openi.nlm.nih.gov/faq"
    licence = "CC BY-NC-ND 4.0"
    needs = "ecgen-radiology/*.xml or NLMCXR_reports.tgz, and the PNG files of NLMCXR_png.tgz"
    sections = ("indication", "comparison", "findings", "impression")
    extra = ("uid", "mesh")
    film_folders = ("", "NLMCXR_png", "images", "images/NLMCXR_png", "png")
    film_suffixes = (".png", ".jpg", ".dcm")

    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        """Yield the studies in the order of their numbers."""
        views = _views(files)
        for name, content in _reports(files):
            yield _study_of_xml(name, content, views)


def _reports(files: DatasetFiles) -> Iterator[tuple[str, bytes | OSError]]:
    for folder in _FOLDERS:
        found = sorted((files.folder / folder).glob("*.xml"), key=_order)
        if found:
            for path in found:
                yield relative_name(path, files.folder), _content(path)
            return
    for name in _ARCHIVES:
        if (files.folder / name).is_file():
            yield from packed_members(files.folder / name, ".xml")
            return
    raise InvalidTable(
        f"{files.folder}: has neither {_FOLDERS[0]}/*.xml nor {_ARCHIVES[0]}; give the folder that "
        "holds Open-i's reports and films"
    )


def _content(path: Path) -> bytes | OSError:
    try:
        return path.read_bytes()
    except OSError as error:
        return error


def _order(path: Path) -> tuple[int, str]:
    number = _NUMBER.search(path.stem)
    return (int(number[0]) if number else 0, path.stem)


def _study_of_xml(
    name: str, content: bytes | OSError, views: dict[str, str]
) -> DatasetStudy | Omission:
    try:
        if isinstance(content, OSError):
            raise content
        # Entities can expand a small file to gigabytes, and no report defines one.
        if b"<!ENTITY" in content:
            raise ValueError("entities")
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, OSError) as error:
        return Omission(name, 0, None, "study", DAMAGED, type(error).__name__)
    uid = root.find(".//uId")
    stated = uid.get("id", "").strip() if uid is not None else ""
    number = _NUMBER.search(stated or Path(name).stem)
    if number is None:
        return Omission(name, 0, None, "study", DAMAGED, "no number of a report")
    id = stated if stated.startswith("CXR") else f"CXR{number[0]}"
    texts = {
        (each.get("Label") or "").lower(): "".join(each.itertext())
        for each in root.iter("AbstractText")
    }
    films = [(each.get("id") or "").strip() for each in root.iter("parentImage")]
    return DatasetStudy(
        id,
        # Open-i publishes one report a patient.
        id,
        tuple(Film(f"{film}.png", views.get(_film_key(film))) for film in films if film),
        sections_present(texts),
        extra={
            "uid": number[0],
            "mesh": ";".join(
                (each.text or "").strip()
                for each in root.iter("major")
                if (each.text or "").strip()
            ),
        },
        file=name,
    )


def _views(files: DatasetFiles) -> dict[str, str]:
    table = files.table(PROJECTIONS)
    if table is None:
        return {}
    return {
        _film_key(row["filename"]): row.get("projection", "").lower()
        for _, row in table_rows(table, ("filename", "projection"))
        if row is not None and "filename" in row
    }


def _film_key(name: str) -> str:
    """Return a film's name in a form that is equal for both editions.

    >>> _film_key("CXR1_1_IM-0001-3001"), _film_key("1_IM-0001-3001.dcm.png")
    ('1_IM-0001-3001', '1_IM-0001-3001')
    >>> _film_key("CXR10_IM-0002-1001"), _film_key("10_IM-0002-1001.dcm.png")
    ('10_IM-0002-1001', '10_IM-0002-1001')
    """
    stem = re.sub(r"(\.dcm)?(\.png|\.jpg)?$", "", name)
    return re.sub(r"^CXR(\d+_(?=\d+_))?", "", stem)


class IuKaggle(Dataset):
    """Reads the pair of csv tables; see this file's docstring."""

    name = "iu-kaggle"
    description = "Indiana University chest X-rays as Kaggle has them: two csv tables and PNG"
    source = "https://www.kaggle.com/datasets/raddar/chest-xrays-indiana-university"
    licence = "CC BY-NC-ND 4.0 (Open-i)"
    needs = "indiana_reports.csv, indiana_projections.csv, images/images_normalized/"
    sections = ("indication", "comparison", "findings", "impression")
    extra = ("uid", "mesh", "problems")
    film_folders = ("", "images/images_normalized", "images_normalized", "images")
    film_suffixes = (".png", ".jpg")

    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        """Yield the studies in the order of the table of reports."""
        projections = files.needed_table(PROJECTIONS)
        table = files.needed_table(REPORTS)
        films: dict[str, list[Film]] = {}
        where = relative_name(projections, files.folder)
        for number, row in table_rows(projections, ("uid", "filename", "projection")):
            if row is None:
                yield Omission(where, number, None, "film", DAMAGED)
            elif "uid" not in row or "filename" not in row:
                yield Omission(where, number, row.get("uid"), "film", INCOMPLETE)
            else:
                view = row.get("projection", "").strip().lower() or None
                films.setdefault(row["uid"].strip(), []).append(Film(row["filename"], view))
        where = relative_name(table, files.folder)
        for number, row in table_rows(table, ("uid", "findings", "impression")):
            if row is None:
                yield Omission(where, number, None, "study", DAMAGED)
            elif "uid" not in row:
                yield Omission(where, number, None, "study", INCOMPLETE)
            else:
                yield _study_of_row(row, films.get(row["uid"].strip(), []), where, number)


def _study_of_row(row: dict[str, str], films: list[Film], where: str, number: int) -> DatasetStudy:
    uid = row["uid"].strip()
    return DatasetStudy(
        f"CXR{uid}",
        f"CXR{uid}",
        tuple(films),
        sections_present(row),
        extra={"uid": uid, "mesh": row.get("MeSH", ""), "problems": row.get("Problems", "")},
        file=where,
        row=number,
    )
