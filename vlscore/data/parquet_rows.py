"""Rows of a parquet file; a row that cannot be read does not stop the others."""

import json
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from vlscore.data.cells import check_names
from vlscore.errors import InvalidTable

Record = dict[str, Any]

_ROWS_AT_ONCE = 1024


def parquet_columns(path: Path) -> list[str]:
    """Return the names of the columns. Raises: InvalidTable."""
    file = _opened_parquet(path)
    index = _range_index(file)
    return [*([] if index is None else [index[0]]), *file.schema_arrow.names]


def count_parquet_rows(path: Path) -> int:
    """Return the number of rows. Raises: InvalidTable."""
    return int(_opened_parquet(path).metadata.num_rows)


def read_parquet(path: Path, wanted: Collection[str] | None) -> Iterator[tuple[int, Record | str]]:
    """Yield the number of each row, and its record or why it cannot be read."""
    import pyarrow as pa

    file = _opened_parquet(path)
    index = _range_index(file)
    if index is not None and wanted is not None and index[0] not in wanted:
        index = None
    names = [name for name in file.schema_arrow.names if wanted is None or name in wanted]
    number = 0
    try:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=names):
            for record in _parquet_records(batch.select(names)):
                if index is not None and not isinstance(record, str):
                    record = {index[0]: index[1][number], **record}
                number += 1
                yield number, record
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidTable(f"{path}: damaged after row {number} ({type(error).__name__})") from None


def _opened_parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Row groups may hold a million rows: read their columns through a buffer, not at once.
        # A text that is in many rows is read once: a few kilobytes can repeat one for gigabytes.
        options: dict[str, Any] = {"buffer_size": 1 << 20, "pre_buffer": False}
        schema = pq.read_schema(path)
        names = list(schema.names)
        texts = [each.name for each in schema if pa.types.is_string(each.type)]
        file = pq.ParquetFile(path, read_dictionary=texts, **options)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidTable(f"{path}: is no parquet file ({type(error).__name__})") from None
    check_names(path, names)
    return file


def _range_index(file: Any) -> tuple[str, range] | None:
    """Return name and values of an index that pandas stored as a range, in the metadata alone.

    pandas does so where an index, as one that was made of a column of ids, has equal steps.
    """
    try:
        pandas = json.loads((file.schema_arrow.metadata or {})[b"pandas"])
        (index,) = pandas["index_columns"]
        name, values = index["name"], range(index["start"], index["stop"], index["step"])
        if index["kind"] != "range" or not isinstance(name, str):
            return None
    except (KeyError, TypeError, ValueError):
        return None
    # Of a table that was filtered later, the range is that of all rows.
    is_whole = len(values) == file.metadata.num_rows
    return (name, values) if is_whole and name not in file.schema_arrow.names else None


def _parquet_records(batch: Any) -> list[Record | str]:
    import pyarrow as pa

    columns = {}
    try:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if pa.types.is_dictionary(column.type):
                # Equal texts of a dictionary become one object.
                used = column.indices.unique()
                values = column.dictionary.take(used).to_pylist()
                found = dict(zip(used.to_pylist(), values, strict=True))
                columns[name] = [found[index] for index in column.indices.to_pylist()]
            else:
                columns[name] = column.to_pylist()
    except Exception as error:  # some value, of any type, that Python cannot hold: find its row
        if batch.num_rows > 1:
            return [_parquet_records(batch.slice(row, 1))[0] for row in range(batch.num_rows)]
        kind = getattr(column.type, "value_type", column.type)
        return [f'column "{name}" cannot be read: {kind} ({type(error).__name__})']
    return [
        {name: values[row] for name, values in columns.items()} for row in range(batch.num_rows)
    ]
