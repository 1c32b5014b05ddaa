"""What a process that decodes images needs to import."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from vlscore.data import ImagePolicy
from vlscore.encoders.blocks.pixels import PadCropPipeline

DECODE = """
import pickle, sys
import numpy as np
with open(sys.argv[1], "rb") as stream:
    pipeline, policy = pickle.load(stream)
np.save(sys.argv[3], pipeline.load_stored(sys.argv[2], policy))
print("torch" in sys.modules)
"""


@pytest.mark.parametrize("policy", ["auto", "authors"])
def test_radiographs_are_decoded_without_pytorch(tmp_path, policy):
    image, task, result = (tmp_path / name for name in ("image.png", "task", "result.npy"))
    pixels = np.random.default_rng(0).integers(0, 256, (300, 200), dtype=np.uint8)
    Image.fromarray(pixels).save(image)
    pipeline, chosen = PadCropPipeline(), ImagePolicy.named(policy)
    task.write_bytes(pickle.dumps((pipeline, chosen)))
    done = subprocess.run(
        [sys.executable, "-c", DECODE, str(task), str(image), str(result)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"
    assert (np.load(result) == pipeline.load_stored(image, chosen)).all()
