"""Slots are bounded, are used again, and never while somebody looks at their pixels."""

import gc
import os
import sys

import numpy as np
import pytest
import torch

from vlscore.embedding.slots import Slots

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there are no slots")
UINT8 = np.dtype("uint8")


def test_a_slot_is_taken_as_long_as_anything_looks_at_its_pixels():
    slots = Slots(1 << 15)
    first = slots.take()
    assert first == (0, 1 << 15)
    pixels = slots.pixels(first, UINT8, (1, 70, 100))
    tensor = torch.from_numpy(pixels)[0, 5:]
    # 7000 bytes take 8 KiB: three more slots.
    others = [slots.take() for _ in range(4)]
    assert others[:3] == [(8192, 8192), (16384, 8192), (24576, 8192)]
    assert others[3] is None
    del pixels
    gc.collect()
    assert slots.take() is None
    del tensor
    assert slots.take() == (0, 8192)
    slots.give_back((0, 8192))
    assert slots.take() == (0, 8192)


def test_images_of_the_largest_size_share_one_slot():
    slots = Slots(1 << 15)
    pixels = slots.pixels(slots.take(), UINT8, (1, 1 << 15))
    assert slots.take() is None
    del pixels
    assert slots.take() == (0, 1 << 15)


def test_pixels_are_written_through_and_survive_the_slots():
    slots = Slots(1 << 15)
    other = np.memmap(os.fdopen(os.dup(slots.descriptor), "r+b"), np.float32, "r+")
    other[:6] = range(6)
    pixels = slots.pixels(slots.take(), np.dtype("float32"), (1, 2, 3))
    del slots
    assert pixels.tolist() == [[[0, 1, 2], [3, 4, 5]]]
    assert pixels.flags.writeable


def test_the_other_process_cannot_change_the_size():
    slots = Slots(1 << 15)
    with pytest.raises(PermissionError):
        os.ftruncate(slots.descriptor, 0)
    with pytest.raises(PermissionError):
        os.ftruncate(slots.descriptor, 1 << 20)
    slots.close_descriptor()
    assert slots.descriptor is None


def test_without_files_that_can_be_sealed_there_are_no_slots(monkeypatch):
    monkeypatch.delattr(os, "memfd_create")
    slots = Slots()
    assert slots.descriptor is None
    assert slots.take() is None
    slots.close_descriptor()
