"""Claim: on a GPU the report stage is at least 10 times as fast as the authors' way, BERT reaches
40 % and ResNet-50 at 299 pixels 25 % of the rate of a bfloat16 product, a run from cached pixels
half the rate of its slowest stage, and exact oracle search 40 % of the product's rate.

Protocol. Everything is timed in one process with CUDA events, after a warm-up, on random data,
beside an 8192^3 bfloat16 product before and after (the better one counts). LIMITR's layout, random
weights; 2,000 reports of lengths like those of the Indiana collection.
- reports: `EmbeddingEngine.embed_reports` in bf16, tokenising included, wall clock between two
  synchronisations; the authors' way is one report at a time in fp32, 97 tokens, a Python loop over
  tokens (written anew from reading gefend/LIMITR, commit 891468e), on 50 of them.
- BERT: the report tower alone over the same batches. - ResNet-50: the image tower over batches of
  128, channels last, as it is and under torch.compile. Operations by torch's FlopCounterMode.
- from cached pixels: 2,000 images whose uint8 levels lie in memory and their reports, through the
  engine, beside each stage alone.
- oracle: 1,024 queries over 200,000 vectors of 768 dimensions, 4dN operations a query.
Without a GPU nothing is measured, and the result says so.

Run: python benchmarks/gpu_stages.py [--out benchmarks/results/gpu_stages.md]
"""

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from authors_way import add_up_pieces
from evaluate_cold_warm import write_limitr, write_report
from machine import describe_machine, publish
from torch.utils.flop_counter import FlopCounterMode

from vlscore.embedding import EmbeddingEngine, PendingPixels
from vlscore.embedding.batches import by_length
from vlscore.encoders import JointEncoder, load_encoder
from vlscore.encoders.base import inference
from vlscore.search import Corpus, Oracle

REPORTS, IMAGES, LOOPED, ROUNDS, SIDE = 2000, 2000, 50, 5, 8192
BATCH, TOKENS = 128, 8192
QUERIES, CORPUS, DIM = 1024, 200_000, 768


