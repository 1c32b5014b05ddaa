"""The paper's ablations of the triangle, and CLIPScore for comparison.

Source: Dawidowicz, Hirsch, Tal, NeurIPS 2024, ablation of the similarity; Hessel et al.,
"CLIPScore", EMNLP 2021, Eq. 1 and 2.
"""

import torch
from torch import Tensor

from vlscore.similarity._arrays import ArrayLike, triples
from vlscore.similarity.triangle import sides, triangle_area

# Of the cosine in CLIPScore's Eq. 1.
CLIPSCORE_WEIGHT = 2.5


def cosine(g: ArrayLike, r: ArrayLike, *, dtype: torch.dtype = torch.float64) -> Tensor:
    """Cosine of candidate and reference, (n,) in [-1, 1]; 0 where one of them is the origin.

    >>> cosine([3.0, 0.0], [4.0, 3.0])
    tensor([0.8000], dtype=torch.float64)
    """
    g, r = (x.to(dtype) for x in triples(g, r))
    return _cosine(g, r)


def image_centred_cosine(
    i: ArrayLike, g: ArrayLike, r: ArrayLike, *, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Cosine of the angle at the image, between g - i and r - i; (n,) in [-1, 1].

    0 where g or r coincides with i, for then there is no angle.

    >>> image_centred_cosine([1.0, 1.0], [4.0, 1.0], [5.0, 4.0])
    tensor([0.8000], dtype=torch.float64)
    """
    i, g, r = (x.to(dtype) for x in triples(i, g, r))
    return _cosine(g - i, r - i)


def bounding_sphere_radius(
    i: ArrayLike, g: ArrayLike, r: ArrayLike, *, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Radius of the smallest sphere that holds i, g and r; (n,), at least 0.

    Half the longest side where the triangle is obtuse, right or degenerate; else the radius
    of the circumscribed circle.

    >>> bounding_sphere_radius([0.0, 0.0], [0.0, 3.0], [4.0, 0.0])
    tensor([2.5000], dtype=torch.float64)
    """
    lengths, _ = torch.stack(sides(i, g, r, dtype=dtype)).sort(dim=0)
    short, middle, longest = lengths
    is_acute = longest**2 < short**2 + middle**2
    area = triangle_area(i, g, r, dtype=dtype)
    circumradius = short * middle * longest / (4 * torch.where(area > 0, area, 1))
    return torch.where(is_acute & (area > 0), circumradius, longest / 2)


def clipscore(i: ArrayLike, g: ArrayLike, *, dtype: torch.dtype = torch.float64) -> Tensor:
    """CLIPScore 2.5 · max(cos(i, g), 0) of image and candidate; (n,) in [0, 2.5].

    >>> clipscore([3.0, 0.0], [4.0, 3.0])
    tensor([2.], dtype=torch.float64)
    """
    return CLIPSCORE_WEIGHT * cosine(i, g, dtype=dtype).clamp(min=0)


def refclipscore(
    i: ArrayLike, g: ArrayLike, r: ArrayLike, *, dtype: torch.dtype = torch.float64
) -> Tensor:
    """RefCLIPScore: harmonic mean of CLIPScore(i, g) and max(cos(g, r), 0); (n,) in [0, 10/7].

    >>> refclipscore([3.0, 0.0], [4.0, 3.0], [4.0, 3.0])
    tensor([1.3333], dtype=torch.float64)
    """
    to_image = clipscore(i, g, dtype=dtype)
    to_reference = cosine(g, r, dtype=dtype).clamp(min=0)
    total = to_image + to_reference
    return 2 * to_image * to_reference / torch.where(total > 0, total, 1)


def _cosine(x: Tensor, y: Tensor) -> Tensor:
    lengths = torch.linalg.vector_norm(x, dim=-1) * torch.linalg.vector_norm(y, dim=-1)
    cosines: Tensor = torch.linalg.vecdot(x, y) / torch.where(lengths > 0, lengths, 1)
    return cosines.clamp(-1, 1)
