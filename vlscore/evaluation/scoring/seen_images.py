"""The image files that the rows of a finished run were computed from."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vlscore.core import FinishedRun, first_replaced, stamps
from vlscore.errors import InvalidSetting
from vlscore.evaluation.scoring.results import DETAILS
from vlscore.evaluation.scoring.summary import IMAGES

_ROWS_AT_ONCE = 10_000


def stamped(paths: Sequence[Path]) -> str | None:
    """Return size, time and digest of each file as json text; None where no file is there."""
    found = stamps(paths)
    return json.dumps(found) if found else None


def require_same_images(run: FinishedRun, *, must_know: bool = False) -> None:
    """Check that the images of a finished run are the files that its rows were computed from.

    A file that is gone replaces nothing.

    Args: must_know: refuse a run, too, whose details do not say which files it read.
    Raises: InvalidSetting naming the first file with another content.
    """
    how = "Choose another output folder, or give --overwrite to compute all rows anew"
    with pq.ParquetFile(run.file(DETAILS)) as file:
        if IMAGES not in file.schema_arrow.names:
            if must_know:
                raise InvalidSetting(
                    f"{run.folder} does not say which image files it was computed from, so that no "
                    f"number of images can be added to it. {how}"
                )
            return
        for batch in file.iter_batches(_ROWS_AT_ONCE, columns=[IMAGES]):
            replaced = _first_replaced(batch.column(0))
            if replaced is not None:
                raise InvalidSetting(
                    f"{replaced} has been replaced since {run.folder} was computed from it; one "
                    f"row would hold numbers of two images. Bring the file back. {how}"
                )


def _first_replaced(column: pa.Array) -> str | None:
    for text in column.to_pylist():
        if text is not None and (path := first_replaced(json.loads(text))) is not None:
            return path
    return None
