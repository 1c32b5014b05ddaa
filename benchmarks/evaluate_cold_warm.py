"""Claim: a first evaluation of full-size radiographs takes at most 1/1.8 of the time of a loop
written as the authors' repository does it, in bfloat16 at most 1/3 where the processor has units
for it, a repeated one at most 1/50, and a second generator on the same studies at most 40 % of the
first.

Protocol. The layout of LIMITR's checkpoint with random weights (fp32, written once as the authors'
container and once as safetensors), N studies with one grey JPEG of 3056 x 2544 pixels each, two
reports of lengths like those of the Indiana collection (38 words in the mean, 1.57 word pieces a
word), a fifth of the references verbatim copies. Each run is a process of its own, its start
included; the page cache holds files and weights for all. Interleaved rounds, medians; wall clock.
- loop: `authors_way.py`, one study at a time.
- cold: `vlscore evaluate`, nothing of the studies in the cache; the checkpoint's digest is known.
- bf16: the same with `--precision bf16` and a cache of its own; only where the processor has units
  for it. What that changes is computed from the areas of both.
- warm: as cold, again, into another folder. - second: another generator's reports, then.
The areas of loop and cold must agree (largest relative difference is printed). Beside other work
(see the load average) ratios of wall clock are worth little: then take the processor times, also
printed. 1,000 studies take 5 GB in the folder for temporary files.

Run: python benchmarks/evaluate_cold_warm.py [--studies 1000] [--rounds 3] [--out FILE]
"""

import argparse
import csv
import json
import random
import statistics
import tempfile
from pathlib import Path

import numpy as np
import torch
from machine import describe_machine, publish, timed_command

from vlscore.data import render
from vlscore.data.phantom.phantom_pairs import scene_at
from vlscore.encoders import WordPieceTokenizer, convert, why_slow
from vlscore.encoders.models.limitr import LimitrEncoder
from vlscore.stats import kendall_tau_b

SIZE, SEED, PIECES = (3056, 2544), 7, 28996
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = 14_000
LOOP = Path(__file__).with_name("authors_way.py")


def write_vocabulary(path: Path) -> None:
    """Words w0, w1, ... and pieces x0, x1, ... that continue them, as many as the layout has."""
    rest = PIECES - len(SPECIAL) - WORDS
    pieces = [*SPECIAL, *(f"w{n}" for n in range(WORDS)), *(f"##x{n}" for n in range(rest))]
    path.write_text("\n".join(pieces), encoding="utf-8")


def write_limitr(folder: Path) -> tuple[Path, Path]:
    """The layout's checkpoint with random weights: the authors' container, and safetensors."""
    (folder / "ckpt").mkdir(parents=True)
    (folder / "safetensors").mkdir()
    for place in ("ckpt", "safetensors"):
        write_vocabulary(folder / place / "vocab.txt")
    torch.manual_seed(SEED)
    pieces = WordPieceTokenizer.from_file(folder / "ckpt" / "vocab.txt")
    tensors = {f"limitr.{key}": value for key, value in LimitrEncoder(pieces).state_dict().items()}
    plain = folder / "ckpt" / "model.ckpt"
    torch.save({"state_dict": tensors}, plain)
    convert(plain, folder / "safetensors" / "model.safetensors")
    return folder / "ckpt", folder / "safetensors"


def write_report(rng: random.Random) -> str:
    """Words of one or two pieces, as many as reports of the Indiana collection have."""
    count = max(4, round(rng.gammavariate(3.6, 38.1 / 3.6)))
    words = [f"w{rng.randrange(WORDS)}" for _ in range(count)]
    return " ".join(w + (f"x{rng.randrange(9000)}" if rng.random() < 0.57 else "") for w in words)


def write_studies(folder: Path, count: int) -> tuple[Path, Path]:
    """Images, and the tables of two generators."""
    import cv2

    rng, noise = random.Random(SEED), np.random.default_rng(SEED)
    grain = noise.normal(0, 5, SIZE)
    references: list[str] = []
    for k in range(count):
        small = (render(scene_at(SEED, k), 512) >> 4).astype(np.float32)
        full = cv2.resize(small, SIZE[::-1], interpolation=cv2.INTER_CUBIC)
        pixels = np.clip(full + np.roll(grain, 97 * k), 0, 255).astype(np.uint8)
        cv2.imwrite(str(folder / f"{k}.jpg"), pixels, [cv2.IMWRITE_JPEG_QUALITY, 95])
        is_copy = k and rng.random() < 0.2
        references.append(rng.choice(references) if is_copy else write_report(rng))
    tables = []
    for name in ("first", "second"):
        path = folder / f"{name}.jsonl"
        with path.open("w", encoding="utf-8") as stream:
            for k, reference in enumerate(references):
                candidate = write_report(rng)
                row = {"id": k, "image": f"{k}.jpg", "reference": reference, "candidate": candidate}
                stream.write(json.dumps(row) + "\n")
        tables.append(path)
    return tables[0], tables[1]


