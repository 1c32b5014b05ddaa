"""Many scenes at once: scene k of a seed is the same whatever else is drawn."""

import numpy as np
from numpy.typing import NDArray

from vlscore.phantom.render import render
from vlscore.phantom.scene import Scene, sample_scene


def scene_at(seed: int, position: int) -> Scene:
    """Scene number `position` of the endless corpus of that seed."""
    return sample_scene(np.random.default_rng([seed, position]))


def thumbnail(scene: Scene, side: int) -> NDArray[np.uint8]:
    """(side, side) grey levels: the picture at twice that size, averaged two by two."""
    picture = render(scene, 2 * side).astype(np.float32)
    means = picture.reshape(side, 2, side, 2).mean(axis=(1, 3))
    levels: NDArray[np.float32] = np.rint(means * np.float32(255 / 4095))
    return levels.astype(np.uint8)
