"""Claim: where a report's vector is a token sum, the area grows with the candidate's length.

Protocol: 400 phantom scenes of each of the seeds 101, 102, 103 in held-out phrasings; the encoders
are those of phantom_image_use.py whose report vector is the sum over words divided by 97, as
LIMITR's and GLoRIA's is, three training seeds each. To reference and candidate alike, or to the
candidate alone, 0, 2, 4 and 8 sentences are added that change no error: true denials of what
neither report states, and sentences that say nothing. Slope: of log value on log words of the
longer report, with a level for each study; 0 where length does not count, 1 where the value grows
in proportion. Interval: bootstrap over studies; range over encoders behind it. tau as in
phantom_image_use.py; padded: every study gets one of the four lengths at random, both its reports
alike or (one-sided) its candidate alone. Values without a logarithm, which may be negative, have
tau alone.

Run: python benchmarks/length_dependence.py --encoders FOLDER [--out FILE]
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from image_use_scenes import Scenes, draw_scenes, pictures_of
from machine import describe_machine, publish
from numpy.typing import NDArray
from phantom_image_use import cards

from vlscore.data.phantom.scene import phrasings
from vlscore.embedding import StudyEmbedder
from vlscore.metrics import EmbeddingTriples, compute, find_metric, triangle_area
from vlscore.stats import (
    Interval,
    TextTable,
    bootstrap_interval,
    kendall_tau_b,
    largest_tau_b,
    markdown,
)

SEEDS, PADDINGS, STYLES = (101, 102, 103), (0, 2, 4, 8), ("limitr", "gloria")
PAD, STOP = 0, 1
METRICS = ("vlscore", "height", "segment-distance", "image-gain-distance")
METRICS += ("image-gain-cosine", "cosine")
# Values without bounds whose logarithm says how they grow.
GROWING = ("vlscore", "height", "segment-distance")


@dataclass(frozen=True, eq=False)
class Vectors:
    """All vectors: of images, and of both reports by padding."""

    images: torch.Tensor
    references: dict[int, torch.Tensor]
    candidates: dict[int, torch.Tensor]


def padding_of(scenes: Scenes) -> list[list[str]]:
    """For each study, sentences that change no error, in random order."""
    table = phrasings()
    lists = []
    for number, study in enumerate(scenes.studies):
        stated = {finding.kind for finding in (*study.scene.findings, *study.claimed)}
        sentences = [
            sentence
            for entry in table["negative"]
            if stated.isdisjoint(entry["absent"])
            for sentence in entry["held_out"]
        ]
        sentences += table["other"]["held_out"]
        order = np.random.default_rng([977, number]).permutation(len(sentences))
        lists.append([sentences[k] for k in order])
    return lists


def padded(texts: Sequence[str], padding: Sequence[Sequence[str]], count: int) -> list[str]:
    """The texts with so many sentences more, as far as there are so many."""
    return [" ".join([text, *more[:count]]) for text, more in zip(texts, padding, strict=True)]


def words_of(embedder: StudyEmbedder, texts: Sequence[str]) -> NDArray[np.float64]:
    """(n,) words that the encoder adds up."""
    ids = embedder.encoder.tokenize(texts).ids
    return np.maximum(((ids != PAD) & (ids != STOP)).sum(1).numpy(), 1).astype(float)


def embed(
    embedder: StudyEmbedder, scenes: Scenes, pictures: Sequence[NDArray[np.float32]]
) -> tuple[Vectors, dict[int, NDArray[np.float64]]]:
    """All vectors, and by padding the words of the longer report."""
    padding = padding_of(scenes)
    images = embedder.encoder.encode_images(pictures).double()
    sums: dict[str, dict[int, torch.Tensor]] = {"references": {}, "candidates": {}}
    words: dict[str, dict[int, NDArray[np.float64]]] = {"references": {}, "candidates": {}}
    given = {
        "references": [study.reference for study in scenes.studies],
        "candidates": [study.candidate for study in scenes.studies],
    }
    for role, texts in given.items():
        for count in PADDINGS:
            longer = padded(texts, padding, count)
            sums[role][count] = embedder.embed_texts(longer).vectors.double()
            words[role][count] = words_of(embedder, longer)
    longest = {k: np.maximum(words["references"][k], words["candidates"][k]) for k in PADDINGS}
    return Vectors(images, sums["references"], sums["candidates"]), longest


def values(
    vectors: Vectors, metric: str, of_reference: int, of_candidate: int
) -> NDArray[np.float64]:
    """(n,) of a metric by padding of the two reports; the area itself for vlscore."""
    i, g, r = (
        vectors.images,
        vectors.candidates[of_candidate],
        vectors.references[of_reference],
    )
    texts = [""] * len(i)
    if metric == "vlscore":
        return triangle_area(i, g, r).numpy()
    triples = EmbeddingTriples(i, g, r, "enc:small")
    return compute([metric], texts, texts, embeddings=triples)[metric]


def slope(
    by_padding: dict[int, NDArray[np.float64]],
    words: dict[int, NDArray[np.float64]],
    weights: NDArray[np.int64],
) -> NDArray[np.float64]:
    """(1 + b,) of log value on log words within studies: as measured, and resampled."""
    y = np.log(np.maximum(np.stack([by_padding[k] for k in PADDINGS]), 1e-12))
    x = np.log(np.stack([words[k] for k in PADDINGS]))
    y, x = y - y.mean(axis=0), x - x.mean(axis=0)
    return (weights @ (x * y).sum(axis=0)) / (weights @ (x * x).sum(axis=0))


def tau(scores: NDArray[np.float64], errors: NDArray[np.int64], sign: int) -> float:
    """Share of the largest tau_b."""
    return -kendall_tau_b(sign * scores, errors) / largest_tau_b(errors)


@dataclass(frozen=True)
class Row:
    """One metric under one encoder.

    Attributes:
        alike, one_sided: (1 + b,) slopes; None where the value has no logarithm.
        taus: without padding, with padding of both reports alike, and of the candidate alone.
    """

    alike: NDArray[np.float64] | None
    one_sided: NDArray[np.float64] | None
    taus: tuple[float, float, float]


def measure(
    vectors: Vectors,
    words: dict[int, NDArray[np.float64]],
    metric: str,
    errors: NDArray[np.int64],
    weights: NDArray[np.int64],
) -> Row:
    """Slopes at equal errors, and what random lengths do to the ranking."""
    sign = -1 if metric == "vlscore" else find_metric(metric).sign
    alike = {k: values(vectors, metric, k, k) for k in PADDINGS}
    one_sided = {k: values(vectors, metric, 0, k) for k in PADDINGS}
    # A candidate without an error has no area to grow.
    wrong = weights * (errors > 0)
    drawn = np.random.default_rng(978).choice(PADDINGS, len(errors))
    rows = np.arange(len(errors))
    stacked = {
        name: np.stack([part[k] for k in PADDINGS])
        for name, part in (("alike", alike), ("one-sided", one_sided))
    }
    place = np.searchsorted(PADDINGS, drawn)
    return Row(
        slope(alike, words, wrong) if metric in GROWING else None,
        slope(one_sided, words, wrong) if metric in GROWING else None,
        (
            tau(alike[0], errors, sign),
            tau(stacked["alike"][place, rows], errors, sign),
            tau(stacked["one-sided"][place, rows], errors, sign),
        ),
    )


def table_of(style: str, encoders: Sequence[dict[str, Row]]) -> TextTable:
    """One row a metric."""
    rows = []
    for key in encoders[0]:
        found = [each[key] for each in encoders]
        taus = np.array([each.taus for each in found])
        rows.append(
            (
                "area" if key == "vlscore" else key,
                _slope_cell([each.alike for each in found]),
                _slope_cell([each.one_sided for each in found]),
                *(f"{x:.2f}" for x in taus.mean(axis=0)),
            )
        )
    columns = ("value", "slope, both padded", "slope, candidate padded")
    columns += ("tau", "tau, both padded", "tau, candidate padded")
    return TextTable(f"{style}, {len(encoders)} encoders", columns, tuple(rows))


def _slope_cell(drawn: Sequence[NDArray[np.float64] | None]) -> str:
    present = [each for each in drawn if each is not None]
    if not present:
        return "-"
    mean = np.mean(present, axis=0)
    i: Interval = bootstrap_interval(mean, 2)
    each = [float(one[0]) for one in present]
    spread = f" ({min(each):.2f} to {max(each):.2f})" if len(each) > 1 else ""
    return f"{i.estimate:.2f} [{i.low:.2f}, {i.high:.2f}]{spread}"


def trained(folder: Path) -> Iterator[tuple[str, Path]]:
    """Style and folder of each encoder whose report vector is a sum."""
    for card in cards(folder):
        style = card.parent.name.rpartition("-")[0]
        if style in STYLES:
            yield style, card.parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoders", type=Path, required=True, help="folders STYLE-SEED")
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--resamples", type=int, default=500)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    scenes = draw_scenes(SEEDS, options.studies, split="held_out")
    pictures = pictures_of(scenes)
    n = len(scenes.studies)
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=options.resamples)
    weights = np.concatenate([np.ones((1, n), drawn.dtype), drawn])
    found: dict[str, list[dict[str, Row]]] = {}
    for style, folder in trained(options.encoders):
        vectors, words = embed(StudyEmbedder("small", weights=str(folder)), scenes, pictures)
        found.setdefault(style, []).append(
            {metric: measure(vectors, words, metric, scenes.errors, weights) for metric in METRICS}
        )
    report = "\n\n".join(
        [
            "# The area and the report's length",
            f"{n} test studies, {sum(map(len, found.values()))} encoders. {describe_machine()}",
            markdown(table_of(style, encoders) for style, encoders in found.items()),
        ]
    )
    publish(report, options.out)


if __name__ == "__main__":
    main()
