"""Values of metrics that were computed elsewhere, of the systems that are compared."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vlscore._files import file_digest
from vlscore.alignment.building import missing_columns, name_of, number_of
from vlscore.alignment.values import is_higher_better
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable
from vlscore.studies import columns_of, read_rows


@dataclass(frozen=True, eq=False)
class GivenMetric:
    """One column of a table of values.

    Attributes:
        name: of the column.
        higher_is_better: direction.
        values: system -> (n,) values of the studies, nan where there is none.
        signature: says which file they came from.
    """

    name: str
    higher_is_better: bool
    values: Mapping[str, NDArray[np.float64]]
    signature: str


def read_given(
    path: str | Path | None,
    systems: Collection[str],
    studies: Sequence[str],
    *,
    system_column: str = "system",
    id_column: str = "id",
    lower_is_better: Collection[str] = (),
    computed: Collection[str] = (),
) -> tuple[list[GivenMetric], list[str]]:
    """Metrics of a table with one row a system and study, one column a metric; and notes.

    A column that has the name of a metric of vlscore has its direction; of others larger values
    are better unless they are named.

    Args:
        path: of the table; None where there is none, and so no metrics.
        computed: names that columns must not have, for they are computed here.
        systems, studies: those that are compared; rows of others are left out, and told.

    Raises:
        InvalidTable: the file cannot be read, has not the columns, names a study of a system
            twice, holds what is no number, or has no row that is compared.
        InvalidSetting: a name in `lower_is_better` is no column, or a column is computed here.
    """
    if path is None:
        if lower_is_better:
            raise InvalidSetting("lower_is_better names columns of a table of values; give it")
        return [], []
    path = Path(path)
    found = columns_of(path)
    missing_columns(path, found, [system_column, id_column])
    names = [name for name in found if name not in (system_column, id_column)]
    if not names:
        raise InvalidTable(f"{path}: has no column of values beside {system_column}, {id_column}")
    if both := [name for name in names if name in computed]:
        raise InvalidSetting(
            f"{', '.join(both)}: computed and read from {path} alike; rename the column"
        )
    if unknown := sorted(set(lower_is_better) - set(names)):
        raise InvalidSetting(f"{path}: no column {', '.join(unknown)}; found: {', '.join(names)}")
    place = {study: k for k, study in enumerate(studies)}
    values = {name: {s: np.full(len(studies), np.nan) for s in systems} for name in names}
    seen: set[tuple[str, str]] = set()
    others = 0
    for number, record in read_rows(path):
        if isinstance(record, str):
            raise InvalidTable(f"{path}, row {number}: {record}")
        try:
            key = (
                name_of(record[system_column], system_column),
                name_of(record[id_column], id_column),
            )
            if key[0] not in systems or key[1] not in place:
                others += 1
                continue
            if key in seen:
                raise InvalidStudy(f"{key[0]!r} has an earlier row of study {key[1]!r}")
            seen.add(key)
            for name in names:
                value = number_of(record[name], name)
                if value is not None:
                    values[name][key[0]][place[key[1]]] = value
        except InvalidStudy as error:
            raise InvalidTable(f"{path}, row {number}: {error}") from None
    if not seen:
        raise InvalidTable(
            f"{path}: none of its rows is of a system ({', '.join(systems)}) and study compared"
        )
    notes = [f"{path}: {others} rows are of no system and study compared"] if others else []
    signature = f"values|file:{path.name}|sha256:{file_digest(path)[:8]}"
    metrics = [
        GivenMetric(name, is_higher_better(name, lower_is_better), values[name], signature)
        for name in names
    ]
    return metrics, notes
