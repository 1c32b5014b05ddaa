"""Version of the package, paths of its data files, and atomic writing of files.

`__version__` appears in every signature and is set here alone. `resource_path` finds data files
that ship with the code, in a checkout or in an installed wheel. `atomic_write` and the functions on
top of it write files so that a reader never sees half of one.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import math
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, lru_cache
from pathlib import Path
from types import NoneType, UnionType
from typing import IO, Any, Union, get_args, get_origin, get_type_hints

from vlscore.errors import ChecksumMismatch, OutputFailed, UnknownName

__version__ = "0.1.0"


_PACKAGE = Path(__file__).resolve().parents[1]


def resource_path(folder: str, *parts: str) -> Path:
    """Return the path of a data file that ships with the code.

    Args: folder: a top-level data folder (`weights`, `perturbations`).
    Raises: FileNotFoundError that names both folders that were searched.
    """
    candidates = [_PACKAGE / "_bundled" / folder, _PACKAGE.parent / folder]
    for base in candidates:
        path = base.joinpath(*parts)
        if path.exists():
            return path
    searched = " and ".join(str(base) for base in candidates)
    raise FileNotFoundError(f"{'/'.join((folder, *parts))} is in neither of {searched}")


_NANOSECONDS_OF_A_CHANGE = 2_000_000_000
_END_BYTES = 1 << 20


@contextlib.contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Raise OutputFailed if the operating system refuses to write `path` inside the block."""
    try:
        yield
    except OSError as error:
        raise _failed(Path(path), error) from error


