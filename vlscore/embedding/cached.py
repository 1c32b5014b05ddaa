"""What a file holds, whatever it is called: its SHA-256, read once while the file is the same.

Whether the tensors of a module have changed, told fast enough to be asked for every image.

What of an encoder's work may be kept on disk, and what it depends on.
"""

import hashlib
import math
import os
import stat
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vlscore.core import (
    Cache,
    Entry,
    Recent,
    Space,
    __version__,
    libraries,
    stable_module,
    stable_name,
)
from vlscore.data import ImagePolicy
from vlscore.encoders import ImagePipeline, JointEncoder, Precision, weights_sample

# What tells that a file is still the one that was read: device, inode, bytes, time of change.
State = tuple[int, int, int, int]
_REMEMBERED_FILES = 100_000
# A pipe or a device has no end, and larger files than this are no radiographs.
_MOST_BYTES = 1 << 31


@dataclass(frozen=True)
class FileContent:
    """The content of a file at one moment.

    Attributes:
        path: the file.
        digest: SHA-256 of its bytes.
        state: what the file was like then.
    """

    path: str
    digest: bytes
    state: State

    def is_unchanged(self) -> bool:
        """Whether the file is as it was when it was read."""
        return _state(self.path) == self.state


class Contents:
    """Hashes of files, remembered as long as this object lives: never between runs."""

    def __init__(self) -> None:
        self._known: Recent[State, bytes] = Recent(_REMEMBERED_FILES)

    def of(self, image: Any) -> FileContent | None:
        """The content of a file; None of what is no file that can be read, or changes meanwhile."""
        if not isinstance(image, str | os.PathLike):
            return None
        path = os.fsdecode(image)
        state = _state(path)
        if state is None:
            return None
        digest = self._known.known([state]).get(state)
        if digest is None:
            try:
                with open(path, "rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").digest()
            except OSError:
                return None
            if _state(path) != state:
                return None
            self._known.add({state: digest})
        return FileContent(path, digest, state)


def text_digest(text: str) -> bytes:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _state(path: str) -> State | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


# Identities of tensors and submodules, and how often each tensor was changed in place.
Stamp = list[int]
_Tables = list[dict[str, Any]]


