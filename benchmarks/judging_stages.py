"""The encoder of judging_encoder.py where processor time is short: by the same losses, in stages.

Both towers start from those of the bundled encoder, which saw pairs alone (10,000 scenes of seed
1). First the report tower learns from copies; then, with reports held still, the head of the image
tower learns from pairs and copies, on maps of the trunk that are computed once. The epoch of the
head is chosen by the loss on the validation pairs and copies of their reports.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from vlscore.encoders import READINGS, SmallEncoder, load_encoder
from vlscore.training import TrainingSettings
from vlscore.training.copies import ReportCopies, find_copies
from vlscore.training.loop import make_optimizer
from vlscore.training.objective import PairFeatures
from vlscore.training.objectives.judging import Judging, insignificant_loss, significant_loss
from vlscore.training.training_pairs import Pairs, as_radiograph

# Pairs of a step of the image stage, and reports of one of the report stage.
BATCH, REPORTS = 64, 32
# Copies of each report that the image stage draws from.
DRAWS = 3
_AT_ONCE = 64
_DROPPED = 0.3


@dataclass(frozen=True, eq=False)
class Looked:
    """What the image stage looks at of n pairs.

    Attributes:
        maps: (n, channels, places, places) of the image trunk.
        reports: (n, d).
        copies: (n, DRAWS * K, d), with `changes` and `visible` (n, DRAWS * K).
        texts: numbers that are equal where reports are.
    """

    maps: Tensor
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


def look(encoder: SmallEncoder, pairs: Pairs, copies: ReportCopies, seed: int) -> Looked:
    """Everything that the image stage looks at, computed once."""
    rng = np.random.default_rng(seed)
    maps, vectors, changes, visible = [], [], [], []
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        for first in range(0, len(pairs), _AT_ONCE):
            rows = np.arange(first, min(first + _AT_ONCE, len(pairs)))
            pixels = [
                encoder.preprocess(as_radiograph(pairs.frontal(row), pairs.ids[row]))
                for row in rows
            ]
            maps.append(encoder.image_trunk(torch.stack(pixels)).float())
            drawn = [
                [copy for _ in range(DRAWS) for copy in copies.draw(int(row), rng)] for row in rows
            ]
            vectors.append(_report_vectors(encoder, pairs, rows, drawn).float())
            changes += [[float(copy.changes) for copy in each] for each in drawn]
            visible += [[copy.visible for copy in each] for each in drawn]
    found = torch.cat(vectors)
    known = {text: number for number, text in enumerate(dict.fromkeys(pairs.texts))}
    texts = torch.tensor([known[text] for text in pairs.texts])
    facts = torch.tensor(changes), torch.tensor(visible)
    return Looked(torch.cat(maps), found[:, 0], found[:, 1:], *facts, texts)


def train_images(encoder: SmallEncoder, train: Looked, held: Looked, epochs: int) -> None:
    """The head of the image tower, by the whole objective with reports held still."""
    objective = Judging()
    head = torch.nn.ModuleList([encoder.image_head, encoder.image_end])
    settings = settings_of(epochs, 1e-3, 0.1)
    optimizer = make_optimizer(head, objective, settings)
    order = np.random.default_rng(1)
    per_epoch = len(train.maps) // BATCH
    best, kept = float("inf"), head.state_dict()
    for epoch in range(epochs):
        rows = torch.from_numpy(order.permutation(len(train.maps)))
        for place in range(per_epoch):
            chosen = rows[place * BATCH : (place + 1) * BATCH]
            first = int(order.integers(DRAWS)) * ReportCopies.COUNT
            columns = slice(first, first + ReportCopies.COUNT)
            images = _seen(encoder, train.maps[chosen], _DROPPED)
            parts = objective(train.features(images, chosen, columns))
            loss = torch.stack(list(parts.values())).sum()
            step = epoch * per_epoch + place
            _update(head, optimizer, loss, settings.rate_at(step, epochs * per_epoch))
        found = _validated(encoder, objective, held)
        print(f"images {epoch + 1}/{epochs}: {loss.item():.3f}, held out {found:.4f}", flush=True)
        if found < best:
            best, kept = found, {name: x.clone() for name, x in head.state_dict().items()}
    head.load_state_dict(kept)
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
    copies, held_copies = (
        find_copies(each.texts, cache=folder / f"{name}-copies.jsonl")
        for each, name in ((pairs, "pairs"), (held, "pairs-validation"))
    )
    encoder = new_towers([*pairs.texts, *copies.words()], 0, reading)
    train_reports(encoder, pairs, copies, steps)
    looked = [
        look(encoder, each, of, seed)
        for seed, (each, of) in enumerate(((pairs, copies), (held, held_copies)))
    ]
    train_images(encoder, *looked, epochs)
    encoder.save(out, {"title": "Small encoder in the style of judging, trained in stages"})


def _seen(encoder: SmallEncoder, maps: Tensor, dropped: float) -> Tensor:
    head = encoder.image_head
    flat = torch.relu(head.squeeze(maps)).flatten(1)
    found: Tensor = encoder.image_end(head.out(torch.nn.functional.dropout(flat, dropped)))
    return found


def _validated(encoder: SmallEncoder, objective: Judging, held: Looked) -> float:
    losses = []
    with torch.no_grad():
        for first in range(0, len(held.maps) - BATCH + 1, BATCH):
            rows = torch.arange(first, first + BATCH)
            images = _seen(encoder, held.maps[rows], 0.0)
            parts = objective(held.features(images, rows, slice(None)))
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
