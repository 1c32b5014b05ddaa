"""Encoder of judging_encoder.py where processor time is short: by the same losses, in stages.

Both towers start from those of the encoder `phantom`, which saw pairs alone (10,000 scenes of seed
1). First the report tower learns from copies. Then the image tower learns from pairs and copies,
with light augmentation, while the vectors of reports and copies, computed once, do not change. The
epoch of the image tower is chosen by the loss on the validation pairs and copies of their reports.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.encoders import READINGS, SmallEncoder, load_encoder
from vlscore.training import TrainingSettings
from vlscore.training.augmentation import AUGMENTATIONS
from vlscore.training.copies import ReportCopies, find_copies
from vlscore.training.objective import PairFeatures
from vlscore.training.objectives.judging import Judging, insignificant_loss, significant_loss
from vlscore.training.step import make_optimizer
from vlscore.training.training_pairs import Pairs, as_radiograph

# Pairs of a step of the image stage, and reports of one of the report stage.
BATCH, REPORTS = 64, 32
# Copies of each report that the image stage draws from.
DRAWS = 3
_AT_ONCE = 64
_DROPPED = 0.3
_AUGMENTATION = "light"


@dataclass(frozen=True, eq=False)
class Aims:
    """Vectors that the images of n pairs are trained to match.

    Attributes:
        reports: (n, d).
        copies: (n, DRAWS * K, d), with `changes` and `visible` (n, DRAWS * K).
        texts: numbers that are equal where reports are.
    """

    reports: Tensor
    copies: Tensor
    changes: Tensor
    visible: Tensor
    texts: Tensor

    def features(self, images: Tensor, rows: Tensor, columns: slice) -> PairFeatures:
        """Of some pairs, with some of their copies."""
        texts = self.texts[rows]
        return PairFeatures(
            images,
            self.reports[rows],
            texts[:, None] == texts,
            copies=self.copies[rows, columns],
            copy_changes=self.changes[rows, columns],
            copy_visible=self.visible[rows, columns],
        )


def new_towers(texts: list[str], seed: int, reading: str = "words") -> SmallEncoder:
    """An encoder of the style "judging", its towers as far as they fit from the bundled one."""
    words = READINGS[reading].vocabulary_of(texts)
    encoder = SmallEncoder.new(words, style="judging", dim=256, reading=reading, seed=seed)
    bundled = load_encoder("phantom")
    assert isinstance(bundled, SmallEncoder)
    state, known = encoder.state_dict(), bundled.state_dict()
    state |= {
        name: x for name, x in known.items() if name in state and x.shape == state[name].shape
    }
    words = encoder.word_reader.words.weight.detach().clone()
    shared = len(words) - len(encoder.tokenizer.words)
    rows = {word: shared + k for k, word in enumerate(bundled.tokenizer.words)}
    old = known["word_reader.words.weight"]
    words[:shared] = old[:shared]
    for k, word in enumerate(encoder.tokenizer.words):
        if word in rows:
            words[shared + k] = old[rows[word]]
    encoder.load_state_dict(state | {"word_reader.words.weight": words})
    encoder.requires_grad_(True)
    return encoder


def settings_of(epochs: int, rate: float, decay: float) -> TrainingSettings:
    return TrainingSettings(epochs=epochs, learning_rate=rate, weight_decay=decay, warm_up=0.08)


def train_reports(encoder: SmallEncoder, pairs: Pairs, copies: ReportCopies, steps: int) -> None:
    """The report tower, by the parts `significant` and `insignificant`, and the gap's share."""
    settings = settings_of(1, 2e-3, 0.02)
    optimizer = make_optimizer(encoder, torch.nn.Identity(), settings)
    encoder.train()
    order = np.random.default_rng(0)
    began = time.process_time()
    for step in range(steps):
        rows = order.choice(len(pairs), REPORTS, replace=False)
        drawn = [copies.draw(int(row), order) for row in rows]
        vectors = _report_vectors(encoder, pairs, rows, drawn)
        reports, others = vectors[:, 0], vectors[:, 1:]
        changes = torch.tensor([[float(copy.changes) for copy in each] for each in drawn])
        content = reports[:, :-1], others[..., :-1], changes
        loss = significant_loss(*content) + insignificant_loss(*content)
        loss = loss + vectors[..., -1].square().mean()
        _update(encoder, optimizer, loss, settings.rate_at(step, steps))
        if step % 20 == 19:
            spent = time.process_time() - began
            print(f"reports {step + 1}/{steps}: {loss.item():.4f}, {spent:.0f} s", flush=True)
    encoder.eval()


def aims_of(encoder: SmallEncoder, pairs: Pairs, copies: ReportCopies, seed: int) -> Aims:
    """Return the vectors of all reports and of copies of them."""
    rng = np.random.default_rng(seed)
    vectors, changes, visible = [], [], []
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for first in range(0, len(pairs), _AT_ONCE):
            rows = np.arange(first, min(first + _AT_ONCE, len(pairs)))
            drawn = [
                [copy for _ in range(DRAWS) for copy in copies.draw(int(row), rng)] for row in rows
            ]
            vectors.append(_report_vectors(encoder, pairs, rows, drawn).float())
            changes += [[float(copy.changes) for copy in each] for each in drawn]
            visible += [[copy.visible for copy in each] for each in drawn]
    found = torch.cat(vectors)
    known = {text: number for number, text in enumerate(dict.fromkeys(pairs.texts))}
    texts = torch.tensor([known[text] for text in pairs.texts])
    return Aims(found[:, 0], found[:, 1:], torch.tensor(changes), torch.tensor(visible), texts)


