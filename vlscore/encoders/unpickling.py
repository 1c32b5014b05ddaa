"""Reading torch's zip checkpoints without running anything that is in them.

`torch.load(weights_only=True)` refuses the checkpoints of old lightning versions, which hold
OmegaConf objects and callback classes beside their tensors. Here tensors are kept, and every other
object becomes an inert stand-in. Sizes are checked against what the file really holds.
"""

import io
import math
import pickle
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vlscore.errors import UnsafeCheckpoint

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_LARGEST_PICKLE = 1 << 28
# What these packages put into checkpoints describes a run: settings, callbacks, scores.
_DESCRIPTIVE_PACKAGES = (
    "omegaconf.",
    "pytorch_lightning.",
    "lightning.",
    "lightning_fabric.",
    "torchmetrics.",
    "yacs.",
    "argparse.",
    "datetime.",
    "enum.",
    "pathlib.",
    "typing.",
)
_DESCRIPTIVE_NAMES = (
    "_codecs.encode",
    "functools.partial",
    "numpy.dtype",
    "numpy.core.multiarray.scalar",
    "numpy._core.multiarray.scalar",
)
_PLAIN: dict[str, type] = {
    kind.__name__: kind
    for kind in (dict, list, set, frozenset, tuple, int, float, bool, complex, str)
}
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


@dataclass(frozen=True)
class _Storage:
    """A run of numbers of one type, somewhere in the file."""

    bytes: torch.UntypedStorage
    dtype: torch.dtype

    @property
    def count(self) -> int:
        return self.bytes.nbytes() // self.dtype.itemsize


def read_archive(path: Path) -> Any:
    """The object in a zip checkpoint: containers, numbers, texts, tensors, and stand-ins.

    Raises: UnsafeCheckpoint where it would call a function on loading, or its parts lie about
        their sizes, or it is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _Archive(path, archive).load()
    except UnsafeCheckpoint:
        raise
    except Exception as error:  # a damaged pickle can fail in any way
        raise UnsafeCheckpoint(
            f"{path} is damaged: {type(error).__name__}: {error}; download it again"
        ) from None


class _Archive:
    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path = path
        self._records = {record.filename: record for record in archive.infolist()}
        self._size = path.stat().st_size
        self._file = torch.UntypedStorage.from_file(str(path), False, self._size)
        described = [name for name in self._records if name.rpartition("/")[2] == "data.pkl"]
        if len(described) != 1 or any("/code/" in name for name in self._records):
            raise UnsafeCheckpoint(
                f"{path} is a zip archive but no checkpoint of tensors alone (TorchScript runs "
                "code): give the file with the state_dict"
            )
        self._root = described[0].removesuffix("data.pkl")

    def load(self) -> Any:
        if self._root + "byteorder" in self._records:
            order = bytes(self._bytes_of("byteorder"))
            if order != b"little":
                raise UnsafeCheckpoint(f"{self._path} has byte order {order!r}, not little-endian")
        if self._records[self._root + "data.pkl"].file_size > _LARGEST_PICKLE:
            raise UnsafeCheckpoint(f"{self._path} describes its tensors in over 256 MiB of pickle")
        return _Unpickler(self._path, bytes(self._bytes_of("data.pkl")), self._storage).load()

    def _bytes_of(self, name: str) -> torch.UntypedStorage:
        record = self._records.get(self._root + name)
        if record is None:
            raise UnsafeCheckpoint(f"{self._path} refers to {name}, which it does not hold")
        if record.compress_type != zipfile.ZIP_STORED:
            raise UnsafeCheckpoint(f"{self._path}: {name} is compressed, as torch never writes it")
        header = bytes(self._file[record.header_offset : record.header_offset + 30])
        signature, name_length, extra_length = _LOCAL_HEADER.unpack(header)
        start = record.header_offset + len(header) + name_length + extra_length
        if signature != b"PK\x03\x04" or start + record.file_size > self._size:
            raise UnsafeCheckpoint(f"{self._path} is cut off or damaged at {name}")
        return self._file[start : start + record.file_size]

    def _storage(self, key: str, dtype: torch.dtype, count: int) -> _Storage:
        storage = _Storage(self._bytes_of(f"data/{key}"), dtype)
        if storage.bytes.nbytes() != count * dtype.itemsize:
            raise UnsafeCheckpoint(
                f"{self._path}: data/{key} is said to hold {count} numbers of {dtype}, "
                f"but holds {storage.bytes.nbytes()} bytes"
            )
        return storage


class _Unpickler(pickle.Unpickler):
    def __init__(
        self, path: Path, data: bytes, storage: Callable[[str, torch.dtype, int], _Storage]
    ) -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8")
        self._path = path
        self._storage = storage

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, _, count = pid
        if kind != "storage" or not isinstance(dtype, torch.dtype) or not isinstance(count, int):
            raise UnsafeCheckpoint(f"{self._path} refers to something that is no tensor's storage")
        return self._storage(str(key), dtype, count)

    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN.get((module, name))
        if known is not None:
            return known
        if module in ("builtins", "__builtin__") and name in _PLAIN:
            return _PLAIN[name]
        if module == "torch":
            dtype = _STORAGE_TYPES.get(name) or getattr(torch, name, None)
            if isinstance(dtype, torch.dtype):
                return dtype
        return _stand_in(self._path, module, name)


class _StandInType(type):
    """Makes a stand-in's calls visible: one that stands for a function must not be called."""

    origin: str
    path: Path

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not cls.origin.startswith(_DESCRIPTIVE_PACKAGES) and (
            cls.origin not in _DESCRIPTIVE_NAMES
        ):
            raise UnsafeCheckpoint(
                f"{cls.path} would call {cls.origin} on loading; it was not loaded. Get the "
                "checkpoint from its authors again, or ask them for safetensors"
            )
        return super().__call__()


