"""Claim: what a step of training costs: time here, and numbers that carry over to a GPU.

Protocol. For each layout one process: random weights, random pixels of its size, reports of sixty
random words, one batch; a step is the towers' passes, the objective, their gradients, clipping and
AdamW, in fp32 on one thread, without the preparation of images (which overlaps with it). One step
warms up; the median of three is told, in processor seconds, so that other work on the machine does
not count. Peak memory: of the whole process. Operations: of the towers and the objective, forwards
and backwards, as torch's FlopCounterMode counts them (a multiplication and an addition are two),
divided by the pairs. Kept for the way back: bytes that autograd holds between the two passes, each
storage once and parameters not, that a further pair adds, with and without bfloat16; it is what a
micro-batch costs on any device. Small encoders: batches of 64. Published layouts: batches of 4.

With --micro-batch of half the batch, the towers run forwards twice (GradCache): its time is told
beside.

Run: python benchmarks/training_speed.py [--only NAME ...]
     --out benchmarks/results/training_speed.md
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from machine import describe_machine, publish
from torch.utils.flop_counter import FlopCounterMode

from vlscore.core import TrainingProcesses
from vlscore.encoders import JointEncoder
from vlscore.training import Start, TrainingSettings
from vlscore.training.minibatches import PairBatch
from vlscore.training.registry import find_objective
from vlscore.training.step import Step, Towers, loss_of, make_optimizer

# Towers, objective, pairs in a batch.
LAYOUTS = {
    "small, convirt": ("small", "convirt", 64),
    "small, gloria": ("small", "gloria", 64),
    "small, limitr": ("small", "limitr", 64),
    "convirt": ("convirt", "convirt", 4),
    "gloria": ("gloria", "gloria", 4),
    "limitr": ("limitr", "limitr", 4),
}
WORDS, ROUNDS = 60, 3
VOCABULARY = 28996
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def make(name: str, objective: str, reports: list[str], folder: Path) -> JointEncoder:
    """The layout with random weights."""
    if name == "small":
        return Start(style=objective).small(reports, 0)
    words = [f"w{n}" for n in range(VOCABULARY - len(SPECIAL))]
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL, *words]))
    encoder = Start(name, tokenizer=folder).opened(0)
    assert encoder is not None
    return encoder


def kept_per_pair(towers: Towers, batch: PairBatch) -> float:
    """What a further pair adds to what autograd holds of the towers' forward pass."""
    pairs = len(batch.rows)
    return (_kept(towers, batch, pairs) - _kept(towers, batch, pairs // 2)) / (pairs - pairs // 2)


def _kept(towers: Towers, batch: PairBatch, pairs: int) -> int:
    own = {p.untyped_storage().data_ptr() for p in towers.encoder.parameters()}
    held: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            held[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        # The features hold the graph, and with it the tensors, until all are counted.
        features = towers(batch, slice(0, pairs))
    del features
    return sum(held.values())


def measure(layout: str) -> dict[str, float]:
    torch.set_num_threads(1)
    name, objective_name, size = LAYOUTS[layout]
    chance = np.random.default_rng(0)
    reports = [
        " ".join(f"w{word}" for word in chance.integers(0, 20_000, WORDS)) for _ in range(size)
    ]
    with tempfile.TemporaryDirectory() as folder:
        encoder = make(name, objective_name, reports, Path(folder))
    side, channels = encoder.card.image_size, 1 if name == "small" else 3
    torch.manual_seed(0)
    batch = PairBatch(
        np.arange(size),
        torch.eye(size, dtype=torch.bool),
        None,
        torch.randn(size, channels, side, side),
        torch.empty(0),
        None,
        encoder.tokenize(reports),
    )
    patches = encoder.image_features(batch.pixels[:1]).patches
    local_dim = None if patches is None else patches.shape[-1]
    objective = find_objective(objective_name, dim=encoder.card.dim, local_dim=local_dim)
    encoder.requires_grad_(True).train()
    towers = Towers(encoder, local=objective.local, precision="fp32")
    optimizer = make_optimizer(encoder, objective, TrainingSettings())

    def seconds(step: Step, number: int) -> float:
        began = time.process_time()
        optimizer.zero_grad(set_to_none=True)
        step(batch, number, [])
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        return time.process_time() - began

    whole = Step(towers, objective, TrainingProcesses())
    seconds(whole, 0)
    times = [seconds(whole, number + 1) for number in range(ROUNDS)]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    halves = Step(towers, objective, TrainingProcesses(), micro_batch=size // 2)
    twice = [seconds(halves, number + 1) for number in range(ROUNDS)]
    optimizer.zero_grad(set_to_none=True)
    with FlopCounterMode(display=False) as counter:
        features = towers(batch, slice(0, size))
        torch.stack(list(loss_of(objective, features, batch).values())).sum().backward()
    del features
    half = Towers(encoder, local=objective.local, precision="bf16")
    return {
        "pairs": size,
        "parameters": sum(p.numel() for p in encoder.parameters()),
        "seconds": statistics.median(times),
        "seconds_in_halves": statistics.median(twice),
        "peak_mib": peak,
        "operations": counter.get_total_flops() / size,
        "kept_fp32": kept_per_pair(towers, batch),
        "kept_bf16": kept_per_pair(half, batch),
    }


def row(layout: str, found: dict[str, float]) -> str:
    return (
        f"| {layout} | {found['parameters'] / 1e6:.1f} | {found['pairs']:.0f} "
        f"| {found['seconds']:.2f} | {found['pairs'] / found['seconds']:.2f} "
        f"| {found['seconds_in_halves'] / found['seconds']:.2f} | {found['peak_mib']:.0f} "
        f"| {found['operations'] / 1e9:.2f} | {found['kept_fp32'] / 2**20:.1f} "
        f"| {found['kept_bf16'] / 2**20:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(LAYOUTS), choices=list(LAYOUTS))
    parser.add_argument("--measure", choices=list(LAYOUTS), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure)))
        return
    lines = [
        "# A step of training",
        "",
        describe_machine(),
        "",
        "Processor time of one thread, fp32, random weights. A GPU: not measured.",
        "",
        "| layout | parameters, M | pairs | s per step | pairs/s | in two micro-batches "
        "| peak, MiB | GFLOP per pair | kept per pair, MiB fp32 | bf16 |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for layout in options.only:
        done = subprocess.run(
            [sys.executable, __file__, "--measure", layout],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        lines.append(row(layout, json.loads(done.stdout.splitlines()[-1])))
        print(lines[-1], flush=True)
    publish("\n".join(lines) + "\n", options.out)


if __name__ == "__main__":
    main()
