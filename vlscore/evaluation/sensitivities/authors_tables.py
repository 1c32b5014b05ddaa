"""Tables of perturbed reports that the VLScore paper's authors make by their repository's script.

Their folder `perturbed_data` has one control file a kind, and a script that makes tables with the
columns Path_frontal, gt and output of them and of MIMIC-CXR's reports. A table's name says its
kind; "gt" is the report as it was and "output" the changed one.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from vlscore.data import columns_of, read_rows
from vlscore.errors import InvalidTable
from vlscore.perturb import KINDS

IMAGE, ORIGINAL, PERTURBED = COLUMNS = ("Path_frontal", "gt", "output")
# Part of a table's name, in small letters -> kind; "noninformative" is looked for before others.
_KINDS = {
    "noninformative": "replace-uninformative",
    "insignificant": "remove-insignificant",
    "pathology": "remove-pathology",
    "location": "change-location",
    "severity": "change-severity",
    "constant": "standard-normal",
}
# MIMIC-CXR's layout: .../p10000032/s50414267/DICOM_ID.jpg
_STUDY = re.compile(r"(?:^|[/\\])s(\d+)[/\\]")


def authors_tables(place: Path) -> dict[Path, str]:
    """Return the authors' tables in a folder, or the one at a path, with their kinds.

    A .csv file with other columns is not one of their tables.
    """
    files = sorted(place.glob("*.csv")) if place.is_dir() else [place]
    found = {}
    for path in files:
        kind = next((_KINDS[part] for part in _KINDS if part in path.stem.lower()), None)
        is_table = path.is_file() and path.suffix == ".csv" and kind is not None
        if is_table and set(COLUMNS) <= set(columns_of(path)):
            found[path] = str(kind)
    return found


def is_control_folder(place: Path) -> bool:
    """Return True if a folder has control files, of which their script has made no tables yet."""
    names = [path.stem.lower() for path in place.glob("*.csv")] if place.is_dir() else []
    return any(part in name for part in _KINDS for name in names) and not authors_tables(place)


def read_authors_rows(path: Path, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the changes of one table, with the fields of a perturbation, and "image".

    A study's id is its number in MIMIC-CXR where the image's path has it, else the path. An empty
    "output" is a report that states nothing.

    Raises: InvalidTable naming the row without an image or a report.
    """
    known = KINDS[kind]
    for row, record in read_rows(path):
        if isinstance(record, str):
            raise InvalidTable(f"{path}, row {row}: {record}")
        image, original, perturbed = (_text(record, name) for name in COLUMNS)
        for name, value in ((IMAGE, image), (ORIGINAL, original)):
            if not value.strip():
                raise InvalidTable(f'{path}, row {row}: "{name}" is empty')
        study = _STUDY.search(image)
        yield {
            "study_id": study[1] if study else image,
            "kind": kind,
            "is_significant": known.expected == "significant",
            "original": original,
            "perturbed": perturbed,
            "category": known.category or None,
            "image": image,
        }


def _text(record: Mapping[str, Any], name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""
