"""Cache of embeddings and pixels: what may be stored on disk, and what it depends on.

* `CachedEmbeddings` and `cached_pixels` return the spaces for an encoder and its pipeline.
* `Contents` computes the SHA-256 of a file, under any name, once while the file does not change.
* `Changes` finds out whether the tensors of a module have changed, fast enough for every image.
"""

import hashlib
import math
import os
import stat
from dataclasses import dataclass
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
    remember_digest,
    stable_module,
    stable_name,
)
from vlscore.data import ImagePolicy, Provenance, Radiograph
from vlscore.encoders import ImagePipeline, JointEncoder, Precision, weights_sample

# Facts by which a file counts as unchanged: device, inode, bytes, time of change.
State = tuple[int, int, int, int]
_REMEMBERED_FILES = 100_000
_BLACK_SIDE = 256
# A pipe or a device has no end, and files larger than this are no radiographs.
_MOST_BYTES = 1 << 31


@dataclass(frozen=True)
class FileContent:
    """The content of a file at one moment.

    Attributes:
        path: the file.
        digest: SHA-256 of its bytes.
        state: state of the file at that moment.
    """

    path: str
    digest: bytes
    state: State

    def is_unchanged(self) -> bool:
        """Return True if the file has not changed since it was read."""
        return _state(self.path) == self.state


class Contents:
    """Hashes of files, remembered during the life of this object and never between runs."""

    def __init__(self) -> None:
        self._known: Recent[State, bytes] = Recent(_REMEMBERED_FILES)

    def of(self, image: Any) -> FileContent | None:
        """Hash a file; None if it cannot be read, is no file, or changes meanwhile."""
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
            remember_digest(state, digest.hex())
        return FileContent(path, digest, state)


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
    """Repeated check of the tensors and submodules of a module for changes.

    PyTorch's own iteration (`parameters`, `buffers`) takes milliseconds for an encoder of some
    hundred layers: more than all other work for an image whose embedding is in the cache.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module
        self._tensors, self._modules = _tables(module)
        self._seen: Stamp | None = None

    def are_new(self) -> bool:
        """Return True if anything has changed since the previous call, and at the first call.

        Always True for tensors that were made in inference mode: PyTorch does not count their
        changes.
        """
        stamp = self._stamp()
        if stamp is not None and stamp == self._seen:
            return False
        # A new submodule has its own tables.
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
    """Return the tables of tensors and of submodules of every module."""
    modules = list(module.modules())
    tensors = [table for each in modules for table in (each._parameters, each._buffers)]
    return tensors, [each._modules for each in modules]


_OURS = "vlscore."


class CachedEmbeddings:
    """Cached embeddings of one encoder under one policy and precision.

    They are found by the content of a file or text and by all else that a number depends on: the
    encoder's code, checksum and image pipeline, the image policy, the precision, whether towers are
    compiled, the kind of device, and the versions of the libraries in a run's record.

    An encoder is not cached (nothing is found or stored) if these are unknown: if its code is not
    vlscore's and it has no `cache_version`, or if its weights are not those that `load_encoder`
    read, because it was trained since or made otherwise.
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
        """Return the space for embeddings of reports; None if they may not be cached."""
        return self._space("reports")

    def images(self, *, lateral: bool) -> Space | None:
        """Return the space for embeddings of images; None if they may not be cached."""
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
            "libraries": libraries(),
        }
        if self._is_compiled:
            facts["compiled"] = True
        if holds != "reports":
            facts |= _facts_of_pixels(encoder.image_pipeline, self._policy)
            facts["pipeline_code"] = pipeline
        return facts

    def _weights_are_as_loaded(self) -> bool:
        """Return True if the weights are those that `load_encoder` read.

        The checksum is that of the files. PyTorch counts the changes of every tensor; values are
        compared only if the counts changed.
        """
        if self._changes.are_new():
            self._is_as_loaded = self._encoder.loaded_weights == weights_sample(self._encoder)
        return self._is_as_loaded


