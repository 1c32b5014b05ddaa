"""Similarity of image, candidate and reference: triangle, VLScore, its ablations, distances.

Sources: area and VLScore are Eq. 1 and 2 of Dawidowicz, Hirsch, Tal, "VLScore", NeurIPS 2024;
`image_centred_cosine` and `bounding_sphere_radius` are from its ablation of the similarity.
`clipscore` and `refclipscore` are Eq. 1 and 2 of Hessel et al., "CLIPScore", EMNLP 2021.

The distances of a candidate from its image and reference together are not published. The area of
VLScore depends on the candidate's distance from the *line* through image and reference. These
distances also depend on the position along that line, except `height`, the only one that rewards a
candidate far beyond the reference. docs/which_score.md compares them.
"""

import math

import torch
from torch import Tensor

from vlscore.core import ArrayLike, triples
from vlscore.errors import InvalidSetting

# Rows per step: three float64 blocks of this many rows at d = 768 stay in a core's cache.
_CHUNK = 256

# Below this squared sine of the angle at the image, the Gram determinant loses more than two of
# float64's sixteen digits and the projection residual takes over.
_WELL_CONDITIONED = 1e-2


def triangle_area(
    i: ArrayLike, g: ArrayLike, r: ArrayLike, *, dtype: torch.dtype = torch.float64
) -> Tensor:
    """Area T of the triangles (i, g, r), Eq. 1.

    The textbook form, the square root of a Gram determinant, loses every digit when the points
    are nearly collinear. Such rows (all rows in float32) are computed from the part of g - i or
    g - r, whichever is shorter, that is perpendicular to the edge i - r.

    Args:
        i: (n, d) or (d,) image embeddings.
        g: candidates' embeddings, same shape.
        r: references' embeddings, same shape.
        dtype: of the computation. In float64 the relative error is at most 1e-12 where g lies
            further from the line than 1e-4 of its way to the nearer end; nearer to the line it is
            at most 4e-16 times that way over the distance, so that the absolute error stays at
            rounding. In float32 it is 1e-6, and 1e-4 within 1e-3 of the middle of the edge i - r.

    Returns:
        (n,) areas in squared units of the embeddings, at least 0; `dtype`. Differentiable.

    >>> triangle_area([0.0, 0.0], [0.0, 3.0], [4.0, 0.0])
    tensor([6.], dtype=torch.float64)
    """
    i, g, r = triples(i, g, r)
    if dtype != torch.float64 or any(x.requires_grad for x in (i, g, r)):
        return _area_by_residual(i.to(dtype), g.to(dtype), r.to(dtype))
    area = torch.empty(len(i), dtype=dtype, device=i.device)
    # One workspace for all chunks: fresh memory for each would cost more than the arithmetic.
    workspace = torch.empty(min(len(i), _CHUNK), 2, i.shape[1], dtype=dtype, device=i.device)
    for start in range(0, len(i), _CHUNK):
        points = [x[start : start + _CHUNK] for x in (i, g, r)]
        edges = workspace[: len(points[0])]
        edges[:, 0] = points[1]
        edges[:, 1] = points[2]
        edges -= points[0][:, None]
        gram = torch.bmm(edges, edges.transpose(1, 2))
        product = gram[:, 0, 0] * gram[:, 1, 1]
        determinant = product - gram[:, 0, 1] ** 2
        found = 0.5 * determinant.clamp(min=0).sqrt()
        # Written so that nan and products that overflowed or vanished count as ill-conditioned.
        trusted = (determinant > _WELL_CONDITIONED * product) & product.isfinite()
        doubtful = (~trusted).nonzero()[:, 0]
        if len(doubtful):
            found[doubtful] = _area_by_residual(*(x[doubtful].double() for x in points))
        area[start : start + _CHUNK] = found
    return area


