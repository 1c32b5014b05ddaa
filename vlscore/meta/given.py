"""Values of a metric that was computed elsewhere, for pairs of original and perturbed reports.

The table has the layout of the `values.csv` that `vlscore sensitivity` writes: `study_id`, `kind`,
and for each metric `NAME.original` and `NAME.perturbed`. The first row of a study and kind is of
its first change in perturbations.jsonl, the second of its second.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vlscore._files import file_digest
from vlscore._signature import Signature
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable, VLScoreError
from vlscore.meta.pairs import Pair
from vlscore.meta.values import PairValues
from vlscore.metrics import METRICS, Metric, find_metric
from vlscore.studies import columns_of, read_rows

_ORIGINAL, _PERTURBED = ".original", ".perturbed"


def read_pair_values(
    path: str | Path, pairs: Sequence[Pair], *, lower_is_better: Collection[str] = ()
) -> list[PairValues]:
    """The metrics of a table of values; nan where a pair has none.

    A metric that vlscore knows has its own direction; of others larger values are better unless
    they are named.

    Raises:
        InvalidTable: the file cannot be read, has not the columns, holds what is no number, or has
            more rows of a study and kind than there are changes.
        InvalidSetting: a name in `lower_is_better` is no metric of the table.
    """
    path = Path(path)
    found = columns_of(path)
    names = [
        column.removesuffix(_ORIGINAL)
        for column in found
        if column.endswith(_ORIGINAL) and column.removesuffix(_ORIGINAL) + _PERTURBED in found
    ]
    if not {"study_id", "kind"} <= set(found) or not names:
        raise InvalidTable(
            f"{path}: needs the columns study_id, kind, and NAME{_ORIGINAL} and NAME{_PERTURBED} "
            f"of each metric; found: {', '.join(found)}"
        )
    if unknown := sorted(set(lower_is_better) - set(names)):
        raise InvalidSetting(f"{path}: no metric {', '.join(unknown)}; found: {', '.join(names)}")
    places: dict[tuple[str, str], list[int]] = defaultdict(list)
    for k, pair in enumerate(pairs):
        places[pair.study_id, pair.kind].append(k)
    taken: dict[tuple[str, str], int] = defaultdict(int)
    values = np.full((len(names), 2, len(pairs)), np.nan)
    for number, record in read_rows(path):
        if isinstance(record, str):
            raise InvalidTable(f"{path}, row {number}: {record}")
        key = (str(record["study_id"]), str(record["kind"]))
        rows = places.get(key, [])
        if taken[key] >= len(rows):
            raise InvalidTable(
                f"{path}, row {number}: the perturbations have {len(rows)} changes of kind "
                f"{key[1]!r} of study {key[0]!r}, and this is one more"
            )
        row = rows[taken[key]]
        taken[key] += 1
        for k, name in enumerate(names):
            for which, suffix in enumerate((_ORIGINAL, _PERTURBED)):
                place = f"{path}, row {number}, {name}{suffix}"
                values[k, which, row] = _number(record[name + suffix], place)
    signature = Signature("values").plus(file=path.name, sha256=file_digest(path)[:8])
    return [
        PairValues(
            metric := _metric(name, name in lower_is_better, path),
            signature.of(str(metric)),
            numbers[0],
            numbers[1],
            {
                int(row): InvalidStudy(f"{path} has no value")
                for row in np.flatnonzero(~np.isfinite(numbers).all(0))
            },
        )
        for name, numbers in zip(names, values, strict=True)
    ]


def _metric(name: str, is_lower_better: bool, path: Path) -> Metric:
    known = name in METRICS and ":" not in name
    try:
        return Metric(
            name=name,
            description=f"values of {path.name}",
            higher_is_better=not is_lower_better
            and (find_metric(name).higher_is_better if known else True),
            bounds=(None, None),
            uses_image=False,
            uses_reference=True,
            citation=f"computed elsewhere: {path.name}",
        )
    except VLScoreError as error:
        raise InvalidTable(f"{path}: {error}") from None


def _number(cell: Any, place: str) -> float:
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return float("nan")
    try:
        return float(cell)
    except (TypeError, ValueError):
        raise InvalidTable(f"{place}: {cell!r} is no number") from None
