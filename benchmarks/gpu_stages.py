"""Claim: on a GPU the report stage is at least 10 times as fast as the authors' way, BERT reaches
40 % and ResNet-50 at 299 pixels 25 % of the rate of a bfloat16 product, a run from cached pixels
half the rate of its slowest stage, and exact oracle search 40 % of the product's rate; embeddings
of CPU and GPU differ by at most 1e-4 in fp32, and bf16 moves the area T by 2e-3 in the median.

Protocol. Everything is timed in one process with CUDA events, after a warm-up, on random data,
beside 8192^3 products in bfloat16 and in float32; both are timed again at the end, to show whether
the GPU kept its pace.
LIMITR's layout, random weights unless --weights names a checkpoint; 2,000 reports of lengths like
those of the Indiana collection. The page is written after each stage: one that fails or is stopped
costs itself alone.
- reports: `EmbeddingEngine.embed_texts` in bf16, tokenising included, wall clock between two
  synchronisations; the authors' way is one report at a time in fp32, 97 tokens, a Python loop over
  tokens (written anew from reading gefend/LIMITR, commit 891468e), on 50 of them.
- BERT: the report tower alone over the same batches; as it is, and its layers under torch.compile.
- ResNet-50: the image tower over batches of 128, channels last; as it is, with each batch
  normalisation folded into its convolution, and under torch.compile. Operations of both by torch's
  FlopCounterMode, of the tower as it is.
- from cached pixels: 2,000 images whose uint8 levels lie in memory and their reports, through the
  engine, beside each stage alone.
- oracle: the best 10 of 200,000 vectors of 768 dimensions for 1,024 queries, 4dN operations a
  query; its products are taken in float32, so that their rate is its limit.
- JPEG: 64 grey files of 3056 x 2544 pixels; torchvision's decoder on the GPU (nvJPEG), decoding
  alone, against the engine's worker processes, which also reduce to the encoder's size.
- precision: 64 studies; embeddings of GPU and CPU in fp32 (Euclidean distance of a row, relative to
  its length; that of every other layout is tested by the marker gpu), and T in fp32, bf16, fp16.
Without a GPU nothing is measured, and the result says so. --device cpu --small runs the same code
on a processor at sizes that measure nothing.

Run: python benchmarks/gpu_stages.py [--weights FOLDER] [--out benchmarks/results/gpu_stages.md]
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from authors_way import POSITIONS, add_up_pieces
from evaluate_cold_warm import write_report, write_vocabulary
from machine import describe_machine, publish
from scipy.stats import spearmanr
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from vlscore.core import atomic_write
from vlscore.embedding import EmbeddingEngine, PendingPixels
from vlscore.embedding.batches import by_length
from vlscore.encoders import Tokens, WordPieceTokenizer, inference, load_encoder
from vlscore.encoders.blocks import convolutional
from vlscore.encoders.models.limitr import LimitrEncoder
from vlscore.metrics import triangle_area
from vlscore.retrieval import Corpus, Oracle

DIM = 768
# Name of the stage, what was found, beside what, and the goal.
Row = tuple[str, str, str, str]


@dataclass(frozen=True)
class Sizes:
    """How much of each thing is measured."""

    side: int = 8192
    rounds: int = 5
    reports: int = 2000
    looped: int = 50
    images: int = 2000
    batch: int = 128
    tokens: int = 8192
    queries: int = 1024
    corpus: int = 200_000
    jpegs: int = 64
    jpeg: tuple[int, int] = (3056, 2544)
    processes: int = 16
    studies: int = 64
    layers: int = 12
    compiled: dict[str, Any] = field(default_factory=dict)


SMALL = Sizes(
    side=64,
    rounds=1,
    reports=4,
    looped=1,
    images=2,
    batch=1,
    tokens=64,
    queries=3,
    corpus=400,
    jpegs=2,
    jpeg=(64, 48),
    processes=1,
    studies=2,
    layers=4,
    compiled={"backend": "eager"},
)


class Stages:
    """What is measured, one method a stage; each gives rows as soon as it has them."""

    def __init__(self, device: torch.device, sizes: Sizes, weights: Path | None) -> None:
        self.device, self.sizes, self.weights = device, sizes, weights
        rng = random.Random(0)
        self.reports = [write_report(rng) for _ in range(sizes.reports)]
        self.rates: dict[str, float] = {}

    def all(self) -> tuple[Callable[[], Iterator[Row]], ...]:
        """What takes longest, and fails soonest, comes last."""
        return (
            self.products,
            self.encoder_is_there,
            self.reports_stage,
            self.bert,
            self.resnet,
            self.from_cached_pixels,
            self.oracle,
            self.precision,
            self.jpegs,
            self.bert_compiled,
            self.resnet_compiled,
            self.products,
        )

    def products(self) -> Iterator[Row]:
        side = self.sizes.side
        for name, dtype in (("bf16", torch.bfloat16), ("fp32", torch.float32)):
            a, b = (torch.randn(side, side, device=self.device, dtype=dtype) for _ in range(2))
            with inference(self.device, "fp32"):
                rate = 2 * side**3 / self.by_events(lambda a=a, b=b: a @ b)
            self.rates.setdefault(name, rate)
            yield f"{side}^3 product, {name}", _operations(rate), "", ""

    def encoder_is_there(self) -> Iterator[Row]:
        began = time.perf_counter()
        if self.weights is not None:
            encoder = load_encoder("limitr", weights=str(self.weights), device=str(self.device))
        else:
            torch.manual_seed(0)
            with tempfile.TemporaryDirectory() as place:
                write_vocabulary(Path(place) / "vocab.txt")
                pieces = WordPieceTokenizer.from_file(Path(place) / "vocab.txt")
            encoder = LimitrEncoder(pieces).eval().requires_grad_(False).to(self.device)
        self.encoder: Any = encoder
        self.layers = encoder.text_encoder.model.encoder.layer
        del self.layers[self.sizes.layers :]
        weights = "random weights" if self.weights is None else "the weights given"
        yield f"LIMITR's layout, {weights}", f"{time.perf_counter() - began:.1f} s", "to make", ""

    def reports_stage(self) -> Iterator[Row]:
        engine, looped = EmbeddingEngine(self.encoder, precision="bf16"), self.sizes.looped

        def ours() -> None:
            engine.embed_texts(self.reports)

        ours()
        rate = len(self.reports) / self.by_clock(ours)
        with inference(self.device, "fp32"):
            self._authors_reports(self.reports[:3])
            theirs = looped / self.by_clock(lambda: self._authors_reports(self.reports[:looped]))
        yield "reports", f"{rate:.0f}/s", f"{rate / theirs:.1f} times the authors' way", ">= 10"

    def bert(self) -> Iterator[Row]:
        seconds = self._bert_batches(counted=True)
        yield self._of_product("BERT", self.work_of_bert / seconds, ">= 40 %")

    def bert_compiled(self) -> Iterator[Row]:
        # Layer by layer: one compilation serves all of them, and batches of all lengths.
        for layer in self.layers:
            layer.compile(dynamic=True, **self.sizes.compiled)
        seconds = self._bert_batches()
        yield self._of_product("BERT, compiled", self.work_of_bert / seconds, ">= 40 %")

    def resnet(self) -> Iterator[Row]:
        seconds, work = self._images(self.encoder.embed_images)
        yield self._of_product("ResNet-50 at 299", work / seconds, ">= 25 % (any)")
        with mock.patch.object(convolutional, "_normalised", _folded({})):
            seconds, _ = self._images(self.encoder.embed_images)
        yield self._of_product("ResNet-50 at 299, folded", work / seconds, ">= 25 % (any)")

    def resnet_compiled(self) -> Iterator[Row]:
        compiled = torch.compile(self.encoder.img_encoder_f, **self.sizes.compiled)
        seconds, work = self._images(compiled)
        yield self._of_product("ResNet-50 at 299, compiled", work / seconds, ">= 25 % (any)")

    def from_cached_pixels(self) -> Iterator[Row]:
        engine = EmbeddingEngine(self.encoder, precision="bf16")
        levels = np.random.default_rng(0).integers(0, 256, (64, 1, 224, 224), np.uint8)
        pending = [
            PendingPixels(
                str(k),
                lambda k=k: levels[k % 64],
                from_stored=self.encoder.image_pipeline.from_stored,
            )
            for k in range(self.sizes.images)
        ]

        def images() -> None:
            engine.embed_pending(pending)

        def texts() -> None:
            engine.embed_texts(self.reports)

        def both() -> None:
            texts()
            images()

        both()
        alone = max(self.by_clock(images), self.by_clock(texts))
        seconds, count = self.by_clock(both), self.sizes.images
        yield (
            "from cached pixels",
            f"{count / seconds:.0f} studies/s",
            f"{alone / seconds:.0%} of the slowest stage's {count / alone:.0f}/s",
            ">= 50 %",
        )

    def oracle(self) -> Iterator[Row]:
        queries, rows = self.sizes.queries, self.sizes.corpus
        rng = np.random.default_rng(0)
        corpus = Corpus(rng.standard_normal((rows, DIM), np.float32), device=self.device)
        oracle = Oracle(corpus, C=1.0)
        images, references = rng.standard_normal((2, queries, DIM), np.float32)
        work = 4 * DIM * rows * queries
        weights = torch.randn(DIM, 2 * min(queries, 512), device=self.device)
        with inference(self.device, "fp32"):
            bare = work / (
                self.by_events(lambda: corpus.block(slice(0, rows)) @ weights)
                * (2 * queries / weights.shape[1])
            )
        oracle.hits(images, references, k=10)
        rate = work / self.by_clock(lambda: oracle.hits(images, references, k=10))
        for name, found in (("exact oracle's products alone", bare), ("exact oracle", rate)):
            beside = f"{found / self.rates['bf16']:.0%} of the product in bf16, "
            beside += f"{found / self.rates['fp32']:.0%} of that in fp32"
            yield name, _operations(found), beside, ">= 40 %" if found is rate else ""

    def precision(self) -> Iterator[Row]:
        count = self.sizes.studies
        draw = np.random.default_rng(1)
        levels = draw.integers(0, 256, (count, 1, 7, 7), np.uint8).repeat(32, 2).repeat(32, 3)
        texts = [write_report(random.Random(k)) for k in range(2 * count)]

        def embedded(precision: Any) -> tuple[torch.Tensor, torch.Tensor]:
            engine = EmbeddingEngine(self.encoder, precision=precision)
            pending = [
                PendingPixels(
                    str(k),
                    lambda k=k: levels[k],
                    from_stored=self.encoder.image_pipeline.from_stored,
                )
                for k in range(count)
            ]
            return engine.embed_pending(pending).vectors, engine.embed_texts(texts).vectors

        def area(found: tuple[torch.Tensor, torch.Tensor]) -> np.ndarray:
            return triangle_area(found[0], found[1][:count], found[1][count:]).numpy()

        there = embedded("fp32")
        try:
            self.encoder.to("cpu")
            here = embedded("fp32")
        finally:
            self.encoder.to(self.device)
        for name, one, other in zip(("images", "reports"), there, here, strict=True):
            yield f"{name}, GPU and CPU in fp32", f"{relative_error(one, other):.1e}", "", "<= 1e-4"
        before = area(there)
        for precision in ("bf16", "fp16") if self.device.type == "cuda" else ("bf16",):
            after = area(embedded(precision))
            median = float(np.median(np.abs(after - before) / before))
            beside = f"rank correlation {spearmanr(before, after)[0]:.5f}"
            yield f"T in {precision} against fp32", f"{median:.1e}", beside, "<= 2e-3, >= 0.999"

    def jpegs(self) -> Iterator[Row]:
        import cv2
        from torchvision.io import ImageReadMode, decode_jpeg, read_file

        height, width = self.sizes.jpeg
        draw = np.random.default_rng(0)
        grain = draw.normal(0, 5, (height, width)).astype(np.float32)
        with tempfile.TemporaryDirectory() as place:
            paths = [Path(place) / f"{k}.jpg" for k in range(self.sizes.jpegs)]
            for k, path in enumerate(paths):
                coarse = draw.uniform(0, 255, (12, 10)).astype(np.float32)
                smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
                pixels = np.clip(smooth + np.roll(grain, 97 * k), 0, 255).astype(np.uint8)
                cv2.imwrite(str(path), pixels, [cv2.IMWRITE_JPEG_QUALITY, 95])
            files = [read_file(str(path)) for path in paths]

            def by_gpu() -> None:
                for start in range(0, len(files), 16):
                    decode_jpeg(
                        files[start : start + 16], ImageReadMode.GRAY, device=str(self.device)
                    )

            by_gpu()
            there = len(files) / self.by_clock(by_gpu)
            with EmbeddingEngine(self.encoder).decoder(self.sizes.processes) as decoder:

                def by_processes() -> None:
                    pending = [decoder.submit(path) for path in paths]
                    for each in pending:
                        each.stored()

                by_processes()
                here = len(files) / self.by_clock(by_processes)
        beside = f"{there / here:.1f} times {self.sizes.processes} processes' {here:.0f}/s"
        yield f"JPEG of {height} x {width} by nvJPEG", f"{there:.0f}/s", beside, ""

    def by_events(self, call: Callable[[], object]) -> float:
        """Seconds of one call on the device, the median of some."""
        call()
        times = []
        for _ in range(self.sizes.rounds):
            began = self._mark()
            call()
            times.append(self._seconds(began, self._mark()))
        return statistics.median(times)

    def by_clock(self, call: Callable[[], object]) -> float:
        """Seconds of one call, its work on the host included, the median of some."""
        times = []
        for _ in range(min(self.sizes.rounds, 3)):
            self._wait()
            began = time.perf_counter()
            call()
            self._wait()
            times.append(time.perf_counter() - began)
        return statistics.median(times)

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def _mark(self) -> Any:
        if self.device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _seconds(self, began: Any, ended: Any) -> float:
        self._wait()
        if self.device.type != "cuda":
            return float(ended - began)
        return float(began.elapsed_time(ended)) / 1e3

    def _of_product(self, name: str, rate: float, goal: str) -> Row:
        return name, _operations(rate), f"{rate / self.rates['bf16']:.0%} of the product", goal

    def _bert_batches(self, *, counted: bool = False) -> float:
        """Seconds of all reports in batches; `counted` also counts their operations."""
        tokens = self.encoder.tokenize(self.reports)
        batches = [
            tokens.take(rows).to(self.device)
            for rows in by_length(tokens.lengths.tolist(), lambda: self.sizes.tokens)
        ]

        def run() -> None:
            for batch in batches:
                self.encoder.embed_reports(batch)

        with inference(self.device, "bf16"):
            if counted:
                self.work_of_bert = _counted(run)
            return self.by_events(run)

    def _images(self, embed: Callable[[torch.Tensor], object]) -> tuple[float, int]:
        """Seconds of a batch of images, and the operations of the tower as it is."""
        pixels = torch.randn(self.sizes.batch, 3, 224, 224, device=self.device)
        pixels = pixels.contiguous(memory_format=torch.channels_last)
        with inference(self.device, "bf16"):
            seconds = self.by_events(lambda: embed(pixels))
            return seconds, _counted(lambda: self.encoder.embed_images(pixels))

    def _authors_reports(self, reports: list[str]) -> None:
        """One report at a time, words added up token by token."""
        tower, pieces = self.encoder.text_encoder, self.encoder.tokenizer
        for report in reports:
            tokens = self.encoder.tokenize([report])
            room = POSITIONS - tokens.ids.shape[1]
            ids, mask = (functional.pad(x, (0, room)) for x in (tokens.ids, tokens.mask))
            tokens = Tokens(ids, mask, tokens.full_lengths).to(self.device)
            states = torch.stack(tower.last_layers(tokens)).permute(1, 2, 0, 3)[0]
            words = add_up_pieces(states, tokens.ids[0], lambda n: pieces.in_order[n])
            words.mean(dim=0).sum(dim=0).cpu()


def _folded(kept: dict[int, tuple[torch.Tensor, torch.Tensor]]) -> Callable[..., torch.Tensor]:
    """A convolution whose filters have its normalisation in them, made once for each."""

    def normalised(x: torch.Tensor, convolution: Any, norm: Any) -> torch.Tensor:
        if id(convolution) not in kept:
            factors = norm.weight * torch.rsqrt(norm.running_var + norm.eps)
            filters = (convolution.weight * factors[:, None, None, None]).to(torch.bfloat16)
            kept[id(convolution)] = (
                filters.contiguous(memory_format=torch.channels_last),
                (norm.bias - norm.running_mean * factors).to(torch.bfloat16),
            )
        return functional.conv2d(x, *kept[id(convolution)], convolution.stride, convolution.padding)

    return normalised


def _counted(call: Callable[[], object]) -> int:
    with FlopCounterMode(display=False) as counter:
        call()
    return int(counter.get_total_flops())


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Return the largest distance of two rows, relative to the second's norm."""
    return float(((found - expected).norm(dim=1) / expected.norm(dim=1)).max())


