"""Files of a data set, in folders, zip and tar archives, and the studies that are left out."""

import contextlib
import gzip
import json
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from vlscore.core import printable
from vlscore.data.cells import is_missing
from vlscore.data.rows import columns_of, read_rows
from vlscore.errors import InvalidSetting, InvalidTable

if TYPE_CHECKING:
    import pandas as pd

# A report is a few kilobytes; a larger file is no report, or a decompression bomb.
_LARGEST_TEXT = 16 * 1024 * 1024
# Sides of an image in pixels; a larger number is damaged.
_LARGEST_SIDE = 1_000_000

# Reasons why a study or an image is left out: the same words for all rows, so that they can be
# counted. Those of FAULTS mean that something is wrong with the files.
NO_TEXT = "the report has neither findings nor an impression"
NO_IMAGE = "no image belongs to the report"
OTHER_PROJECTION = "the image does not show the chest"
IMAGE_ABSENT = "the file of the image is absent"
ALL_ABSENT = "no image of the study was found"
REPORT_ABSENT = "the file of the report is absent"
DAMAGED = "the row or file cannot be read"
INCOMPLETE = "the row names no study or no image"
TWICE = "the id comes a second time"
DIFFERENT = "the rows of the study have different values"
FAULTS = {DIFFERENT, IMAGE_ABSENT, ALL_ABSENT, REPORT_ABSENT, DAMAGED, INCOMPLETE, TWICE}


class Omission(NamedTuple):
    """A study or an image that is left out.

    Attributes:
        file: file that lists it, relative to the data set's folder.
        row: number of the row there, counted from 1; 0 if the file has no rows.
        id: id of the study, if it could be read.
        what: "study" or "image".
        reason: why it is left out.
        detail: further detail, such as the name of an absent file; never text of a report.
    """

    file: str
    row: int
    id: str | None
    what: str
    reason: str
    detail: str = ""


