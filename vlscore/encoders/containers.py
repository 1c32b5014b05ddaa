"""The files that torch writes, read where they lie and checked against what they say."""

import contextlib
import io
import mmap
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import torch

from vlscore.encoders.unpickling import RestrictedUnpickler, Storage
from vlscore.errors import UnsafeCheckpoint

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_ENCRYPTED = 1
_LARGEST_PICKLE = 1 << 26
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001
_COUNT = struct.Struct("<q")


def read_archive(path: Path) -> Any:
    """The object in a zip file of torch: containers, numbers, texts, tensors, inert stand-ins.

    Raises: UnsafeCheckpoint where it would call a function on loading, or its parts lie about
        their sizes, or it is damaged.
    """
    with _damage_named(path), zipfile.ZipFile(path) as archive:
        return _Archive(path, archive.infolist()).load()


def read_legacy(path: Path) -> Any:
    """The same of a file that torch wrote before version 1.6."""
    with (
        _damage_named(path),
        path.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
    ):
        return _Legacy(path, cast(IO[bytes], mapped)).load()


@contextlib.contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        yield
    except UnsafeCheckpoint:
        raise
    except Exception as error:  # a damaged pickle can fail in any way
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        raise UnsafeCheckpoint(f"{path} is damaged ({reason}); download it again") from None


class _Part:
    """Bytes of a file by their place."""

    def __init__(self, path: Path) -> None:
        self.size = path.stat().st_size
        self._bytes = torch.UntypedStorage.from_file(str(path), False, self.size)

    def storage(self, start: int, length: int) -> torch.UntypedStorage:
        found: torch.UntypedStorage = self._bytes[start : start + length]
        return found

    def content(self, start: int, length: int) -> bytes:
        held = torch.empty(0, dtype=torch.uint8).set_(self.storage(start, length))
        return held.numpy().tobytes()


class _Archive:
    """A zip file: one record describes the object, every storage has a record of its own."""

    def __init__(self, path: Path, records: list[zipfile.ZipInfo]) -> None:
        self._path = path
        self._file = _Part(path)
        self._records = {record.filename: record for record in records}
        if len(self._records) < len(records):
            raise UnsafeCheckpoint(f"{path} holds two records of one name; it was not loaded")
        if sum(record.file_size for record in records) > self._file.size:
            raise UnsafeCheckpoint(
                f"{path} says that it holds more bytes than it has; it was not loaded"
            )
        described = [name for name in self._records if name.rpartition("/")[2] == "data.pkl"]
        if len(described) != 1 or any("/code/" in name for name in self._records):
            raise UnsafeCheckpoint(
                f"{path} is a zip archive but no checkpoint of tensors alone (TorchScript runs "
                "code): give the file with the state_dict"
            )
        self._root = described[0].removesuffix("data.pkl")

    def load(self) -> Any:
        if self._root + "byteorder" in self._records:
            order = self._file.content(*self._place_of("byteorder"))
            if order != b"little":
                raise UnsafeCheckpoint(f"{self._path} has byte order {order!r}, not little-endian")
        start, length = self._place_of("data.pkl")
        if length > _LARGEST_PICKLE:
            raise UnsafeCheckpoint(
                f"{self._path} describes its tensors in {length >> 20} MiB of pickle; "
                "it was not loaded"
            )
        description = io.BytesIO(self._file.content(start, length))
        return RestrictedUnpickler(description, source=self._path, storage=self._storage).load()

    def _place_of(self, name: str) -> tuple[int, int]:
        record = self._records.get(self._root + name)
        if record is None:
            raise UnsafeCheckpoint(f"{self._path} refers to {name}, which it does not hold")
        if record.compress_type != zipfile.ZIP_STORED or record.flag_bits & _ENCRYPTED:
            raise UnsafeCheckpoint(
                f"{self._path}: {name} is compressed or encrypted, as torch never writes it"
            )
        header = self._file.content(record.header_offset, _LOCAL_HEADER.size)
        signature, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        start = record.header_offset + len(header) + name_length + extra_length
        if signature != b"PK\x03\x04" or start + record.file_size > self._file.size:
            raise UnsafeCheckpoint(f"{self._path} is cut off or damaged at {name}")
        return start, record.file_size

    def _storage(self, key: str, dtype: torch.dtype, count: int) -> Storage:
        start, length = self._place_of(f"data/{key}")
        if length != count * dtype.itemsize:
            raise UnsafeCheckpoint(
                f"{self._path}: data/{key} is said to hold {count} numbers of {dtype}, "
                f"but holds {length} bytes"
            )
        return Storage(self._file.storage(start, length), dtype)


class _Legacy:
    """A row of pickles (mark, version, machine, object, keys), then the storages.

    The object is read twice: where a storage lies depends on the types of those before it.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._mapped = _Part(path)
        self._said: dict[str, tuple[torch.dtype, int]] = {}
        self._places: dict[str, tuple[int, int]] = {}

    def load(self) -> Any:
        if self._pickle() != _LEGACY_MAGIC or self._pickle() != _LEGACY_PROTOCOL:
            raise UnsafeCheckpoint(
                f"{self._path} is no checkpoint of torch; give a state_dict or safetensors file"
            )
        machine = self._pickle()
        if not (isinstance(machine, dict) and machine.get("little_endian") is True):
            raise UnsafeCheckpoint(f"{self._path} was not written on a little-endian machine")
        start = self._file.tell()
        RestrictedUnpickler(self._file, source=self._path, storage=self._note).load()
        self._find_storages()
        self._file.seek(start)
        return RestrictedUnpickler(self._file, source=self._path, storage=self._storage).load()

    def _pickle(self) -> Any:
        return RestrictedUnpickler(self._file, source=self._path, storage=self._none).load()

    def _none(self, key: str, dtype: torch.dtype, count: int) -> Storage:
        raise UnsafeCheckpoint(f"{self._path} refers to storage {key} before its content")

    def _note(self, key: str, dtype: torch.dtype, count: int) -> Storage:
        if self._said.setdefault(key, (dtype, count)) != (dtype, count) or (
            not 0 <= count * dtype.itemsize <= self._mapped.size
        ):
            raise UnsafeCheckpoint(
                f"{self._path}: storage {key} is said to hold {count} numbers of {dtype}, which "
                "cannot be; it was not loaded"
            )
        size = count * dtype.itemsize
        nowhere = torch.UntypedStorage(size, device="meta")  # type: ignore[no-untyped-call]
        return Storage(nowhere, dtype)

    def _find_storages(self) -> None:
        keys = self._pickle()
        if not isinstance(keys, list):
            raise UnsafeCheckpoint(f"{self._path} does not list its storages; it was not loaded")
        position = self._file.tell()
        for key in keys:
            dtype, said = self._said[key]
            length = said * dtype.itemsize
            count = self._mapped.content(position, _COUNT.size)
            position += _COUNT.size
            if count != _COUNT.pack(said) or position + length > self._mapped.size:
                raise UnsafeCheckpoint(
                    f"{self._path}: storage {key} is said to hold {said} numbers of {dtype}, but "
                    "holds others; it is cut off or damaged"
                )
            self._places[key] = position, length
            position += length

    def _storage(self, key: str, dtype: torch.dtype, count: int) -> Storage:
        return Storage(self._mapped.storage(*self._places[key]), dtype)
