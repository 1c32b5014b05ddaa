"""Claim: a first evaluation of full-size radiographs takes at most 1/1.8 of the time of a loop
written as the authors' repository does it, a repeated one at most 1/50, and a second generator on
the same studies at most 40 % of the first.

Protocol. The layout of LIMITR's checkpoint with random weights (fp32, written once as the authors'
container and once as safetensors), N studies with one grey JPEG of 3056 x 2544 pixels each, two
reports of lengths like those of the Indiana collection (38 words in the mean, 1.57 word pieces a
word), a fifth of the references verbatim copies. Each run is a process of its own, its start
included; the page cache holds files and weights for all. Interleaved rounds, medians; wall clock.
- loop: one study at a time, as in gefend/LIMITR (commit 891468e; Dawidowicz, Hirsch and Tal, ICCV
  2023), written anew here from reading it: OpenCV reads, reduces, pads; 97 tokens whatever the
  length; BERT with all its layers; a Python loop over tokens that adds pieces up to words; the
  global and the local image maps; then the area.
- cold: `vlscore evaluate`, nothing of the studies in the cache; the checkpoint's digest is known.
- warm: the same again, into another folder. - second: another generator's reports, then.
The areas of loop and cold must agree (largest relative difference is printed). The limit is the
time that the encoder's multiplications alone would take at the rate of a 2048^3 float32 product of
this run: of every image, and of every distinct report at its own length. Beside other work (see the
load average) ratios of wall clock are worth little: then take the processor times, also printed.

Run: python benchmarks/evaluate_cold_warm.py [--studies 1000] [--rounds 3] [--out FILE]
"""

import argparse
import csv
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import describe_machine, publish

from vlscore.encoders import load_encoder
from vlscore.encoders.blocks.wordpiece import WordPieceTokenizer
from vlscore.encoders.checkpoints import convert
from vlscore.encoders.limitr import LimitrEncoder
from vlscore.phantom import render
from vlscore.phantom.corpus import scene_at
from vlscore.reports.cleaning import clean_limitr

SIZE, SEED, PIECES = (3056, 2544), 7, 28996
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = 14_000


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


# --- the authors' way -----------------------------------------------------------------------------


def loop(table: Path, weights: Path, out: Path) -> None:
    """One study after the other, as the authors' repository does it."""
    import cv2
    from PIL import Image
    from tokenizers import BertWordPieceTokenizer
    from torch import nn
    from torchvision import transforms
    from torchvision.models import resnet50
    from transformers import BertConfig, BertModel

    class Image50(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = resnet50(weights=None)
            self.model.fc = nn.Identity()
            self.global_embedder = nn.Linear(2048, 768)
            self.local_embedder = nn.Conv2d(1024, 768, kernel_size=1, bias=False)

        def forward(self, x: Any) -> Any:
            model = self.model
            x = nn.Upsample(size=(299, 299), mode="bilinear", align_corners=True)(x)
            x = model.maxpool(model.relu(model.bn1(model.conv1(x))))
            local = model.layer3(model.layer2(model.layer1(x)))
            pooled = nn.AdaptiveAvgPool2d((1, 1))(model.layer4(local)).flatten(1)
            return self.global_embedder(pooled), self.local_embedder(local)

    tensors = torch.load(weights / "model.ckpt", map_location="cpu", weights_only=True)[
        "state_dict"
    ]
    tower = Image50().eval()
    prefix = "limitr.img_encoder_f."
    tower.load_state_dict({k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)})
    bert = BertModel(BertConfig(vocab_size=PIECES), add_pooling_layer=False).eval()
    prefix = "limitr.text_encoder.model."
    bert.load_state_dict({k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)})
    tokenizer = BertWordPieceTokenizer(str(weights / "vocab.txt"), lowercase=True)
    tokenizer.enable_truncation(97)
    tokenizer.enable_padding(length=97)
    names = {number: piece for piece, number in tokenizer.get_vocab().items()}
    finish = transforms.Compose(
        [
            transforms.CenterCrop(224),
            transforms.ToTensor(),
            transforms.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
        ]
    )

    def image_of(path: Path) -> Any:
        grey = cv2.imread(str(path), 0)
        height, width = grey.shape
        scale = 256 / float(max(height, width))
        size = (int(width * scale), 256) if height >= width else (256, int(height * scale))
        small = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
        rows, columns = 256 - small.shape[0], 256 - small.shape[1]
        padding = [(rows // 2, rows - rows // 2), (columns // 2, columns - columns // 2)]
        square = np.pad(small, padding)
        return tower(finish(Image.fromarray(square).convert("RGB"))[None])[0][0]

    def words_of(states: Any, ids: Any) -> Any:
        """(97, layers, 768) of one report: pieces added up to words, one token at a time."""
        words: list[Any] = []
        open_word: list[Any] = []
        for state, number in zip(states, ids, strict=True):
            piece = names[number.item()]
            if open_word and not piece.startswith("##"):
                words.append(torch.stack(open_word).sum(dim=0))
                open_word = []
            if piece == "[SEP]":
                words.append(state)
                break
            open_word.append(state)
        found = torch.stack(words)
        return torch.cat([found, torch.zeros(97 - len(found), *found.shape[1:])])

    def report_of(text: str) -> Any:
        encoded = tokenizer.encode(clean_limitr(text))
        ids, mask = torch.tensor([encoded.ids]), torch.tensor([encoded.attention_mask])
        layers = bert(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states
        states = torch.stack(layers[-4:]).permute(1, 2, 0, 3)
        by_word = torch.stack([words_of(s, i) for s, i in zip(states, ids, strict=True)])
        by_word.sum(dim=2)  # the local vectors, which the authors' forward pass gives as well
        return by_word.mean(dim=1).sum(dim=1)[0]

    with torch.no_grad(), out.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "area"])
        for line in table.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            i = image_of(table.parent / row["image"])
            g, r = report_of(row["candidate"]).double(), report_of(row["reference"]).double()
            a, b = g - i.double(), r - i.double()
            area = 0.5 * torch.sqrt((a @ a) * (b @ b) - (a @ b) ** 2)
            writer.writerow([row["id"], float(area)])


# --- measuring ------------------------------------------------------------------------------------


def timed(command: list[str], cache: Path) -> tuple[float, float]:
    """Seconds of a process, by the clock on the wall and of processors."""
    before = os.times()
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        env={**os.environ, "VLSCORE_CACHE": str(cache)},
    )
    seconds, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    spent = after.children_user + after.children_system
    return seconds, spent - before.children_user - before.children_system


