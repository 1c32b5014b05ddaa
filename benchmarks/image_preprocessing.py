"""Full-size JPEGs to an encoder's pixels: against plain ways, reduced decoding, two processes.

Claims, and what is measured of each:

1. Preprocessing takes at most 1/1.4 of the time of a plain read-and-resize path, within one grey
   level. Measured against two: Pillow, converted to RGB and resized bicubically, as general
   pipelines do; and the authors' own way (OpenCV's grey reader, area interpolation, padding,
   torchvision's transforms). Both begin with decoding, which no way can do without: it is measured
   alone, too. What the authors' way takes, divided by that, is the most that any way can gain.
2. Decoding at a reduced size (Pillow's draft mode, which libjpeg does in the frequency domain) is
   used only where it stays within one grey level. Measured: the largest difference of 256-pixel
   pictures from full decoding, for each reduction, on a smooth picture, on the same with a marker
   and a collimator's edge, and on real radiographs (--radiographs), enlarged to full size; and how
   much of the decoding time it saves.
3. Two decoding processes are at least 1.7 times as fast as one, on a quiet machine.

Protocol. 3056 x 2544 grey JPEGs, quality 95, of a made-up chest with three amounts of noise, which
make files of three sizes. Ways of 1: one thread, times of the processor, interleaved rounds,
medians; grey levels of the engine's picture are compared with the authors'. Part 3: images through
`ImageDecoder` with one and with two workers, wall clock, once all workers run and are warm;
interleaved rounds, medians. It says nothing beside other work: see its load average.

Run: python benchmarks/image_preprocessing.py [--radiographs FOLDER] [--out FILE]
"""

import argparse
import io
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from authors_way import read_image
from machine import describe_machine, publish
from numpy.typing import NDArray
from PIL import Image
from torchvision import transforms

from vlscore.core import keep_freed_memory
from vlscore.data import ImagePolicy
from vlscore.embedding import ImageDecoder
from vlscore.encoders.blocks.pixels import PadCropPipeline, pad_to_square

HEIGHT, WIDTH, ROUNDS = 3056, 2544, 9
# Standard deviations of the noise; files of 0.9 to 3.1 MB.
NOISES = (1.5, 3, 6)
FILES, TIMES_EACH, TURNS = 24, 2, 7
NORMALISED = transforms.Compose(
    [
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        transforms.Normalize((0.5,) * 3, (0.5,) * 3),
    ]
)


def chest(seed: int = 0, noise: float = 6) -> NDArray[np.uint8]:
    rng = np.random.default_rng(seed)
    y, x = np.linspace(-1, 1, HEIGHT)[:, None], np.linspace(-1, 1, WIDTH)
    ribs = 20 * np.sin(30 * y + 6 * x**2 + seed)
    values = 120 + 80 * np.exp(-3 * (x**2 + y**2)) + ribs + rng.normal(0, noise, (HEIGHT, WIDTH))
    return np.clip(values, 0, 255).astype(np.uint8)


def jpeg(values: NDArray[np.uint8]) -> bytes:
    content = io.BytesIO()
    Image.fromarray(values).save(content, "JPEG", quality=95)
    return content.getvalue()


def plain(path: Path) -> torch.Tensor:
    """Pillow, colour first."""
    image = Image.open(path).convert("RGB")
    ratio = 256 / max(image.size)
    size = (max(224, int(image.width * ratio)), max(224, int(image.height * ratio)))
    return NORMALISED(image.resize(size, Image.Resampling.BICUBIC))


def medians(ways: dict[str, Callable[[], Any]]) -> tuple[dict[str, float], dict[str, Any]]:
    """Milliseconds of the processor of each way, and what it gave."""
    times: dict[str, list[float]] = {way: [] for way in ways}
    found = {}
    for _ in range(ROUNDS):
        for way, call in ways.items():
            began = time.process_time()
            found[way] = call()
            times[way].append(1000 * (time.process_time() - began))
    return {way: statistics.median(spent) for way, spent in times.items()}, found


