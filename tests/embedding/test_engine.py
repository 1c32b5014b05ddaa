"""The engine embeds each thing once, in any order, and loses nothing to one bad item."""

import sys
import threading

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doubles import MAX_TOKENS, HashEncoder
from vlscore.embedding import EmbeddingEngine
from vlscore.embedding.engine import _REMEMBERED_REPORTS
from vlscore.errors import BrokenContract, InvalidReport, UnreadableImage

words = st.sampled_from(["no", "effusion", "left", "right", "heart", "normal", "."])
reports = st.lists(st.lists(words, max_size=MAX_TOKENS + 4).map(" ".join), min_size=1, max_size=20)


@settings(max_examples=40, deadline=None)
@given(reports, st.integers(1, 7), st.randoms(use_true_random=False))
def test_embeddings_do_not_depend_on_batch_size_order_or_memory(texts, batch_size, random):
    alone = torch.cat([HashEncoder().encode_reports([text]) for text in texts])
    order = list(range(len(texts)))
    random.shuffle(order)
    engine = EmbeddingEngine(HashEncoder(), batch_size=batch_size)
    for _ in range(2):
        embedded = engine.embed_reports([texts[k] for k in order])
        torch.testing.assert_close(embedded.vectors, alone[order])
    truncated = [len(texts[k].split()) > MAX_TOKENS for k in order]
    assert embedded.truncated.tolist() == truncated
    assert engine.work.reports_embedded == len(set(texts))


def test_equal_reports_are_embedded_once():
    encoder = HashEncoder()
    engine = EmbeddingEngine(encoder)
    engine.embed_reports(["a b", "c", "a b", "c", "c"])
    engine.embed_reports(["c", "d"])
    assert encoder.report_rows == 3


def test_memory_of_reports_is_bounded():
    encoder = HashEncoder()
    engine = EmbeddingEngine(encoder, batch_size=512)
    texts = [f"word{k}" for k in range(_REMEMBERED_REPORTS + 100)]
    engine.embed_reports(texts)
    assert len(engine._remembered) == _REMEMBERED_REPORTS
    engine.embed_reports(texts[-_REMEMBERED_REPORTS:])
    assert encoder.report_rows == len(texts)


def test_threads_share_the_memory_of_reports(monkeypatch):
    """With room for a few texts, one thread forgets what another is about to look up."""
    monkeypatch.setattr("vlscore.embedding.engine._REMEMBERED_REPORTS", 20)
    texts = [f"word{k}" for k in range(60)]
    expected = HashEncoder().encode_reports(texts)
    engine = EmbeddingEngine(HashEncoder(), batch_size=8)
    problems: list[BaseException] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for _ in range(40):
                rows = rng.integers(len(texts), size=25).tolist()
                embedded = engine.embed_reports([texts[row] for row in rows])
                torch.testing.assert_close(embedded.vectors, expected[rows])
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert problems == []
    assert engine.work.reports_embedded >= len(texts)


def test_a_model_in_training_mode_is_refused():
    encoder = HashEncoder().train()
    image = np.arange(16, dtype=np.uint8).reshape(4, 4)
    for embed in (
        lambda: EmbeddingEngine(encoder).embed_reports(["a"]),
        lambda: EmbeddingEngine(encoder).embed_images([image]),
    ):
        with pytest.raises(BrokenContract, match="training mode"):
            embed()


def test_one_text_that_cannot_be_tokenized_fails_alone():
    texts = ["a", "b", "untokenizable", "c", "d"]
    embedded = EmbeddingEngine(HashEncoder()).embed_reports(texts)
    assert list(embedded.failures) == [2]
    assert isinstance(embedded.failures[2], InvalidReport)
    assert embedded.vectors[2].isnan().all()
    expected = HashEncoder().encode_reports(["a", "b", "c", "d"])
    torch.testing.assert_close(embedded.vectors[[0, 1, 3, 4]], expected)


def test_one_image_that_cannot_be_read_fails_alone(tmp_path):
    good = np.full((4, 4), 128, dtype=np.uint8)
    good[0, 0] = 0
    missing = tmp_path / "missing.png"
    embedded = EmbeddingEngine(HashEncoder(), batch_size=2).embed_images([good, missing, good])
    assert list(embedded.failures) == [1]
    assert isinstance(embedded.failures[1], UnreadableImage)
    assert "missing.png" in str(embedded.failures[1])
    assert embedded.vectors[1].isnan().all()
    assert torch.equal(embedded.vectors[0], embedded.vectors[2])


def test_nothing_embeds_to_nothing():
    engine = EmbeddingEngine(HashEncoder())
    assert engine.embed_reports([]).vectors.shape == (0, 8)
    assert engine.embed_images([]).vectors.shape == (0, 8)


def test_a_reports_argument_that_is_one_text_is_refused():
    with pytest.raises(InvalidReport, match="one text"):
        HashEncoder().encode_reports("no effusion")
