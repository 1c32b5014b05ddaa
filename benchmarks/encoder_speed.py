"""Published encoders on one core: load time, embeddings per second, and what bfloat16 changes.

Protocol. Checkpoints are either given (NAME=PATH), or written from --manifests: a folder that
holds `<name>/manifest*.json`, the keys and shapes of the authors' files, and `fill.py`, which
fills them with pseudo-random numbers. Either is loaded through `load_encoder` twice, and the
second load timed (the file is in the page cache). One thread; all times are of the processor, so
that other work on the machine does not count. Images: four of 1024 x 1024 random
pixels; preprocessing is timed apart. Reports: four of sixty random words, cut at the encoder's
limit. One batch of four each; one warm-up; medians of three rounds in which fp32 and bf16
alternate. Change of T: |T(bf16) - T(fp32)| / T(fp32) of the triangles of image n, report n and
report n + 1: median and maximum of four. Every row is independent: rows that --out holds already
are kept, and their encoders not measured again. With pseudo-random weights that says how rounding
spreads through the towers, not what it does to a trained encoder.

Where neither is at hand: `vlscore weights list` names each encoder's checkpoint, its page, licence
and checksum, and `vlscore weights fetch` downloads those that may be; give them as NAME=PATH. The
manifests and fill.py of the committed result (sha256 4b142bca07c94e6b) are not part of the project:
a manifest is `{"tensors": [{"key": ..., "shape": [...], "dtype": ...}, ...]}`, `fill.py` has
`state_dict(manifest, salt)`, which returns those tensors with any numbers in them.

Run: python benchmarks/encoder_speed.py --manifests DIR [--only NAME ...]
     --out benchmarks/results/encoder_speed.md
     python benchmarks/encoder_speed.py biovil=FOLDER ... --tokenizer PATH --out FILE
"""

import argparse
import gc
import importlib.util
import json
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from machine import describe_machine, timed

from vlscore.core import atomic_write
from vlscore.data import Provenance, Radiograph
from vlscore.encoders import JointEncoder, inference, load_encoder
from vlscore.metrics import triangle_area

BATCH, ROUNDS, WORDS, SIDE = 4, 3, 60, 1024
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@dataclass(frozen=True)
class Layout:
    """Which files a checkpoint has, and whether lightning wrapped it."""

    files: dict[str, str]
    vocabulary: int = 28996
    lightning: bool = False


LIGHTNING = Layout({"manifest.json": "model.ckpt"}, lightning=True)
PLAIN = Layout({"manifest.json": "pytorch_model.bin"})
REPORT_TOWER = {"manifest_text.json": "pytorch_model.bin"}
LAYOUTS = {
    "limitr": LIGHTNING,
    "gloria": LIGHTNING,
    "convirt": PLAIN,
    "convirt-mgca": LIGHTNING,
    "biovil": Layout(
        {"manifest_image.json": "biovil_image_resnet50_proj_size_128.pt"} | REPORT_TOWER, 30522
    ),
    "biovil-t": Layout(
        {"manifest_image.json": "biovil_t_image_model_proj_size_128.pt"} | REPORT_TOWER, 30522
    ),
    "medclip-resnet": PLAIN,
    "medclip-vit": PLAIN,
    "mgca-resnet50": LIGHTNING,
    "mgca-vit": LIGHTNING,
    "chexzero": PLAIN,
    "biomedclip": Layout({"manifest.json": "open_clip_pytorch_model.bin"}, 30522),
}


def write_checkpoint(name: str, manifests: Path, folder: Path) -> Path:
    """Fill the checkpoint of one encoder, in its container, a vocabulary of its size beside it."""
    spec = importlib.util.spec_from_file_location("fill", manifests / "fill.py")
    if spec is None or spec.loader is None or not (manifests / "fill.py").is_file():
        raise SystemExit(
            f"{manifests} holds no fill.py; see the head of this script, or give a checkpoint as "
            "NAME=PATH (`vlscore weights list` says where to get one)"
        )
    filler = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(filler)
    layout = LAYOUTS[name]
    for manifest, file in layout.files.items():
        described = json.loads((manifests / name.replace("-", "_") / manifest).read_text())
        tensors = filler.state_dict(described, "speed")
        torch.save({"state_dict": tensors} if layout.lightning else tensors, folder / file)
    if name != "chexzero":
        words = [f"w{n}" for n in range(layout.vocabulary - len(SPECIAL))]
        (folder / "vocab.txt").write_text("\n".join([*SPECIAL, *words]))
    return folder


