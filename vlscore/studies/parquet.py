"""Rows of parquet files; pyarrow is imported when the first such file is met."""

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from vlscore.errors import InvalidTable

_ROWS_AT_ONCE = 1024


def read_parquet(
    path: Path, wanted: Collection[str] | None
) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """(row number, record or reason) for every row; only the wanted columns are read.

    Raises: InvalidTable where the file cannot be read, or two columns have one name.
    """
    import pyarrow as pa

    file = _opened(path)
    names = [name for name in _names(file, path) if wanted is None or name in wanted]
    for name in names:
        twice = _twice_inside(file.schema_arrow.field(name).type)
        if twice is not None:
            raise InvalidTable(f'{path}: column "{name}" has two fields called "{twice}"')
    number = 0
    try:
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=names):
            for record in _records(batch.select(names)):
                number += 1
                yield number, record
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidTable(f"{path}: damaged after row {number} ({type(error).__name__})") from None


def parquet_columns(path: Path) -> list[str]:
    """Names of the columns; raises InvalidTable as `read_parquet`."""
    return _names(_opened(path), path)


def count_parquet(path: Path) -> int:
    """Number of rows; raises InvalidTable as `read_parquet`."""
    return int(_opened(path).metadata.num_rows)


def _opened(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Row groups may hold a million rows: read their columns through a buffer, not at once.
        return pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    except UnicodeDecodeError:
        raise InvalidTable(f"{path}: its column names are not valid UTF-8") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InvalidTable(f"{path}: is no parquet file ({type(error).__name__})") from None


def _names(file: Any, path: Path) -> list[str]:
    import pyarrow as pa

    try:
        names = list(file.schema_arrow.names)
    except UnicodeDecodeError:
        raise InvalidTable(f"{path}: its column names are not valid UTF-8") from None
    except (pa.ArrowException, ValueError) as error:
        raise InvalidTable(f"{path}: its columns cannot be told ({type(error).__name__})") from None
    twice = _twice(names)
    if twice is not None:
        raise InvalidTable(f'{path}: column "{twice}" stands twice; rename one of them')
    return names


def _twice(names: list[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)


def _twice_inside(type: Any) -> str | None:
    """A name that two fields of a nested type share, of which Python would keep the last."""
    import pyarrow as pa

    fields = [type.field(k) for k in range(type.num_fields)]
    if pa.types.is_struct(type) and (twice := _twice([field.name for field in fields])):
        return twice
    return next((found for field in fields if (found := _twice_inside(field.type))), None)


def _records(batch: Any) -> list[dict[str, Any] | str]:
    try:
        return list(batch.to_pylist())
    except Exception:  # a value that Python cannot hold, of any type there is: find its row
        return [_record(batch.slice(row, 1)) for row in range(batch.num_rows)]


def _record(row: Any) -> dict[str, Any] | str:
    record = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            record[name] = column[0].as_py()
        except UnicodeDecodeError:
            return f'column "{name}" is not valid UTF-8'
        except Exception as error:
            return f'column "{name}" cannot be read: {column.type} ({type(error).__name__})'
    return record
