"""Results of a run on disk, in whole parts, so that a run can stop at any moment and go on.

While a run goes on, its folder holds `.parts/`: a key that says which run it is, and one parquet
file for each finished chunk of rows, in the table's order. The end of the run joins them.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vlscore._files import atomic_write
from vlscore.errors import InvalidSetting
from vlscore.scorer import COLUMNS

_ARROW: dict[type, Any] = {float: pa.float64(), bool: pa.bool_()}
SCORE_SCHEMA = pa.schema(
    [
        pa.field("row", pa.int64()),
        pa.field("id", pa.string()),
        *(pa.field(name, _ARROW[kind]) for name, kind in COLUMNS.items()),
    ]
)
PART_SCHEMA = SCORE_SCHEMA.append(pa.field("error", pa.string()))


class Parts:
    """The finished chunks of one run.

    Args:
        folder: the run's output folder.
        key: what must be equal for a stopped run to be continued: signature, table, columns.

    Raises: InvalidSetting where the folder holds parts of another run.
    """

    def __init__(self, folder: Path, key: dict[str, Any]) -> None:
        self._folder = folder / ".parts"
        self._key = json.loads(json.dumps(key))
        key_file = self._folder / "key.json"
        if key_file.exists():
            self._require_same_run(json.loads(key_file.read_text(encoding="utf-8")))
        else:
            with atomic_write(key_file) as stream:
                json.dump(self._key, stream, indent=1)
        self._count = len(self._files())

    def rows_done(self) -> int:
        """Rows of the table, from its beginning, that need no more work."""
        return sum(pq.read_metadata(path).num_rows for path in self._files())

    def append(self, rows: list[dict[str, Any]]) -> None:
        """Add the next chunk of rows; it is there wholly or not at all."""
        with atomic_write(self._folder / f"{self._count:08d}.parquet", "wb") as stream:
            pq.write_table(pa.Table.from_pylist(rows, PART_SCHEMA), stream)
        self._count += 1

    def tables(self) -> Iterator[pa.Table]:
        """Every finished chunk, in the table's order."""
        return (pq.read_table(path, schema=PART_SCHEMA) for path in self._files())

    def remove(self) -> None:
        """Forget the parts, once their content stands elsewhere."""
        shutil.rmtree(self._folder)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("[0-9]*.parquet"))

    def _require_same_run(self, found: dict[str, Any]) -> None:
        differing = [name for name in self._key if found.get(name) != self._key[name]]
        if differing:
            shown = "; ".join(
                f"{k}: {found.get(k)!r} there, {self._key[k]!r} now" for k in differing
            )
            raise InvalidSetting(
                f"{self._folder.parent} holds an unfinished run that differs in {shown}. "
                "Choose another output folder, or give --overwrite to begin anew"
            )
