"""Compiled towers give the same embeddings, under a signature that says so, or run as they are."""

import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pytest
import torch
import torch._dynamo
from torch._dynamo.exc import TorchDynamoException

from tests.conftest import REPOSITORY
from tests.doubles import HashEncoder, KeptEncoder
from tests.tolerances import TWO_VECTORS
from vlscore.core import open_cache
from vlscore.embedding import StudyEmbedder, StudyViews
from vlscore.embedding import batches as compiled
from vlscore.embedding.batches import CompiledTowers, can_compile
from vlscore.testing import row_error

TEXTS = ["normal " * (k % 9) + f"word{k}" for k in range(40)]
CPU = torch.device("cpu")


def studies(count=7):
    rng = np.random.default_rng(0)
    return [StudyViews([rng.integers(0, 256, (8, 8), dtype=np.uint8)]) for _ in range(count)]


@pytest.fixture(autouse=True)
def anew():
    can_compile.cache_clear()
    torch._dynamo.reset()
    yield
    can_compile.cache_clear()


@pytest.fixture
def traced_alone(monkeypatch):
    """Towers are traced, and run by PyTorch: a C++ compiler takes long."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))


def failing(*arguments, **options):
    def fail(batch):
        raise TorchDynamoException("no compiler at /home/user")

    return fail


@pytest.mark.usefixtures("traced_alone")
def test_compiled_towers_embed_as_others_do():
    plain = StudyEmbedder(HashEncoder(), device="cpu", batch_size=2)
    embedder = StudyEmbedder(HashEncoder(), device="cpu", batch_size=2, compile=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for of in (plain, embedder):
            of.found = [of.embed_texts(TEXTS).vectors, of.embed_studies(studies()).vectors]
    for one, other in zip(plain.found, embedder.found, strict=True):
        assert row_error(one, other) <= TWO_VECTORS
    assert embedder.signature.has("COMPILED")
    assert embedder.signature.without("COMPILED") == plain.signature


class Silent(HashEncoder):
    """Counts nothing: a number that changes in a module makes another program of it."""

    def embed_reports(self, tokens):
        axes = torch.arange(1, 9)
        vectors = torch.sin(tokens.ids[..., None].double() * axes) * tokens.mask[..., None]
        return self.scale * vectors.sum(1).float()


def test_batches_of_other_sizes_are_not_compiled_anew(monkeypatch):
    frames = []

    def counting(graph, inputs):
        frames.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=counting))
    encoder = Silent()
    towers = CompiledTowers(encoder)
    with torch.inference_mode():
        for count in range(2, 12):
            tokens = encoder.tokenize(TEXTS[count : 2 * count])
            torch.testing.assert_close(towers.embed_reports(tokens), encoder.embed_reports(tokens))
    assert 1 <= len(frames) <= 3


def test_without_a_compiler_one_warning_says_so_and_the_signature_claims_nothing(monkeypatch):
    monkeypatch.setattr(torch, "compile", failing)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        embedders = [StudyEmbedder(HashEncoder(), device="cpu", compile=True) for _ in range(2)]
        found = embedders[0].embed_texts(TEXTS).vectors
    assert [str(w.message).split(" (")[0] for w in caught] == ["torch.compile cannot be used"]
    assert "/home/user" not in str(caught[0].message)
    assert not any(embedder.signature.has("COMPILED") for embedder in embedders)
    assert torch.equal(found, StudyEmbedder(HashEncoder(), device="cpu").embed_texts(TEXTS).vectors)


def test_a_tower_that_cannot_be_compiled_runs_as_it_is(monkeypatch):
    monkeypatch.setattr(compiled, "can_compile", lambda device: True)
    monkeypatch.setattr("vlscore.embedding.engine.can_compile", lambda device: True)
    monkeypatch.setattr(torch, "compile", failing)
    embedder = StudyEmbedder(HashEncoder(), device="cpu", compile=True)
    with pytest.warns(RuntimeWarning, match="the encoder runs as it is"):
        found = embedder.embed_texts(TEXTS).vectors
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        embedder.embed_studies(studies())
    assert torch.equal(found, HashEncoder().encode_reports(TEXTS))


@pytest.mark.usefixtures("cache_folder", "traced_alone")
def test_the_cache_does_not_take_one_for_the_other():
    cache = open_cache()
    for options in ({}, {"compile": True}, {"compile": True}):
        embedder = StudyEmbedder(KeptEncoder(), device="cpu", cache=cache, **options)
        embedder.embed_texts(TEXTS)
    assert embedder.engine.work.reports_from_cache == len(TEXTS)
    facts = [space.facts for space in cache.embeddings.info()]
    assert [each.get("compiled", False) for each in facts] == [False, True]
    for store in cache.stores:
        store.close()


IN_A_PROCESS = """
import warnings
from tests.embedding.test_compiled import *

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    works = can_compile(CPU)
assert works == (not caught)
if works:
    towers, encoder = CompiledTowers(Silent()), Silent()
    tokens = encoder.tokenize(TEXTS)
    with torch.inference_mode():
        torch.testing.assert_close(towers.embed_reports(tokens), encoder.embed_reports(tokens))
print("compiled" if works else "no compiler")
"""


def test_it_is_compiled_by_the_machines_own_compiler():
    """In a process of its own: what PyTorch compiles is loaded for good."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_PROCESS], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    if done.stdout.strip() != "compiled":
        pytest.skip("no compiler here")