def evaluation(table: Path, weights: Path, out: Path, *more: str) -> list[str]:
    options = [
        "--encoder",
        "limitr:repository",
        "--weights",
        str(weights),
        "--C",
        "20",
        "--quiet",
        *more,
    ]
    return ["-m", "vlscore", "evaluate", str(table), "--out", str(out), "--format", "csv", *options]


def first_rows(table: Path, count: int) -> Path:
    path = table.with_name(f"first{count}.jsonl")
    path.write_text("\n".join(table.read_text().splitlines()[:count]) + "\n")
    return path


def largest_difference(loop_file: Path, scores: Path) -> float:
    with loop_file.open() as first, scores.open() as second:
        areas = [[float(row["area"]) for row in csv.DictReader(part)] for part in (first, second)]
    return max(abs(a - b) / a for a, b in zip(*areas, strict=True))


def drift(exact: Path, half: Path) -> str:
    """What bfloat16 changes in the areas, from the scores of both precisions."""
    areas = []
    for scores in (exact, half):
        with scores.open() as stream:
            areas.append(np.array([float(row["area"]) for row in csv.DictReader(stream)]))
    change = np.abs(areas[1] - areas[0]) / areas[0]
    return (
        f"In bfloat16 the area T of {len(change)} studies changes by {np.median(change):.2%} in "
        f"the median and {change.max():.2%} at most, its mean by "
        f"{areas[1].mean() / areas[0].mean() - 1:+.2%}; Kendall's tau_b of the studies' order is "
        f"{kendall_tau_b(*areas):.4f}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    kinds = ["cold", "bf16"]
    slow = why_slow("bf16", torch.device("cpu"))
    if slow is not None:
        kinds.remove("bf16")
    times: dict[str, list[tuple[float, float]]] = {}
    changes = f"bf16 is not measured: {slow}."
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        caches = {name: folder / f"cache_{name}" for name in kinds}
        plain, mapped = write_limitr(folder / "weights")
        first, second = write_studies(folder, options.studies)
        for cache in caches.values():
            # The digest of the checkpoint becomes known, as after any earlier run.
            one = evaluation(first_rows(first, 1), mapped, folder / f"one_{cache.name}")
            timed_command(one, cache)
        for turn in range(options.rounds):
            for name in kinds:
                for file in caches[name].glob("*.sqlite*"):
                    file.unlink()
            cold = caches["cold"]
            arms = {
                "loop": ([str(LOOP), str(first), str(plain), str(folder / "loop.csv")], cold),
                "cold": (evaluation(first, mapped, folder / f"cold{turn}"), cold),
                "warm": (evaluation(first, mapped, folder / f"warm{turn}"), cold),
                "second": (evaluation(second, mapped, folder / f"second{turn}"), cold),
            }
            if "bf16" in kinds:
                out = folder / f"bf16_{turn}"
                call = evaluation(first, mapped, out, "--precision", "bf16")
                arms["bf16"] = (call, caches["bf16"])
            for name, (command, cache) in arms.items():
                times.setdefault(name, []).append(timed_command(command, cache))
                print(name, times[name][-1], flush=True)
        if "bf16" in kinds:
            changes = drift(*(folder / f"{arm}0" / "scores.csv" for arm in ("cold", "bf16_")))
        difference = largest_difference(folder / "loop.csv", folder / "cold0" / "scores.csv")
        cold_scores, warm_scores = (folder / f"{arm}0" / "scores.csv" for arm in ("cold", "warm"))
        same = cold_scores.read_bytes() == warm_scores.read_bytes()
        work = json.loads((folder / "warm0" / "run.json").read_text())["work"]
        size = sum(f.stat().st_size for f in folder.glob("*.jpg")) / options.studies / 1e6
    wall, processor = (
        {name: statistics.median(each[k] for each in found) for name, found in times.items()}
        for k in (0, 1)
    )
    lines = [
        "# Evaluating full-size radiographs: cold, warm, and as the authors do it",
        "",
        describe_machine(),
        "",
        f"{options.studies} studies, JPEG files of {size:.1f} MB, {torch.get_num_threads()} threads"
        f" of torch; medians of {options.rounds} interleaved rounds.",
        "",
        "| run | s | studies/s | loop takes times as long | processor s | loop, processor |",
        "|---|---:|---:|---:|---:|---:|",
        *(
            f"| {name} | {wall[name]:.1f} | {options.studies / wall[name]:.2f} | "
            f"{wall['loop'] / wall[name]:.1f} | {processor[name]:.1f} | "
            f"{processor['loop'] / processor[name]:.1f} |"
            for name in wall
        ),
        "",
        f"The second generator takes {wall['second'] / wall['cold']:.0%} of the first "
        f"({processor['second'] / processor['cold']:.0%} of its processor time). "
        f"Warm and cold scores are {'the same bytes' if same else 'NOT the same bytes'}; warm: "
        f"{work['images_decoded']} images decoded, {work['images_embedded']} images and "
        f"{work['reports_embedded']} reports embedded. Areas of loop and cold differ by at most "
        f"{difference:.1e} of their size.",
        "",
        changes,
    ]
    publish("\n".join(lines) + "\n", options.out)


if __name__ == "__main__":
    main()
