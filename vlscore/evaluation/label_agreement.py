"""Agreement of labels with those of another source: a labeller, or people.

Precision, recall and F1 of labels, with intervals over reports.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.data import columns_of, is_encodable, read_rows
from vlscore.errors import InvalidTable
from vlscore.findings import CHEXPERT_LABELS, LabelPolicy
from vlscore.stats import Interval, TextTable, interval, number, percentiles

Labels = Mapping[str, int | None]

# CheXpert's first files have another name for one label than its paper.
_ALIASES = {"airspace opacity": "Lung Opacity"}
_ID_COLUMNS = ("id", "study_id", "study", "dicom_id", "Path")
_VALUES = {1.0: 1, 0.0: 0, -1.0: -1}


def read_labels(
    path: str | Path, *, id_column: str | None = None, threshold: float | None = None
) -> dict[str, Labels]:
    """Read study id -> labels from a table with one column a label, as CheXpert's labeller writes
    it.

    A label is 1 (stated), 0 (denied), -1 (uncertain) or empty (not mentioned). Columns are found by
    CheXpert's names in any spelling; those that are absent are absent from every study.

    Args:
        id_column: default: "id" or "study_id".
        threshold: values may then be probabilities; from it on a label is 1, below it 0.

    Raises: InvalidTable where the file cannot be read, has no column of ids or labels, names a
        study twice, or holds another value.
    """
    path = Path(path)
    found = columns_of(path)
    ids = id_column or next((name for name in _ID_COLUMNS if name in found), None)
    if ids is None or ids not in found:
        wanted = ids or " or ".join(_ID_COLUMNS[:2])
        raise InvalidTable(
            f"{path}: no column {wanted} with the studies' ids; found: {', '.join(found)}"
        )
    columns = {label: name for name in found if (label := _label_of(name)) is not None}
    if not columns:
        raise InvalidTable(
            f"{path}: none of its columns is one of CheXpert's labels "
            f"({', '.join(CHEXPERT_LABELS)}); found: {', '.join(found)}"
        )
    labels: dict[str, Labels] = {}
    for row, record in read_rows(path, {ids, *columns.values()}):
        if isinstance(record, str):
            raise InvalidTable(f"{path}, row {row}: {record}")
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


def _label_of(column: str) -> str | None:
    plain = " ".join(column.replace("_", " ").replace("-", " ").split()).casefold()
    for label in CHEXPERT_LABELS:
        if label.casefold() == plain:
            return label
    return _ALIASES.get(plain)


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


# The observations of CheXpert's competition (Irvin et al. 2019, section 5).
COMPETITION = ("Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Pleural Effusion")
# Numbers held at once.
_AT_ONCE = 4_000_000
Sums = NDArray[np.float64]


@dataclass(frozen=True)
class LabelAgreement:
    """Agreement of found labels with given ones, for one label or several together.

    Attributes:
        label: one of CheXpert's, or "micro", "macro", "micro-5", "macro-5".
        n: reports that are judged on it.
        given, found: how many of them it is present in.
        precision, recall: nan where none was found, or none given.
        f1: with its interval over reports; nan where it is neither given nor found in any.
    """

    label: str
    n: int
    given: int
    found: int
    precision: float
    recall: float
    f1: Interval


def agreement(
    given: Sequence[Labels],
    found: Sequence[Labels],
    policy: LabelPolicy | None = None,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> list[LabelAgreement]:
    """Return the agreement on each given label, on all of them, and on the competition's five.

    Micro adds up the counts of labels; macro is the mean F1 of the labels that occur. Intervals are
    95 % percentile intervals over resampled reports.

    Args:
        given, found: labels of the same reports, in one order.
    """
    policy = policy or LabelPolicy()
    names = [name for name in CHEXPERT_LABELS if any(name in labels for labels in given)]
    outcomes = np.zeros((len(given), 4, len(names)), dtype=np.int8)
    for row, (theirs, ours) in enumerate(zip(given, found, strict=True)):
        for k, name in enumerate(names):
            judged, wanted, seen = policy.judged(theirs.get(name), ours.get(name))
            outcomes[row, :, k] = judged * np.array(
                [seen and wanted, seen and not wanted, wanted and not seen, 1]
            )
    flat = outcomes.reshape(len(given), -1)
    patterns, times = np.unique(flat, axis=0, return_counts=True)
    drawn = _drawn(patterns, times, resamples, seed).reshape(-1, 4, len(names))
    sums = flat.sum(0, dtype=np.float64).reshape(1, 4, len(names))
    five = [k for k, name in enumerate(names) if name in COMPETITION]
    groups = {name: [k] for k, name in enumerate(names)}
    groups |= {"micro": list(range(len(names))), "micro-5": five}
    rows = [
        _row(name, sums[..., chosen], drawn[..., chosen], len(given))
        for name, chosen in groups.items()
        if chosen
    ]
    for name, chosen in (("macro", list(range(len(names)))), ("macro-5", five)):
        if chosen:
            rows.append(_macro(name, rows, sums[..., chosen], drawn[..., chosen], len(given)))
    return rows


def _drawn(patterns: NDArray[np.int8], times: NDArray[np.int64], resamples: int, seed: int) -> Sums:
    """Return sums over resampled reports; counts of equal patterns are drawn."""
    rng = np.random.default_rng(seed)
    count = int(times.sum())
    block = max(1, _AT_ONCE // len(times))
    parts = []
    for first in range(0, resamples, block):
        size = min(block, resamples - first)
        parts.append(rng.multinomial(count, times / count, size=size) @ patterns.astype(np.float64))
    found: Sums = np.concatenate(parts)
    return found


def _f1(tp: Sums, fp: Sums, fn: Sums) -> Sums:
    """Compute F1; nan where there is nothing to find, and nothing was found."""
    whole = 2 * tp + fp + fn
    return np.where(whole > 0, 2 * tp / np.where(whole > 0, whole, 1), np.nan)


def _row(name: str, sums: Sums, drawn: Sums, count: int) -> LabelAgreement:
    tp, fp, fn, judged = (float(x) for x in sums[0].sum(-1))
    t, p, n, _ = np.moveaxis(drawn.sum(-1), 1, 0)
    estimate = float(_f1(*(np.array([x]) for x in (tp, fp, fn)))[0])
    return LabelAgreement(
        name,
        n=int(judged) if sums.shape[-1] == 1 else count,
        given=int(tp + fn),
        found=int(tp + fp),
        precision=tp / (tp + fp) if tp + fp else float("nan"),
        recall=tp / (tp + fn) if tp + fn else float("nan"),
        f1=percentiles(estimate, _f1(t, p, n), 0.95, count),
    )


def _macro(
    name: str, rows: Sequence[LabelAgreement], sums: Sums, drawn: Sums, count: int
) -> LabelAgreement:
    def mean(counts: Sums) -> Sums:
        each = _f1(*(counts[:, k] for k in range(3)))
        occurs = ~np.isnan(each)
        some = occurs.sum(-1)
        total = np.where(occurs, each, 0.0).sum(-1)
        return np.where(some > 0, total / np.maximum(some, 1), np.nan)

    micro = next(row for row in rows if row.label == name.replace("macro", "micro"))
    f1 = percentiles(float(mean(sums)[0]), mean(drawn), 0.95, count)
    nothing = float("nan")
    return LabelAgreement(name, count, micro.given, micro.found, nothing, nothing, f1)


def agreement_table(rows: Sequence[LabelAgreement], policy: LabelPolicy, source: str) -> TextTable:
    """Return the agreement as a table."""
    uncertain = "positive" if policy.uncertain == "keep" else policy.uncertain
    return TextTable(
        f"Labels against those of {source}",
        ("label", "n", "given", "found", "precision", "recall", "F1"),
        tuple(
            (
                row.label,
                str(row.n),
                str(row.given),
                str(row.found),
                number(row.precision),
                number(row.recall),
                interval(row.f1),
            )
            for row in rows
        ),
        "n: reports judged on the label. given, found: present by the given labels and by the "
        f"rules of vlscore.findings. Uncertain labels count as {uncertain}; labels that the given "
        f"ones leave empty as {policy.unmentioned}. F1 with 95 % intervals over reports; macro "
        "over the labels that occur; -5: the five of CheXpert's "
        "competition.",
    )
