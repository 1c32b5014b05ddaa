"""Data frames of results: flat columns, one row a record; pandas is imported on first use."""

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core.files import plain
from vlscore.core.safe_cells import from_cell

if TYPE_CHECKING:
    import pandas

_INTERVAL = {"estimate", "low", "high"}


def frame(
    records: Iterable[Any], signatures: Mapping[str, Any] | None = None
) -> "pandas.DataFrame":
    """Return a frame with one row a record; an interval becomes the columns x, x.low, x.high.

    The p value of a tested difference becomes x.p_value.

    Args: signatures: what the numbers depend on, by metric; they go into the frame's `attrs`.
    """
    import pandas

    return _signed(pandas.DataFrame([flat(plain(record)) for record in records]), signatures)


def frame_of_columns(
    columns: Mapping[str, Any], signatures: Mapping[str, Any] | None = None
) -> "pandas.DataFrame":
    """Return a frame of columns of n values each; `signatures` as in `frame`."""
    import pandas

    return _signed(pandas.DataFrame(dict(columns)), signatures)


def read_frame(
    path: Path, texts: Iterable[str] = (), signatures: Mapping[str, Any] | None = None
) -> "pandas.DataFrame":
    """Read the rows of a .csv, .jsonl or .parquet file of results.

    Args:
        texts: columns of a csv that are read as texts: an id 0012 is not a number.
        signatures: as in `frame`.

    """
    import pandas

    if path.suffix == ".parquet":
        return _signed(pandas.read_parquet(path), signatures)
    if path.suffix == ".jsonl":
        with path.open(encoding="utf-8") as stream:
            return frame(map(json.loads, stream), signatures)
    with path.open(encoding="utf-8", newline="") as stream:
        known = set(next(csv.reader(stream), ()))
    types: dict[str, Any] = {name: str for name in texts if name in known}
    # "NA" and "None" are texts like any other; only an empty cell has no value.
    read = pandas.read_csv(path, dtype=types, keep_default_na=False, na_values=[""])
    for name in read.select_dtypes(include=["object", "string"]):
        read[name] = read[name].map(from_cell, na_action="ignore")
    return _signed(read, signatures)


def flat(record: Mapping[str, Any], name: str = "") -> dict[str, Any]:
    """Flatten a record: the names of nested entries are joined by a point.

    >>> flat({"metric": "bleu-4", "tau": {"estimate": 0.5, "low": 0.4, "high": 0.6}})
    {'metric': 'bleu-4', 'tau': 0.5, 'tau.low': 0.4, 'tau.high': 0.6}
    >>> flat({"tau": {"estimate": 0.5, "low": 0.4, "high": 0.6, "p_value": 0.01}})
    {'tau': 0.5, 'tau.low': 0.4, 'tau.high': 0.6, 'tau.p_value': 0.01}
    """
    found: dict[str, Any] = {}
    for key, value in record.items():
        whole = f"{name}.{key}" if name else key
        if isinstance(value, Mapping) and set(value) >= _INTERVAL:
            bounds = {f"{whole}.{part}": value[part] for part in value if part != "estimate"}
            found |= {whole: value["estimate"]} | bounds
        elif isinstance(value, Mapping):
            found |= flat(value, whole)
        else:
            found[whole] = value
    return found


def _signed(made: "pandas.DataFrame", signatures: Mapping[str, Any] | None) -> "pandas.DataFrame":
    if signatures:
        made.attrs["signatures"] = {name: str(each) for name, each in signatures.items()}
    return made
