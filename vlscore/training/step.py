"""Training step: the gradient of one batch of any size, shared by any number of processes.

The loss of a contrastive objective needs the features of all pairs at once, but the memory suffices
to run the towers only for a few pairs at a time. So gradients of the loss are computed with respect
to the features, and then propagated through the towers in micro-batches, which run a second time
for this (GradCache: Gao et al., RepL4NLP 2021). The result is the gradient of the whole batch;
plain accumulation of gradients would give each micro-batch only its own negatives.

Processes share a batch in the same way: features are gathered, every process computes the loss of
all of them, and uses the gradients of its own. Then the towers' gradients are added up.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from vlscore.core import first_of
from vlscore.encoders import ImageFeatures, JointEncoder
from vlscore.errors import TrainingDiverged
from vlscore.training.minibatches import PairBatch
from vlscore.training.objective import Objective, PairFeatures
from vlscore.training.processes import TrainingProcesses
from vlscore.training.settings import TrainingSettings

_IDS_SHOWN = 8
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


# Field of PairFeatures -> tensor; row k of each belongs to pair k.
Features = dict[str, Tensor]
_TRAINED = ("images", "reports", "patches", "words", "copies")
_OF_WORDS = ("words", "is_word", "word_weights")


class Towers:
    """Towers of an encoder, which compute the features that an objective needs.

    Args:
        local: whether the objective uses vectors of places and words.
        precision: "fp32" or "bf16".
        frozen_norms: whether the statistics of batch norms stay fixed.
    """

    def __init__(
        self, encoder: JointEncoder, *, local: bool, precision: str, frozen_norms: bool = False
    ) -> None:
        self.encoder, self._local, self._frozen_norms = encoder, local, frozen_norms
        self._autocast = precision == "bf16"

    def __call__(self, batch: PairBatch, rows: slice) -> Features:
        """Compute features of some of this process's pairs, in float32 or wider."""
        device = self.encoder.device
        with torch.autocast(device.type, torch.bfloat16, enabled=self._autocast):
            images = vars(self._image_features(batch, rows))
            each = batch.texts_per_pair
            own = range(len(batch.tokens))[(rows.start or 0) * each : rows.stop * each]
            reports = vars(self.encoder.report_features(batch.tokens.take(own).to(device)))
            # Every `each`-th text is a report, its copies follow.
            copies = reports["vectors"].unflatten(0, (-1, each))[:, 1:]
            reports = {name: x if x is None else x[::each] for name, x in reports.items()}
        found = {"images": _wide(images["vectors"]), "reports": _wide(reports["vectors"])}
        if self._local:
            local = {**images, **reports}
            local.pop("vectors")
            found |= {name: _wide(value) for name, value in local.items() if value is not None}
        if batch.copy_changes is not None and batch.copy_visible is not None:
            found["copies"] = _wide(copies)
            found["copy_changes"] = batch.copy_changes[rows].to(device)
            found["copy_visible"] = batch.copy_visible[rows].to(device)
        return found

    def train(self) -> None:
        """Set training mode for all modules but frozen norms."""
        self.encoder.train()
        if self._frozen_norms:
            for module in _batch_norms(self.encoder):
                module.eval()

    def _image_features(self, batch: PairBatch, rows: slice) -> ImageFeatures:
        device = self.encoder.device
        frontal = batch.pixels[rows].to(device)
        if batch.has_lateral is None:
            return self.encoder.image_features(frontal)
        there = batch.has_lateral[rows]
        before = int(batch.has_lateral[: rows.start or 0].sum())
        lateral = batch.lateral[before : before + int(there.sum())].to(device)
        return self.encoder.study_features(frontal, lateral, there.to(device))


def joined(found: Sequence[Features], words: int = 0) -> Features:
    """Join the features of several micro-batches, padded to at least this number of words."""
    words = max(words, widest(found))
    return {
        name: torch.cat([_widened(each[name], words, name) for each in found]) for name in found[0]
    }


def widest(found: Sequence[Features]) -> int:
    """Return the largest padded number of words."""
    return max((each["words"].shape[1] for each in found if "words" in each), default=0)


def loss_of(objective: Objective, features: Features, batch: PairBatch) -> dict[str, Tensor]:
    """Compute the parts of the loss of a whole batch."""
    device = features["images"].device
    labels = batch.labels.to(device) if batch.labels is not None else None
    pairs = PairFeatures(**features, same=batch.same.to(device), labels=labels)
    found: dict[str, Tensor] = objective(pairs)
    return found


def diverged(what: str, number: int, values: dict[str, float], ids: Sequence[str]) -> str:
    """Return the message for a loss or gradient that is not finite, in a step counted from 0."""
    shown = first_of(ids, _IDS_SHOWN)
    found = ", ".join(f"{name} {value}" for name, value in values.items())
    return (
        f"the {what} of step {number + 1} is not finite ({found}). Studies of its batch: {shown}. "
        "Lower the learning rate, clip gradients, or look at these studies"
    )