class Changes:
    """Looks at the tensors and submodules of a module, again and again.

    PyTorch's own walk (`parameters`, `buffers`) takes milliseconds for an encoder of some hundred
    layers: more than everything else that an image costs whose embedding is in the cache.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._tensors, self._modules = _tables(module)
        self._seen: Stamp | None = None

    def are_new(self) -> bool:
        """Whether anything has changed since the call before; True at first.

        Always True where tensors were made in inference mode: PyTorch counts no changes of those.
        """
        stamp = self._stamp()
        if stamp is not None and stamp == self._seen:
            return False
        # Another submodule brings tables of its own.
        self._tensors, self._modules = _tables(self._module)
        self._seen = self._stamp()
        return True

    def _stamp(self) -> Stamp | None:
        stamp: Stamp = []
        try:
            for tensors in self._tensors:
                for tensor in tensors.values():
                    if tensor is not None:
                        stamp += (id(tensor), tensor._version)
        except RuntimeError:
            return None
        for modules in self._modules:
            stamp += map(id, modules.values())
        return stamp


def _tables(module: nn.Module) -> tuple[_Tables, _Tables]:
    """Where every module keeps its tensors, and where its submodules."""
    modules = list(module.modules())
    tensors = [table for each in modules for table in (each._parameters, each._buffers)]
    return tensors, [each._modules for each in modules]


_OURS = "vlscore."


class KeptEmbeddings:
    """The embeddings of one encoder under one policy and precision that lie in a cache.

    They are found by the content of a file or text and by everything else that a number depends
    on: the encoder's code, checksum and image pipeline, the image policy, the precision, whether
    towers are compiled, the kind of device, and the versions of the libraries that a run's record
    names.

    An encoder is left out (every answer is "not there", and nothing is kept) where that cannot be
    told: where its code is not vlscore's and it states no `cache_version`, or where its weights are
    not those that `load_encoder` read, because it was trained since or was made otherwise.
    """

    def __init__(
        self,
        cache: Cache,
        encoder: JointEncoder,
        policy: ImagePolicy,
        precision: Precision,
        *,
        is_compiled: bool = False,
    ) -> None:
        self._cache, self._encoder = cache, encoder
        self._policy, self._precision = policy, precision
        self._is_compiled = is_compiled
        self._changes = Changes(encoder)
        self._is_as_loaded = False
        self._spaces: dict[str, Space] = {}

    def reports(self) -> Space | None:
        """Where embeddings of reports lie; None where none may be kept."""
        return self._space("reports")

    def images(self, *, lateral: bool) -> Space | None:
        """Where embeddings of images lie; None where none may be kept."""
        return self._space("lateral images" if lateral else "images")

    def _space(self, holds: str) -> Space | None:
        # The device may have changed, too.
        name = f"{holds} {self._encoder.device.type}"
        if not self._weights_are_as_loaded():
            return None
        if name not in self._spaces:
            code = _code_of(self._encoder)
            pipeline = _code_of(self._encoder.image_pipeline)
            if code is None or (pipeline is None and holds != "reports"):
                return None
            self._spaces[name] = self._cache.embeddings.space(self._facts(holds, code, pipeline))
        return self._spaces[name]

    def _facts(self, holds: str, code: str, pipeline: str | None) -> dict[str, Any]:
        encoder = self._encoder
        facts: dict[str, Any] = {
            "holds": holds,
            "encoder": encoder.card.name,
            "checksum": encoder.checksum,
            "code": code,
            "precision": self._precision,
            "device": encoder.device.type,
            "dtype": "<f4",
            "libraries": _versions(),
        }
        if self._is_compiled:
            facts["compiled"] = True
        if holds != "reports":
            facts |= _facts_of_pixels(encoder.image_pipeline, self._policy)
            facts["pipeline_code"] = pipeline
        return facts

    def _weights_are_as_loaded(self) -> bool:
        """Whether they are those that `load_encoder` read.

        The checksum is that of the files. PyTorch counts the changes of every tensor; only where it
        counted some are values looked at.
        """
        if self._changes.are_new():
            self._is_as_loaded = self._encoder.loaded_weights == weights_sample(self._encoder)
        return self._is_as_loaded


def kept_pixels(cache: Cache, pipeline: ImagePipeline, policy: ImagePolicy) -> Space | None:
    """Where what an image pipeline stores of an image lies; None where none may be kept.

    They are found by the content of the file, the pipeline's code and settings, the image policy,
    and the versions of the libraries that decode and resize.
    """
    code = _code_of(pipeline)
    if code is None:
        return None
    facts = {
        "holds": "pixels",
        "code": code,
        "dtype": _stored_dtype(pipeline).str,
        "libraries": _versions(),
        **_facts_of_pixels(pipeline, policy),
    }
    return cache.pixels.space(facts)


def vector_entry(vector: Tensor, *, truncated: bool = False) -> Entry:
    """An embedding (d,) as it is kept."""
    values = np.ascontiguousarray(vector.numpy(), dtype="<f4")
    return Entry(values.tobytes(), values.shape, int(truncated))


def vector_of(entry: Entry, dim: int) -> Tensor | None:
    """The embedding of an entry; None where it is none of so many dimensions."""
    if entry.shape != (dim,) or len(entry.value) != 4 * dim:
        return None
    values = np.frombuffer(entry.value, "<f4").astype(np.float32)
    return torch.from_numpy(values) if np.isfinite(values).all() else None


def pixels_entry(stored: np.ndarray[Any, Any], pipeline: ImagePipeline) -> Entry | None:
    """Pixels (channels, h, w) as they are kept; None of what is not of the pipeline's type."""
    if stored.dtype != np.dtype(pipeline.stored_type) or stored.ndim != 3:
        return None
    values = np.ascontiguousarray(stored, _stored_dtype(pipeline))
    return Entry(values.tobytes(), values.shape)


def pixels_of(entry: Entry, pipeline: ImagePipeline) -> np.ndarray[Any, Any] | None:
    """The pixels of an entry; None where it holds something else."""
    kind = _stored_dtype(pipeline)
    if len(entry.shape) != 3 or len(entry.value) != kind.itemsize * math.prod(entry.shape):
        return None
    return np.frombuffer(entry.value, kind).reshape(entry.shape).astype(pipeline.stored_type)


def _stored_dtype(pipeline: ImagePipeline) -> np.dtype[Any]:
    """The type on disk, the same on every machine."""
    return np.dtype(pipeline.stored_type).newbyteorder("<")


def _facts_of_pixels(pipeline: ImagePipeline, policy: ImagePolicy) -> dict[str, Any]:
    # All fields of the policy: one that refuses images changes no number, but what has one.
    return {"pipeline": pipeline.identity(), "policy": repr(policy)}


def _code_of(member: JointEncoder | ImagePipeline) -> str | None:
    """What tells this code from other editions of it; None where nothing does."""
    kind = type(member)
    if kind.__module__.startswith(_OURS):
        return f"{stable_module(kind)} {__version__}"
    if member.cache_version is not None:
        return f"{stable_name(kind)} {member.cache_version} {__version__}"
    return None


@cache
def _versions() -> dict[str, str | None]:
    return libraries()
