"""Batches: an order that the seed decides, shared by processes, each image changed by chance."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.training.conftest import opened
from tests.training.toys import ToyEncoder
from vlscore.training import TrainingSettings
from vlscore.training.augmentation import AUGMENTATIONS
from vlscore.training.minibatches import BatchSource, reworded
from vlscore.training.processes import TrainingProcesses
from vlscore.training.training_pairs import prepare

ROWS = np.arange(20)


def _source(pairs, processes=None, **settings):
    chosen = TrainingSettings(**{"batch_size": 6, "augmentation": "convirt", **settings})
    return BatchSource(
        pairs, ROWS, ToyEncoder(), chosen, processes=processes or TrainingProcesses(), threads=2
    )


def test_an_epoch_shows_no_pair_twice_and_the_next_has_another_order(pairs):
    source = _source(pairs)
    assert source.steps_in_epoch == 3
    batches = [batch.rows.tolist() for batch in source.training(0, 6)]
    first, second = sum(batches[:3], []), sum(batches[3:], [])  # noqa: RUF017
    assert len(set(first)) == len(first) == 18
    assert len(set(second)) == 18
    assert first != second
    assert set(first) <= set(ROWS.tolist())


def test_processes_share_what_one_would_have(pairs):
    whole = next(_source(pairs, sentences="shuffled").training(2, 3))
    parts = [
        next(_source(pairs, TrainingProcesses(rank, 3), sentences="shuffled").training(2, 3))
        for rank in range(3)
    ]
    assert all(np.array_equal(part.rows, whole.rows) for part in parts)
    assert torch.equal(torch.cat([part.pixels for part in parts]), whole.pixels)
    assert all(torch.equal(part.same, whole.same) for part in parts)


def test_plain_batches_are_not_changed(pairs):
    found = _source(pairs).plain(np.array([3, 1]))
    without = _source(pairs, augmentation="none")
    assert torch.equal(found.pixels, without.plain(np.array([3, 1])).pixels)
    changed = next(_source(pairs).training(0, 1))
    assert not torch.equal(changed.pixels, without.plain(changed.rows).pixels)


def test_some_lateral_images_are_left_out_in_training_alone(lateral_table, tmp_path):
    pairs = prepare(opened(lateral_table, views="frontal+lateral"), tmp_path)
    source = replace(_source(pairs, augmentation="hospitals"), lateral=True)
    assert source.plain(ROWS).has_lateral.tolist() == pairs.has_lateral[ROWS].tolist()
    batches = list(source.training(0, 60))
    there = np.concatenate([pairs.has_lateral[batch.rows] for batch in batches])
    drawn = np.concatenate([batch.has_lateral.numpy() for batch in batches])
    assert not drawn[~there].any()
    assert abs(drawn[there].mean() - 0.7) < 0.15


def test_an_error_of_a_batch_comes_out(pairs, monkeypatch):
    source = _source(pairs)
    monkeypatch.setattr(source, "_pixels", lambda pair, epoch: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        list(source.training(0, 2))


@pytest.mark.parametrize("name", [n for n in AUGMENTATIONS if n != "none"])
def test_no_augmentation_takes_left_for_right(name):
    """An image that grows brighter from left to right, or from top to bottom, still does."""
    change = AUGMENTATIONS.find(name)
    ramp = np.tile(np.linspace(40, 215, 64).astype(np.uint8), (64, 1))
    for draw in range(200):
        across = change(ramp, np.random.default_rng(draw)).astype(float)[20:44, 20:44]
        down = change(ramp.T.copy(), np.random.default_rng(draw)).astype(float)[20:44, 20:44]
        assert across[:, -1].mean() > across[:, 0].mean() + 10
        assert down[-1].mean() > down[0].mean() + 10


@pytest.mark.parametrize("name", list(AUGMENTATIONS))
def test_an_augmentation_keeps_shape_and_type_and_repeats_itself(name):
    change = AUGMENTATIONS.find(name)
    image = np.random.default_rng(0).integers(0, 256, (40, 50)).astype(np.uint8)
    kept = image.copy()
    found = change(image, np.random.default_rng(5))
    assert found.shape == image.shape
    assert found.dtype == np.uint8
    assert np.array_equal(image, kept)
    assert np.array_equal(found, change(image, np.random.default_rng(5)))
    assert np.array_equal(found, image) == (name == "none")


@given(st.lists(st.sampled_from(["No edema.", "Clear lungs.", "Large heart."]), min_size=1))
def test_shuffled_sentences_are_the_same_sentences(sentences):
    text = " ".join(sentences)
    shuffled = reworded(text, "shuffled", np.random.default_rng(1))
    assert sorted(shuffled.split()) == sorted(text.split())
    assert reworded(text, "one", np.random.default_rng(1)) in sentences
