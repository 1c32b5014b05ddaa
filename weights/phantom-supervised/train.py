"""Train the supervised phantom encoder, in four seeded stages.

1. Reports. Reports of a scene and of corrupted scenes (wrong side, zone or severity, findings
   removed or added, comparisons) are embedded; the distance of every pair in a batch is drawn
   towards the square root of its true number of errors. Paraphrases (no error) are drawn together,
   every kind of single error is pushed one unit apart.
2. Images. With the report tower fixed, each image is contrasted (InfoNCE over squared distances)
   with its own report against the other reports of the batch and three hard negatives, its own
   findings with exactly one error.
3. Reports again, refined: strange words are put between the known ones and filler words are
   hidden, so that phrasings never seen do little harm, and pairs of one scene weigh more.
4. Images again, briefly, against the refined reports.

Afterwards the width of the modality gap is chosen on validation scenes, and C is set to the largest
area T over calibration candidates of one to six errors. Scenes of training, validation, calibration
and test come from different seeds; test phrasings are never used here.

Run: python weights/phantom-supervised/train.py [--device cuda] [--out weights/phantom-supervised]
"""

import argparse
import hashlib
import json
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from vlscore.core import atomic_write
from vlscore.data import (
    PhantomFinding,
    corrupt,
    pair_errors,
    sample_scene,
    sample_studies,
    write_report,
)
from vlscore.data.phantom.phantom_pairs import scene_at, thumbnail
from vlscore.encoders.blocks.pixels import standardise
from vlscore.encoders.blocks.word_tokenizers import UNKNOWN, pretokenize
from vlscore.encoders.models.phantom_supervised import IMAGE_SIZE, SupervisedPhantomEncoder
from vlscore.metrics import triangle_area
from vlscore.stats import kendall_tau_b, largest_tau_b

TRAINING, VALIDATION, CALIBRATION = 1, 2, 3

# Widths of the modality gap to choose from.
GAPS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)

# Words whose loss changes no statement: they are hidden at random, so that hiding them is harmless.
FILLERS = ("a", "an", "the", "there", "is", "are", "in", "of", "at", "was", "be", "this", "which")


def build_vocabulary(reports: int) -> list[str]:
    """All words of that many training reports, sorted."""
    rng = np.random.default_rng([TRAINING, 1])
    words: set[str] = set()
    for _ in range(reports):
        words.update(pretokenize(write_report(rng, sample_scene(rng).findings, others=0.5)))
    return sorted(words - {"[unk]", ".", ";", "!", "?", "\n"})


def disturb(rng: np.random.Generator, report: str) -> str:
    """Hide some filler words, and put words that mean nothing between others."""
    words = []
    for word in report.split():
        if word.lower() in FILLERS and rng.random() < 0.2:
            word = "[UNK]" if rng.random() < 0.5 else stranger(rng)
        words.append(word)
        if rng.random() < 0.06:
            words.append(stranger(rng))
    return " ".join(words)


def stranger(rng: np.random.Generator) -> str:
    """A random word."""
    return "".join(chr(97 + letter) for letter in rng.integers(26, size=6))


def report_batches(
    encoder: SupervisedPhantomEncoder, batch: int, *, refine: bool
) -> Iterator[tuple[Tensor, NDArray[np.float32]]]:
    """Token ids of 2·batch reports, and the errors between every two of them.

    Reports 2k and 2k + 1 belong to one scene.
    """
    rng = np.random.default_rng([TRAINING, 2, int(refine)])
    generator = torch.Generator().manual_seed(int(refine))
    fillers = torch.tensor([encoder.tokenizer.ids_of(word)[0] for word in FILLERS])
    while True:
        stated: list[tuple[PhantomFinding, ...]] = []
        for _ in range(batch):
            findings = sample_scene(rng).findings
            stated += [findings, corrupt(rng, findings, int(rng.integers(0, 6)))]
        reports = [
            write_report(rng, findings, negatives=rng.uniform(0, 0.7), others=rng.uniform(0, 0.4))
            for findings in stated
        ]
        if refine:
            reports = [disturb(rng, report) for report in reports]
        ids = encoder.tokenize(reports).ids
        hidden = torch.isin(ids, fillers) & (torch.rand(ids.shape, generator=generator) < 0.12)
        yield ids.masked_fill(hidden, UNKNOWN), pair_errors(stated)


def distance_loss(vectors: Tensor, errors: Tensor, *, refine: bool) -> Tensor:
    """How far distances are from the root of the error counts; near pairs weigh more.

    Refined, the pairs of one scene count as much as all others together.
    """
    squared = (vectors[:, None] - vectors[None]).square().sum(-1)
    miss = ((squared + 1e-4).sqrt() - errors.sqrt()).square()
    weight = 1 / (1 + errors)
    loss = (weight * miss).sum() / weight.sum()
    if not refine:
        return loss
    first = torch.arange(0, len(vectors), 2, device=vectors.device)
    return loss + miss[first, first + 1].mean()


