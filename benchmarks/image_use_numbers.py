"""The numbers of phantom_image_use.py for one encoder, and where they are kept."""

import argparse
import hashlib
import re
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
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
from vlscore.data import Study, render
from vlscore.embedding import StudyEmbedder, StudyViews
from vlscore.evaluation import COMPARISONS, score_pairs
from vlscore.metrics import Scorer, find_metric, triangle_area
from vlscore.stats import auc

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
    """One encoder's numbers: metric -> on validation, on test; and what it retrieves."""

    name: str
    group: str
    validation: dict[str, Resampled] = field(default_factory=dict)
    test: dict[str, Resampled] = field(default_factory=dict)
    noticed: dict[str, dict[str, float]] = field(default_factory=dict)
    recalls: dict[int, float] = field(default_factory=dict)


def judge(name: str, embedder: StudyEmbedder, options: argparse.Namespace) -> Judged:
    """Every number of one encoder, kept in the cache folder as soon as it is there."""
    judged = Judged(name, re.sub(r"-\d+$", "", name))
    facts = (options.studies, options.resamples, METRICS, *scenes_of("held_out", 1).texts())
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
    images = _sensitivity_images(options.studies)
    C = embedded["train"].C or _largest_area(embedded["train"])
    embedded = {split: replace(each, C=C) for split, each in embedded.items()}
    scorer = Scorer(embedder, metrics=METRICS, C=C)
    changed = score_pairs(pairs, scorer, lambda study: StudyViews(images[study].images))
    for metric, name in zip(METRICS, changed.values, strict=True):
        found = find_metric(metric)
        judged.validation[metric] = resample(image_use(embedded["train"], found), resamples=1)
        use = image_use(embedded["held_out"], found)
        judged.test[metric] = resample(use, resamples=options.resamples)
        judged.noticed[metric] = _noticed(pairs, changed.drop(name))
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
                arrays["|".join((part, key, name))] = np.asarray(value)
    with atomic_write(path, "wb") as stream:
        np.savez(stream, **arrays)


def _take(judged: Judged, path: Path) -> None:
    with np.load(path, allow_pickle=False) as arrays:
        for place, value in arrays.items():
            part, *key = place.split("|")
            if part == "recall":
                judged.recalls[int(key[0])] = float(value)
            else:
                metric, name = key
                getattr(judged, part).setdefault(metric, {})[name] = value


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
def _sensitivity_pairs(count: int) -> pd.DataFrame:
    return pairs_of(_sensitivity_reports(count))


@cache
def _sensitivity_images(count: int) -> dict[str, Study]:
    return {
        study_id: Study(study_id, (render(scene).astype(np.float32) / np.float32(4095),))
        for study_id, scene in sensitivity_scenes(count)
    }


def _largest_area(embedded: EmbeddedScenes) -> float:
    return float(triangle_area(embedded.images, embedded.candidates, embedded.references).max())


def _noticed(pairs: pd.DataFrame, drops: NDArray[np.float64]) -> dict[str, float]:
    kinds = pairs["kind"].to_numpy()
    return {
        kind: auc(drops[kinds == kind], drops[kinds == control]) for _, kind, control in COMPARISONS
    }