def checkpoints(
    given: dict[str, Path], manifests: Path | None, wanted: list[str]
) -> Iterator[tuple[str, Path]]:
    """One encoder's checkpoint after the other; filled ones are removed again."""
    yield from given.items()
    for name in wanted if manifests else ():
        with tempfile.TemporaryDirectory() as folder:
            yield name, write_checkpoint(name, manifests, Path(folder))


def measure(encoder: JointEncoder, load_seconds: float) -> str:
    """One row of the table."""
    generator = np.random.default_rng(0)
    films = [
        Radiograph(generator.random((SIDE, SIDE), np.float32), Provenance("array", 8))
        for _ in range(BATCH)
    ]
    reports = [
        " ".join(f"w{word}" for word in generator.integers(0, 20_000, WORDS)) for _ in range(BATCH)
    ]
    preprocessing, pixels = timed(lambda: torch.stack([encoder.preprocess(f) for f in films]))
    tokens = encoder.tokenize(reports)
    image_times: dict[str, list[float]] = {"fp32": [], "bf16": []}
    report_times: dict[str, list[float]] = {"fp32": [], "bf16": []}
    areas = {}
    for turn in range(ROUNDS + 1):
        for precision in ("fp32", "bf16"):
            with inference(encoder.device, precision):
                for_images, i = timed(lambda: encoder.embed_images(pixels))
                for_reports, g = timed(lambda: encoder.embed_reports(tokens))
            areas[precision] = triangle_area(i.float(), g.float(), g.float().roll(-1, dims=0))
            if turn:
                image_times[precision].append(for_images)
                report_times[precision].append(for_reports)
    change = ((areas["bf16"] - areas["fp32"]).abs() / areas["fp32"]).tolist()
    rates = [
        f"{BATCH / statistics.median(times[precision]):.2f}"
        for times in (image_times, report_times)
        for precision in ("fp32", "bf16")
    ]
    return (
        f"| {encoder.card.name} | {load_seconds:.1f} | {preprocessing / BATCH * 1e3:.1f} | "
        f"{' | '.join(rates)} | {int(tokens.lengths.max())} | {statistics.median(change):.1e} | "
        f"{max(change):.1e} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("given", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--manifests", type=Path)
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--only", nargs="*", default=[], choices=sorted(LAYOUTS))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    header = [
        "# Published encoders on one core",
        "",
        describe_machine(),
        "",
        f"Processor time of one thread; batches of {BATCH}, medians of {ROUNDS} alternating "
        f"rounds; reports of {WORDS} words; "
        + ("pseudo-random weights." if options.manifests else "weights as given."),
        "",
        "| encoder | load, s | preprocessing, ms per image | images/s fp32 | bf16 | "
        "reports/s fp32 | bf16 | tokens | change of T by bf16: median | largest |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines = options.out.read_text().splitlines() if options.out.exists() else header
    done = {line.split("|")[1].strip() for line in lines if line.startswith("| ")}
    print("\n".join(lines), flush=True)
    given = {name: Path(path) for name, path in (pair.split("=", 1) for pair in options.given)}
    wanted = [name for name in options.only or LAYOUTS if name not in done]
    for name, path in checkpoints(given, options.manifests, wanted):
        load_encoder(name, weights=path, tokenizer=options.tokenizer)
        spent, encoder = timed(
            lambda n=name, p=path: load_encoder(n, weights=p, tokenizer=options.tokenizer)
        )
        lines.append(measure(encoder, spent))
        print(lines[-1], flush=True)
        with atomic_write(options.out) as file:
            file.write("\n".join(lines) + "\n")
        del encoder
        gc.collect()


if __name__ == "__main__":
    main()
