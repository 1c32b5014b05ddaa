"""Checkpoints: read tensors from any usual container, and take their digests.

`load_checkpoint` reads tensors; no code in a file is ever run. `tensors_digest` identifies them.
"""

import hashlib
import re
import sys
import threading
import warnings
import zipfile
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vlscore.core import atomic_write
from vlscore.errors import (
    IncompatibleCheckpoint,
    InvalidSetting,
    UnsafeCheckpoint,
    WeightsNotFound,
)

_SAFETENSORS_HEADER = 8
# Names under which trainers store the state_dict, next to settings and scores.
_INNER = ("state_dict", "model_state_dict", "model")
# Members under which DataParallel, DistributedDataParallel and torch.compile hold a model.
_WRAPPERS = frozenset(("module", "_orig_mod"))
# A dictionary may contain itself.
_DEEPEST = 6
_BEGINNING = 256


def load_checkpoint(path: str | Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file, torch state_dict or lightning checkpoint, by key.

    Of a checkpoint that holds a "state_dict" (or "model") and other things, only that is returned.
    Keys are those of the file, with prefixes. Tensors share memory with the file, which must
    stay as long as they are in use.

    Raises:
        WeightsNotFound: there is no such file.
        UnsafeCheckpoint: it would run code, contradicts its own description, or is damaged.
        IncompatibleCheckpoint: it holds no tensors.
    """
    path = Path(path)
    if not path.is_file():
        raise WeightsNotFound(f"{path}: no such checkpoint file")
    content = _read(path)
    tensors = _tensors_of(content)
    if not tensors:
        raise IncompatibleCheckpoint(
            f"{path} holds no tensors by name, but a {type(content).__name__}; give a checkpoint "
            "with the model's state_dict, not a pickled model"
        )
    return tensors


def without_wrappers(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors under the names that they have without wrappers of torch.

    DataParallel and DistributedDataParallel put "module." before the names of the model inside
    them, and `torch.compile` puts "_orig_mod."; a part of a model may be wrapped, too, and several
    times. A wrapper has no other member, so such a word of a name is removed only where all names
    that begin alike have it.

    >>> list(without_wrappers({"_orig_mod.module.a.b": torch.zeros(1)}))
    ['a.b']
    """
    members: dict[tuple[str, ...], set[str]] = {}
    for key in tensors:
        words = key.split(".")
        for depth, word in enumerate(words):
            members.setdefault(tuple(words[:depth]), set()).add(word)
    wrapped = {before for before, words in members.items() if words <= _WRAPPERS}
    return {_without(wrapped, key.split(".")): tensor for key, tensor in tensors.items()}


def _without(wrapped: Collection[tuple[str, ...]], words: list[str]) -> str:
    return ".".join(w for depth, w in enumerate(words) if tuple(words[:depth]) not in wrapped)


def tensors_digest(tensors: Mapping[str, Tensor]) -> str:
    """Compute the hexadecimal sha256 of keys, types, shapes and values, in any order and container.

    >>> tensors_digest({"a": torch.zeros(2)}) == tensors_digest({"a": torch.zeros(2).clone()})
    True
    """
    with ThreadPoolExecutor() as pool:
        parts = list(pool.map(lambda key: _digest_of_one(key, tensors[key]), sorted(tensors)))
    return hashlib.sha256(b"".join(parts)).hexdigest()


def is_mapped(path: Path) -> bool:
    """Return True if tensors of this file can be used without a copy, as long as it exists."""
    return path.suffix == ".safetensors"


def convert(source: str | Path, target: str | Path, *, overwrite: bool = False) -> str:
    """Write a checkpoint's tensors as safetensors, which any library reads without pickle.

    Keys and values do not change; tensors that share memory are each written in full.

    Returns: the `tensors_digest`, the same for both files.
    Raises: InvalidSetting if `target` may not be written; the errors of `load_checkpoint`.
    """
    target = Path(target)
    if target.suffix != ".safetensors":
        raise InvalidSetting(f"{target}: the converted file's name must end in .safetensors")
    if target.exists() and not overwrite:
        raise InvalidSetting(
            f"{target} exists already; choose another name, or say overwrite (--overwrite)"
        )
    from safetensors.torch import save

    tensors = load_checkpoint(source)
    separate = {
        key: value.clone(memory_format=torch.contiguous_format) for key, value in tensors.items()
    }
    with atomic_write(target, "wb") as file:
        file.write(save(separate, metadata={"format": "pt"}))
    return tensors_digest(separate)


def _tensors_of(content: Any, deepest: int = _DEEPEST) -> dict[str, Tensor]:
    """Return the state_dict in a checkpoint, searched in the order in which trainers nest it."""
    if not isinstance(content, dict) or not deepest:
        return {}
    for name in _INNER:
        if tensors := _tensors_of(content.get(name), deepest - 1):
            return tensors
    return {
        key: value.detach()
        for key, value in content.items()
        if isinstance(key, str) and isinstance(value, Tensor)
    }


class Inert:
    """Stands for an object that a checkpoint describes and that is not made; it does nothing."""

    def __init__(self, *arguments: object) -> None:
        pass

    def __setstate__(self, state: object) -> None:
        pass


def _stub(name: str, **methods: Any) -> type:
    """Return an inert class that goes by the name of another, which is not imported."""
    module, _, own = name.rpartition(".")
    return type(own, (Inert,), {"__module__": module, **methods})


# Plain data of Python and numpy, which pickle writes as calls.
_PLAIN = frozenset(
    f"{module}.{name}"
    for module, names in {
        "_codecs": "encode",
        "argparse": "Namespace",
        "builtins": "bool bytearray bytes complex dict float frozenset int list object range "
        "set slice str tuple",
        "copyreg": "_reconstructor",
        "datetime": "date datetime time timedelta timezone",
        "decimal": "Decimal",
        "fractions": "Fraction",
        "functools": "partial",
        "pathlib": "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath",
        "pathlib._local": "Path PosixPath PurePath PurePosixPath PureWindowsPath WindowsPath",
        "types": "SimpleNamespace",
        "typing": "Any",
        "uuid": "UUID",
        "numpy": "dtype ndarray",
        "numpy.core.multiarray": "_reconstruct scalar",
        "numpy._core.multiarray": "_reconstruct scalar",
    }.items()
    for name in names.split()
)
# Containers that pickle makes empty and then fills.
_CONTAINERS = (
    _stub("collections.defaultdict", __new__=lambda *_: {}),
    _stub("collections.deque", __new__=lambda *_: []),
)
# torch names the first global that it does not allow; it leaves out "builtins.".
_REFUSED = re.compile(r"GLOBAL (\S+) (?:was not an allowed|whose module)")
# The list of allowed globals belongs to the whole process.
_LOCK = threading.Lock()


def _read_pickled(path: Path) -> Any:
    """Read a file of torch. Names of settings become `Inert`; nothing is imported or called.

    `torch.load(weights_only=True)` alone would refuse checkpoints of lightning, which hold settings
    and callbacks besides their tensors.
    """
    stubs: dict[str, type] = {}
    while True:
        try:
            with (
                _LOCK,
                warnings.catch_warnings(action="ignore"),
                torch.serialization.safe_globals([*_CONTAINERS, *stubs.values()]),
            ):
                return torch.load(
                    path, weights_only=True, map_location="cpu", mmap=zipfile.is_zipfile(path)
                )
        except Exception as error:  # a damaged file can fail in any way
            found = _REFUSED.search(str(error))
            if found is None:
                reason = str(error).rpartition("WeightsUnpickler error:")[2].strip()
                reason = reason.partition("\n")[0][:200] or type(error).__name__
                raise UnsafeCheckpoint(
                    f"{path} is damaged, or holds more than tensors and settings ({reason}); it "
                    "was not loaded. Download it again, or ask its authors for safetensors"
                ) from None
            name = found[1] if "." in found[1] else f"builtins.{found[1]}"
            if name in stubs or not _describes(name):
                raise UnsafeCheckpoint(
                    f"{path} would use {name} on loading; it was not loaded. Get the checkpoint "
                    "from its authors again, or ask them for safetensors"
                ) from None
            stubs[name] = _stub(name)


def _describes(name: str) -> bool:
    """Return True for plain data, and for a class of any package but Python's own."""
    package, last = name.partition(".")[0], name.rpartition(".")[2]
    is_class = last.lstrip("_")[:1].isupper()
    return name in _PLAIN or (is_class and package not in sys.stdlib_module_names)


def _read(path: Path) -> Any:
    with path.open("rb") as file:
        beginning = file.read(_BEGINNING)
    _refuse_downloads_gone_wrong(path, beginning)
    if not (path.suffix == ".safetensors" or beginning[_SAFETENSORS_HEADER:].startswith(b"{")):
        return _read_pickled(path)
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, ValueError) as error:
        raise UnsafeCheckpoint(f"{path} is damaged: {error}; download it again") from None


def _refuse_downloads_gone_wrong(path: Path, beginning: bytes) -> None:
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if text.startswith((b"<!doctype", b"<html", b"<?xml", b"<head", b"version https://git-lfs")):
        raise IncompatibleCheckpoint(
            f"{path} is a web page or a pointer of Git LFS, not a checkpoint: download it in a "
            "browser, or by `git lfs pull`"
        )


def _digest_of_one(key: str, tensor: Tensor) -> bytes:
    digest = hashlib.sha256(f"{key}\n{tensor.dtype}\n{tuple(tensor.shape)}\n".encode())
    digest.update(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.digest()