def by_events(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Seconds of one call on the GPU, the median of some."""
    call()
    times = []
    for _ in range(rounds):
        began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        began.record()
        call()
        ended.record()
        torch.cuda.synchronize()
        times.append(began.elapsed_time(ended) / 1e3)
    return statistics.median(times)


def by_clock(call: Callable[[], object], rounds: int = 3) -> float:
    """Seconds of one call, its work on the host included, the median of some."""
    times = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        began = time.perf_counter()
        call()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def product_rate() -> float:
    """Operations a second of a bfloat16 product."""
    a, b = (torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * SIDE**3 / by_events(lambda: a @ b)


def operations(call: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def authors_reports(encoder: Any, reports: list[str]) -> None:
    """One report at a time, words added up token by token."""
    for report in reports:
        tokens = encoder.tokenize([report]).to("cuda")
        layers = encoder.text_encoder.last_layers(tokens)
        states = torch.stack(layers).permute(1, 2, 0, 3)[0]
        words = add_up_pieces(
            states, tokens.ids[0], lambda number: encoder.tokenizer.pieces([number])[0]
        )
        words.mean(dim=0).sum(dim=0).cpu()


def reports_stage(encoder: JointEncoder, reports: list[str]) -> tuple[float, float]:
    """Reports a second: ours, and the authors' way."""
    engine = EmbeddingEngine(encoder, precision="bf16")

    def ours() -> None:
        engine.forget()
        engine.embed_reports(reports)

    ours()
    with inference(encoder.device, "fp32"):
        authors_reports(encoder, reports[:3])
        theirs = by_clock(lambda: authors_reports(encoder, reports[:LOOPED]))
    return len(reports) / by_clock(ours), LOOPED / theirs


def towers(encoder: Any, reports: list[str]) -> dict[str, tuple[float, float]]:
    """Name -> (seconds, operations a second) of the towers alone."""
    tokens = encoder.tokenize(reports)
    batches = [
        tokens.take(rows).to("cuda") for rows in by_length(tokens.lengths.tolist(), lambda: TOKENS)
    ]
    pixels = torch.randn(BATCH, 3, 224, 224, device="cuda").contiguous(
        memory_format=torch.channels_last
    )
    compiled = torch.compile(encoder.img_encoder_f, mode="max-autotune-no-cudagraphs")
    found = {}
    with inference(encoder.device, "bf16"):

        def bert() -> None:
            for batch in batches:
                encoder.embed_reports(batch)

        for name, call in (
            ("BERT", bert),
            ("ResNet-50 at 299", lambda: encoder.embed_images(pixels)),
            ("ResNet-50 at 299, compiled", lambda: compiled(pixels)),
        ):
            wanted = bert if name == "BERT" else (lambda: encoder.embed_images(pixels))
            seconds = by_events(call)
            found[name] = seconds, operations(wanted) / seconds
    return found


def from_cached_pixels(encoder: JointEncoder, reports: list[str]) -> tuple[float, float]:
    """Studies a second of both stages through the engine, and of the slower one alone."""
    engine = EmbeddingEngine(encoder, precision="bf16")
    levels = np.random.default_rng(0).integers(0, 256, (64, 1, 224, 224), np.uint8)
    pipeline = encoder.image_pipeline
    pending = [
        PendingPixels(str(k), lambda k=k: levels[k % 64], from_stored=pipeline.from_stored)
        for k in range(IMAGES)
    ]

    def images() -> None:
        engine.embed_pending(pending)

    def texts() -> None:
        engine.forget()
        engine.embed_reports(reports)

    def both() -> None:
        texts()
        images()

    both()
    alone = max(by_clock(images), by_clock(texts))
    return IMAGES / by_clock(both), IMAGES / alone


def oracle_rate() -> float:
    """Operations a second of exact search."""
    rng = np.random.default_rng(0)
    corpus = Corpus(rng.standard_normal((CORPUS, DIM), np.float32), device="cuda")
    oracle = Oracle(corpus, C=1.0)
    images, references = rng.standard_normal((2, QUERIES, DIM), np.float32)
    oracle.search(images[:8], references[:8])
    return 4 * DIM * CORPUS * QUERIES / by_clock(lambda: oracle.search(images, references))


def measured() -> list[str]:
    rng = random.Random(0)
    reports = [write_report(rng) for _ in range(REPORTS)]
    with tempfile.TemporaryDirectory() as place:
        _, mapped = write_limitr(Path(place))
        encoder = load_encoder("limitr", weights=mapped, device="cuda")
    first = product_rate()
    ours, theirs = reports_stage(encoder, reports)
    alone = towers(encoder, reports)
    both, slowest = from_cached_pixels(encoder, reports)
    oracle = oracle_rate()
    best = max(first, product_rate())
    rows = [
        ("8192^3 product, bf16", f"{best / 1e12:.0f} Tflop/s", "", ""),
        ("reports", f"{ours:.0f}/s", f"{ours / theirs:.1f} times the authors' way", ">= 10"),
        *(
            (name, f"{rate / 1e12:.0f} Tflop/s", f"{rate / best:.0%} of the product", goal)
            for (name, (_, rate)), goal in zip(
                alone.items(), (">= 40 %", ">= 25 % (either)", ">= 25 % (either)"), strict=True
            )
        ),
        ("from cached pixels", f"{both:.0f}/s", f"{both / slowest:.0%} of the slowest", ">= 50 %"),
        ("exact oracle", f"{oracle / 1e12:.0f} Tflop/s", f"{oracle / best:.0%}", ">= 40 %"),
    ]
    name = torch.cuda.get_device_name()
    return [
        f"{name}; {REPORTS} reports, {IMAGES} images, batches of {BATCH} images, {TOKENS} tokens.",
        "",
        "| stage | rate | share | goal |",
        "|---|---:|---:|---:|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = ["# Stages on a GPU", "", describe_machine(), ""]
    lines += measured() if torch.cuda.is_available() else ["Not measured: no GPU."]
    publish("\n".join(lines) + "\n", options.out)


if __name__ == "__main__":
    main()
