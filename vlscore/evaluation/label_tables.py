"""Tables of labels, as a labeller or people wrote them."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vlscore.claims import NIH_LABELS, finding_of_label
from vlscore.data import columns_of, is_encodable, whole_rows
from vlscore.errors import InvalidTable
from vlscore.findings import CHEXPERT_LABELS

Labels = Mapping[str, int | None]
#: Finding, as claims name it -> 1, 0, or None where it is unknown.
ClaimLabels = Mapping[str, int | None]
#: What an empty cell of a table of labels may mean.
ABSENT, UNKNOWN = "absent", "unknown"

# CheXpert's first files have another name for one label than its paper.
_LABELS = {label.casefold(): label for label in CHEXPERT_LABELS}
_LABELS["airspace opacity"] = "Lung Opacity"
_ID_COLUMNS = ("id", "study_id", "study", "dicom_id", "Path")
_VALUES = {1.0: 1, 0.0: 0, -1.0: -1}
_UNCERTAIN = -1
_NIH_COLUMNS = ("Finding Labels", "labels")
_NIH_IDS = ("Image Index", "id")


def read_labels(path: str | Path, *, threshold: float | None = None) -> dict[str, Labels]:
    """Read study id -> labels from a table with one column a label, as CheXpert's labeller writes
    it.

    A label is 1 (stated), 0 (denied), -1 (uncertain) or empty (not mentioned). Columns are found by
    CheXpert's names in any spelling; those that are absent are absent from every study.

    Args: threshold: values may then be probabilities; from it on a label is 1, below it 0.

    Raises: InvalidTable where the file cannot be read, has no column of ids or labels, names a
        study twice, or holds another value.
    """
    path = Path(path)
    found = columns_of(path)
    ids = next((name for name in _ID_COLUMNS if name in found), None)
    if ids is None:
        raise InvalidTable(
            f"{path}: no column {' or '.join(_ID_COLUMNS[:2])} with the studies' ids; found: "
            f"{', '.join(found)}"
        )
    columns = {label: name for name in found if (label := _label_of(name)) is not None}
    if not columns:
        raise InvalidTable(
            f"{path}: none of its columns is one of CheXpert's labels "
            f"({', '.join(CHEXPERT_LABELS)}); found: {', '.join(found)}"
        )
    labels: dict[str, Labels] = {}
    for row, record in whole_rows(path, {ids, *columns.values()}):
        study = _id_of(record.get(ids))
        if not study or not is_encodable(study):
            raise InvalidTable(f'{path}, row {row}: column "{ids}" has no id')
        if study in labels:
            raise InvalidTable(f"{path}, row {row}: {study!r} has an earlier row")
        labels[study] = {
            label: _value(record.get(name), f'{path}, row {row}: column "{name}"', threshold)
            for label, name in columns.items()
        }
    return labels


def read_claim_labels(path: str | Path, *, blank: str = ABSENT) -> dict[str, ClaimLabels]:
    """Read study id -> finding -> label from a table of CheXpert, MIMIC or NIH ChestX-ray14.

    A label is 1 or 0, or None where it is unknown: CheXpert's -1 is uncertain. NIH's table has the
    column "Finding Labels" (or "labels"), with all labels of an image in one cell, and "Image
    Index" (or "id"); a label that is not in the cell is 0.

    Args:
        blank: what an empty cell of CheXpert's form means. "absent": the report does not mention
            the finding, which is 0, as where labels are extracted here; or "unknown".

    Raises: InvalidTable as `read_labels`.
    """
    found = columns_of(path)
    column = next((name for name in _NIH_COLUMNS if name in found), None)
    if column is None:
        meaning = {None: 0 if blank == ABSENT else None, _UNCERTAIN: None}
        return {
            study: {
                finding_of_label(name): meaning.get(value, value) for name, value in own.items()
            }
            for study, own in read_labels(path).items()
        }
    ids = next((name for name in _NIH_IDS if name in found), None)
    if ids is None:
        raise InvalidTable(f"{path}: has no column {' or '.join(_NIH_IDS)}")
    every = {finding_of_label(name) for name in NIH_LABELS}
    labels: dict[str, ClaimLabels] = {}
    for _, record in whole_rows(path, {ids, column}):
        cell = record.get(column) or ""
        stated = cell if isinstance(cell, list) else str(cell).split("|")
        present = {finding_of_label(name) for name in stated}
        labels[str(record.get(ids))] = {name: int(name in present) for name in every}
    return labels


def _label_of(column: str) -> str | None:
    return _LABELS.get(" ".join(column.replace("_", " ").replace("-", " ").split()).casefold())


def _id_of(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else str(value).strip()


def _value(cell: Any, place: str, threshold: float | None) -> int | None:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    try:
        number = float(cell)
    except (TypeError, ValueError):
        number = 2.0
    if math.isnan(number):
        return None
    if threshold is not None and 0 < number < 1:
        return int(number >= threshold)
    if number not in _VALUES:
        raise InvalidTable(f"{place} holds {cell!r}; a label is 1, 0, -1 or empty")
    return _VALUES[number]
