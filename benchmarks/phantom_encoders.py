"""Claim: small encoders learn from image-report pairs alone, by each objective, on one CPU core.

Protocol: 10,000 phantom scenes (seed 1, training phrasings), each with its picture and one report;
nothing else is seen: no counts of errors, no corrupted reports. Each objective trains a new small
encoder, in the style of its paper, with three seeds, through `vlscore.training.train` and with the
same settings but the objective's own (and batches of 32 rather than 64 pairs for LIMITR). Validated
on 350 further scenes (seed 2) by retrieval, which also chooses the epoch that is kept; every
setting was chosen by that retrieval or the loss, with InfoNCE (ConVIRT's loss with a learned
temperature). Test scenes (seeds 101 to 103) and held-out phrasings are not looked at. A scene
without findings has a report like that of any other such scene: with one scene of seven so, R@1
cannot come much above .86.

Each run is a process of its own, of one thread; an encoder that exists is not trained again.

Run: python benchmarks/phantom_encoders.py FOLDER [--out benchmarks/results/phantom_encoders.md]
"""

import argparse
import json
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from machine import describe_machine, publish

from vlscore.core import peak_memory, write_json
from vlscore.data import open_studies
from vlscore.data.phantom.phantom_pairs import write_dataset
from vlscore.training import Execution, Preparation, Start, TrainingSettings, train
from vlscore.training.loop import WAYS

OBJECTIVES = ("convirt", "siglip", "gloria", "limitr", "mgca", "biovil", "medclip")
SEEDS = (0, 1, 2)
TRAINING, VALIDATION = 1, 2
STUDIES, HELD_OUT = 10_000, 350
# Kept as the encoder takes them: nothing is cropped, so no larger image is needed.
SIDE = 128
# LIMITR's loss between pairs runs a small network on every word and place of every two pairs.
BATCH = {"limitr": 32}


def settings_of(objective: str, seed: int, epochs: int) -> TrainingSettings:
    return TrainingSettings(
        objective=objective,
        epochs=epochs,
        batch_size=BATCH.get(objective, 64),
        learning_rate=2e-3,
        weight_decay=0.02,
        warm_up=0.08,
        precision="bf16",
        seed=seed,
    )


def draw(folder: Path, seed: int, count: int) -> Path:
    """The table of that many phantom studies, drawn unless it is there."""
    table = folder / "studies.jsonl"
    return table if table.is_file() else write_dataset(folder, seed=seed, count=count)


def train_one(folder: Path, objective: str, seed: int, epochs: int) -> None:
    """Train one encoder into FOLDER/OBJECTIVE-SEED, and note beside it what it took."""
    import torch

    name = f"{objective}-{seed}"
    if (folder / name / "run.json").is_file():
        return
    torch.set_num_threads(1)
    start = Start(style=objective)
    prepared = [
        Preparation(
            open_studies(folder / part / "studies.jsonl", needs={"image", "reference"}),
            side=SIDE,
        )
        for part in ("train", "validation")
    ]
    began, cpu = time.monotonic(), time.process_time()
    is_whole = not (folder / name / ".state").exists()
    result = train(
        prepared[0],
        folder / name,
        settings_of(objective, seed, epochs),
        start,
        validation=prepared[1],
        execution=Execution(folder / "pairs", device="cpu"),
    )
    took = {
        "seconds": time.monotonic() - began,
        "cpu_seconds": time.process_time() - cpu,
        "peak_mib": peak_memory() * 1e9 / 2**20,
        "is_whole": is_whole,
    }
    write_json(folder / f"{name}.json", took)
    print(f"{name}: {result.record['best_validation']}", flush=True)


def collect(folder: Path, objective: str, seed: int) -> dict[str, Any] | None:
    """What run.json and the note beside it say of one encoder; None where it is not there."""
    run, note = folder / f"{objective}-{seed}" / "run.json", folder / f"{objective}-{seed}.json"
    if not run.is_file():
        return None
    took = json.loads(note.read_text()) if note.is_file() else {}
    return json.loads(run.read_text()) | {"took": took}


def describe(folder: Path, objectives: list[str], seeds: list[int]) -> str:
    lines = [
        "# Small encoders, trained on phantoms by the papers' objectives",
        "",
        f"{STUDIES:,} training pairs, {HELD_OUT} validation pairs; of the epoch with the best mean "
        "recall. Loss: of validation, not comparable between objectives.",
        describe_machine(),
        "",
        "| objective | seed | image to text R@1 | R@5 | text to image R@1 | R@5 | loss | steps "
        "| CPU seconds | steps/CPU s | peak MiB |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for objective in objectives:
        for seed in seeds:
            found = collect(folder, objective, seed)
            if found is None:
                lines.append(f"| {objective} | {seed} | not trained | | | | | | | | |")
                continue
            best, took = found["best_validation"], found["took"]
            recalls = [best[f"{way} R@{k}"] for way in WAYS for k in (1, 5)]
            seconds = took.get("cpu_seconds")
            whole = seconds and took["is_whole"]
            lines.append(
                f"| {objective} | {seed} | "
                + " | ".join(f"{value:.3f}" for value in recalls)
                + f" | {best['loss']:.3f} | {found['steps']} | "
                + (f"{seconds:.0f} | {found['steps'] / seconds:.2f} | " if whole else "- | - | ")
                + (f"{took['peak_mib']:.0f} |" if took else "- |")
            )
    spent = [
        found["took"].get("cpu_seconds", 0.0)
        for objective in objectives
        for seed in seeds
        if (found := collect(folder, objective, seed)) is not None
    ]
    lines += ["", f"Training of all: {sum(spent) / 60:.0f} minutes of one core."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="data and encoders, kept between runs")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--objectives", nargs="+", default=list(OBJECTIVES), choices=OBJECTIVES)
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--processes", type=int, default=1, help="encoders trained at a time")
    options = parser.parse_args()
    draw(options.folder / "train", TRAINING, STUDIES)
    draw(options.folder / "validation", VALIDATION, HELD_OUT)
    # The first run decodes the images that all others share.
    runs = [(objective, seed) for seed in options.seeds for objective in options.objectives]
    for some, processes in ((runs[:1], 1), (runs[1:], options.processes)):
        with ProcessPoolExecutor(
            processes, mp_context=get_context("spawn"), max_tasks_per_child=1
        ) as pool:
            waiting = [
                pool.submit(train_one, options.folder, objective, seed, options.epochs)
                for objective, seed in some
            ]
            for each in waiting:
                each.result()
    publish(describe(options.folder, options.objectives, options.seeds), options.out)


if __name__ == "__main__":
    main()
