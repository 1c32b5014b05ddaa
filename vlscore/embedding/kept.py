"""What of an encoder's work may be kept on disk, and what it depends on."""

import math
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from vlscore._record import libraries
from vlscore._signature import stable_module, stable_name
from vlscore._version import __version__
from vlscore.cache import Cache, Entry
from vlscore.cache.store import Space
from vlscore.embedding.changes import Changes
from vlscore.encoders import ImagePipeline, JointEncoder, Precision
from vlscore.encoders.inference import weights_sample
from vlscore.images import ImagePolicy

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
    return torch.from_numpy(np.frombuffer(entry.value, "<f4").astype(np.float32))


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