class DatasetFiles:
    """The folders of one data set on this machine, and what is left out of it.

    Args:
        folder: folder of the data set, or its single file.
        images: folder that the images' paths start from; default: `folder`.
        reports: folder or .zip of the reports, if they are not in `folder`.

    Raises: InvalidSetting if one of them does not exist.
    """

    def __init__(
        self,
        folder: str | Path,
        images: str | Path | None = None,
        reports: str | Path | None = None,
    ) -> None:
        path = Path(folder)
        if not path.exists():
            raise InvalidSetting(f"{path}: no such folder; give the folder of the data set")
        self.file = path if path.is_file() else None
        self.folder = path.parent if path.is_file() else path
        self.images = Path(images) if images is not None else self.folder
        if not self.images.is_dir():
            raise InvalidSetting(f"{self.images}: no such folder; images are searched for in it")
        self.reports = Path(reports) if reports is not None else None
        if self.reports is not None and not self.reports.exists():
            raise InvalidSetting(f"{self.reports}: no such folder or archive of reports")
        self.left_out: list[Omission] = []
        # With a folder for each study, memory would fill with listings that are not needed again.
        self._listing = lru_cache(512)(_names_in)

    def leave_out(
        self, file: str, row: int, id: Any, what: str, reason: str, detail: str = ""
    ) -> None:
        """Note that a study or an image is left out; see `Omission`."""
        # Every file and terminal can hold these lines.
        file, named, detail = (printable(str(each), one_line=True) for each in (file, id, detail))
        listed = None if id is None else named
        self.left_out.append(Omission(file, row, listed, what, reason, detail))

    def leave_out_row(
        self, row: Mapping[str, Any], what: str, reason: str, detail: str = ""
    ) -> None:
        """Note that the study or image of a row of `table` is left out."""
        self.leave_out(row["in_file"], row["in_row"], row.get("id"), what, reason, detail)

    def relative(self, path: Path) -> str:
        """Return a file's path relative to the folder, with "/"; its name if it is elsewhere."""
        inside = path.is_relative_to(self.folder)
        return path.relative_to(self.folder).as_posix() if inside else path.name

    def find(self, *names: str) -> Path | None:
        """Return the first of these files that exists, packed (.gz) or not; else None."""
        paths = (self.folder / f"{name}{end}" for name in names for end in ("", ".gz"))
        return next(filter(Path.is_file, paths), None)

    def needed(self, *names: str) -> Path:
        """Return the first existing file, as `find`. Raises: InvalidTable if none exists."""
        found = self.find(*names)
        if found is None:
            raise InvalidTable(
                f"{self.folder}: has no {' or '.join(names)} (packed as .gz or not); give the "
                "folder that holds it"
            )
        return found

    def table(
        self,
        path: Path,
        needed: Sequence[str],
        what: str,
        names: Mapping[str, str] | None = None,
    ) -> "pd.DataFrame":
        """Read columns of a table, their cells as text; None where a cell is empty.

        Columns `in_file` and `in_row` are added. A row that cannot be read is left out.

        Args:
            needed: columns that the table must have.
            what: "study" or "image", what a row is.
            names: name of a column -> name in the result; further columns that are read, too. One
                that the table lacks holds None.

        Raises: InvalidTable if the file cannot be read or a needed column is absent.
        """
        found = columns_of(path)
        missing = [name for name in needed if name not in found]
        if missing:
            raise InvalidTable(
                f"{path}: no column {', '.join(missing)}; found: {', '.join(found[:40])}. Is it "
                "the file of this data set?"
            )
        where = self.relative(path)
        renamed = {**{name: name for name in needed}, **(names or {})}
        rows = []
        for number, record in read_rows(path, list(renamed)):
            if isinstance(record, str):
                self.leave_out(where, number, None, what, DAMAGED)
            else:
                cells = {new: record.get(name) for name, new in renamed.items()}
                texts = {k: None if is_missing(v) else str(v) for k, v in cells.items()}
                rows.append({**texts, "in_file": where, "in_row": number})
        return frame_of(rows, [*renamed.values(), "in_file", "in_row"])

    def drop_incomplete(
        self, table: "pd.DataFrame", needed: Sequence[str], what: str
    ) -> "pd.DataFrame":
        """Leave out the rows without a value in a needed column, and return the others."""
        usable = table[list(needed)].notna().all(axis=1)
        for row in table[~usable].to_dict("records"):
            self.leave_out_row(row, what, INCOMPLETE)
        return table[usable]

    def image(
        self, name: str, folders: Sequence[str] = ("",), suffixes: Sequence[str] = ()
    ) -> str | None:
        """Return the path of an image's file below the folder of images, None if it is absent.

        It is looked for in each of `folders`, first under its name, then with each of `suffixes`.
        """
        plain = path_inside(name)
        if plain is None:
            return None
        names = (plain.name, *(f"{plain.stem}{suffix}" for suffix in suffixes))
        for folder in folders:
            inside = str(PurePosixPath(folder) / plain.parent)
            for each in names:
                if each in self._listing(self.images, inside):
                    return str(PurePosixPath(inside) / each)
        return None


def frame_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> "pd.DataFrame":
    """Return rows as a data frame that keeps Python's values, with `columns` even without rows."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=list(columns) or None, dtype=object)


def _names_in(root: Path, folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(root / folder))
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return frozenset()


def path_inside(name: str) -> PurePosixPath | None:
    """Return a published path relative to the folder of images; None if it leads out of it.

    >>> str(path_inside("/files\\\\p10/a.png")), path_inside("../a.png"), path_inside("/")
    ('files/p10/a.png', None, None)
    """
    path = PurePosixPath(name.replace("\\", "/").lstrip("/"))
    return None if ".." in path.parts or not path.parts else path


def content_of(path: Path) -> bytes:
    """Return the content of a small file.

    Raises: ValueError if it is no ordinary file (a pipe would never end), or larger than a report;
        OSError.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise ValueError("no ordinary file")
    if status.st_size > _LARGEST_TEXT:
        raise ValueError("larger than a report")
    return path.read_bytes()


