"""What a run of the sensitivity benchmark keeps of each finished chunk."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from vlscore._files import write_json
from vlscore.errors import InvalidStudy, VLScoreError
from vlscore.meta.embedding import StudyVectors
from vlscore.meta.values import PairValues

_VECTORS, _VALUES, _FAILED = "vectors.npy", "values.npy", "failed.json"


def write_vectors(place: Path, names: Sequence[str], part: StudyVectors, dim: int) -> None:
    """Keep the embeddings of some studies' images, in the order of their names."""
    nothing = torch.full((dim,), torch.nan)
    vectors = torch.stack([part.vectors.get(name, nothing) for name in names])
    np.save(place / _VECTORS, vectors.numpy(), allow_pickle=False)
    failed = {name: str(error) for name, error in part.failures.items()}
    write_json(place / _FAILED, {"names": list(names), "failed": failed})


def read_vectors(place: Path) -> StudyVectors:
    """What `write_vectors` kept."""
    content = json.loads((place / _FAILED).read_text(encoding="utf-8"))
    vectors = torch.from_numpy(np.load(place / _VECTORS, allow_pickle=False))
    failed: Mapping[str, str] = content["failed"]
    return StudyVectors(
        {name: vectors[k] for k, name in enumerate(content["names"]) if name not in failed},
        {name: InvalidStudy(reason) for name, reason in failed.items()},
    )


def write_values(
    place: Path, values: Sequence[PairValues], failures: Mapping[int, VLScoreError]
) -> None:
    """Keep the values of n pairs, and why some have none.

    Args: failures: by the position of a pair among all of the run.
    """
    numbers = np.stack([np.stack([each.originals, each.perturbed]) for each in values])
    np.save(place / _VALUES, numbers, allow_pickle=False)
    write_json(place / _FAILED, {str(k): str(error) for k, error in failures.items()})


def read_values(place: Path) -> tuple[NDArray[np.float64], dict[int, VLScoreError]]:
    """(metrics, 2, n) originals and perturbed of each metric, and the failures."""
    failed = json.loads((place / _FAILED).read_text(encoding="utf-8"))
    numbers: NDArray[np.float64] = np.load(place / _VALUES, allow_pickle=False)
    return numbers, {int(k): InvalidStudy(reason) for k, reason in failed.items()}
