"""Checkpoint files of torch, read without running anything that they name.

`torch.load(weights_only=True)` refuses the checkpoints of old lightning versions, which hold
OmegaConf objects and callback classes besides their tensors. Here a global that a pickle names is
never imported: it becomes a `Name`, which can do nothing. An object made from a `Name` becomes an
`Inert` if this is usual in descriptions of settings. If a function would be called, the checkpoint
is refused, although nothing would have happened.

`read_archive` and `read_legacy` read the two formats of torch. Storages stay in the file, and their
positions and sizes are checked against the description.
"""

import contextlib
import io
import mmap
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from sys import stdlib_module_names
from typing import IO, Any, ClassVar, cast

import torch
from torch import Tensor

from vlscore.errors import UnsafeCheckpoint

# Objects of these packages in checkpoints describe a run: settings, callbacks, scores.
_DESCRIPTIVE_PACKAGES = frozenset(
    ("omegaconf", "pytorch_lightning", "lightning", "lightning_fabric", "torchmetrics", "yacs")
)
# Plain data that pickle writes as a call.
_DESCRIPTIVE = frozenset(
    f"{module}.{name}"
    for module, names in {
        "_codecs": "encode",
        "argparse": "Namespace",
        "builtins": "bool bytearray bytes complex dict float frozenset int list object range set "
        "slice str tuple",
        "collections": "ChainMap Counter UserDict UserList defaultdict deque",
        "copyreg": "_reconstructor",
        "datetime": "date datetime time timedelta timezone",
        "decimal": "Decimal",
        "fractions": "Fraction",
        "functools": "partial",
        "_operator": "getitem",
        "operator": "getitem",
        "pathlib": "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath",
        "pathlib._local": "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath",
        "types": "SimpleNamespace",
        "uuid": "UUID",
        "numpy": "dtype ndarray",
        "numpy.core.multiarray": "_reconstruct scalar",
        "numpy._core.multiarray": "_reconstruct scalar",
        "torch": "Size device",
        "torch.serialization": "_get_layout",
        "torch._utils": "_rebuild_device_tensor_from_numpy _rebuild_qtensor _rebuild_sparse_tensor",
    }.items()
    for name in names.split()
)
_OLD_MODULES = {"__builtin__": "builtins", "copy_reg": "copyreg"}
_STORAGE_TYPES = {
    "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
    "UntypedStorage": torch.uint8,
}
_MOST_DIMENSIONS = 64
_PLAIN_KEYS = (str, int, float, bool, bytes, type(None))


