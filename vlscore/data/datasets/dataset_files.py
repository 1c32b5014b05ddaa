"""Files of a data set, in folders, zip and tar archives; each folder is listed once."""

import json
import os
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from vlscore.data.rows import columns_of, read_rows
from vlscore.data.study import is_missing
from vlscore.errors import InvalidSetting, InvalidTable

# A report is a few kilobytes; a larger file is no report, or a decompression bomb.
_LARGEST_TEXT = 16 * 1024 * 1024


class DatasetFiles:
    """The folders of one data set on this machine.

    Args:
        folder: folder of the data set, or its single file.
        films: folder that the films' paths start from; default: `folder`.
        reports: folder or .zip of the reports, if they are not in `folder`.

    Raises: InvalidSetting if one of them does not exist.
    """

    def __init__(
        self,
        folder: str | Path,
        films: str | Path | None = None,
        reports: str | Path | None = None,
    ) -> None:
        path = Path(folder)
        if not path.exists():
            raise InvalidSetting(f"{path}: no such folder; give the folder of the data set")
        self.file = path if path.is_file() else None
        self.folder = path.parent if path.is_file() else path
        self.films = Path(films) if films is not None else self.folder
        if not self.films.is_dir():
            raise InvalidSetting(f"{self.films}: no such folder, and films are looked for in it")
        self.reports = Path(reports) if reports is not None else None
        if self.reports is not None and not self.reports.exists():
            raise InvalidSetting(f"{self.reports}: no such folder or archive of reports")
        self._listings: dict[Path, frozenset[str]] = {}

    def table(self, *names: str) -> Path | None:
        """Return the first of these files that exists, packed (.gz) or not; else None."""
        for name in names:
            for path in (self.folder / name, self.folder / f"{name}.gz"):
                if path.is_file():
                    return path
        return None

    def needed_table(self, *names: str) -> Path:
        """Return the first existing file, as `table`. Raises: InvalidTable if none exists."""
        found = self.table(*names)
        if found is None:
            raise InvalidTable(
                f"{self.folder}: has no {' or '.join(names)} (packed as .gz or not); give the "
                "folder that holds it"
            )
        return found

    def has(self, path: Path) -> bool:
        """Return True if a file exists; each folder is listed once for all its files."""
        listing = self._listings.get(path.parent)
        if listing is None:
            try:
                with os.scandir(path.parent) as entries:
                    listing = frozenset(entry.name for entry in entries)
            except OSError:
                listing = frozenset()
            # With a folder for each study, memory would fill with listings that are not needed
            # again.
            if len(self._listings) > 512:
                self._listings.clear()
            self._listings[path.parent] = listing
        return path.name in listing

    def film(self, name: str, folders: Sequence[str], suffixes: Sequence[str]) -> Path | None:
        """Return the file of a film, from the first folder that has it under an allowed suffix."""
        plain = PurePosixPath(name.replace("\\", "/").lstrip("/"))
        if ".." in plain.parts or not plain.parts:
            return None
        for folder in folders:
            place = self.films / folder / plain
            if self.has(place):
                return place
            for suffix in suffixes:
                other = place.with_suffix(suffix)
                if self.has(other):
                    return other
        return None


class ReportTexts:
    """Texts of reports by their path, from a folder or directly from a .zip.

    Args:
        place: folder or archive.

    Raises: InvalidTable if the archive cannot be read.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._archive: zipfile.ZipFile | None = None
        if place.is_file():
            try:
                self._archive = zipfile.ZipFile(place)
            except (OSError, zipfile.BadZipFile) as error:
                raise InvalidTable(
                    f"{place}: is no zip archive ({type(error).__name__}); give the folder of the "
                    "reports, or their .zip"
                ) from None

    @cached_property
    def _names(self) -> dict[str, str]:
        """Return path from the folder "files" on -> name in the archive."""
        assert self._archive is not None
        return {_from_files(name): name for name in self._archive.namelist()}

    def read(self, name: str) -> str | None:
        """Return the text of a report, None if there is no such file.

        Args: name: path in the data set, as in "files/p10/p10000032/s50414267.txt".
        Raises: OSError, ValueError if it exists and cannot be read.
        """
        content = self._packed(name) if self._archive is not None else self._unpacked(name)
        return None if content is None else content.decode("utf-8")

    def _packed(self, name: str) -> bytes | None:
        assert self._archive is not None
        stored = self._names.get(_from_files(name))
        if stored is None:
            return None
        try:
            if self._archive.getinfo(stored).file_size > _LARGEST_TEXT:
                raise ValueError("larger than a report")
            return self._archive.read(stored)
        except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError) as error:
            raise ValueError(type(error).__name__) from None

    def _unpacked(self, name: str) -> bytes | None:
        for path in (self._place / name, self._place / _from_files(name)):
            try:
                return path.read_bytes()
            except (FileNotFoundError, NotADirectoryError):
                continue
        return None


def _from_files(name: str) -> str:
    """Return the part of a path after its folder "files".

    >>> _from_files("mimic-cxr-reports/files/p10/p10000032/s50414267.txt")
    'p10/p10000032/s50414267.txt'
    """
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if "files" in parts:
        parts = parts[parts.index("files") + 1 :]
    return "/".join(parts)


def packed_members(path: Path, suffix: str) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of the files of a .tgz or .tar that have a suffix, in its order.

    Raises: InvalidTable if the rest of the archive cannot be read.
    """
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                if member.isfile() and member.name.endswith(suffix) and member.size < _LARGEST_TEXT:
                    stream = archive.extractfile(member)
                    assert stream is not None
                    yield PurePosixPath(member.name).name, stream.read()
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InvalidTable(f"{path}: cannot be read on ({type(error).__name__})") from None


def table_rows(path: Path, needed: Sequence[str]) -> Iterator[tuple[int, dict[str, str] | None]]:
    """Yield (row, cells as text) of a table; None for a row that cannot be read.

    Ids that a program has stored as floats lose their ".0". Missing cells are absent.

    Raises: InvalidTable if the file cannot be read or a needed column is absent.
    """
    found = columns_of(path)
    missing = [name for name in needed if name not in found]
    if missing:
        raise InvalidTable(
            f"{path}: no column {', '.join(missing)}; found: {', '.join(found[:40])}. Is it the "
            "file of this data set?"
        )
    for number, record in read_rows(path):
        yield number, None if isinstance(record, str) else _texts(record)


def _texts(record: dict[str, Any]) -> dict[str, str]:
    return {
        name: value if isinstance(value, str) else str(value)
        for name, value in record.items()
        if not is_missing(value)
    }


def read_json(path: Path) -> Any:
    """Read the content of a json file. Raises: InvalidTable if it is absent or not json."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise InvalidTable(f"{path}: no such file") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidTable(f"{path}: cannot be read as json ({type(error).__name__})") from None


def whole_number(text: str | None) -> int | None:
    """Read a positive whole number; None for any other text.

    >>> whole_number("2991"), whole_number("2991.0"), whole_number("x"), whole_number(None)
    (2991, 2991, None, None)
    """
    try:
        number = float(text or "")
    except ValueError:
        return None
    return int(number) if number > 0 and number == int(number) else None