class _StandIn(metaclass=_StandInType):
    """Takes whatever unpickling gives it, and does nothing."""

    origin = "typing"
    path = Path()

    def __new__(cls, *args: Any, **kwargs: Any) -> "_StandIn":
        return super().__new__(cls)

    def __setstate__(self, state: Any) -> None:
        pass

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def append(self, item: Any) -> None:
        pass

    def extend(self, items: Any) -> None:
        pass


def _stand_in(path: Path, module: str, name: str) -> type:
    return _StandInType(name, (_StandIn,), {"origin": f"{module}.{name}", "path": path})


def _rebuild_tensor(
    storage: Any, offset: int, size: Sequence[int], stride: Sequence[int], *_: Any
) -> Tensor:
    if not isinstance(storage, _Storage) or len(size) != len(stride):
        raise UnsafeCheckpoint("a tensor is described without storage, size and stride")
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    numbers = math.prod(size)
    negative = min(offset, *size, *stride, 0) < 0
    if negative or (numbers and last >= storage.count) or numbers > max(storage.count, 1):
        raise UnsafeCheckpoint(
            f"a tensor of size {tuple(size)} is said to lie in a storage of {storage.count} numbers"
        )
    empty = torch.empty(0, dtype=storage.dtype)
    return empty.set_(storage.bytes, offset, tuple(size), tuple(stride))


def _rebuild_parameter(tensor: Any, *_: Any) -> Any:
    return tensor


def _no_bytes(*_: Any) -> bytes:
    # Not the type itself: bytes(10**12) would take a terabyte.
    return b""


def _plain_dict(*_: Any) -> dict[Any, Any]:
    return {}


_KNOWN: dict[tuple[str, str], Any] = {
    ("torch._utils", "_rebuild_tensor_v2"): _rebuild_tensor,
    ("torch._utils", "_rebuild_tensor"): _rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): _rebuild_parameter,
    ("torch.storage", "UntypedStorage"): torch.uint8,
    ("torch", "Size"): tuple,
    ("builtins", "bytes"): _no_bytes,
    ("builtins", "bytearray"): _no_bytes,
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "defaultdict"): _plain_dict,
}
