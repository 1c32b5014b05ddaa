"""Distances of a candidate from its image and reference together.

None of them is published. The area of VLScore depends on the candidate's distance from the *line*
through image and reference. These distances also depend on the position along that line, except
`height`, the only one that rewards a candidate far beyond the reference. docs/which_score.md
compares them.
"""

import math

import torch
from torch import Tensor

from vlscore.core import ArrayLike, triples
from vlscore.errors import InvalidSetting
from vlscore.metrics.similarity.triangle import perpendicular


def height(
    i: ArrayLike, g: ArrayLike, r: ArrayLike, *, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Distance of g from the line through i and r, 2T/|i - r|; (n,), at least 0.

    This is the area divided by its base; the base is the distance of image and reference, which
    does not depend on the candidate. 0 anywhere on the line, however far out; |g - r| if i = r.

    >>> height([0.0, 0.0], [1.0, 3.0], [4.0, 0.0])
    tensor([3.], dtype=torch.float64)
    """
    i, g, r = (x.to(dtype) for x in triples(i, g, r))
    residual, _, _ = perpendicular(i, g, r)
    distance: Tensor = torch.linalg.vector_norm(residual, dim=-1)
    return distance


def segment_distance(
    i: ArrayLike, g: ArrayLike, r: ArrayLike, *, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Distance of g from the segment that ends at i and r; (n,), at least 0.

    The height if the foot lies between i and r, else the distance from the nearer end; so a
    candidate far out on the line is far away. 0 on the segment; |g - r| if i = r.

    >>> segment_distance([0.0, 0.0], [7.0, 4.0], [4.0, 0.0])
    tensor([5.], dtype=torch.float64)
    """
    i, g, r = (x.to(dtype) for x in triples(i, g, r))
    residual, from_end, outwards = perpendicular(i, g, r)
    nearest = torch.where((outwards > 0)[:, None], from_end, residual)
    distance: Tensor = torch.linalg.vector_norm(nearest, dim=-1)
    return distance


def midpoint_distance(
    i: ArrayLike, g: ArrayLike, r: ArrayLike, *, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Distance of g from the midpoint of i and r, |g - (i + r)/2|; (n,), at least 0.

    |g - i|² + |g - r|² = 2 |g - (i + r)/2|² + |i - r|²/2: within one study it ranks candidates as
    the sum of the two squared distances does. It is |i - r|/2 for the reference itself.

    >>> midpoint_distance([0.0, 0.0], [2.0, 3.0], [4.0, 0.0])
    tensor([3.], dtype=torch.float64)
    """
    i, g, r = (x.to(dtype) for x in triples(i, g, r))
    middle: Tensor = torch.linalg.vector_norm(((g - i) + (g - r)) / 2, dim=-1)
    return middle


def image_gain_distance(
    i: ArrayLike,
    g: ArrayLike,
    r: ArrayLike,
    image: float = 1.0,
    *,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """|g - r|² - w (|r - i|² - |g - i|²): squared distance from r, less the gain towards i.

    Equal to (1 + w) (|g - m|² - |r - m|²) with m = (r + w i)/(1 + w): candidates of one study rank
    by their distance from the point m between reference and image, and the reference itself is 0 in
    every study. Negative for a candidate nearer to m than the reference is. Where i = r it is
    (1 + w) |g - r|².

    Args: image: w, the weight of the image: 0 is the squared distance from the reference, 1 ranks
        as the distance from the midpoint.

    Returns: (n,), at least -w²/(1 + w) |i - r|².
    Raises: InvalidSetting for a weight that is negative or not finite.

    >>> image_gain_distance([0.0, 0.0], [2.0, 3.0], [4.0, 0.0])
    tensor([10.], dtype=torch.float64)
    """
    check_weight(image)
    i, g, r = (x.to(dtype) for x in triples(i, g, r))
    # |g - i|² - |r - i|² = ⟨g - r, (g - i) + (r - i)⟩, without the difference of large squares.
    gain = (g - i) + (r - i)
    found: Tensor = torch.linalg.vecdot(g - r, (g - r) + image * gain)
    return found


def image_gain_cosine(
    i: ArrayLike,
    g: ArrayLike,
    r: ArrayLike,
    image: float = 1.0,
    *,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """cos(g, r) + w (cos(g, i) - cos(r, i)): cosine with r, plus the gain towards i.

    `image_gain_distance` of vectors of unit length, as 1 - half of it; for encoders whose training
    fixed no norms, or whose norms grow with length. 1 for the reference itself; more for a
    candidate nearer to the image by more than it parts with the reference. Cosines with the origin
    are 0.

    Args: image: w, the weight of the image.

    Returns: (n,), in [-(1 + 2w), 1 + w²/2] for w up to 2; for w = 1 in [-3, 1.5].
    Raises: InvalidSetting for a weight that is negative or not finite.

    >>> image_gain_cosine([1.0, 0.0], [1.0, 0.0], [0.0, 1.0])
    tensor([1.], dtype=torch.float64)
    """
    check_weight(image)
    i, g, r = (_unit(x.to(dtype)) for x in triples(i, g, r))
    cosine: Tensor = torch.linalg.vecdot(g, r) + image * torch.linalg.vecdot(g - r, i)
    return cosine


def check_weight(image: float) -> None:
    """Raise InvalidSetting unless the weight of an image is a finite number, at least 0."""
    if not (image >= 0 and math.isfinite(image)):
        raise InvalidSetting(f"the image's weight is a finite number, at least 0, not {image!r}")


def _unit(x: Tensor) -> Tensor:
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    largest = x.abs().amax(dim=-1, keepdim=True)
    # Squares of numbers beyond 1e154 are infinite, those below 1e-162 are 0.
    lost = largest.isfinite() & (largest > 0) & (length.isinf() | (length == 0))
    if lost.any():
        x = torch.where(lost, x / largest, x)
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / torch.where(length > 0, length, 1)