def vlscore(
    i: ArrayLike,
    g: ArrayLike,
    r: ArrayLike,
    C: float,
    *,
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """VLScore max(1 - T/C, 0), Eq. 2: 1 for a candidate as good as the reference.

    Any g on the infinite line through i and r scores 1, however far from r, and so does every g
    where i = r; `foot` and `sides` tell such cases apart.

    Args:
        i, g, r: (n, d) or (d,) embeddings of image, candidate, reference.
        C: the area that scores 0; depends on the encoder.

    Returns: (n,) scores in [0, 1].
    Raises: InvalidSetting if C is not a positive number.

    >>> vlscore([0.0, 0.0], [0.0, 3.0], [4.0, 0.0], C=24.0)
    tensor([0.7500], dtype=torch.float64)
    """
    return score_of_area(triangle_area(i, g, r, dtype=dtype), C)


def score_of_area(area: Tensor, C: float) -> Tensor:
    """VLScore of triangles whose areas are known, Eq. 2. Shape of `area`, values in [0, 1]."""
    if not C > 0:
        raise InvalidSetting(f"C must be a positive number, not {C}")
    return (1 - area / C).clamp(min=0)


def foot(i: ArrayLike, g: ArrayLike, r: ArrayLike, *, dtype: torch.dtype = torch.float64) -> Tensor:
    """Compute the position of g's projection on the line from i (0) to r (1).

    Far outside [0, 1] a small area does not mean that g is near the reference.

    Returns: (n,) positions; nan where i = r, for then there is no line.

    >>> foot([0.0, 0.0], [1.0, 3.0], [4.0, 0.0])
    tensor([0.2500], dtype=torch.float64)
    """
    i, g, r = (x.to(dtype) for x in triples(i, g, r))
    edge = r - i
    position, nearest, is_near_r = _nearest_vertex(edge, g - i, g - r)
    along = torch.linalg.vecdot(nearest, edge) / torch.linalg.vecdot(edge, edge)
    return torch.where(position.isnan(), position, along + is_near_r)


def sides(
    i: ArrayLike, g: ArrayLike, r: ArrayLike, *, dtype: torch.dtype = torch.float64
) -> tuple[Tensor, Tensor, Tensor]:
    """Euclidean distances |i - g|, |i - r|, |g - r|, each (n,).

    >>> [float(side) for side in sides([0.0, 0.0], [0.0, 3.0], [4.0, 0.0])]
    [3.0, 4.0, 5.0]
    """
    i, g, r = (x.to(dtype) for x in triples(i, g, r))
    norm = torch.linalg.vector_norm
    return norm(i - g, dim=-1), norm(i - r, dim=-1), norm(g - r, dim=-1)


def _area_by_residual(i: Tensor, g: Tensor, r: Tensor) -> Tensor:
    residual, _, _ = perpendicular(i, g, r)
    length = torch.linalg.vector_norm(r - i, dim=-1)
    area: Tensor = 0.5 * length * torch.linalg.vector_norm(residual, dim=-1)
    return area


def perpendicular(i: Tensor, g: Tensor, r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the part of g that is perpendicular to the line through i and r.

    Returns: (n, d), the part of g - i or g - r, whichever is shorter, that is perpendicular to the
        line; (n, d), that difference itself; (n,), how far it leads away from the other end along
        the line. Where i = r the first two are g - r, and the third is 0.
    """
    edge = r - i
    _, nearest, is_near_r = _nearest_vertex(edge, g - i, g - r)
    length = torch.linalg.vector_norm(edge, dim=-1)
    direction = edge / torch.where(length > 0, length, 1)[:, None]
    along = torch.linalg.vecdot(nearest, direction)
    outwards = torch.where(is_near_r, along, -along)
    return nearest - along[:, None] * direction, nearest, outwards


def _nearest_vertex(edge: Tensor, from_i: Tensor, from_r: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return a rough foot position, g - i or g - r (the shorter), and whether r was nearer."""
    position = torch.linalg.vecdot(from_i, edge) / torch.linalg.vecdot(edge, edge)
    is_near_r = position > 0.5
    return position, torch.where(is_near_r[:, None], from_r, from_i), is_near_r


# Factor of the cosine in CLIPScore's Eq. 1.
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
    """|g - r|² - w (|r - i|² - |g - i|²): squared distance from r, minus the gain towards i.

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
    _check_weight(image)
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
    _check_weight(image)
    i, g, r = (_unit(x.to(dtype)) for x in triples(i, g, r))
    cosine: Tensor = torch.linalg.vecdot(g, r) + image * torch.linalg.vecdot(g - r, i)
    return cosine


def _check_weight(image: float) -> None:
    """Raise InvalidSetting unless the weight of an image is a finite number, at least 0."""
    if not (image >= 0 and math.isfinite(image)):
        raise InvalidSetting(
            f"image, its weight, must be a finite number and at least 0, not {image!r}"
        )


def _unit(x: Tensor) -> Tensor:
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    largest = x.abs().amax(dim=-1, keepdim=True)
    # Squares of numbers beyond 1e154 are infinite, those below 1e-162 are 0.
    lost = largest.isfinite() & (largest > 0) & (length.isinf() | (length == 0))
    if lost.any():
        x = torch.where(lost, x / largest, x)
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / torch.where(length > 0, length, 1)
