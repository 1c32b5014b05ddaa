"""Small calls use one thread of PyTorch, and leave the number of threads as they found it."""

import threading

import numpy as np
import pytest
import torch

from tests.doubles import HashEncoder
from vlscore.embedding import EmbeddingEngine, batches

THREADS = 3


class Looks(HashEncoder):
    """Notes with how many threads it computes; `gate` has several calls wait for each other."""

    def __init__(self, gate=None):
        super().__init__()
        self.found, self.gate = [], gate

    def embed_images(self, pixels):
        self._look()
        return super().embed_images(pixels)

    def embed_reports(self, tokens):
        self._look()
        return super().embed_reports(tokens)

    def _look(self):
        if self.gate is not None:
            self.gate.wait(60)
        self.found.append(torch.get_num_threads())


@pytest.fixture(autouse=True)
def several_threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    yield
    torch.set_num_threads(before)


def threads_of(texts=0, images=0):
    """How many threads compute a call of so many items."""
    encoder = Looks()
    engine = EmbeddingEngine(encoder)
    if texts:
        engine.embed_reports([f"Edema {k}." for k in range(texts)])
    if images:
        rng = np.random.default_rng(0)
        engine.embed_images([rng.integers(0, 256, (8, 8), dtype=np.uint8) for _ in range(images)])
    assert torch.get_num_threads() == THREADS
    (found,) = set(encoder.found)
    return found


def test_few_items_of_a_small_network_take_one_thread():
    assert threads_of(texts=64) == 1
    assert threads_of(images=64) == 1


def test_more_work_takes_what_the_user_set(monkeypatch):
    assert threads_of(texts=65) == THREADS
    assert threads_of(images=65) == THREADS
    monkeypatch.setattr(batches, "_SMALL_NETWORK", -1)
    assert threads_of(texts=1) == THREADS


def test_a_number_that_the_user_set_for_all_programs_is_respected(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", str(THREADS))
    assert threads_of(texts=1) == THREADS


def test_an_error_restores_the_number_too(monkeypatch):
    encoder = Looks()
    monkeypatch.setattr(encoder, "_look", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        EmbeddingEngine(encoder).embed_reports(["Edema."])
    assert torch.get_num_threads() == THREADS


def test_calls_of_several_python_threads_restore_the_number():
    """All compute at once, and each new thread ends with the number of before."""
    gate, after = threading.Barrier(4), []

    def call(number):
        encoder = Looks(gate)
        EmbeddingEngine(encoder).embed_reports([f"Edema {number}."])
        after.append((*encoder.found, torch.get_num_threads()))

    calls = [threading.Thread(target=call, args=[k]) for k in range(4)]
    for each in calls:
        each.start()
    for each in calls:
        each.join()
    assert after == [(1, THREADS)] * 4
    assert torch.get_num_threads() == THREADS