def evaluation(table: Path, weights: Path, out: Path) -> list[str]:
    options = ["--encoder", "limitr", "--weights", str(weights), "--C", "20", "--quiet"]
    return ["-m", "vlscore", "evaluate", str(table), "--out", str(out), "--format", "csv", *options]


def rate_of_product(side: int = 2048) -> float:
    """Floating point operations a second of a float32 product, the best of five."""
    a, b = torch.randn(side, side), torch.randn(side, side)
    times = []
    for _ in range(6):
        began = time.perf_counter()
        a @ b
        times.append(time.perf_counter() - began)
    return 2 * side**3 / min(times)


def operations(table: Path, weights: Path) -> float:
    """Of the encoder alone: every image, and every distinct report at its own length."""
    from torch.utils.flop_counter import FlopCounterMode

    encoder = load_encoder("limitr", weights=weights)
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    with torch.inference_mode(), FlopCounterMode(display=False) as image:
        encoder.embed_images(torch.zeros(1, 3, 224, 224))
    texts = sorted({row[name] for row in rows for name in ("reference", "candidate")})
    lengths = encoder.tokenize(texts).lengths.tolist()
    # BERT-base: four square maps, two of four times the width, and attention, two operations each.
    reports = sum(12 * (24 * n * 768**2 + 4 * n**2 * 768) for n in lengths)
    return float(len(rows) * image.get_total_flops() + reports)


def largest_difference(loop_file: Path, scores: Path) -> float:
    with loop_file.open() as first, scores.open() as second:
        areas = [[float(row["area"]) for row in csv.DictReader(part)] for part in (first, second)]
    return max(abs(a - b) / a for a, b in zip(*areas, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--loop", type=Path, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.loop is not None:
        loop(*options.loop)
        return
    times: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder, cache = Path(place), Path(place) / "cache"
        plain, mapped = write_limitr(folder / "weights")
        first, second = write_studies(folder, options.studies)
        flops, rates = operations(first, mapped), [rate_of_product()]
        # The digest of the checkpoint becomes known, as after any earlier run.
        few = folder / "few.jsonl"
        few.write_text("\n".join(first.read_text().splitlines()[:1]) + "\n")
        timed(evaluation(few, mapped, folder / "few"), cache)
        for turn in range(options.rounds):
            for file in cache.glob("*.sqlite*"):
                file.unlink()
            arms = {
                "loop": [__file__, "--loop", str(first), str(plain), str(folder / "loop.csv")],
                "cold": evaluation(first, mapped, folder / f"cold{turn}"),
                "warm": evaluation(first, mapped, folder / f"warm{turn}"),
                "second": evaluation(second, mapped, folder / f"second{turn}"),
            }
            for name, command in arms.items():
                times.setdefault(name, []).append(timed(command, cache))
                print(name, times[name][-1], flush=True)
            rates.append(rate_of_product())
        difference = largest_difference(folder / "loop.csv", folder / "cold0" / "scores.csv")
        cold, warm = (folder / f"{arm}0" / "scores.csv" for arm in ("cold", "warm"))
        same = cold.read_bytes() == warm.read_bytes()
        work = json.loads((folder / "warm0" / "run.json").read_text())["work"]
        size = sum(f.stat().st_size for f in folder.glob("*.jpg")) / options.studies / 1e6
        shutil.rmtree(folder / "weights")
    wall, processor = (
        {name: statistics.median(each[k] for each in found) for name, found in times.items()}
        for k in (0, 1)
    )
    limit = flops / max(rates)
    lines = [
        "# Evaluating full-size radiographs: cold, warm, and as the authors do it",
        "",
        describe_machine(),
        "",
        f"{options.studies} studies, JPEG files of {size:.1f} MB, {torch.get_num_threads()} threads"
        f" of torch, fp32; medians of {options.rounds} interleaved rounds.",
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
        f"Limit: {flops / 1e12:.2f} Tflop at {max(rates) / 1e9:.0f} Gflop/s of a 2048^3 product "
        f"take {limit:.1f} s; cold reaches {limit / wall['cold']:.0%} of that, start, decoding and "
        "writing included.",
    ]
    publish("\n".join(lines) + "\n", options.out)


if __name__ == "__main__":
    main()
