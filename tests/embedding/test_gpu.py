"""The engine on a GPU: pixels are made there, embeddings come back, a shortage is survived."""

from unittest import mock

import numpy as np
import pytest
import torch

from tests.encoders.goldens import row_error
from tests.pretended_gpu import pretended_gpu
from tests.training.toys import ToyEncoder
from vlscore.embedding import EmbeddingEngine, StudyEmbedder, StudyViews
from vlscore.encoders import load_encoder

TEXTS = ["Small left effusion.", "", "The heart is enlarged. " * 9, "No acute process."]
PICTURES = [
    np.random.default_rng(k).integers(0, 256, (90, 70 + k), dtype=np.uint8) for k in range(7)
]


def everything(embedder):
    """Embeddings of studies, of texts and of the black image, one above the other."""
    views = [("frontal",), ("frontal", "lateral")] if embedder.encoder.has_lateral_tower else [None]
    studies = [
        StudyViews((picture,) * len(view or "1"), view)
        for k, picture in enumerate(PICTURES)
        for view in [views[k % len(views)]]
    ]
    images, texts = embedder.embed_studies(studies), embedder.embed_texts(TEXTS)
    assert not images.failures
    assert not texts.failures
    found = torch.cat([images.vectors, texts.vectors, embedder.embed_black()[None]])
    assert type(found) is torch.Tensor
    return found


@pytest.mark.parametrize(
    "precision",
    ["fp32", *(pytest.param(half, marks=pytest.mark.slow) for half in ("bf16", "fp16"))],
)
def test_no_tensor_stays_behind_on_the_cpu(precision):
    here = everything(StudyEmbedder("phantom", batch_size=3))
    with pretended_gpu():
        embedder = StudyEmbedder("phantom", batch_size=3, precision=precision)
        assert embedder.encoder.device == torch.device("cuda", 0)
        assert row_error(everything(embedder), here) <= (1e-6 if precision == "fp32" else 0.1)


def test_lateral_views_have_their_tower_there():
    options = {"views": "frontal+lateral", "batch_size": 3}
    here = everything(StudyEmbedder(ToyEncoder(), **options))
    with pretended_gpu(2):
        embedder = StudyEmbedder(ToyEncoder(), device="cuda:1", **options)
        assert embedder.encoder.device == torch.device("cuda", 1)
        assert torch.equal(everything(embedder), here)


@pytest.mark.parametrize("of_cudnn", [False, True])
def test_a_shortage_there_halves_the_batch(of_cudnn):
    short = torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    if of_cudnn:
        short = RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED")
    here = EmbeddingEngine(load_encoder("phantom")).embed_images(PICTURES).vectors
    freed = mock.Mock()
    with pretended_gpu(), mock.patch.object(torch.cuda, "empty_cache", freed):
        encoder = load_encoder("phantom", device="cuda")
        embed = encoder.embed_images

        def embed_few(pixels):
            if len(pixels) > 2:
                raise short
            return embed(pixels)

        encoder.embed_images = embed_few
        engine = EmbeddingEngine(encoder, batch_size=7)
        with pytest.warns(RuntimeWarning, match="cuda"):
            found = engine.embed_images(PICTURES).vectors
    freed.assert_called()
    assert engine.batch_size <= 3
    assert row_error(found, here) <= 2e-6


@pytest.mark.gpu
def test_the_engine_gives_there_what_it_gives_here():
    here = everything(StudyEmbedder("phantom", device="cpu"))
    assert row_error(everything(StudyEmbedder("phantom", device="cuda")), here) <= 1e-4
    for precision in ("bf16", "fp16"):
        half = everything(StudyEmbedder("phantom", device="cuda", precision=precision))
        assert 0 < row_error(half, here) <= 0.1
