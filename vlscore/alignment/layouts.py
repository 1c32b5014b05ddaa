"""Which layout a rated set has, and its reader; a new layout is one file and one line."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vlscore.alignment.pairs import RatedPairs
from vlscore.alignment.radpref import FOLDER as RADPREF_FOLDER
from vlscore.alignment.radpref import read_radpref
from vlscore.alignment.refisco import V0, V1, read_refisco_v0, read_refisco_v1
from vlscore.alignment.rexval import COUNTS, RADEVALX, REPORTS, read_radevalx, read_rexval
from vlscore.alignment.sheets import KEY, read_sheets
from vlscore.alignment.table import RatingColumns, read_table
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.studies import columns_of

TABLE = "table"


@dataclass(frozen=True)
class _Layout:
    """A reader, and by what its sets are known: files of a folder, or columns of a table."""

    read: Callable[[Path], RatedPairs]
    files: frozenset[str] = frozenset()
    columns: frozenset[str] = frozenset()

    def fits(self, path: Path) -> bool:
        if path.is_dir():
            return bool(self.files) and all((path / name).exists() for name in self.files)
        return bool(self.columns) and self.columns <= set(columns_of(path))


LAYOUTS = {
    "rexval": _Layout(read_rexval, files=frozenset({REPORTS, COUNTS})),
    "radevalx": _Layout(read_radevalx, files=frozenset(RADEVALX)),
    "radpref": _Layout(read_radpref, files=frozenset({RADPREF_FOLDER})),
    "sheets": _Layout(read_sheets, files=frozenset({KEY})),
    "refisco-v0": _Layout(read_refisco_v0, columns=frozenset(V0.columns)),
    "refisco-v1": _Layout(read_refisco_v1, columns=frozenset(V1.columns)),
}


def layout_of(path: str | Path) -> str:
    """The name of the layout that a file or folder has; "table" for any other file.

    Raises: InvalidTable for a folder of no known layout, or a file that cannot be read.
    """
    path = Path(path)
    for name, layout in LAYOUTS.items():
        if layout.fits(path):
            return name
    if path.is_dir():
        known = "; ".join(
            f"{name}: {', '.join(sorted(layout.files))}"
            for name, layout in LAYOUTS.items()
            if layout.files
        )
        raise InvalidTable(f"{path}: is a folder of no known rated set. Looked for {known}")
    return TABLE


def read_ratings(
    path: str | Path,
    layout: str | None = None,
    *,
    columns: RatingColumns | None = None,
    meaning: str = "errors",
    image_root: str | Path | None = None,
) -> RatedPairs:
    """A rated set.

    Args:
        path: a table, or the folder of a published set.
        layout: "rexval", "radevalx", "radpref", "refisco-v0", "refisco-v1", "sheets" or "table";
            None finds out.
        columns, meaning, image_root: of a table; see `read_table`.

    Raises: InvalidTable, InvalidSetting. Rows that cannot be used are in `bad`.
    """
    path = Path(path)
    name = layout_of(path) if layout is None else layout
    if name == TABLE:
        return read_table(path, columns, meaning=meaning, image_root=image_root)
    if name not in LAYOUTS:
        raise InvalidSetting(f"layouts are {', '.join((TABLE, *LAYOUTS))}; not {name!r}")
    return LAYOUTS[name].read(path)
