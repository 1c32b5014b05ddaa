"""A toy encoder that trains in milliseconds, and toy objectives that look at all it gives."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from vlscore.data import Radiograph
from vlscore.encoders import EncoderCard, ImageFeatures, ImagePipeline, JointEncoder, Tokens
from vlscore.encoders.base import ReportFeatures
from vlscore.training.objective import Objective, PairFeatures

SIDE, DIM, LOCAL, WORDS = 8, 6, 4, 40


class ToyPipeline(ImagePipeline):
    def __call__(self, radiograph: Radiograph) -> Tensor:
        small = cv2.resize(radiograph.pixels, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        return torch.from_numpy(small)[None]


class ToyEncoder(JointEncoder):
    """Linear towers with local vectors; `dropout` makes them draw, `norm` look at their batch."""

    card = EncoderCard("toy", "Toy", DIM, False, None, "none", SIDE, WORDS, "none", "none", "none")
    image_pipeline = ToyPipeline()
    has_lateral_tower = True
    takes_tokenizer = False

    def __init__(self, seed: int = 0, *, dropout: float = 0.0, norm: bool = False) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.rows = nn.Linear(SIDE, LOCAL)
            self.norm = nn.BatchNorm1d(SIDE) if norm else nn.Identity()
            self.lateral = nn.Linear(SIDE, LOCAL)
            self.words = nn.Embedding(WORDS, LOCAL)
            self.image_out = nn.Linear(LOCAL, DIM)
            self.report_out = nn.Linear(LOCAL, DIM)
        self.dropout = nn.Dropout(dropout)
        self.eval()

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        rows = [[1 + sum(map(ord, w)) % (WORDS - 1) for w in r.split()] or [1] for r in reports]
        return Tokens.padded(rows, max_tokens=WORDS)

    def embed_images(self, pixels: Tensor) -> Tensor:
        return self.image_features(pixels).vectors

    def embed_reports(self, tokens: Tokens) -> Tensor:
        return self.report_features(tokens).vectors

    def embed_lateral_images(self, pixels: Tensor) -> Tensor:
        places = torch.tanh(self.lateral(pixels[:, 0].to(self.lateral.weight.dtype)))
        return self.image_out(places.mean(1))

    def image_features(self, pixels: Tensor) -> ImageFeatures:
        places = torch.tanh(self.rows(self.norm(pixels[:, 0].to(self.rows.weight.dtype))))
        return ImageFeatures(self.image_out(self.dropout(places.mean(1))), places)

    def report_features(self, tokens: Tokens) -> ReportFeatures:
        is_word = tokens.mask.bool()
        words = self.words(tokens.ids) * is_word[..., None]
        mean = words.sum(1) / is_word.sum(1, keepdim=True)
        return ReportFeatures(self.report_out(torch.tanh(mean)), words, is_word)

    def save(self, folder: Path, card: Mapping[str, Any]) -> None:
        save_file(self.state_dict(), folder / "model.safetensors")
        (folder / "card.json").write_text(json.dumps(card))

    @classmethod
    def load(cls, weights: Any = None, tokenizer: Any = None) -> "ToyEncoder":
        encoder = cls()
        if weights is not None:
            encoder.load_state_dict(load_file(Path(weights) / "model.safetensors"))
        return encoder


class Global(Objective):
    """Bidirectional InfoNCE with a temperature that is learned."""

    name = "toy-global"
    citation = "none"

    def __init__(self, start: float = 5.0) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(start, dtype=torch.float64))

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        images, reports = (nn.functional.normalize(x, dim=1) for x in (pairs.images, pairs.reports))
        found = self.scale * images.double() @ reports.double().T
        others = pairs.same & ~torch.eye(len(found), dtype=torch.bool, device=found.device)
        found = found.masked_fill(others, -torch.inf)
        right = torch.arange(len(found), device=found.device)
        return {
            "image": nn.functional.cross_entropy(found, right),
            "report": nn.functional.cross_entropy(found.T, right),
        }


class Local(Global):
    """The same, and how well each word finds a place."""

    name = "toy-local"
    local = True

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        found = torch.einsum("ipk,jwk->ijpw", pairs.patches, pairs.words).amax(2)
        mean = (found * pairs.is_word).sum(2) / pairs.is_word.sum(1)
        right = torch.arange(len(mean), device=mean.device)
        return super().forward(pairs) | {"local": nn.functional.cross_entropy(mean, right)}


class Broken(Global):
    """Not finite from some loss on."""

    name = "toy-broken"

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        return {"image": super().forward(pairs)["image"] * torch.inf}


_WORDS = (
    "clear", "lungs", "heart", "large", "small", "left", "right", "effusion", "edema", "nodule",
    "opacity", "upper", "lower", "lobe", "normal", "fracture",
)  # fmt: skip


def write_table(folder: Path, count: int = 24, *, seed: int = 0, lateral: bool = False) -> Path:
    """A table of studies whose images show, as bright squares, the words of their reports."""
    generator = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        said = generator.choice(len(_WORDS), 3, replace=False)
        image = generator.integers(0, 40, (16, 16)).astype(np.uint8)
        for word in said:
            top, left = divmod(int(word), 4)
            image[4 * top : 4 * top + 4, 4 * left : 4 * left + 4] = 230
        name = f"s{number}.png"
        cv2.imwrite(str(folder / name), image)
        images, views = [name], ["PA"]
        if lateral and number % 2:
            cv2.imwrite(str(folder / f"l{number}.png"), image[::-1])
            images, views = [*images, f"l{number}.png"], [*views, "LATERAL"]
        report = " ".join(_WORDS[word] for word in said) + "."
        rows.append({"id": f"s{number}", "image": images, "view": views, "reference": report})
    table = folder / "studies.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return table