def _operations(rate: float) -> str:
    return f"{rate / 1e12:.3g} Tflop/s"


def measured(
    stages: Stages, header: list[str], write: Callable[[list[str]], None]
) -> tuple[list[str], int]:
    """The page, written after each stage, and how many stages failed."""
    lines = [*header, "| stage | found | beside | goal |", "|---|---:|---:|---:|"]
    failed = 0
    for stage in stages.all():
        began = time.perf_counter()
        try:
            for row in stage():
                lines.append("| " + " | ".join(row) + " |")
                write(lines)
        except Exception as error:  # a stage may meet any fault of libraries and drivers
            failed += 1
            said = " ".join(f"{type(error).__name__}: {error}".split())[:300].replace("|", "/")
            lines.append(f"| {stage.__name__} | failed | {said} | |")
        write(lines)
        print(f"{stage.__name__}: {time.perf_counter() - began:.1f} s", flush=True)
    return lines, failed


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, help="LIMITR's checkpoint, with vocab.txt beside")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help=argparse.SUPPRESS)
    parser.add_argument("--small", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    header = ["# Stages on a GPU", "", describe_machine(), ""]
    if options.device == "cuda" and not torch.cuda.is_available():
        publish("\n".join([*header, "Not measured: no GPU."]) + "\n", options.out)
        return 0
    sizes = SMALL if options.small else Sizes(processes=min(16, os.cpu_count() or 1))
    device = torch.device(options.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else "No GPU, a processor"
    header.append(
        f"{name}; {sizes.reports} reports, {sizes.images} images, batches of {sizes.batch} images, "
        f"{sizes.tokens} tokens."
    )
    if options.small or device.type == "cpu":
        header.append("A trial of the script: its numbers measure nothing.")
    header.append("")

    def write(lines: list[str]) -> None:
        if options.out is not None:
            with atomic_write(options.out) as stream:
                stream.write("\n".join(lines) + "\n")

    lines, failed = measured(Stages(device, sizes, options.weights), header, write)
    publish("\n".join(lines) + "\n", options.out)
    return min(failed, 1)


if __name__ == "__main__":
    raise SystemExit(main())
