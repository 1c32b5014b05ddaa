"""Every kernel takes embeddings where they lie, and gives what the CPU gives."""

import numpy as np
import pytest
import torch

from tests.pretended_gpu import pretended_gpu
from vlscore import metrics as similarity

# Image, candidate and reference; two rows on one line, one with image and reference the same.
POINTS = np.random.default_rng(0).normal(size=(3, 300, 6)).astype(np.float32)
POINTS[1, 5] = POINTS[0, 5] + 0.25 * (POINTS[2, 5] - POINTS[0, 5])
POINTS[1, 6] = POINTS[2, 6]
POINTS[2, 7] = POINTS[0, 7]
KERNELS = {
    "triangle_area": similarity.triangle_area,
    "triangle_area in float32": lambda *x: similarity.triangle_area(*x, dtype=torch.float32),
    "vlscore": lambda *x: similarity.vlscore(*x, C=2.0),
    "foot": similarity.foot,
    "sides": lambda *x: torch.stack(similarity.sides(*x)),
    "height": similarity.height,
    "segment_distance": similarity.segment_distance,
    "midpoint_distance": similarity.midpoint_distance,
    "image_gain_distance": lambda *x: similarity.image_gain_distance(*x, 0.5),
    "image_gain_cosine": lambda *x: similarity.image_gain_cosine(*x, 0.5),
    "image_centred_cosine": similarity.image_centred_cosine,
    "bounding_sphere_radius": similarity.bounding_sphere_radius,
    "cosine": lambda i, g, r: similarity.cosine(g, r),
    "clipscore": lambda i, g, r: similarity.clipscore(i, g),
    "refclipscore": similarity.refclipscore,
}


@pytest.mark.parametrize("name", KERNELS)
def test_no_tensor_stays_behind_on_the_cpu(name):
    here = KERNELS[name](*map(torch.from_numpy, POINTS))
    with pretended_gpu():
        there = KERNELS[name](*(torch.from_numpy(x).to("cuda") for x in POINTS))
        assert there.is_cuda
        assert torch.equal(there.cpu().nan_to_num(-7), here.nan_to_num(-7))


@pytest.mark.gpu
@pytest.mark.parametrize("name", KERNELS)
def test_a_gpu_gives_the_same(name):
    here = KERNELS[name](*map(torch.from_numpy, POINTS))
    there = KERNELS[name](*(torch.from_numpy(x).cuda() for x in POINTS)).cpu()
    exact = here.dtype == torch.float64
    torch.testing.assert_close(
        there, here, rtol=1e-9 if exact else 1e-4, atol=1e-13 if exact else 1e-6, equal_nan=True
    )