@contextlib.contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file in the folder of `path`, renamed to `path` if the block succeeds.

    On any exception, Ctrl-C included, the temporary file is removed and `path` does not change.
    What a killed process left is removed by the next call for this path.

    Raises: OutputFailed where the operating system refuses to write.
    """
    path = Path(path)
    encoding, newline = (None, None) if "b" in mode else ("utf-8", "")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path)
        handle, temporary = _locked_temporary(path)
        try:
            with os.fdopen(handle, mode, encoding=encoding, newline=newline) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            # The user's umask counts: mkstemp makes a file private, results should not be.
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(temporary, 0o666 & ~umask)
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    except OSError as error:
        # The block may read other files, too; an error that names one of those is not about `path`.
        if error.filename is not None and not _belongs_to(path, Path(os.fsdecode(error.filename))):
            raise
        raise _failed(path, error) from error


def _belongs_to(path: Path, other: Path) -> bool:
    # Names of temporary files are absolute in the system's errors.
    path, other = path.absolute(), other.absolute()
    is_temporary = other.parent == path.parent and other.name.startswith(f".{path.name}.")
    return is_temporary or other == path or other in path.parents


def _failed(path: Path, error: OSError) -> OutputFailed:
    reason = f"{error.strerror or error}"
    if isinstance(error, FileExistsError | NotADirectoryError):
        file = next((parent for parent in path.parents if parent.is_file()), None)
        reason = reason if file is None else f"{file} is a file, not a folder"
    return OutputFailed(f"{path} cannot be written: {reason}")


def _locked_temporary(path: Path) -> tuple[int, str]:
    """Return descriptor and path of a new file, locked as long as this process holds it open."""
    while True:
        prefix = f".{path.name}."
        handle, temporary = tempfile.mkstemp(prefix=prefix, suffix=".tmp", dir=path.parent)
        with contextlib.suppress(OSError):  # Some network disks have no locks.
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.exists(temporary):
            return handle, temporary
        # Another process took the file, which was not locked yet, for a leftover.
        os.close(handle)


def _remove_leftovers(path: Path) -> None:
    """Remove temporary files of `path` that killed processes left; a process that writes locks its.

    They may hold reports, so they must not stay for ever.
    """
    pattern = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}\.tmp")
    with contextlib.suppress(OSError), os.scandir(path.parent) as entries:
        for entry in [each for each in entries if pattern.fullmatch(each.name)]:
            with contextlib.suppress(OSError), open(entry.path, "rb") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(entry.path)


def plain(value: Any) -> Any:
    """Return the nested data as json can hold it: None for numbers that are not finite.

    Dataclasses become dicts, tuples lists, and numpy's numbers Python's.

    >>> plain({"ratio": float("inf"), "values": (1.0, float("nan"))})
    {'ratio': None, 'values': [1.0, None]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


_types_of = cache(get_type_hints)


def from_plain(kind: Any, data: Any) -> Any:
    """Return data that `plain` made, and json read, as the type that it had.

    Args: kind: a dataclass, list, tuple, dict, optional type, or a type with `parse` for its text.
        Every field of a dataclass is checked; entries that it does not have are ignored. None for a
        float becomes nan.

    Raises: ValueError, TypeError, KeyError, OverflowError for data of another form.

    >>> from_plain(dict[int, float], {"1": None})
    {1: nan}
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any:
        return data
    if origin in (Union, UnionType):
        if data is None and NoneType in inner:
            return None
        (kind,) = (each for each in inner if each is not NoneType)
        return from_plain(kind, data)
    if kind is float and (data is None or type(data) in (int, float)):
        return math.nan if data is None else float(data)
    if kind in (bool, int, str) and type(data) is kind:
        return data
    if origin is dict and isinstance(data, dict):
        return {inner[0](name): from_plain(inner[1], value) for name, value in data.items()}
    if origin in (list, tuple) and isinstance(data, list):
        return origin(from_plain(inner[0], value) for value in data)
    if hasattr(kind, "parse") and isinstance(data, str):
        return kind.parse(data)
    if is_dataclass(kind) and isinstance(kind, type) and isinstance(data, dict):
        types = _types_of(kind)
        names = [each.name for each in fields(kind) if each.name in data]
        return kind(**{name: from_plain(types[name], data[name]) for name in names})
    raise ValueError(f"no {getattr(kind, '__name__', kind)}")


# Errors of a reader whose file has another form; UnknownName: it lacks a frame that is shown.
_UNREAD = (
    *(ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError),
    UnknownName,
)


@contextlib.contextmanager
def reading_result(path: Path) -> Iterator[None]:
    """Raise ChecksumMismatch if a result file does not hold what its command writes.

    The digest in run.json does not show this if somebody computed it again.
    """
    try:
        yield
    except _UNREAD:
        raise ChecksumMismatch(
            f"{path} does not have the form that this version of the command writes: an earlier "
            "version wrote it, or it was changed. Run the command again with --overwrite, or "
            "choose another output folder"
        ) from None


def write_json(path: str | Path, content: Any) -> None:
    """Write `plain(content)` as json that people can read, whole or not at all.

    Raises: OutputFailed as `atomic_write`.
    """
    with atomic_write(path) as stream:
        json.dump(plain(content), stream, indent=2, ensure_ascii=False, allow_nan=False)
        stream.write("\n")


def json_line(record: Any) -> str:
    """Return `plain(record)` as one line of a .jsonl file, its line break included."""
    return json.dumps(plain(record), ensure_ascii=False, allow_nan=False) + "\n"


def file_digest(path: str | os.PathLike[str]) -> str:
    """Compute the hexadecimal sha256 of a file's content, once while the file does not change.

    Raises: OSError if it cannot be read, or is no ordinary file: a pipe has no end.
    """
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "no ordinary file", os.fspath(path))
    # A file that was changed just now may change again within the same tick of its clock.
    is_new = time.time_ns() - status.st_mtime_ns < _NANOSECONDS_OF_A_CHANGE
    digest = _digest.__wrapped__ if is_new else _digest
    return digest(os.fspath(path), status.st_size, status.st_mtime_ns, status.st_ino)


def file_state(path: str | os.PathLike[str]) -> str | None:
    """Return a text that changes with the content of a file, of which only the ends are read.

    It holds size, times, and the sha256 of the first and the last 2**20 bytes, where a file of
    torch has the checksums of its tensors. The time of the last change of the file's entry cannot
    be set: a copy that keeps size and time of the original shows there.

    Returns: None for a file that was changed less than two seconds ago; it may change again.
    Raises: OSError if it cannot be read.
    """
    status = os.stat(path)
    changed = max(status.st_mtime_ns, status.st_ctime_ns)
    if time.time_ns() - changed < _NANOSECONDS_OF_A_CHANGE:
        return None
    with open(path, "rb") as stream:
        digest = hashlib.sha256(stream.read(_END_BYTES))
        stream.seek(max(status.st_size - _END_BYTES, 0))
        digest.update(stream.read(_END_BYTES))
    times = f"{status.st_mtime_ns} {status.st_ctime_ns}"
    return f"{status.st_size} {times} {status.st_ino} {digest.hexdigest()}"


@lru_cache(maxsize=100_000)
def _digest(path: str, size: int, changed: int, inode: int) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def text_digest(text: str) -> bytes:
    """Compute the sha256 of a text, which may hold half of a surrogate pair."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