def train_reports(
    encoder: SupervisedPhantomEncoder, steps: int, batch: int, device: str, *, refine: bool = False
) -> None:
    tower = encoder.report_tower.to(device).train().requires_grad_(True)
    rate = 7e-4 if refine else 2e-3
    optimiser = torch.optim.AdamW(tower.parameters(), lr=rate, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, rate, total_steps=steps, pct_start=0.1
    )
    batches = report_batches(encoder, batch, refine=refine)
    progress = Progress("reports", steps)
    for _ in range(steps):
        ids, errors = next(batches)
        true = torch.from_numpy(errors).to(device)
        loss = distance_loss(tower(ids.to(device)), true, refine=refine)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(tower.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        progress(loss.item())
    tower.eval().requires_grad_(False)


class Progress:
    """Prints the mean loss every fifty steps."""

    def __init__(self, name: str, steps: int) -> None:
        self._name, self._steps = name, steps
        self._began, self._losses, self._done = time.monotonic(), 0.0, 0

    def __call__(self, loss: float) -> None:
        self._done += 1
        self._losses += loss
        if self._done % 50 == 0:
            seconds = time.monotonic() - self._began
            print(
                f"{self._name} {self._done}/{self._steps}  loss {self._losses / 50:.4f}  "
                f"{seconds:.0f} s",
                flush=True,
            )
            self._losses = 0.0


def thumbnails(seed: int, count: int, workers: int) -> NDArray[np.uint8]:
    """(count, 128, 128) pictures of the first scenes of a seed."""
    draw = partial(_thumbnail_at, seed)
    if workers < 2:
        return np.stack([draw(k) for k in range(count)])
    with ProcessPoolExecutor(workers) as pool:
        return np.stack(list(pool.map(draw, range(count), chunksize=64)))


def _thumbnail_at(seed: int, position: int) -> NDArray[np.uint8]:
    return thumbnail(scene_at(seed, position), IMAGE_SIZE)


def augment(pixels: Tensor, generator: torch.Generator) -> Tensor:
    """Shift by up to three pixels, change contrast and noise; then standardise."""
    dy, dx = torch.randint(-3, 4, (2,), generator=generator).tolist()
    moved = torch.roll(pixels, (dy, dx), dims=(-2, -1))
    gamma = torch.empty(len(pixels), 1, 1, 1).uniform_(0.85, 1.2, generator=generator)
    noise = 0.01 * torch.randn(pixels.shape, generator=generator)
    return standardise(moved.clamp(0, 1) ** gamma + noise)


def train_images(
    encoder: SupervisedPhantomEncoder,
    pictures: NDArray[np.uint8],
    steps: int,
    batch: int,
    device: str,
    *,
    refine: bool = False,
) -> None:
    encoder.report_tower.to(device).eval().requires_grad_(False)
    tower = encoder.image_tower.to(device, memory_format=torch.channels_last).train()
    rng = np.random.default_rng([TRAINING, 3, int(refine)])
    generator = torch.Generator().manual_seed(3)
    scenes = [scene_at(TRAINING, k) for k in range(len(pictures))]
    rate = 5e-4 if refine else 2e-3
    optimiser = torch.optim.AdamW(tower.parameters(), lr=rate, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, rate, total_steps=steps, pct_start=0.1
    )
    progress = Progress("images", steps)
    for rows in shuffled_batches(rng, len(pictures), batch, steps):
        findings = [scenes[k].findings for k in rows]
        hard = [corrupt(rng, f, 1) for f in findings for _ in range(3)]
        texts = [write_report(rng, f, negatives=0.3) for f in [*findings, *hard]]
        with torch.no_grad():
            reports = encoder.report_tower(encoder.tokenize(texts).ids.to(device))
        pixels = augment(torch.from_numpy(pictures[rows]).float()[:, None] / 255, generator)
        images = tower(pixels.to(device, memory_format=torch.channels_last))
        loss = contrast(images, reports[:batch], reports[batch:])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        progress(loss.item())
    tower.eval()


def shuffled_batches(
    rng: np.random.Generator, count: int, batch: int, steps: int
) -> Iterator[NDArray[np.int64]]:
    """Row numbers of `steps` batches; every row is seen once before any is seen again."""
    order = rng.permutation(count)
    for _ in range(steps):
        if len(order) < batch:
            order = rng.permutation(count)
        yield order[:batch]
        order = order[batch:]


def contrast(images: Tensor, own: Tensor, hard: Tensor, sharpness: float = 2.0) -> Tensor:
    """InfoNCE over squared distances, both ways, with hard negatives, and the distance itself."""
    batch = len(images)
    squared = torch.cdist(images, own).square()
    hard_squared = (images[:, None] - hard.reshape(batch, -1, hard.shape[1])).square().sum(-1)
    target = torch.arange(batch, device=images.device)
    to_reports = torch.cat([squared, hard_squared], dim=1)
    cross_entropy = torch.nn.functional.cross_entropy
    nce = cross_entropy(-sharpness * to_reports, target) + cross_entropy(
        -sharpness * squared.T, target
    )
    return nce + squared.diagonal().mean()


def calibrate(encoder: SupervisedPhantomEncoder, studies: int) -> float:
    """Choose the width of the modality gap and return C.

    The area is the base |i - r| times the height of the candidate over it. A wide gap makes the
    base nearly the same for all studies, so that areas of different studies can be compared; a
    narrow one lets the image count for more. Chosen is the narrowest whose tau_b with the true
    number of errors is within 0.02 of the best.
    """
    content = [_content(encoder, seed, studies) for seed in (VALIDATION, CALIBRATION)]
    shares = {}
    for gap in GAPS:
        areas, errors = _areas(*content[0], gap)
        shares[gap] = kendall_tau_b(areas, errors) / largest_tau_b(errors)
        print(f"gap {gap}: tau_b reaches {shares[gap]:.3f} of the largest", flush=True)
    best = max(shares.values())
    chosen = next(gap for gap in GAPS if shares[gap] >= best - 0.02)
    encoder.gap.fill_(chosen)
    areas, errors = _areas(*content[1], chosen)
    return float(areas[errors > 0].max())


def _content(
    encoder: SupervisedPhantomEncoder, seed: int, studies: int
) -> tuple[Tensor, Tensor, Tensor, NDArray[np.int64]]:
    """Contents of images, candidates and references, (n, 190) each, and the errors, (n,)."""
    drawn = list(sample_studies(seed, studies))
    pictures = np.stack([thumbnail(study.scene, IMAGE_SIZE) for study in drawn])
    with torch.inference_mode():
        pixels = standardise(torch.from_numpy(pictures).float()[:, None] / 255)
        images = torch.cat([encoder.image_tower(part) for part in pixels.split(50)])
        texts = [
            encoder.report_tower(encoder.tokenize(reports).ids)
            for reports in ([s.candidate for s in drawn], [s.reference for s in drawn])
        ]
    return images, texts[0], texts[1], np.array([study.errors.total for study in drawn])


def _areas(
    images: Tensor, candidates: Tensor, references: Tensor, errors: NDArray[np.int64], gap: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    def widen(x: Tensor, own: int) -> Tensor:
        coordinates = torch.zeros(len(x), 2)
        coordinates[:, own] = gap
        return torch.cat([x, coordinates], dim=1)

    area = triangle_area(widen(images, 0), widen(candidates, 1), widen(references, 1))
    return area.numpy(), errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument(
        "--stages",
        default="1234",
        help="go on from --out with these, none to calibrate alone (1234)",
    )
    parser.add_argument("--report-steps", type=int, nargs=2, default=(900, 400))
    parser.add_argument("--report-batch", type=int, default=48)
    parser.add_argument("--images", type=int, default=20_000)
    parser.add_argument("--image-steps", type=int, nargs=2, default=(800, 200))
    parser.add_argument("--image-batch", type=int, default=100)
    parser.add_argument("--calibration", type=int, default=500, help="studies that C rests on")
    parser.add_argument("--workers", type=int, default=2, help="processes that draw pictures")
    parser.add_argument("--pictures", type=Path, help="keep drawn pictures here (.npy)")
    options = parser.parse_args()
    torch.manual_seed(0)
    if "1" in options.stages:
        encoder = SupervisedPhantomEncoder(build_vocabulary(4000))
    else:
        encoder = SupervisedPhantomEncoder.load(weights=options.out)
    for stage in options.stages:
        refine = stage in "34"
        if stage in "13":
            steps = options.report_steps[int(refine)]
            train_reports(encoder, steps, options.report_batch, options.device, refine=refine)
        else:
            steps = options.image_steps[int(refine)]
            pictures = training_pictures(options.pictures, options.images, options.workers)
            train_images(
                encoder, pictures, steps, options.image_batch, options.device, refine=refine
            )
        save(encoder, options.out)
    encoder.cpu()
    constant = round(calibrate(encoder, options.calibration), 4)
    save(encoder, options.out, constant)
    print(f"gap {float(encoder.gap)}, C {constant}: set C in weights/cards/phantom-supervised.toml")


def training_pictures(kept: Path | None, count: int, workers: int) -> NDArray[np.uint8]:
    """The pictures of the training scenes, drawn now or on an earlier run."""
    if kept is not None and kept.exists():
        return np.load(kept, mmap_mode="r")[:count]
    pictures = thumbnails(TRAINING, count, workers)
    if kept is not None:
        np.save(kept, pictures)
    return pictures


def save(encoder: SupervisedPhantomEncoder, folder: Path, constant: float = 1.0) -> None:
    """Write weights, vocabulary, and facts: their checksum, the gap, C."""
    folder.mkdir(parents=True, exist_ok=True)
    words = encoder.tokenizer.words
    state = {name: x.detach().cpu().contiguous() for name, x in encoder.state_dict().items()}
    save_file(state, folder / "model.safetensors")
    with atomic_write(folder / "vocabulary.json") as stream:
        json.dump(words, stream, indent=0)
    content = (folder / "model.safetensors").read_bytes()
    digest = hashlib.sha256(content + "\n".join(words).encode()).hexdigest()
    facts = {"sha256": digest, "gap": float(encoder.gap), "C": constant}
    with atomic_write(folder / "facts.json") as stream:
        json.dump(facts, stream, indent=1)


if __name__ == "__main__":
    main()
