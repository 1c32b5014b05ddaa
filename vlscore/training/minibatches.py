"""Batches of pairs, in an order that depends on the seed alone, prepared before their step."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.encoders import JointEncoder, Tokens
from vlscore.text import split_sentences
from vlscore.training.augmentation import AUGMENTATIONS
from vlscore.training.copies import Copy, ReportCopies
from vlscore.training.processes import TrainingProcesses
from vlscore.training.settings import TrainingSettings
from vlscore.training.training_pairs import Pairs, as_radiograph

Rows = NDArray[np.int64]
_BATCHES_AHEAD = 2


@dataclass(frozen=True, eq=False)
class PairBatch:
    """Pairs of one training step.

    Attributes:
        rows: (m,) numbers of the pairs, of all processes.
        same: (m, m) bool, as of PairFeatures.
        labels: (m, L), or None where the objective needs none.
        pixels: (k, channels, height, width) of this process's pairs.
        lateral: pixels of the lateral images of these pairs, m of them.
        has_lateral: (k,) bool, which pairs have one; None if only frontal images are used.
        tokens: tokens of this process's k reports; with copies, each report is followed by its K
            copies.
        copy_changes, copy_visible: (k, K) each, as of PairFeatures; None without copies.
    """

    rows: Rows
    same: Tensor
    labels: Tensor | None
    pixels: Tensor
    lateral: Tensor
    has_lateral: Tensor | None
    tokens: Tokens
    copy_changes: Tensor | None = None
    copy_visible: Tensor | None = None

    @property
    def texts_per_pair(self) -> int:
        """Return the number of rows of `tokens` for each pair."""
        return 1 if self.copy_changes is None else 1 + self.copy_changes.shape[1]


@dataclass(eq=False)
class BatchSource:
    """Source of batches of pairs for one encoder.

    Attributes:
        pairs: all pairs.
        rows: numbers of the pairs to use.
        labels: (n, L) finding labels of all pairs, if the objective needs them.
        copies: copies of the reports of all pairs, if the objective needs them.
        lateral: whether lateral images are used.
        threads: threads that read, augment and preprocess images.
    """

    pairs: Pairs
    rows: Rows
    encoder: JointEncoder
    settings: TrainingSettings
    processes: TrainingProcesses = field(default_factory=TrainingProcesses)
    labels: Tensor | None = None
    copies: ReportCopies | None = None
    lateral: bool = False
    threads: int = 1

    @property
    def steps_in_epoch(self) -> int:
        """Return the number of whole batches; the pairs left over differ in every epoch."""
        return len(self.rows) // self.settings.batch_size

    def training(self, first: int, steps: int) -> Iterator[PairBatch]:
        """Yield batches of the steps `first` to `steps`, each prepared while earlier ones run."""
        with (
            ThreadPoolExecutor(1, "vlscore-batches") as ahead,
            ThreadPoolExecutor(max(self.threads, 1), "vlscore-images") as pool,
        ):
            waiting = [
                ahead.submit(self._training_batch, step, pool)
                for step in range(first, min(first + _BATCHES_AHEAD, steps))
            ]
            try:
                for step in range(first, steps):
                    batch = waiting.pop(0).result()
                    if step + _BATCHES_AHEAD < steps:
                        later = step + _BATCHES_AHEAD
                        waiting.append(ahead.submit(self._training_batch, later, pool))
                    yield batch
            finally:
                for each in waiting:
                    each.cancel()

    def plain(self, rows: Rows) -> PairBatch:
        """Return a batch without augmentation, for validation, all of it for this process."""
        with ThreadPoolExecutor(max(self.threads, 1)) as pool:
            return self._made(rows, slice(None), None, pool)

    def _training_batch(self, step: int, pool: ThreadPoolExecutor) -> PairBatch:
        size = self.settings.batch_size
        epoch, position = divmod(step, self.steps_in_epoch)
        order = np.random.default_rng([self.settings.seed, epoch]).permutation(len(self.rows))
        rows = self.rows[order[position * size : (position + 1) * size]]
        return self._made(rows, self.processes.share(size), epoch, pool)

    def _made(
        self, rows: Rows, share: slice, epoch: int | None, pool: ThreadPoolExecutor
    ) -> PairBatch:
        own = rows[share]
        pixels = torch.stack(list(pool.map(lambda pair: self._pixels(pair, epoch), own)))
        lateral, has_lateral = pixels[:0], None
        if self.lateral:
            there = self.pairs.has_lateral[own]
            alone = AUGMENTATIONS.find(self.settings.augmentation).frontal_alone
            if epoch is not None and alone:
                drawn = [self._chance(epoch, int(pair), 4).random() for pair in own]
                there = there & (np.array(drawn) >= alone)
            has_lateral = torch.from_numpy(there)
            found = [self._pixels(pair, epoch, 1) for pair in own[has_lateral.numpy()]]
            lateral = torch.stack(found) if found else lateral
        copies = [self._copies_of(pair, epoch) for pair in own]
        texts = [
            text
            for pair, drawn in zip(own, copies, strict=True)
            for text in (self._text(pair, epoch), *(copy.text for copy in drawn))
        ]
        facts = None
        if self.copies is not None:
            facts = torch.tensor([[copy[1:] for copy in drawn] for drawn in copies]).float()
        return PairBatch(
            rows,
            torch.from_numpy(self.pairs.same(rows)),
            self.labels[torch.from_numpy(rows)] if self.labels is not None else None,
            pixels,
            lateral,
            has_lateral,
            self.encoder.tokenize(texts),
            None if facts is None else facts[..., 0],
            None if facts is None else facts[..., 1].bool(),
        )

    def _pixels(self, pair: int, epoch: int | None, view: int = 0) -> Tensor:
        """Return pixels of the frontal (0) or lateral image (1), augmented in training."""
        grey = self.pairs.image(pair, view)
        if epoch is not None:
            change = AUGMENTATIONS.find(self.settings.augmentation)
            grey = change(grey, self._chance(epoch, pair, view))
        return self.encoder.preprocess(as_radiograph(grey, self.pairs.ids[pair]))

    def _copies_of(self, pair: int, epoch: int | None) -> list[Copy]:
        if self.copies is None:
            return []
        # Validation uses the same copies in every epoch.
        key = [self.settings.seed, 0 if epoch is None else epoch + 1, int(pair), 3]
        return self.copies.draw(int(pair), np.random.default_rng(key))

    def _text(self, pair: int, epoch: int | None) -> str:
        text = self.pairs.texts[pair]
        if epoch is None or self.settings.sentences == "all":
            return text
        return reworded(text, self.settings.sentences, self._chance(epoch, pair, 2))

    def _chance(self, epoch: int, pair: int, what: int) -> np.random.Generator:
        return np.random.default_rng([self.settings.seed, epoch, int(pair), what])


def reworded(text: str, how: str, generator: np.random.Generator) -> str:
    """Return the sentences of a report in random order ("shuffled"), or "one" of them.

    >>> reworded("Clear lungs. No effusion.", "one", np.random.default_rng(0))
    'No effusion.'
    """
    found = (re.sub(r"\s+", " ", each.text).strip() for each in split_sentences(text))
    sentences = [sentence for sentence in found if sentence]
    if len(sentences) < 2:
        return text
    if how == "one":
        return sentences[int(generator.integers(len(sentences)))]
    return " ".join(sentences[k] for k in generator.permutation(len(sentences)))
