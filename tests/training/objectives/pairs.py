"""Features of pairs for the tests of the objectives, and losses computed in another way."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.training.objective import Objective, PairFeatures

Array = NDArray[np.float64]
DIM, LOCAL_DIM, LABELS, COPIES = 6, 5, 14, 3


def drawn_pairs(
    count: int = 7,
    *,
    seed: int = 0,
    places: int = 6,
    longest: int = 5,
    padding: int = 0,
    full: bool = False,
    same: bool = False,
    weights: bool = False,
    missing_places: bool = False,
    dtype: torch.dtype = torch.float64,
) -> PairFeatures:
    """Pairs of random features; reports of 1 to `longest` words, one of the longest.

    Args:
        padding: how many columns follow the longest report.
        full: whether all reports are of the longest.
        same: whether rows 1 and 4 are of one study.
        weights: whether the towers say what they attend to.
        missing_places: whether the last two places are missing in every second image.
    """
    draw = np.random.default_rng(seed)
    words = draw.standard_normal((count, longest, LOCAL_DIM))
    lengths = draw.integers(1, longest + 1, count)
    lengths[: None if full else 1] = longest
    is_word = np.arange(longest + padding) < lengths[:, None]
    words = np.pad(words, ((0, 0), (0, padding), (0, 0))) * is_word[..., None]
    alike = np.eye(count, dtype=bool)
    if same:
        alike[1, 4] = alike[4, 1] = True
    is_patch = np.ones((count, places), dtype=bool)
    if missing_places:
        is_patch[::2, -2:] = False
    images, reports = draw.standard_normal((2, count, DIM))
    patches = draw.standard_normal((count, places, LOCAL_DIM))
    labels = draw.choice([-1.0, 0.0, 1.0], (count, LABELS), p=[0.1, 0.7, 0.2])
    patch_weights = draw.random((count, places)) * is_patch
    word_weights = np.pad(draw.random((count, longest)), ((0, 0), (0, padding))) * is_word
    copies = reports[:, None] + draw.standard_normal((count, COPIES, DIM))
    changes = draw.integers(-1, 4, (count, COPIES))
    changes[0] = (1, 0, 2)
    return PairFeatures(
        images=torch.tensor(images, dtype=dtype),
        reports=torch.tensor(reports, dtype=dtype),
        same=torch.tensor(alike),
        patches=torch.tensor(patches, dtype=dtype),
        words=torch.tensor(words, dtype=dtype),
        is_word=torch.tensor(is_word),
        labels=torch.tensor(labels, dtype=dtype),
        is_patch=torch.tensor(is_patch) if missing_places else None,
        patch_weights=torch.tensor(patch_weights, dtype=dtype) if weights else None,
        word_weights=torch.tensor(word_weights, dtype=dtype) if weights else None,
        copies=torch.tensor(copies, dtype=dtype),
        copy_changes=torch.tensor(changes, dtype=dtype),
        copy_visible=torch.tensor(draw.random((count, COPIES)) < 0.7),
    )


def with_known_numbers(objective: Objective) -> Objective:
    """The objective in float64, what it learns set to numbers that any code can be given."""
    objective = objective.double().eval()
    for place, parameter in enumerate(objective.parameters()):
        numbers = torch.arange(parameter.numel(), dtype=torch.float64) * 1.3 + place
        parameter.data = torch.sin(numbers).reshape(parameter.shape) * 0.7
    return objective


def total(parts: dict[str, Tensor]) -> float:
    """The loss, from its parts."""
    return sum(part.item() for part in parts.values())


def array(tensor: Tensor | None) -> Array:
    assert tensor is not None
    return tensor.detach().numpy()


def cosine(a: Array, b: Array) -> float:
    return float(a @ b / (np.sqrt(a @ a) * np.sqrt(b @ b)))


def both_directions(scores: Array, same: Array) -> tuple[float, float]:
    """InfoNCE of rows and of columns, by the formula: -log(exp(own) / sum of exp)."""
    count = len(scores)
    rows = columns = 0.0
    for i in range(count):
        others = [j for j in range(count) if j == i or not same[i, j]]
        rows -= np.log(np.exp(scores[i, i]) / sum(np.exp(scores[i, j]) for j in others))
        columns -= np.log(np.exp(scores[i, i]) / sum(np.exp(scores[j, i]) for j in others))
    return rows / count, columns / count