class Step:
    """Function that computes the gradients of one batch into the parameters.

    Args:
        micro_batch: most pairs that go through the towers at once; 0 for no limit.
        seed: seed of the towers' random numbers (dropout).
    """

    def __init__(
        self,
        towers: Towers,
        objective: Objective,
        processes: TrainingProcesses,
        *,
        micro_batch: int = 0,
        seed: int = 0,
    ) -> None:
        self._towers, self._objective, self._processes = towers, objective, processes
        self._micro_batch, self._seed = micro_batch, seed

    def __call__(self, batch: PairBatch, number: int, ids: list[str]) -> dict[str, float]:
        """Set the gradients of towers and objective; return the parts of the loss.

        Args:
            number: number of the step, which seeds its random numbers.
            ids: ids of the studies in `batch.rows`, for messages.

        Raises: TrainingDiverged if the loss is not finite; then no gradient is set.
        """
        pairs = len(batch.pixels)
        size = self._micro_batch or pairs
        slices = [slice(start, min(start + size, pairs)) for start in range(0, pairs, size)]
        once = len(slices) == 1
        found = []
        with nullcontext() if once else _without_traces(self._towers.encoder):
            for part in slices:
                self._fix_chance(number, self._processes.rank, part.start)
                found.append(self._towers(batch, part))
        leaves = self._gathered(found)
        self._fix_chance(number)
        parts = loss_of(self._objective, leaves, batch)
        values = {name: float(part.detach()) for name, part in parts.items()}
        if not np.isfinite(sum(values.values())):
            raise TrainingDiverged(diverged("loss", number, values, ids))
        torch.stack([part.reshape(()) for part in parts.values()]).sum().backward()
        gradients = self._own_gradients(leaves)
        for features, part in zip(found, slices, strict=True):
            if not once:
                self._fix_chance(number, self._processes.rank, part.start)
                features = self._towers(batch, part)
            _carry(features, {name: gradient[part] for name, gradient in gradients.items()})
        self._processes.add_gradients(self._towers.encoder.parameters())
        self._processes.copy_from_first(
            p.grad for p in self._objective.parameters() if p.grad is not None
        )
        return values

    def _fix_chance(self, *words: int) -> None:
        """Seed random numbers, so that both passes, and a resumed run, draw the same ones."""
        torch.manual_seed(int(np.random.SeedSequence([self._seed, *words]).generate_state(1)[0]))

    def _gathered(self, found: list[Features]) -> Features:
        """Gather the features of all processes' pairs, as tensors that collect gradients."""
        words = self._processes.largest(widest(found), found[0]["images"].device)
        return {
            name: self._processes.gather(tensor).requires_grad_(name in _TRAINED)
            for name, tensor in joined(found, words).items()
        }

    def _own_gradients(self, leaves: Features) -> Features:
        """Return the gradients of this process's features; zeros if the objective ignored them."""
        return {
            name: (torch.zeros_like(leaf) if leaf.grad is None else leaf.grad)[
                self._processes.share(len(leaf))
            ]
            for name, leaf in leaves.items()
            if name in _TRAINED
        }


def _carry(features: Features, gradients: Features) -> None:
    """Propagate gradients of features through the towers."""
    moved = [name for name in gradients if features[name].requires_grad]
    torch.autograd.backward(
        [features[name] for name in moved],
        [
            gradients[name][:, : features[name].shape[1]] if name in _OF_WORDS else gradients[name]
            for name in moved
        ],
    )


def _widened(features: Tensor, words: int, name: str) -> Tensor:
    if name not in _OF_WORDS:
        return features
    missing = words - features.shape[1]
    return functional.pad(features, (0, 0, 0, missing) if features.ndim == 3 else (0, missing))


@contextmanager
def _without_traces(encoder: nn.Module) -> Iterator[None]:
    """Run a pass without gradients, and without a second update of batch statistics."""
    norms = list(_batch_norms(encoder))
    momenta = [module.momentum for module in norms]
    for module in norms:
        module.momentum = 0.0
    try:
        with torch.no_grad():
            yield
    finally:
        for module, momentum in zip(norms, momenta, strict=True):
            module.momentum = momentum


def _batch_norms(encoder: nn.Module) -> Iterator[Any]:
    return (module for module in encoder.modules() if isinstance(module, _BATCH_NORMS))


def _wide(features: Tensor) -> Tensor:
    """Convert half precision to single precision; return other tensors unchanged."""
    return features.float() if features.dtype in (torch.bfloat16, torch.float16) else features


def make_optimizer(
    encoder: nn.Module, objective: nn.Module, settings: TrainingSettings, loaded: Sequence[str] = ()
) -> torch.optim.Optimizer:
    """Return AdamW, with weight decay for matrices only.

    Args: loaded: names of the encoder's modules that start from loaded weights; their learning
        rate is `settings.loaded_rate` times that of the others.
    """
    slower = set()
    if settings.loaded_rate != 1:
        slower = {p for name in loaded for p in encoder.get_submodule(name).parameters()}
    found = list(parameters_of(encoder, objective))
    groups = [
        {
            "params": [p for p in found if (p.ndim > 1) is is_matrix and (p in slower) is is_slow],
            "weight_decay": settings.weight_decay if is_matrix else 0.0,
            "share": settings.loaded_rate if is_slow else 1.0,
        }
        for is_slow in (False, True)
        for is_matrix in (True, False)
    ]
    return torch.optim.AdamW([g for g in groups if g["params"]], lr=settings.learning_rate)


def parameters_of(encoder: nn.Module, objective: nn.Module) -> Iterator[nn.Parameter]:
    """Yield what training changes."""
    yield from encoder.parameters()
    yield from objective.parameters()