@dataclass(frozen=True)
class Name:
    """A global that a pickle names; it is not imported."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"

    @property
    def describes(self) -> bool:
        """Return True if pickles of settings and results call it to make plain data."""
        if str(self) in _DESCRIPTIVE:
            return True
        # In these packages a capital begins a class; a name with a dot is an attribute of it.
        package = self.module.partition(".")[0]
        return package in _DESCRIPTIVE_PACKAGES and self._is_class

    @property
    def may_be_instantiated(self) -> bool:
        """Return True if an object of it, made without a call, is a description."""
        package = self.module.partition(".")[0]
        return self.describes or package not in stdlib_module_names

    @property
    def _is_class(self) -> bool:
        return self.name.lstrip("_")[:1].isupper() and "." not in self.name


class Inert:
    """Placeholder of an object that was not made; accepts any arguments and does nothing."""


@dataclass(frozen=True)
class Storage:
    """Consecutive numbers of one type in the file."""

    bytes: torch.UntypedStorage
    dtype: torch.dtype

    @property
    def count(self) -> int:
        return self.bytes.nbytes() // self.dtype.itemsize


StorageReader = Callable[[str, torch.dtype, int], Storage]


class RestrictedUnpickler(pickle._Unpickler):
    """Unpickler of containers, numbers, texts, tensors, names, and inert objects; nothing else.

    It is Python's interpreter of pickles with every step replaced that could act on an object.

    Args:
        file: the pickle.
        source: the checkpoint, for messages.
        storage: function of a storage's key, type and count that returns the storage.
    """

    stack: list[Any]
    append: Callable[[Any], None]
    pop_mark: Callable[[], list[Any]]
    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)

    def __init__(self, file: IO[bytes], *, source: Path, storage: StorageReader) -> None:
        super().__init__(file, encoding="utf-8")
        self._source = source
        self._storage = storage

    def persistent_load(self, pid: Any) -> Any:
        match pid:
            case ("storage", torch.dtype() as dtype, str() as key, _, int() as count, *view) if (
                view in ([], [None])
            ):
                return self._storage(key, dtype, count)
            case ("module", *_):
                return Inert()
            case _:
                raise self._refusal("refers to something that is no tensor's storage")

    def find_class(self, module: str, name: str) -> Any:
        module = _OLD_MODULES.get(module, module)
        if module in ("torch", "torch.storage"):
            dtype = _STORAGE_TYPES.get(name) or getattr(torch, name, None)
            if isinstance(dtype, torch.dtype):
                return dtype
        return Name(module, name)

    def _call(self, function: Any, arguments: Any) -> Any:
        builder = _BUILDERS.get(str(function)) if isinstance(function, Name) else None
        if builder is not None:
            try:
                return builder(*arguments)
            except _FalseDescriptionError as lie:
                raise self._refusal(str(lie)) from None
        if not (isinstance(function, Name) and function.describes):
            named = str(function) if isinstance(function, Name) else "an object made by the pickle"
            raise self._refusal(f"would call {named} on loading")
        return Inert()

    def _new(self, kind: Any) -> Any:
        if not (isinstance(kind, Name) and kind.may_be_instantiated):
            named = str(kind) if isinstance(kind, Name) else "something that is no class"
            raise self._refusal(f"would make an object of {named} on loading")
        if str(kind) == "collections.OrderedDict":
            return OrderedDict()
        return Inert()

    def _refusal(self, reason: str) -> UnsafeCheckpoint:
        return UnsafeCheckpoint(
            f"{self._source} {reason}; it was not loaded. Get the checkpoint from its authors "
            "again, or ask them for safetensors"
        )

    def _load_reduce(self) -> None:
        arguments = self.stack.pop()
        self.stack[-1] = self._call(self.stack[-1], arguments)

    def _load_newobj(self) -> None:
        self.stack.pop()
        self.stack[-1] = self._new(self.stack[-1])

    def _load_newobj_ex(self) -> None:
        self.stack.pop()
        self._load_newobj()

    def _instantiate(self, klass: Any, args: Any) -> None:
        # Both opcodes of the oldest protocol, INST and OBJ, end here.
        self.append(self._call(klass, args))

    def _load_build(self) -> None:
        self.stack.pop()
        if not isinstance(self.stack[-1], Inert | OrderedDict):
            raise self._refusal(f"would change a {type(self.stack[-1]).__name__} on loading")

    def _load_setitem(self) -> None:
        value = self.stack.pop()
        self._set_items(self.stack.pop(), value)

    def _load_setitems(self) -> None:
        items = self.pop_mark()
        self._set_items(*items)

    def _set_items(self, *items: Any) -> None:
        target = self.stack[-1]
        if isinstance(target, Inert):
            return
        if not isinstance(target, dict):
            raise self._refusal(f"would put items into a {type(target).__name__} on loading")
        target.update(_with_plain_keys(zip(items[::2], items[1::2], strict=True)))

    def _load_append(self) -> None:
        self._extend([self.stack.pop()])

    def _load_appends(self) -> None:
        self._extend(self.pop_mark())

    def _extend(self, items: Sequence[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, list):
            target.extend(items)
        elif not isinstance(target, Inert):
            raise self._refusal(f"would append to a {type(target).__name__} on loading")

    def _load_empty_set(self) -> None:
        self.append(Inert())

    def _load_additems(self) -> None:
        self.pop_mark()

    def _load_frozenset(self) -> None:
        self.pop_mark()
        self.append(Inert())

    def _load_unused(self) -> None:
        raise self._refusal("uses a part of pickle that no checkpoint of tensors needs")

    for _code, _step in (
        (pickle.REDUCE, _load_reduce),
        (pickle.NEWOBJ, _load_newobj),
        (pickle.NEWOBJ_EX, _load_newobj_ex),
        (pickle.BUILD, _load_build),
        (pickle.SETITEM, _load_setitem),
        (pickle.SETITEMS, _load_setitems),
        (pickle.APPEND, _load_append),
        (pickle.APPENDS, _load_appends),
        (pickle.EMPTY_SET, _load_empty_set),
        (pickle.ADDITEMS, _load_additems),
        (pickle.FROZENSET, _load_frozenset),
        # pickle would allocate a bytearray of any stated length.
        (pickle.BYTEARRAY8, _load_unused),
        (pickle.NEXT_BUFFER, _load_unused),
        (pickle.READONLY_BUFFER, _load_unused),
        (pickle.EXT1, _load_unused),
        (pickle.EXT2, _load_unused),
        (pickle.EXT4, _load_unused),
    ):
        dispatch[_code[0]] = _step


class _FalseDescriptionError(Exception):
    """A tensor contradicts its description."""


def _rebuild_tensor(storage: Any, offset: Any, size: Any, stride: Any, *_: Any) -> Tensor:
    numbers = (offset, *_dimensions(size), *_dimensions(stride))
    if not isinstance(storage, Storage) or len(size) != len(stride):
        raise _FalseDescriptionError("describes a tensor without storage, size and stride")
    if not all(type(n) is int and 0 <= n < 1 << 62 for n in numbers):
        raise _FalseDescriptionError(f"describes a tensor of offset, size and stride {numbers}")
    count = 1
    for n in size:
        count *= n
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    # Repeated numbers count each time, so that a small file cannot become a large tensor.
    if count > max(storage.count, 0) or (count and last >= storage.count):
        raise _FalseDescriptionError(
            f"says that a tensor of size {tuple(size)} lies in a storage of {storage.count} numbers"
        )
    empty = torch.empty(0, dtype=storage.dtype, device=storage.bytes.device)
    return empty.set_(storage.bytes, offset if count else 0, tuple(size), tuple(stride))


def _dimensions(value: Any = (), *_: Any) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list) or len(value) > _MOST_DIMENSIONS:
        raise _FalseDescriptionError("describes a tensor without storage, size and stride")
    return tuple(value)


def _rebuild_parameter(tensor: Any, *_: Any) -> Any:
    return tensor


def _rebuild_subclass(function: Any, _kind: Any, arguments: Any, *_: Any) -> Any:
    if isinstance(function, Name) and str(function) == "torch._utils._rebuild_tensor_v2":
        return _rebuild_tensor(*arguments)
    return Inert()


def _ordered_dict(items: Any = (), *_: Any) -> Any:
    pairs = [pair for pair in items if isinstance(pair, list | tuple) and len(pair) == 2]
    return OrderedDict(_with_plain_keys(pairs))


def _with_plain_keys(pairs: Any) -> list[tuple[Any, Any]]:
    # Hashing deeply nested tuples can take for ever, and no tensor has such a name.
    return [(key, value) for key, value in pairs if isinstance(key, _PLAIN_KEYS)]


_BUILDERS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter,
    "torch._tensor._rebuild_from_type_v2": _rebuild_subclass,
    "torch.Size": _dimensions,
    "collections.OrderedDict": _ordered_dict,
}


_LOCAL_HEADER = struct.Struct("<4s22xHH")
_ENCRYPTED = 1
_LARGEST_PICKLE = 1 << 26
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_LEGACY_PROTOCOL = 1001
_COUNT = struct.Struct("<q")


def read_archive(path: Path) -> Any:
    """Read the object of a zip file of torch: containers, numbers, texts, tensors, placeholders.

    Raises: UnsafeCheckpoint if it would call a function on loading, or gives false sizes, or is
        damaged.
    """
    with _damage_named(path), zipfile.ZipFile(path) as archive:
        return _Archive(path, archive.infolist()).load()


def read_legacy(path: Path) -> Any:
    """Read a file that torch wrote before version 1.6; else as `read_archive`."""
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


class _ByteReader:
    """Reader of a file's bytes by their position."""

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
    """A zip file: one record describes the object, and every storage has its own record."""

    def __init__(self, path: Path, records: list[zipfile.ZipInfo]) -> None:
        self._path = path
        self._file = _ByteReader(path)
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
                f"{self._path}: data/{key} should have {count} numbers of {dtype}, "
                f"but has {length} bytes"
            )
        return Storage(self._file.storage(start, length), dtype)


class _Legacy:
    """Consecutive pickles (mark, version, machine, object, keys), then the storages.

    The object is read twice, because a storage's position depends on the types of earlier ones.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._mapped = _ByteReader(path)
        self._described: dict[str, tuple[torch.dtype, int]] = {}
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
        if self._described.setdefault(key, (dtype, count)) != (dtype, count) or (
            not 0 <= count * dtype.itemsize <= self._mapped.size
        ):
            raise UnsafeCheckpoint(
                f"{self._path}: storage {key} is described as {count} numbers of {dtype}, which "
                "is impossible; it was not loaded"
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
            dtype, described = self._described[key]
            length = described * dtype.itemsize
            count = self._mapped.content(position, _COUNT.size)
            position += _COUNT.size
            if count != _COUNT.pack(described) or position + length > self._mapped.size:
                raise UnsafeCheckpoint(
                    f"{self._path}: storage {key} should have {described} numbers of {dtype}, but "
                    "has others; it is cut off or damaged"
                )
            self._places[key] = position, length
            position += length

    def _storage(self, key: str, dtype: torch.dtype, count: int) -> Storage:
        return Storage(self._mapped.storage(*self._places[key]), dtype)
