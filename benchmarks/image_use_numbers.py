"""The numbers of phantom_image_use.py for one encoder, and where they are kept."""

import argparse
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
from image_use_preferences import Resampled, image_use, recall, resample
from image_use_scenes import (
    EmbeddedScenes,
    Scenes,
    arrange,
    draw_scenes,
    embed_scenes,
    pictures_of,
)
from numpy.typing import NDArray
from phantom_sensitivity import pairs_of, report_of
from phantom_sensitivity import scenes as sensitivity_scenes

from vlscore.core import atomic_write
from vlscore.data import StudyImages, render
from vlscore.embedding import StudyEmbedder
from vlscore.encoders import SharedSpace
from vlscore.evaluation import COMPARISONS, EmbeddedPairs, Pair, embed_pairs
from vlscore.evaluation.sensitivities.pair_values import pair_values
from vlscore.metrics import find_metric, triangle_area
from vlscore.stats import auc

TEST_SEEDS, VALIDATION_SEED = (101, 102, 103), 2
SUPERVISED = "phantom-supervised (in-sample upper bound)"
SPACES = {"": None, " in the shared space": 1.0}
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
# Of each sort of score one or two; the others say no more of the space.
IN_SPACE = ("cosine", "clipscore", "height", "midpoint-distance", "image-gain-distance(image=0.5)")
IN_SPACE += ("image-gain-distance", "image-gain-distance(image=2.0)", "image-gain-cosine")
SCORES = tuple((metric, space) for space in SPACES for metric in (IN_SPACE if space else METRICS))


@dataclass
class Judged:
    """One encoder's numbers: (metric, space) -> on validation, on test; and what it retrieves."""

    name: str
    group: str
    validation: dict[tuple[str, str], Resampled] = field(default_factory=dict)
    test: dict[tuple[str, str], Resampled] = field(default_factory=dict)
    noticed: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    recalls: dict[int, float] = field(default_factory=dict)


def judge(name: str, embedder: StudyEmbedder, options: argparse.Namespace) -> Judged:
    """Every number of one encoder, kept in the cache folder as soon as it is there."""
    group = SUPERVISED if name == "phantom-supervised" else re.sub(r"-\d+$", "", name)
    judged = Judged(name, group)
    facts = (options.studies, options.resamples, SCORES, *scenes_of("held_out", 1).texts())
    path = options.cache / f"numbers-{_key(embedder, facts)}.npz"
    if path.is_file():
        _take(judged, path)
        return judged
    embedded = {
        split: embedded_of(embedder, split, options.studies, options.cache)
        for split in ("train", "held_out")
    }
    judged.recalls = {k: float(recall(embedded["held_out"], k).mean()) for k in (1, 5)}
    pairs = _sensitivity_pairs(options.studies)
    changed = embed_pairs(pairs, embedder, _sensitivity_images(options.studies))
    for space, ridge in SPACES.items():
        here = {split: _in_space(each, ridge) for split, each in embedded.items()}
        C = here["train"].C or _largest_area(here["train"])
        here = {split: replace(each, C=C) for split, each in here.items()}
        changed_here = replace(_pairs_in_space(changed, ridge), C=C)
        for key in (key for key in SCORES if key[1] == space):
            metric = key[0]
            found = find_metric(metric)
            judged.validation[key] = resample(image_use(here["train"], found), resamples=1)
            use = image_use(here["held_out"], found)
            judged.test[key] = resample(use, resamples=options.resamples)
            judged.noticed[key] = _noticed(pairs, changed_here, metric)
    _keep(judged, path)
    return judged


def _key(embedder: StudyEmbedder, facts: object) -> str:
    """Of everything that the numbers depend on but the code."""
    what = repr((str(embedder.signature), embedder.encoder.checksum, facts))
    return hashlib.sha256(what.encode()).hexdigest()[:24]


def _keep(judged: Judged, path: Path) -> None:
    arrays = {f"recall|{k}": np.array(value) for k, value in judged.recalls.items()}
    for part in ("validation", "test", "noticed"):
        for key, numbers in getattr(judged, part).items():
            for name, value in numbers.items():
                arrays["|".join((part, *key, name))] = np.asarray(value)
    with atomic_write(path, "wb") as stream:
        np.savez(stream, **arrays)


def _take(judged: Judged, path: Path) -> None:
    with np.load(path, allow_pickle=False) as arrays:
        for place, value in arrays.items():
            part, *key = place.split("|")
            if part == "recall":
                judged.recalls[int(key[0])] = float(value)
            else:
                metric, space, name = key
                getattr(judged, part).setdefault((metric, space), {})[name] = value


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


@cache
def _sensitivity_reports(count: int) -> dict[str, str]:
    return {study_id: report_of(study_id, scene) for study_id, scene in sensitivity_scenes(count)}


@cache
def _sensitivity_pairs(count: int) -> list[Pair]:
    return pairs_of(_sensitivity_reports(count))


@cache
def _sensitivity_images(count: int) -> dict[str, StudyImages]:
    return {
        study_id: StudyImages(study_id, (render(scene).astype(np.float32) / np.float32(4095),))
        for study_id, scene in sensitivity_scenes(count)
    }


def _in_space(embedded: EmbeddedScenes, ridge: float | None) -> EmbeddedScenes:
    if ridge is None:
        return embedded
    return embedded.shared(SharedSpace.fit(embedded.images, embedded.references, ridge=ridge))


def _pairs_in_space(embedded: EmbeddedPairs, ridge: float | None) -> EmbeddedPairs:
    if ridge is None:
        return embedded
    assert embedded.images is not None
    space = SharedSpace.fit(embedded.images, embedded.originals, ridge=ridge)
    return replace(
        embedded,
        images=space.images(embedded.images),
        originals=space.reports(embedded.originals),
        perturbed=space.reports(embedded.perturbed),
    )


def _largest_area(embedded: EmbeddedScenes) -> float:
    return float(triangle_area(embedded.images, embedded.candidates, embedded.references).max())


def _noticed(pairs: Sequence[Pair], embedded: EmbeddedPairs, metric: str) -> dict[str, float]:
    (values,) = pair_values(pairs, [find_metric(metric)], embedded)
    kinds = np.array([pair.kind for pair in pairs])
    drops = values.drops
    return {
        each.significant: auc(drops[kinds == each.significant], drops[kinds == each.control])
        for each in COMPARISONS
    }
