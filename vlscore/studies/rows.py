"""Rows of a table file, one format a function; a new format is one function and one line.

A row is a dict of column name to value, or a reason why it cannot be read. Rows are counted as a
person counts them: line numbers for jsonl, data rows without the header for csv and parquet.
"""

import csv
import gzip
import json
import math
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from vlscore.errors import InvalidTable

Record = dict[str, Any]
RawRow = tuple[int, Record | str]

_PARQUET_ROWS = 1024
# Reports of 10,000 words fit many times over.
_LONGEST_FIELD = 16 * 1024 * 1024
# What Python's "surrogateescape" makes of bytes that are no UTF-8.
_UNDECODABLE = re.compile("[\udc80-\udcff]")


def read_rows(path: str | Path) -> Iterator[RawRow]:
    """(row number, record or reason) for every row; constant memory.

    Raises: InvalidTable where the file is absent or of no known format; also while iterating, where
    the file cannot be read on.
    """
    path = Path(path)
    return _FORMATS[format_of(path)](path)


def count_rows(path: str | Path) -> int | None:
    """How many rows there are, as far as that is cheap to tell; None where it is not."""
    path = Path(path)
    format = format_of(path)
    if format == ".parquet":
        return _parquet_file(path).metadata.num_rows
    if path.suffix == ".gz":
        return None
    if format == ".jsonl":
        with path.open("rb") as stream:
            return sum(1 for line in stream if line.strip())
    return sum(1 for _ in _read_csv(path))


def format_of(path: Path) -> str:
    """The suffix by which the table's format is known; raises InvalidTable where there is none."""
    name = path.name.lower().removesuffix(".gz")
    for suffix in _FORMATS:
        if name.endswith(suffix):
            break
    else:
        known = ", ".join(_FORMATS)
        raise InvalidTable(f"{path}: tables are {known} (or .gz of the first two)")
    if not path.is_file():
        kind = "is a folder; give the table in it" if path.is_dir() else "no such file"
        raise InvalidTable(f"{path}: {kind}")
    return suffix


def _open_text(path: Path) -> IO[str]:
    # Undecodable bytes become lone surrogates, so that they spoil their own row only.
    options: dict[str, Any] = {"encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}
    if path.suffix == ".gz":
        return gzip.open(path, "rt", **options)
    return path.open(**options)


def _read_jsonl(path: Path) -> Iterator[RawRow]:
    with _open_text(path) as stream:
        for number, line in enumerate(_lines(stream, path), start=1):
            if not line.strip():
                continue
            yield number, _json_record(line)


def _json_record(line: str) -> Record | str:
    if _has_undecodable(line):
        return "the line is not valid UTF-8"
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        return f"the line is not valid json ({error})"
    if not isinstance(record, dict):
        return f"the line holds a {type(record).__name__}, not an object"
    return record


def _read_csv(path: Path) -> Iterator[RawRow]:
    csv.field_size_limit(max(_LONGEST_FIELD, csv.field_size_limit()))
    with _open_text(path) as stream:
        reader = csv.reader(_lines(stream, path))
        names = _csv_header(reader, path)
        number = 0
        while True:
            begins = reader.line_num + 1
            try:
                values = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                number += 1
                yield number, f"the row from line {begins} on is not valid csv ({error})"
                continue
            if values:
                number += 1
                yield number, _csv_record(names, values, begins, reader.line_num)


def _csv_header(reader: Iterator[list[str]], path: Path) -> list[str]:
    try:
        header = next(reader, None)
    except csv.Error as error:
        raise InvalidTable(f"{path}: its first line is not valid csv ({error})") from None
    if header is None:
        raise InvalidTable(f"{path}: is empty; a csv table begins with a row of column names")
    names = [name.strip() for name in header]
    if any(_has_undecodable(name) for name in names):
        raise InvalidTable(f"{path}: its column names are not valid UTF-8; save it as UTF-8")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidTable(f"{path}: column {', '.join(twice)} stands twice; rename one of them")
    return names


def _csv_record(names: list[str], values: list[str], begins: int, ends: int) -> Record | str:
    if len(values) != len(names):
        # One quote too many swallows the rows up to the next: the lines tell which.
        lines = f"line {begins}" if begins == ends else f"lines {begins} to {ends}"
        return f"the row ({lines}) has {len(values)} fields, the header {len(names)}"
    if any(_has_undecodable(value) for value in values):
        return "the row is not valid UTF-8"
    return dict(zip(names, values, strict=True))


def _read_parquet(path: Path) -> Iterator[RawRow]:
    import pyarrow as pa

    number = 0
    try:
        for batch in _parquet_file(path).iter_batches(_PARQUET_ROWS):
            for record in _parquet_records(batch):
                number += 1
                yield number, record
    except (pa.ArrowException, OSError) as error:
        raise InvalidTable(f"{path}: damaged after row {number} ({type(error).__name__})") from None


def _parquet_records(batch: Any) -> list[Record | str]:
    try:
        return batch.to_pylist()
    except ValueError:  # one value that Python cannot hold: find its row
        return [_parquet_record(batch.slice(row, 1)) for row in range(batch.num_rows)]


def _parquet_record(row: Any) -> Record | str:
    record = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            record[name] = column[0].as_py()
        except UnicodeDecodeError:
            return f'column "{name}" is not valid UTF-8'
        except ValueError as error:
            return f'column "{name}" cannot be read ({type(error).__name__})'
    return record


def _parquet_file(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Row groups may hold a million rows: read their columns through a buffer, not at once.
        return pq.ParquetFile(path, buffer_size=1 << 20, pre_buffer=False)
    except (pa.ArrowException, OSError) as error:
        raise InvalidTable(f"{path}: is no parquet file ({type(error).__name__})") from None


def _lines(stream: IO[str], path: Path) -> Iterator[str]:
    try:
        yield from stream
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidTable(f"{path}: cannot be read on ({type(error).__name__})") from None


def _has_undecodable(text: str) -> bool:
    return not text.isascii() and _UNDECODABLE.search(text) is not None


def is_encodable(text: str) -> bool:
    """Whether a file can hold the text; half a surrogate pair stands for bytes that were none."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_missing(value: Any) -> bool:
    """None, nan, or blank text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and not value.strip()


_FORMATS: dict[str, Callable[[Path], Iterator[RawRow]]] = {
    ".jsonl": _read_jsonl,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