def train_images(
    encoder: SmallEncoder, pairs: tuple[Pairs, Pairs], aims: tuple[Aims, Aims], epochs: int
) -> None:
    """Train the image tower by the whole objective; the first of each is trained on."""
    objective = Judging()
    tower = torch.nn.ModuleList([encoder.image_trunk, encoder.image_head, encoder.image_end])
    settings = settings_of(epochs, 1e-3, 0.1)
    optimizer = make_optimizer(tower, objective, settings)
    pixels = _pixels(encoder, pairs[1], np.arange(len(pairs[1])), None)
    per_epoch = len(pairs[0]) // BATCH
    best, kept = float("inf"), tower.state_dict()
    for epoch in range(epochs):
        began, losses = time.process_time(), []
        chance = np.random.default_rng([1, epoch])
        order = chance.permutation(len(pairs[0]))
        encoder.train()
        for place in range(per_epoch):
            rows = order[place * BATCH : (place + 1) * BATCH]
            first = int(chance.integers(DRAWS)) * ReportCopies.COUNT
            columns = slice(first, first + ReportCopies.COUNT)
            images = _seen(encoder, _pixels(encoder, pairs[0], rows, chance), _DROPPED)
            parts = objective(aims[0].features(images, torch.from_numpy(rows), columns))
            loss = torch.stack(list(parts.values())).sum()
            losses.append(loss.item())
            step = epoch * per_epoch + place
            _update(tower, optimizer, loss, settings.rate_at(step, epochs * per_epoch))
        encoder.eval()
        found, spent = _validated(encoder, objective, pixels, aims[1]), time.process_time() - began
        print(
            f"images {epoch + 1}/{epochs}: {np.mean(losses):.3f}, held out {found:.4f}, "
            f"{spent:.0f} s",
            flush=True,
        )
        if found < best:
            best, kept = found, {name: x.clone() for name, x in tower.state_dict().items()}
    tower.load_state_dict(kept)
    encoder.eval().requires_grad_(False)


def train_stages(
    pairs: Pairs,
    held: Pairs,
    folder: Path,
    out: Path,
    *,
    steps: int,
    epochs: int,
    reading: str = "words",
) -> None:
    """Train both stages into a folder that `load_encoder` reads, unless it is there."""
    if (out / "card.json").is_file():
        return
    copies, held_copies = find_copies(pairs.texts), find_copies(held.texts)
    encoder = new_towers([*pairs.texts, *copies.words()], 0, reading)
    train_reports(encoder, pairs, copies, steps)
    aims = aims_of(encoder, pairs, copies, 0), aims_of(encoder, held, held_copies, 1)
    train_images(encoder, (pairs, held), aims, epochs)
    encoder.save(out, {"title": "Small encoder in the style of judging, trained in stages"})


def _pixels(
    encoder: SmallEncoder, pairs: Pairs, rows: NDArray[np.int64], chance: np.random.Generator | None
) -> Tensor:
    """Return (n, 1, side, side) of some pairs, augmented if random numbers are given."""
    augment = AUGMENTATIONS.find(_AUGMENTATION)
    images = [pairs.image(int(row)) for row in rows]
    images = [image if chance is None else augment(image, chance) for image in images]
    named = zip(images, rows, strict=True)
    return torch.stack(
        [encoder.preprocess(as_radiograph(image, pairs.ids[int(row)])) for image, row in named]
    )


def _seen(encoder: SmallEncoder, pixels: Tensor, dropped: float) -> Tensor:
    head = encoder.image_head
    with torch.autocast("cpu", torch.bfloat16):
        maps = encoder.image_trunk(pixels)
    flat = torch.relu(head.squeeze(maps.float())).flatten(1)
    found: Tensor = encoder.image_end(head.out(torch.nn.functional.dropout(flat, dropped)))
    return found


def _validated(encoder: SmallEncoder, objective: Judging, pixels: Tensor, aims: Aims) -> float:
    losses = []
    with torch.no_grad():
        for first in range(0, len(pixels) - BATCH + 1, BATCH):
            rows = torch.arange(first, first + BATCH)
            images = _seen(encoder, pixels[rows], 0.0)
            parts = objective(aims.features(images, rows, slice(None)))
            losses.append(sum(part.item() for part in parts.values()))
    return float(np.mean(losses))


def _report_vectors(encoder: SmallEncoder, pairs: Pairs, rows, drawn) -> Tensor:  # type: ignore[no-untyped-def]
    """(n, 1 + K, d) of reports and their copies."""
    texts = [
        text
        for row, each in zip(rows, drawn, strict=True)
        for text in (pairs.texts[row], *(copy.text for copy in each))
    ]
    return encoder.embed_reports(encoder.tokenize(texts)).unflatten(0, (len(rows), -1))


def _update(
    module: torch.nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor, rate: float
) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_([p for p in module.parameters() if p.grad is not None], 1.0)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