def part_1(folder: Path) -> list[str]:
    pipeline, policy = PadCropPipeline(), ImagePolicy()
    names = ("decoding alone", "engine", "authors' (OpenCV, area)", "Pillow, RGB, bicubic")
    lines = [
        "| file | " + " | ".join(names) + " | authors' / engine | Pillow / engine | authors' / "
        "decoding alone |",
        "|---|" + "---:|" * 7,
    ]
    furthest = 0.0
    for noise in NOISES:
        path = folder / f"{noise}.jpg"
        content = jpeg(chest(noise=noise))
        path.write_bytes(content)
        values = np.frombuffer(content, np.uint8)
        calls: tuple[Callable[[], Any], ...] = (
            lambda values=values: cv2.imdecode(values, cv2.IMREAD_GRAYSCALE),
            lambda path=path: pipeline.load_stored(path, policy),
            lambda path=path: read_image(path),
            lambda path=path: plain(path),
        )
        spent, found = medians(dict(zip(names, calls, strict=True)))
        decoding, engine, theirs, general = spent.values()
        ratios = (theirs / engine, general / engine, theirs / decoding)
        cells = [f"{t:.1f} ms" for t in spent.values()] + [f"{r:.2f}" for r in ratios]
        lines.append(f"| {len(content) / 1e6:.1f} MB | {' | '.join(cells)} |")
        levels = (found[names[2]][0].numpy() + 1) * 127.5
        furthest = max(furthest, float(np.abs(levels - found[names[1]][0]).max()))
    return [*lines, "", f"Engine and authors differ by {furthest:.2f} grey levels at most."]


def reduced(name: str, values: NDArray[np.uint8]) -> str:
    content = jpeg(values)
    full = pad_to_square(np.asarray(Image.open(io.BytesIO(content)))).astype(int)
    cells = []
    for factor in (2, 4, 8):
        image = Image.open(io.BytesIO(content))
        image.draft("L", (image.width // factor, image.height // factor))
        cells.append(str(np.abs(pad_to_square(np.asarray(image)).astype(int) - full).max()))
    return f"| {name} | {' | '.join(cells)} |"


def saved() -> str:
    """How much of the decoding time a reduced size takes."""
    content = jpeg(chest())

    def decode(factor: int) -> None:
        image = Image.open(io.BytesIO(content))
        image.draft("L", (image.width // factor, image.height // factor))
        image.load()

    spent, _ = medians({str(factor): lambda f=factor: decode(f) for factor in (1, 2, 4, 8)})
    full = spent.pop("1")
    shares = ", ".join(f"{t / full:.0%} at 1/{factor}" for factor, t in spent.items())
    return f"Of the time of full decoding ({full:.1f} ms) a reduced size takes {shares}."


def part_2(radiographs: Path | None) -> list[str]:
    lines = ["| picture | 1/2 | 1/4 | 1/8 |", "|---|---:|---:|---:|", reduced("smooth", chest())]
    marked = chest()
    marked[100:221, 103:187], marked[:, :37] = 255, 0
    lines.append(reduced("with marker and edge", marked))
    for path in sorted(radiographs.glob("[!v]*")) if radiographs is not None else ():
        image = Image.open(path).convert("L")
        if max(image.size) < 2000:
            image = image.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
        lines.append(reduced(path.name, np.asarray(image)))
    return [*lines, "", saved()]


def decode_all(decoder: ImageDecoder, paths: list[Path]) -> float:
    """Images a second."""
    began = time.perf_counter()
    for item in [decoder.submit(path) for path in paths]:
        item.stored()
    return len(paths) / (time.perf_counter() - began)


def part_3(folder: Path) -> list[str]:
    files = [folder / f"{k}.jpg" for k in range(FILES)]
    for k, path in enumerate(files):
        path.write_bytes(jpeg(chest(k)))
    paths = files * TIMES_EACH
    rates: dict[int, list[float]] = {1: [], 2: []}
    decoders = {n: ImageDecoder(PadCropPipeline(), ImagePolicy(), n) for n in rates}
    with decoders[1], decoders[2]:
        for count, decoder in decoders.items():
            # A decoder works by itself at first; workers start when there is much to do.
            while decoder.processes_started < count:
                decode_all(decoder, paths)
            decode_all(decoder, paths)
        loads = [os.getloadavg()[0]]
        for _ in range(TURNS):
            for count, decoder in decoders.items():
                rates[count].append(decode_all(decoder, paths))
        loads.append(os.getloadavg()[0])
    one, two = (statistics.median(rates[n]) for n in (1, 2))
    return [
        f"{one:.1f} images a second with 1 process, {two:.1f} with 2: {two / one:.2f} times, "
        f"{TURNS} rounds of {len(paths)} images; load average {loads[0]:.1f} before, "
        f"{loads[1]:.1f} after, on {os.cpu_count()} cores."
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--radiographs", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    keep_freed_memory()  # as commands and workers do; here every way gains by it
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [
            "# Full-size JPEGs to pixels",
            "",
            describe_machine(),
            "",
            f"One {HEIGHT} x {WIDTH} grey JPEG to GLoRIA's and LIMITR's 224 pixels, times of the "
            "processor:",
            "",
            *part_1(folder),
            "",
            "Largest difference from full decoding, in grey levels of the 256-pixel picture:",
            "",
            *part_2(options.radiographs),
            "",
            *part_3(folder),
        ]
    publish("\n".join(lines) + "\n", options.out)


if __name__ == "__main__":
    main()
