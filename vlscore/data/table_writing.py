"""Writing of tables of studies: parquet, jsonl or csv, whole or not at all."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vlscore.core import atomic_write, cells, json_line
from vlscore.errors import InvalidSetting

FORMATS = (".parquet", ".jsonl", ".csv")


def check_format(path: Path) -> None:
    """Raise InvalidSetting if no table is written under this name."""
    if path.suffix not in FORMATS:
        raise InvalidSetting(f"{path}: a table is one of {', '.join(FORMATS)}")


def write_table(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    numbers: Sequence[str] = (),
) -> None:
    """Write the rows of a table; a row may lack columns. Lists are json in the cells of a csv.

    Args:
        columns: names of its columns, in order.
        numbers: those that hold lists of whole numbers; the other lists are of texts.

    Raises: InvalidSetting for another format; OutputFailed.
    """
    check_format(path)
    if path.suffix == ".parquet":
        with atomic_write(path, "wb") as binary:
            _write_parquet(binary, rows, columns, numbers)
        return
    with atomic_write(path) as stream:
        if path.suffix == ".jsonl":
            for row in rows:
                stream.write(json_line({name: row.get(name) for name in columns}))
            return
        table = csv.writer(stream)
        table.writerow(columns)
        for row in rows:
            table.writerow(cells(_csv_cell(row.get(name)) for name in columns))


def _csv_cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _write_parquet(
    stream: Any,
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    numbers: Sequence[str],
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def type_of(name: str) -> Any:
        if name in numbers:
            return pa.list_(pa.int64())
        has_lists = any(isinstance(row.get(name), list) for row in rows)
        return pa.list_(pa.string()) if has_lists else pa.string()

    schema = pa.schema([(name, type_of(name)) for name in columns])
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), stream)
