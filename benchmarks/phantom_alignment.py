"""Claim: with the bundled encoders, VLScore follows the true number of errors of phantom reports.

`phantom`, the default, learned from pairs of images and reports alone. `phantom-supervised` was
told the answer (its report tower was regressed onto these error counts): an upper bound.

More encoders of the first kind, and more scores, are in phantom_image_use.py.

Protocol: three test sets of 400 phantom studies (seeds 101, 102, 103; training uses seed 1), each
with a candidate of 0 to 6 errors, reference and candidate in held-out phrasings that training never
saw. Kendall's tau_b between each metric and the total number of errors (signed so that higher is
better alignment), with a 95 % bootstrap interval over studies. The error counts are tied, so no
untied score can reach 1: the largest tau_b that any score can reach is printed, and each tau_b as
a share of it. The BLEU-2 and ROUGE-L of `vlscore.metrics` see the same pairs. Retrieval: rank of a
study's own report among those of the first 350 studies, by Euclidean distance to its image; reports
that state the same findings count as the same report. Black image: every radiograph replaced by a
black one.

Run: python benchmarks/phantom_alignment.py [--out benchmarks/results/phantom_alignment.md]
"""

import argparse
from pathlib import Path

import numpy as np
import torch
from machine import describe_machine, publish
from numpy.typing import NDArray

from vlscore.data import PhantomStudy, render, sample_studies
from vlscore.embedding import StudyEmbedder
from vlscore.encoders import JointEncoder, load_encoder
from vlscore.metrics import METRICS, EmbeddingTriples, compute
from vlscore.stats import bootstrap, kendall_tau_b, largest_tau_b

SEEDS, STUDIES, RETRIEVED = (101, 102, 103), 400, 350


def pictures(studies: list[PhantomStudy]) -> list[NDArray[np.float32]]:
    return [render(study.scene).astype(np.float32) / np.float32(4095) for study in studies]


def text_metrics(studies: list[PhantomStudy]) -> dict[str, NDArray[np.float64]]:
    candidates = [study.candidate for study in studies]
    references = [study.reference for study in studies]
    return compute(["bleu-2", "rouge-l"], candidates, references)


def image_metrics(
    encoder: JointEncoder, images: torch.Tensor, studies: list[PhantomStudy]
) -> dict[str, NDArray[np.float64]]:
    candidates = encoder.encode_reports([study.candidate for study in studies])
    references = encoder.encode_reports([study.reference for study in studies])
    signature = f"enc:{encoder.card.name}@{encoder.checksum[:12]}"
    triples = EmbeddingTriples(images, candidates, references, signature, encoder.card.C)
    metrics = [metric for metric in METRICS.values() if metric.uses_embeddings]
    texts = [""] * len(studies)
    values = compute(metrics, texts, texts, embeddings=triples)
    return {str(metric): metric.sign * values[str(metric)] for metric in metrics}


def recall(
    encoder: JointEncoder, images: torch.Tensor, studies: list[PhantomStudy], depth: int
) -> float:
    reports = encoder.encode_reports([study.reference for study in studies])
    content = [study.scene.findings for study in studies]
    nearest = torch.cdist(images.double(), reports.double()).topk(depth, largest=False).indices
    found = [
        any(content[k] == content[row] for k in ranks) for row, ranks in enumerate(nearest.tolist())
    ]
    return float(np.mean(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--encoders", nargs="+", default=["phantom", "phantom-supervised"])
    options = parser.parse_args()
    encoders = [load_encoder(name) for name in options.encoders]
    drawn = {seed: list(sample_studies(seed, STUDIES, split="held_out")) for seed in SEEDS}
    seen = {seed: pictures(studies) for seed, studies in drawn.items()}
    sections = [judge(encoder, drawn, seen) for encoder in encoders]
    head = ["# Alignment with the true number of errors, on phantoms", "", describe_machine(), ""]
    publish("\n".join([*head, *sections]), options.out)


def judge(
    encoder: JointEncoder,
    drawn: dict[int, list[PhantomStudy]],
    seen: dict[int, list[NDArray[np.float32]]],
) -> str:
    scores: dict[str, list[NDArray[np.float64]]] = {}
    errors: list[NDArray[np.int64]] = []
    recalls: dict[int, list[float]] = {1: [], 5: []}
    for seed, studies in drawn.items():
        images = encoder.encode_images(seen[seed])
        black = StudyEmbedder(encoder).embed_black().expand(STUDIES, -1)
        columns = image_metrics(encoder, images, studies) | text_metrics(studies)
        columns["vlscore, black image"] = image_metrics(encoder, black, studies)["vlscore"]
        for name, values in columns.items():
            scores.setdefault(name, []).append(values)
        errors.append(np.array([study.errors.total for study in studies]))
        for depth, values in recalls.items():
            values.append(recall(encoder, images[:RETRIEVED], studies[:RETRIEVED], depth))
    return describe(scores, errors, recalls, encoder)


_TOLD = (
    "In-sample upper bound: its report tower was regressed onto these error counts. "
    "Encoders that were not: [phantom_image_use.md](phantom_image_use.md)."
)
_NOT_TOLD = "The bundled default; it learned from pairs of images and reports alone."


def describe(
    scores: dict[str, list[NDArray[np.float64]]],
    errors: list[NDArray[np.int64]],
    recalls: dict[int, list[float]],
    encoder: JointEncoder,
) -> str:
    total = np.concatenate(errors)
    largest = largest_tau_b(total)
    lines = [
        f"## {encoder.card.title} (`{encoder.card.name}`)",
        "",
        _TOLD if encoder.card.name == "phantom-supervised" else _NOT_TOLD,
        "",
        f"{len(SEEDS)} test sets of {STUDIES} studies, held-out scenes and held-out phrasings; "
        f"encoder {encoder.card.name}@{encoder.checksum[:12]}, C = {encoder.card.C}.",
        f"Largest tau_b that the ties in the error counts allow: {largest:.3f}.",
        "",
        "| metric | tau_b | 95 % interval | share of the largest | per test set |",
        "|---|---:|---|---:|---|",
    ]
    for name, parts in sorted(scores.items(), key=lambda item: -_tau(item[1], errors)):
        values = np.concatenate(parts)
        interval = bootstrap(lambda v, e: -kendall_tau_b(v, e), values, total, resamples=500)
        each = ", ".join(
            f"{-kendall_tau_b(v, e) / largest_tau_b(e):.3f}"
            for v, e in zip(parts, errors, strict=True)
        )
        lines.append(
            f"| {name} | {interval.estimate:.3f} | [{interval.low:.3f}, {interval.high:.3f}] "
            f"| {interval.estimate / largest:.3f} | {each} |"
        )
    for depth, values in recalls.items():
        each = ", ".join(f"{value:.3f}" for value in values)
        lines += ["", f"Image to report R@{depth} of {RETRIEVED}: {np.mean(values):.3f} ({each})."]
    return "\n".join(lines) + "\n"


def _tau(parts: list[NDArray[np.float64]], errors: list[NDArray[np.int64]]) -> float:
    return -kendall_tau_b(np.concatenate(parts), np.concatenate(errors))


if __name__ == "__main__":
    main()
