"""The numbers of phantom_image_use.py for one encoder, and where they are kept."""

import argparse
import hashlib
import re
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
from image_use_preferences import Resampled, image_use, resample
from image_use_scenes import (
    EmbeddedScenes,
    Scenes,
    arrange,
    draw_scenes,
    embed_scenes,
    pictures_of,
)
from numpy.typing import NDArray

from vlscore.core import atomic_write
from vlscore.embedding import StudyEmbedder
from vlscore.metrics import find_metric, triangle_area

TEST_SEEDS, VALIDATION_SEED = (101, 102, 103), 2
METRICS = (
    "vlscore",
    "cosine",
    "image-centred-cosine",
    "bounding-sphere",
    "clipscore",
    "refclipscore",
    "height",
    "segment-distance",
    "midpoint-distance",
    "image-gain-distance(image=0.5)",
    "image-gain-distance",
    "image-gain-distance(image=2.0)",
    "image-gain-distance(image=4.0)",
    "image-gain-cosine(image=0.5)",
    "image-gain-cosine",
    "image-gain-cosine(image=2.0)",
    "image-gain-cosine(image=4.0)",
)


@dataclass
class Judged:
    """One encoder's numbers: metric -> on validation, on test."""

    name: str
    group: str
    validation: dict[str, Resampled] = field(default_factory=dict)
    test: dict[str, Resampled] = field(default_factory=dict)


def judge(name: str, embedder: StudyEmbedder, options: argparse.Namespace) -> Judged:
    """Compute every number of one encoder; vectors are stored in the cache folder."""
    judged = Judged(name, re.sub(r"-\d+$", "", name))
    train, held_out = (
        embedded_of(embedder, split, options.studies, options.cache)
        for split in ("train", "held_out")
    )
    largest = triangle_area(train.images, train.candidates, train.references).max()
    C = train.C or float(largest)
    for metric in METRICS:
        found = find_metric(metric)
        judged.validation[metric] = resample(image_use(replace(train, C=C), found), resamples=1)
        use = image_use(replace(held_out, C=C), found)
        judged.test[metric] = resample(use, resamples=options.resamples)
    return judged


def _key(embedder: StudyEmbedder, facts: object) -> str:
    """Of everything that the numbers depend on but the code."""
    what = repr((str(embedder.signature), embedder.encoder.checksum, facts))
    return hashlib.sha256(what.encode()).hexdigest()[:24]


def embedded_of(
    embedder: StudyEmbedder,
    split: str,
    count: int,
    cache_folder: Path,
    test_seeds: tuple[int, ...] = TEST_SEEDS,
) -> EmbeddedScenes:
    scenes = scenes_of(split, count, test_seeds)
    path = cache_folder / f"vectors-{_key(embedder, scenes.texts())}.npz"
    if not path.is_file():
        vectors = embed_scenes(embedder, scenes, _pictures(split, count, test_seeds))
        with atomic_write(path, "wb") as stream:
            np.savez(stream, **vectors)
    with np.load(path, allow_pickle=False) as vectors:
        return arrange(scenes, vectors, C=embedder.C, signature=str(embedder.signature))


@cache
def scenes_of(split: str, count: int, test_seeds: tuple[int, ...] = TEST_SEEDS) -> Scenes:
    seeds = (VALIDATION_SEED,) if split == "train" else test_seeds
    return draw_scenes(seeds, count, split=split)


@cache
def _pictures(split: str, count: int, test_seeds: tuple[int, ...]) -> list[NDArray[np.float32]]:
    return pictures_of(scenes_of(split, count, test_seeds))
