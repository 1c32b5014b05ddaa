"""The engine embeds each thing once, in any order, and loses nothing to one bad item."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.doubles import MAX_TOKENS, HashEncoder
from vlscore.embedding import EmbeddingEngine
from vlscore.errors import BrokenContract, InvalidReport, UnreadableImage

words = st.sampled_from(["no", "effusion", "left", "right", "heart", "normal", "."])
reports = st.lists(st.lists(words, max_size=MAX_TOKENS + 4).map(" ".join), min_size=1, max_size=20)


@settings(max_examples=40, deadline=None)
@given(reports, st.integers(1, 7), st.randoms(use_true_random=False))
def test_embeddings_do_not_depend_on_batch_size_or_order(texts, batch_size, random):
    alone = torch.cat([HashEncoder().encode_reports([text]) for text in texts])
    order = list(range(len(texts)))
    random.shuffle(order)
    engine = EmbeddingEngine(HashEncoder(), batch_size=batch_size)
    embedded = engine.embed_texts([texts[k] for k in order])
    torch.testing.assert_close(embedded.vectors, alone[order])
    truncated = [len(texts[k].split()) > MAX_TOKENS for k in order]
    assert embedded.truncated.tolist() == truncated
    assert engine.work.reports_embedded == len(set(texts))


def test_a_model_in_training_mode_is_refused():
    encoder = HashEncoder().train()
    image = np.arange(16, dtype=np.uint8).reshape(4, 4)
    for embed in (
        lambda: EmbeddingEngine(encoder).embed_texts(["a"]),
        lambda: EmbeddingEngine(encoder).embed_images([image]),
    ):
        with pytest.raises(BrokenContract, match="training mode"):
            embed()


def test_one_text_that_cannot_be_tokenized_fails_alone():
    texts = ["a", "b", "untokenizable", "c", "d"]
    embedded = EmbeddingEngine(HashEncoder()).embed_texts(texts)
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
