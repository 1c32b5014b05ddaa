"""Batches fit the memory there is, whatever the length of reports, and say where they do not."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles import HashEncoder, KeptEncoder, Narrow
from vlscore.embedding import EmbeddingEngine, StudyEmbedder, StudyViews, batches
from vlscore.embedding.batches import by_length, default_batch_size
from vlscore.errors import InvalidSetting, UnreadableImage

TEXTS = ["normal " * (k % 11) + f"word{k}" for k in range(60)]
SHORTAGES = [
    torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
    MemoryError(),
]


def pictures(count, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, (8, 8), dtype=np.uint8) for _ in range(count)]


@given(st.lists(st.integers(0, 300), max_size=60), st.integers(1, 900), st.integers(0, 20))
def test_batches_of_reports_keep_to_the_tokens_and_do_not_depend_on_those_before(
    lengths, tokens, done
):
    found = list(by_length(lengths, lambda: tokens))
    assert sorted(row for batch in found for row in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[row] for row in batch) <= tokens
    # Whoever goes on after some batches finds the others as they were.
    left = sorted(row for batch in found[done:] for row in batch)
    again = [[left[k] for k in b] for b in by_length([lengths[r] for r in left], lambda: tokens)]
    assert again == found[done:]


def test_where_memory_becomes_short_the_batches_that_are_left_are_smaller():
    room = [60]
    found = []
    for batch in by_length([10] * 12, lambda: room[0]):
        found.append(len(batch))
        room[0] = 30
    assert found == [6, 3, 3]


@pytest.mark.parametrize("shortage", SHORTAGES, ids=lambda error: type(error).__name__)
def test_where_memory_is_short_the_batch_is_halved_and_the_run_goes_on(shortage):
    encoder = Narrow(5, shortage)
    engine = EmbeddingEngine(encoder, batch_size=32)
    expected = HashEncoder().encode_reports(TEXTS)
    with pytest.warns(RuntimeWarning, match=r"from now on 4 images.*--batch-size"):
        found = engine.embed_images(pictures(40))
    assert engine.batch_size == 4
    torch.testing.assert_close(found.vectors, HashEncoder().encode_images(pictures(40)))
    assert not found.failures
    # What was learned holds for the calls that follow.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.embed_images(pictures(9, seed=1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.testing.assert_close(engine.embed_texts(TEXTS).vectors, expected)
    assert engine.work.images_embedded == 49


def test_where_there_is_no_memory_for_one_image_the_advice_is_another_device():
    with (
        pytest.warns(RuntimeWarning),
        pytest.raises(InvalidSetting, match=r"too little memory for hash.*--device cpu"),
    ):
        EmbeddingEngine(Narrow(0, MemoryError()), batch_size=4).embed_images(pictures(3))


def test_other_errors_of_a_model_are_not_taken_for_a_shortage():
    encoder = Narrow(0, RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    with pytest.raises(RuntimeError, match="mat1"):
        EmbeddingEngine(encoder).embed_images(pictures(2))


def test_reports_of_like_length_share_a_pass():
    shapes = []

    class Watched(HashEncoder):
        def embed_reports(self, tokens):
            shapes.append(tuple(tokens.ids.shape))
            return super().embed_reports(tokens)

    engine = EmbeddingEngine(Watched(), batch_size=1)
    engine.embed_texts(TEXTS)
    padded = sum(rows * length for rows, length in shapes)
    words = sum(min(len(text.split()), 12) for text in TEXTS)
    assert all(rows * length <= 64 or rows == 1 for rows, length in shapes)
    assert padded < 1.2 * words < 0.7 * len(TEXTS) * 12


def test_more_texts_than_one_window_are_the_same(monkeypatch):
    monkeypatch.setattr("vlscore.embedding.engine._REPORTS_AT_ONCE", 7)
    found = EmbeddingEngine(HashEncoder()).embed_texts([*TEXTS, *TEXTS[:9]])
    expected = HashEncoder().encode_reports([*TEXTS, *TEXTS[:9]])
    torch.testing.assert_close(found.vectors, expected)


def test_pixels_are_stacked_where_the_device_reads_them():
    parts = [torch.full((1, 2, 3), k, dtype=torch.uint8) for k in range(4)]
    found = batches.stacked(parts, torch.device("cpu"))
    assert found.shape == (4, 1, 2, 3)
    assert found[:, 0, 0, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.gpu
def test_pixels_for_a_gpu_are_stacked_in_pinned_memory():
    parts = [torch.full((1, 2, 3), k, dtype=torch.uint8) for k in range(4)]
    found = batches.stacked(parts, torch.device("cuda"))
    assert found.is_pinned()
    assert found[:, 0, 0, 0].tolist() == [0, 1, 2, 3]


def test_the_batch_size_follows_from_the_device(monkeypatch):
    class Properties:
        total_memory = 24 << 30

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: Properties)
    assert default_batch_size(torch.device("cpu")) == 16
    assert default_batch_size(torch.device("cuda")) == 96
    Properties.total_memory = 141 << 30
    assert default_batch_size(torch.device("cuda")) == batches._MOST_IMAGES
    Properties.total_memory = 2 << 30
    assert default_batch_size(torch.device("cuda")) == 16
    assert StudyEmbedder(HashEncoder()).batch_size == 16


def test_a_file_that_stands_in_several_rows_is_embedded_once(tmp_path):
    from PIL import Image

    paths = [tmp_path / f"{k}.png" for k in range(4)]
    for path, picture in zip(paths, pictures(2) * 2, strict=True):
        Image.fromarray(picture).save(path)
    encoder = KeptEncoder()
    engine = EmbeddingEngine(encoder, batch_size=3)
    found = engine.embed_images([*paths, paths[0]])
    assert encoder.image_rows == 2
    assert torch.equal(found.vectors[[0, 1, 0]], found.vectors[[2, 3, 4]])
    assert engine.work.images_decoded == 2


def test_damaged_files_of_one_content_are_named_each_by_itself(tmp_path):
    paths = [tmp_path / "a.png", tmp_path / "b.png"]
    for path in paths:
        path.write_bytes(b"\x89PNG damaged")
    found = StudyEmbedder(HashEncoder()).embed_studies([StudyViews([path]) for path in paths])
    assert all(isinstance(found.failures[k], UnreadableImage) for k in (0, 1))
    assert [str(found.failures[k]).split(":")[0] for k in (0, 1)] == [str(path) for path in paths]
