"""Full-size JPEGs to an encoder's pixels: against plain ways, reduced decoding, two processes.

Claims, and what is measured of each:

1. Preprocessing takes at most 1/1.4 of the time of a plain read-and-resize path. Measured against
   two: Pillow, converted to RGB and resized bicubically, as general pipelines do; and the authors'
   own way (OpenCV's grey reader, area interpolation, padding, torchvision's transforms).
2. Decoding at a reduced size (Pillow's draft mode, which libjpeg does in the frequency domain) is
   used only where it stays within one grey level. Measured: the largest difference of 256-pixel
   pictures from full decoding, for each reduction, on a smooth picture, on the same with a marker
   and a collimator's edge, and on real radiographs (--radiographs), enlarged to full size.
3. Two decoding processes are at least 1.7 times as fast as one, on a quiet machine.

Protocol. 3056 x 2544 grey JPEGs, quality 95, of a made-up chest with noise. Ways of 1: one thread,
times of the processor, interleaved rounds, medians. Grey levels of the two are compared: the
engine's with the authors'. Part 3: IMAGES files through `ImageDecoder` with one and with two
workers, wall clock, workers warm, interleaved rounds, medians; beside other work it says nothing.

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
from machine import describe_machine, publish
from numpy.typing import NDArray
from PIL import Image
from torchvision import transforms

from vlscore.embedding import ImageDecoder
from vlscore.encoders.blocks.pad_crop import PadCropPipeline, pad_to_square
from vlscore.images import ImagePolicy

HEIGHT, WIDTH, ROUNDS, IMAGES = 3056, 2544, 9, 24
NORMALISED = transforms.Compose(
    [
        transforms.CenterCrop(224),
        transforms.ToTensor(),
        transforms.Normalize((0.5,) * 3, (0.5,) * 3),
    ]
)


def chest(seed: int = 0) -> NDArray[np.uint8]:
    rng = np.random.default_rng(seed)
    y, x = np.linspace(-1, 1, HEIGHT)[:, None], np.linspace(-1, 1, WIDTH)
    ribs = 20 * np.sin(30 * y + 6 * x**2 + seed)
    values = 120 + 80 * np.exp(-3 * (x**2 + y**2)) + ribs + rng.normal(0, 6, (HEIGHT, WIDTH))
    return np.clip(values, 0, 255).astype(np.uint8)


def jpeg(values: NDArray[np.uint8]) -> bytes:
    content = io.BytesIO()
    Image.fromarray(values).save(content, "JPEG", quality=95)
    return content.getvalue()


def authors(path: Path) -> torch.Tensor:
    """LIMITR's and GLoRIA's reader."""
    grey = pad_to_square(cv2.imread(str(path), cv2.IMREAD_GRAYSCALE))
    return NORMALISED(Image.fromarray(grey).convert("RGB"))


def plain(path: Path) -> torch.Tensor:
    """Pillow, colour first."""
    image = Image.open(path).convert("RGB")
    ratio = 256 / max(image.size)
    size = (max(224, int(image.width * ratio)), max(224, int(image.height * ratio)))
    return NORMALISED(image.resize(size, Image.Resampling.BICUBIC))


def part_1(folder: Path) -> list[str]:
    path = folder / "chest.jpg"
    path.write_bytes(jpeg(chest()))
    pipeline, policy = PadCropPipeline(), ImagePolicy()
    ways: dict[str, Callable[[], Any]] = {
        "the engine's decoder": lambda: pipeline.load_stored(path, policy),
        "Pillow, RGB, bicubic": lambda: plain(path),
        "the authors' (OpenCV, area)": lambda: authors(path),
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    found = {}
    for _ in range(ROUNDS):
        for way, call in ways.items():
            began = time.process_time()
            found[way] = call()
            times[way].append(time.process_time() - began)
    median = {way: statistics.median(spent) for way, spent in times.items()}
    engine = next(iter(ways))
    theirs = (found["the authors' (OpenCV, area)"][0].numpy() + 1) * 127.5
    apart = np.abs(theirs - found[engine][0]).max()
    lines = ["| way | ms of the processor | of the engine's |", "|---|---:|---:|"]
    lines += [f"| {w} | {1000 * t:.1f} | {t / median[engine]:.2f} |" for w, t in median.items()]
    return [*lines, "", f"Engine and authors differ by {apart:.2f} grey levels at most."]


def reduced(name: str, values: NDArray[np.uint8]) -> str:
    content = jpeg(values)
    full = pad_to_square(np.asarray(Image.open(io.BytesIO(content)))).astype(int)
    cells = []
    for factor in (2, 4, 8):
        image = Image.open(io.BytesIO(content))
        image.draft("L", (image.width // factor, image.height // factor))
        cells.append(str(np.abs(pad_to_square(np.asarray(image)).astype(int) - full).max()))
    return f"| {name} | {' | '.join(cells)} |"


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
    return lines


def part_3(folder: Path) -> list[str]:
    paths = [folder / f"{k}.jpg" for k in range(IMAGES)]
    for k, path in enumerate(paths):
        path.write_bytes(jpeg(chest(k)))
    rates: dict[int, list[float]] = {1: [], 2: []}
    decoders = {n: ImageDecoder(PadCropPipeline(), ImagePolicy(), n) for n in rates}
    with decoders[1], decoders[2]:
        for turn in range(6):
            for workers, decoder in decoders.items():
                began = time.perf_counter()
                pending = [decoder.submit(path) for path in paths]
                for item in pending:
                    item.stored()
                if turn:  # the first starts the workers
                    rates[workers].append(IMAGES / (time.perf_counter() - began))
        started = {n: decoder.processes_started for n, decoder in decoders.items()}
    one, two = (statistics.median(rates[n]) for n in (1, 2))
    return [
        f"{one:.1f} images a second with {started[1]} process, {two:.1f} with {started[2]}: "
        f"{two / one:.2f} times, at a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores."
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--radiographs", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [
            "# Full-size JPEGs to pixels",
            "",
            describe_machine(),
            "",
            f"One {HEIGHT} x {WIDTH} grey JPEG to GLoRIA's and LIMITR's 224 pixels:",
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
