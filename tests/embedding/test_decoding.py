"""Worker processes decode what this process would decode, and survive what would kill one."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.doubles import BrightnessPipeline
from vlscore.embedding import ImageDecoder
from vlscore.errors import UnreadableImage
from vlscore.images import ImagePolicy, Radiograph


class CrashingPipeline(BrightnessPipeline):
    """Dies, as a C library does, at files called crash*."""

    def load(self, image, policy):
        if Path(image).name.startswith("crash"):
            os._exit(11)
        return super().load(image, policy)


class ConfusedPipeline(BrightnessPipeline):
    def __call__(self, radiograph: Radiograph) -> torch.Tensor:
        raise ValueError("a message that may quote a header")


@pytest.fixture
def images(tmp_path):
    paths = []
    for k in range(6):
        pixels = np.random.default_rng(k).integers(0, 256, (20, 30), dtype=np.uint8)
        paths.append(tmp_path / f"{k}.png")
        Image.fromarray(pixels).save(paths[-1])
    return paths


def test_workers_return_what_this_process_returns(images):
    with ImageDecoder(BrightnessPipeline(), ImagePolicy(), workers=2) as decoder:
        pending = [decoder.submit(path) for path in images]
        decoded = [item.result() for item in pending]
    here = ImageDecoder(BrightnessPipeline(), ImagePolicy())
    for path, pixels in zip(images, decoded, strict=True):
        assert torch.equal(pixels, here.submit(path).result())


def test_a_file_that_kills_a_worker_costs_only_itself(images, tmp_path):
    killer = tmp_path / "crash.dcm"
    killer.write_bytes(b"boom")
    with ImageDecoder(CrashingPipeline(), ImagePolicy(), workers=1) as decoder:
        pending = [decoder.submit(path) for path in [*images[:2], killer, images[2]]]
        for position, item in enumerate(pending):
            if position == 2:
                with pytest.raises(UnreadableImage, match=r"crash\.dcm.*crashed"):
                    item.result()
            else:
                assert item.result().shape == (1, 1, 8)


def test_unexpected_errors_name_the_file_and_quote_nothing(images):
    with pytest.raises(UnreadableImage) as caught:
        ImageDecoder(ConfusedPipeline(), ImagePolicy()).submit(images[0]).result()
    assert "0.png" in str(caught.value)
    assert "header" not in str(caught.value)