class ReportTexts:
    """Texts of reports by their path, from a folder or directly from a .zip.

    Args:
        place: folder or archive.

    Raises: InvalidTable if the archive cannot be read.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._archive: zipfile.ZipFile | None = None
        self._names: dict[str, str] = {}
        if place.is_file():
            try:
                self._archive = zipfile.ZipFile(place)
            except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
                raise InvalidTable(
                    f"{place}: is no zip archive ({type(error).__name__}); give the folder of the "
                    "reports, or their .zip"
                ) from None
            self._names = {_from_files(name): name for name in self._archive.namelist()}

    def read(self, name: str) -> str | None:
        """Return the text of a report, None if there is no such file.

        Args: name: path in the data set, as in "files/p10/p10000032/s50414267.txt".
        Raises: OSError, ValueError if it exists and cannot be read, or leads out of the folder.
        """
        if ".." in PurePosixPath(name).parts:
            raise ValueError("leads out of the folder")
        if self._archive is None:
            for path in (self._place / name, self._place / _from_files(name)):
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    return content_of(path).decode("utf-8")
            return None
        if (stored := self._names.get(_from_files(name))) is None:
            return None
        try:
            # Its own size may be wrong: no more is unpacked than a report may have.
            with self._archive.open(stored) as stream:
                content = stream.read(_LARGEST_TEXT + 1)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
            raise ValueError(type(error).__name__) from None
        if len(content) > _LARGEST_TEXT:
            raise ValueError("larger than a report")
        return content.decode("utf-8")


def _from_files(name: str) -> str:
    """Return the part of a path after its folder "files".

    >>> _from_files("mimic-cxr-reports/files/p10/p10000032/s50414267.txt")
    'p10/p10000032/s50414267.txt'
    """
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return "/".join(parts[parts.index("files") + 1 :] if "files" in parts else parts)


def packed_members(path: Path, suffix: str) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of the files of a .tgz or .tar that have a suffix, in its order.

    Raises: InvalidTable if the rest of the archive cannot be read.
    """
    opener = gzip.open if path.suffix in (".tgz", ".gz") else open
    try:
        with opener(path, "rb") as stream:
            limited: Any = _ReadsOfLimitedSize(stream)
            with tarfile.open(fileobj=limited, mode="r:") as archive:
                for member in archive:
                    is_small = member.isfile() and member.size <= _LARGEST_TEXT
                    if is_small and member.name.endswith(suffix):
                        content = archive.extractfile(member)
                        assert content is not None
                        yield PurePosixPath(member.name).name, content.read()
    except (tarfile.TarError, OSError, EOFError, ValueError, zlib.error) as error:
        raise InvalidTable(f"{path}: cannot be read on ({type(error).__name__})") from None


class _ReadsOfLimitedSize:
    """Stream of an archive, whose headers may claim to have gigabytes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, size: int) -> bytes:
        """Read some bytes. Raises: tarfile.ReadError for more than a report may have."""
        if size > _LARGEST_TEXT:
            raise tarfile.ReadError("a part of it is larger than a report")
        content: bytes = self._stream.read(size)
        return content


def read_json(path: Path) -> Any:
    """Read the content of a json file. Raises: InvalidTable if it is absent or not json."""
    try:
        if path.exists() and not path.is_file():
            raise InvalidTable(f"{path}: is no ordinary file")
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InvalidTable(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidTable(f"{path}: cannot be read as json ({type(error).__name__})") from None


def whole_number(text: str | None) -> int | None:
    """Read the side of an image in pixels, a positive whole number; None for any other text.

    >>> whole_number("2991"), whole_number("2991.0"), whole_number("1e30"), whole_number(None)
    (2991, 2991, None, None)
    """
    try:
        number = float(text or "")
    except ValueError:
        return None
    return int(number) if 0 < number <= _LARGEST_SIDE and number.is_integer() else None