def cached_pixels(cache: Cache, pipeline: ImagePipeline, policy: ImagePolicy) -> Space | None:
    """Return the space for stored pixels of an image pipeline; None if they may not be cached.

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
        "libraries": libraries(),
        **_facts_of_pixels(pipeline, policy),
    }
    return cache.pixels.space(facts)


def vector_entry(vector: Tensor, *, truncated: bool = False) -> Entry:
    """Make the cache entry of an embedding (d,)."""
    values = np.ascontiguousarray(vector.numpy(), dtype="<f4")
    return Entry(values.tobytes(), values.shape, int(truncated))


def vector_of(entry: Entry | None, dim: int) -> Tensor | None:
    """Return the embedding of an entry; None without one, of other dimensions, or if damaged.

    All numbers nan: the entry of a text or image whose embedding failed in another task of a run.
    """
    if entry is None or entry.shape != (dim,) or len(entry.value) != 4 * dim:
        return None
    values = np.frombuffer(entry.value, "<f4").astype(np.float32)
    is_usable = np.isfinite(values).all() or np.isnan(values).all()
    return torch.from_numpy(values) if is_usable else None


def pixels_entry(stored: np.ndarray[Any, Any], pipeline: ImagePipeline) -> Entry | None:
    """Make the cache entry of pixels (channels, h, w); None if their type is not the pipeline's."""
    if stored.dtype != np.dtype(pipeline.stored_type) or stored.ndim != 3:
        return None
    values = np.ascontiguousarray(stored, _stored_dtype(pipeline))
    return Entry(values.tobytes(), values.shape)


def black_radiograph() -> Radiograph:
    """Return a black image, which readers of files refuse."""
    pixels = np.zeros((_BLACK_SIDE, _BLACK_SIDE), dtype=np.float32)
    return Radiograph(pixels, Provenance(format="array", bits=32, window="as given"), "black image")


def stored_shape(pipeline: ImagePipeline, policy: ImagePolicy) -> tuple[int, ...]:
    """Return the last dimensions of the pixels that a pipeline stores under a policy.

    (channels, height, width); (height, width) under a policy that reads files alone, as the number
    of channels may depend on it; () if the pipeline refuses a black image.
    """
    for tried, first in (policy, 0), (ImagePolicy(), 1):
        try:
            return tuple(pipeline.load_stored(black_radiograph(), tried).shape[first:])
        except Exception:  # a user's own pipeline may raise any type
            continue
    return ()


def pixels_of(
    entry: Entry, pipeline: ImagePipeline, shape: tuple[int, ...]
) -> np.ndarray[Any, Any] | None:
    """Return the pixels of an entry; None if it holds something else.

    Args: shape: that of `stored_shape`; pixels of another one would end the run.
    """
    kind = _stored_dtype(pipeline)
    if len(entry.shape) != 3 or len(entry.value) != kind.itemsize * math.prod(entry.shape):
        return None
    # `shape` may lack the first dimension, or all.
    if tuple(entry.shape[3 - len(shape) :]) != shape:
        return None
    return np.frombuffer(entry.value, kind).reshape(entry.shape).astype(pipeline.stored_type)


def _stored_dtype(pipeline: ImagePipeline) -> np.dtype[Any]:
    """Return the type on disk, the same on every machine."""
    return np.dtype(pipeline.stored_type).newbyteorder("<")


def _facts_of_pixels(pipeline: ImagePipeline, policy: ImagePolicy) -> dict[str, Any]:
    # All fields of the policy: one that refuses images decides which images have numbers.
    return {"pipeline": pipeline.identity(), "policy": repr(policy)}


def _code_of(member: JointEncoder | ImagePipeline) -> str | None:
    """Return a text that identifies this version of the code; None if there is none."""
    kind = type(member)
    if kind.__module__.startswith(_OURS):
        return f"{stable_module(kind)} {__version__}"
    if member.cache_version is not None:
        return f"{stable_name(kind)} {member.cache_version} {__version__}"
    return None
