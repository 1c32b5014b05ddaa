"""Embeddings that were computed elsewhere: three files of numpy, one row a study of a table.

The names of the files are those of VLScore's authors (github.com/gefend/VLscore, README). They say
whose vectors a file has, so that candidates and references cannot be exchanged unnoticed.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import Signature, file_digest
from vlscore.errors import InvalidSetting
from vlscore.metrics.batch import EmbeddingTriples
from vlscore.metrics.metric import Metric

VECTOR_FILES = {
    "images": "img_emb.npy",
    "references": "gt_emb.npy",
    "candidates": "output_emb.npy",
}
# Name of the fact in a signature that says that the vectors were read from files.
STORED = "vectors"


def open_embeddings(
    folder: str | Path, *, encoder: str | None = None, C: float | None = None
) -> EmbeddingTriples:
    """Open the vectors of n studies, mapped into memory; the files never change.

    Args:
        folder: has output_emb.npy (candidates), and as far as metrics look at them img_emb.npy
            (images) and gt_emb.npy (references): arrays (n, d) of floats, in one order of studies.
        encoder: what made them: the name of an encoder that vlscore knows, whose C then holds.
            Default: the folder's name stands in the signature, and C is unknown.
        C: constant of VLScore; default: the encoder's.

    Returns: the vectors; the signature names the encoder, and the first digits of the files'
        digest.
    Raises:
        InvalidSetting: a file cannot be read, is no array of this kind, or has another shape.
        UnknownName: there is no such encoder.
    """
    from vlscore.encoders import encoder_card  # most runs read no vectors

    folder = Path(folder)
    card = None if encoder is None else encoder_card(encoder)
    paths = {role: folder / name for role, name in VECTOR_FILES.items()}
    there = {role: path for role, path in paths.items() if path.is_file()}
    if "candidates" not in there:
        raise InvalidSetting(
            f"{folder} has no {VECTOR_FILES['candidates']}, the candidates' vectors; "
            f"{VECTOR_FILES['images']} has those of the images, {VECTOR_FILES['references']} those "
            "of the references"
        )
    arrays = {role: _mapped(path) for role, path in there.items()}
    if len({array.shape for array in arrays.values()}) > 1:
        shapes = ", ".join(f"{there[role].name} {a.shape}" for role, a in arrays.items())
        raise InvalidSetting(f"{folder}: the files have different shapes: {shapes}")
    dim = arrays["candidates"].shape[1]
    if card is not None and card.dim != dim:
        raise InvalidSetting(
            f"{folder} has vectors of {dim} numbers, but those of {card.name} have {card.dim}"
        )
    digests = [f"{role} {file_digest(path)}" for role, path in sorted(there.items())]
    digest = hashlib.sha256("\n".join(digests).encode()).hexdigest()[:12]
    name = card.name if card is not None else folder.resolve().name
    name = name.replace("|", "/").replace("\n", " ")
    return EmbeddingTriples(
        images=arrays.get("images"),
        candidates=arrays["candidates"],
        references=arrays.get("references"),
        signature=Signature("embeddings").plus({"enc": f"{name}@{digest}", STORED: "files"}),
        C=C if C is not None or card is None else card.C,
    )


def check_vectors(vectors: EmbeddingTriples, metrics: Iterable[Metric]) -> None:
    """Raise InvalidSetting if metrics look at vectors that there are not, or none looks at any."""
    embedded = [metric for metric in metrics if metric.uses_embeddings]
    if not embedded:
        raise InvalidSetting("vectors were passed, but no metric looks at embeddings")
    for metric in embedded:
        roles = ["images"] * metric.uses_image + ["references"] * metric.uses_reference
        for role in roles:
            if getattr(vectors, role) is None:
                raise InvalidSetting(
                    f"{metric} looks at the {role}, but there is no {VECTOR_FILES[role]}"
                )


def _mapped(path: Path) -> Any:
    try:
        array = np.load(path, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InvalidSetting(
            f"{path}: is no array that numpy reads without pickle ({type(error).__name__}); write "
            "it by numpy.save, of numbers"
        ) from None
    if not isinstance(array, np.ndarray) or array.ndim != 2 or array.dtype.kind != "f":
        kind = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else "an archive"
        raise InvalidSetting(f"{path}: must be an array (n, d) of floats, not {kind}")
    return array
