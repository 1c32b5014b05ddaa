"""Values of metrics that were computed elsewhere, joined to the rows of a run by key columns.

`compare`, `align` and `sensitivity` take such a table. A cell that is not a number only loses its
own value, rows that belong to nothing in the run are counted, and a note names the metrics whose
direction was guessed.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vlscore.core import Signature, check_names, file_digest, with_noun
from vlscore.data import columns_of, name_of, number_of, whole_rows
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable, VLScoreError
from vlscore.evaluation.scored import Scored
from vlscore.metrics import Metric, metric_from_file

if TYPE_CHECKING:
    from pandas import DataFrame


def read_precomputed(
    path: str | Path | None,
    keys: Mapping[str, Sequence[str]],
    *,
    lower_is_better: Collection[str] = (),
    computed: Collection[str] = (),
    suffixes: Sequence[str] = ("",),
    ignored: Collection[str] = (),
    is_repeated: bool = False,
    row_name: str = "row of this run",
) -> Scored | None:
    """Read the metrics of a table, one column a metric and suffix, for the rows of a run.

    A column named like a metric of vlscore, also with parameters, has that metric's direction. For
    any other column larger values are better, unless `lower_is_better` names it.

    Args:
        path: of the table; None where there is none.
        keys: column of the table -> its n texts in this run.
        lower_is_better: metrics of which smaller values are better.
        computed: names that metrics of the table must not have, for they are computed here.
        suffixes: ends of the columns of a metric, such as ".original" and ".perturbed".
        ignored: further columns that hold no values.
        is_repeated: whether several rows have equal keys; they are joined in their order.
        row_name: what a row describes, for messages.

    Returns: the n rows with the columns of values; the signature of a metric names the file and the
        first digits of its sha256. `failures` are by column. None without a table.
    Raises:
        InvalidTable: the file cannot be read, lacks columns, has more rows of one key than the run,
            or none of the run's keys.
        InvalidSetting: a name in `lower_is_better` is no metric of the table, also where there is
            none, or a metric is computed here.
    """
    check_names("lower_is_better", lower_is_better)
    if path is None:
        if lower_is_better:
            raise InvalidSetting(
                "lower_is_better names columns of a table of values "
                f"({', '.join(lower_is_better)}); name the table too (--values)"
            )
        return None
    path = Path(path)
    found = columns_of(path)
    if lacking := [name for name in keys if name not in found]:
        raise InvalidTable(
            f"{path}: no column {', '.join(lacking)}; found: {', '.join(found)}. A table of values "
            f"has the columns {', '.join(keys)} and one for each metric: give them these names in "
            "the file"
        )
    names = _metrics_of(path, [n for n in found if n not in {*keys, *ignored}], suffixes)
    _check_names(path, names, lower_is_better, computed)
    columns = [name + suffix for name in names for suffix in suffixes]
    values, reasons, notes = _read_values(path, keys, columns, is_repeated, row_name)
    known = {name: _known_metric(name) for name in names}
    if guessed := [n for n, known_as in known.items() if not known_as and n not in lower_is_better]:
        notes.append(
            f"{path}: larger values of {', '.join(guessed)} are assumed to be better; "
            "--lower-is-better names metrics of which smaller values are better"
        )
    file = path.name.replace("|", "/").replace("\n", " ")
    signature = Signature("values").plus(file=file, sha256=file_digest(path)[:8])
    return Scored(
        values,
        {name: signature.of(name) for name in names},
        {
            name: name not in lower_is_better and (metric is None or metric.higher_is_better)
            for name, metric in known.items()
        },
        reasons,
        notes=tuple(notes),
    )


def _read_values(
    path: Path,
    keys: Mapping[str, Sequence[str]],
    columns: Sequence[str],
    is_repeated: bool,
    row_name: str,
) -> "tuple[DataFrame, dict[tuple[int, str], str], list[str]]":
    """Read columns of a table for the n rows of a run.

    Returns: the n rows of values; why there is none, by row and column; and notes on rows that
        belong to none of the run, and on cells that are no numbers.
    """
    from pandas import DataFrame

    places: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for k, key in enumerate(zip(*keys.values(), strict=True)):
        places[key].append(k)
    taken: Counter[tuple[str, ...]] = Counter()
    count = len(next(iter(keys.values())))
    values = {column: np.full(count, np.nan) for column in columns}
    reasons = {
        (k, column): f"{path} has no value of {column}" for column in columns for k in range(count)
    }
    unread: list[str] = []
    others = 0
    for number, record in whole_rows(path):
        try:
            key = tuple(name_of(record[column], column) for column in keys)
        except InvalidStudy as error:
            raise InvalidTable(f"{path}, row {number}: {error}") from None
        if key not in places:
            others += 1
            continue
        most = len(places[key]) if is_repeated else 1
        if taken[key] == most:
            raise InvalidTable(
                f"{path}, row {number}: {', '.join(map(repr, key))} has "
                f"{'an earlier row' if most == 1 else f'{most} earlier rows'} already"
            )
        rows = [places[key][taken[key]]] if is_repeated else places[key]
        taken[key] += 1
        for column in columns:
            try:
                if (value := number_of(record[column], column)) is None:
                    continue
            except InvalidStudy as error:
                unread.append(f"row {number}: {error}")
                reasons |= {(row, column): f"{path}, row {number}: {error}" for row in rows}
                continue
            for row in rows:
                values[column][row] = value
                del reasons[row, column]
    if not taken:
        raise InvalidTable(f"{path}: none of its rows is a {row_name}")
    notes = []
    if others:
        notes.append(f"{path}: {with_noun(others, 'row')} of no {row_name}")
    if unread:
        cells = with_noun(len(unread), "cell")
        notes.append(f"{path}: {cells} without a number, the first in {unread[0]}")
    return DataFrame(values), reasons, notes


def _check_names(
    path: Path,
    names: Collection[str],
    lower_is_better: Collection[str],
    computed: Collection[str],
) -> None:
    """Raise InvalidSetting for directions without a metric, and for metrics that are in both."""
    if unknown := sorted(set(lower_is_better) - set(names)):
        raise InvalidSetting(
            f"{path} has no column {', '.join(unknown)}; its metrics are {', '.join(names)}"
        )
    if both := sorted(set(names) & set(computed)):
        raise InvalidSetting(
            f"{', '.join(both)}: both computed and read from {path}; rename the columns, or name "
            "other metrics to compute"
        )


def _known_metric(name: str) -> Metric | None:
    """Return the metric of vlscore that a column header names, or None.

    A header must not name modules to be imported, nor files to be opened.
    """
    try:
        return metric_from_file(name, "a header")
    except VLScoreError:
        return None


def _metrics_of(path: Path, columns: Sequence[str], suffixes: Sequence[str]) -> list[str]:
    """Return the names of which every suffix is a column. Raises: InvalidTable for none."""
    first = suffixes[0]
    names = [column.removesuffix(first) for column in columns if column.endswith(first)]
    names = [name for name in names if all(name + suffix in columns for suffix in suffixes)]
    if not names:
        shown = " and ".join(f"NAME{suffix}" for suffix in suffixes)
        raise InvalidTable(
            f"{path}: no column of values ({shown} of each metric); found: {', '.join(columns)}"
        )
    return names
