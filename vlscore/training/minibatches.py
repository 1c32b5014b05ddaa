"""Changes of a training image under which its report stays true.

No recipe mirrors an image: a report that says "left" would become wrong, and a heart on the other
side is a finding. Papers that mirror (ConVIRT, half of the time) are followed in all but that.
Everything is drawn from the generator given, so that a pair's image in an epoch depends on the seed
alone: not on threads, processes or an interruption.

Batches of pairs in an order that the seed alone decides, prepared ahead of their step.
"""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.core import Registry, TrainingProcesses
from vlscore.data import split_sentences
from vlscore.encoders import JointEncoder, Tokens
from vlscore.training.copies import Copy, ReportCopies
from vlscore.training.settings import TrainingSettings
from vlscore.training.training_pairs import Grey, Pairs, as_radiograph


@dataclass(frozen=True)
class Augmentation:
    """One recipe; every value is drawn anew for every image.

    Attributes:
        name: by which `--augmentation` finds it.
        source: where the numbers come from.
        crop: least share of the area that is kept, of the image's own proportions, anywhere in it.
        rotation: largest angle in degrees, either way.
        shift: largest shift as a share of the longer side, along either axis.
        zoom: smallest and largest change of scale.
        brightness, contrast: largest change of the factor, as 0.4 for 0.6 to 1.4.
        blur: largest deviation of a Gaussian blur in pixels; the least is 0.1.
    """

    name: str
    source: str
    crop: float = 1.0
    rotation: float = 0.0
    shift: float = 0.0
    zoom: tuple[float, float] = (1.0, 1.0)
    brightness: float = 0.0
    contrast: float = 0.0
    blur: float = 0.0

    def __call__(self, grey: Grey, generator: np.random.Generator) -> Grey:
        """(height, width) grey levels -> the same shape, changed."""
        import cv2

        drawn = generator.uniform(-1, 1, 8)
        if self.crop < 1 or self.rotation or self.shift or self.zoom != (1, 1):
            matrix = self._map(grey.shape[0], grey.shape[1], drawn)
            grey = cv2.warpAffine(grey, matrix, grey.shape[::-1], flags=cv2.INTER_LINEAR)  # type: ignore[assignment]
        if self.brightness or self.contrast:
            factor = (1 + self.brightness * drawn[5]) * (1 + self.contrast * drawn[6])
            # Contrast is about the image's mean, as torchvision's colour jitter has it.
            mean = (1 + self.brightness * drawn[5]) * float(grey.mean())
            changed = grey * factor + mean * (-self.contrast * drawn[6])
            grey = np.clip(np.rint(changed), 0, 255).astype(np.uint8)
        if self.blur:
            deviation = 0.1 + (self.blur - 0.1) * (drawn[7] + 1) / 2
            grey = cv2.GaussianBlur(grey, (0, 0), deviation)  # type: ignore[assignment]
        return grey

    def _map(self, height: int, width: int, drawn: "np.ndarray[tuple[int], np.dtype[np.float64]]"):  # type: ignore[no-untyped-def]
        """The (2, 3) affine map of pixel coordinates, x first, from the image to its change."""
        share = self.crop + (1 - self.crop) * (drawn[0] + 1) / 2
        room = (1 - share**0.5) / 2
        smallest, largest = self.zoom
        scale = share**-0.5 * (smallest + (largest - smallest) * (drawn[4] + 1) / 2)
        angle = np.deg2rad(self.rotation * drawn[3])
        turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        # From the middle of the first pixel to the middle of the last.
        length = np.array([width, height]) - 1
        centre = length / 2
        seen = centre + (room * length + self.shift * length.max()) * drawn[1:3]
        return np.column_stack([turn, centre - turn @ seen])


# Of 256 pixels a crop of 224 is kept, anywhere; an encoder's own crop is in the middle.
_CROP_224_OF_256 = 16 / 256

AUGMENTATIONS: Registry[Augmentation] = Registry("augmentation")
AUGMENTATIONS.register(Augmentation("none", "the image as it is"))
AUGMENTATIONS.register(
    Augmentation(
        "light",
        "ours: as much as leaves every finding in the image",
        crop=0.8,
        rotation=5,
        brightness=0.1,
        contrast=0.1,
    )
)
AUGMENTATIONS.register(
    Augmentation(
        "convirt",
        "Zhang et al., MLHC 2022, section 3.3, without the horizontal flip",
        crop=0.6,
        rotation=20,
        shift=0.1,
        zoom=(0.95, 1.05),
        brightness=0.4,
        contrast=0.4,
        blur=3.0,
    )
)
AUGMENTATIONS.register(
    Augmentation(
        "gloria",
        "the random crop in the authors' configs of GLoRIA, LIMITR and MGCA",
        shift=_CROP_224_OF_256,
    ),
    aliases=("limitr", "mgca"),
)
AUGMENTATIONS.register(
    Augmentation(
        "medclip",
        "the authors' examples/run_medclip_pretrain.py, without the horizontal flip",
        rotation=10,
        shift=2 * _CROP_224_OF_256,
        zoom=(0.8, 1.1),
        brightness=0.2,
        contrast=0.2,
    )
)


Rows = NDArray[np.int64]
_BATCHES_AHEAD = 2


@dataclass(frozen=True, eq=False)
class Batch:
    """The pairs of one step.

    Attributes:
        rows: (m,) which pairs, of all processes.
        same: (m, m) bool, as of PairFeatures.
        labels: (m, L), or None where the objective needs none.
        pixels: (k, channels, height, width) of this process's pairs.
        lateral: pixels of the lateral images that these have, m of them.
        has_lateral: (k,) bool, which have one; None where only frontal ones are looked at.
        tokens: of this process's k reports; where there are copies, of each report and its K
            copies behind one another.
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
    def texts_of_a_pair(self) -> int:
        """How many rows of `tokens` each pair has."""
        return 1 if self.copy_changes is None else 1 + self.copy_changes.shape[1]


class BatchSource:
    """Makes batches of pairs for one encoder.

    Args:
        pairs: all that there are.
        rows: which of them are used.
        labels: (n, L) finding labels of all pairs, where the objective needs them.
        copies: of the reports of all pairs, where the objective looks at them.
        lateral: whether lateral images are looked at.
        threads: that read, change and preprocess images.
    """

    def __init__(
        self,
        pairs: Pairs,
        rows: Rows,
        encoder: JointEncoder,
        settings: TrainingSettings,
        *,
        processes: TrainingProcesses = TrainingProcesses(),  # noqa: B008  it holds nothing that changes
        labels: Tensor | None = None,
        copies: ReportCopies | None = None,
        lateral: bool = False,
        threads: int = 1,
    ) -> None:
        self.pairs, self.rows = pairs, rows
        self._encoder, self._settings, self._processes = encoder, settings, processes
        self._labels, self._lateral, self._threads = labels, lateral, max(threads, 1)
        self._copies = copies
        self._augmentation = AUGMENTATIONS.find(settings.augmentation)

    @property
    def steps_in_epoch(self) -> int:
        """Whole batches; the pairs left over are others in every epoch."""
        return len(self.rows) // self._settings.batch_size

    def training(self, first: int, steps: int) -> Iterator[Batch]:
        """The batches of the steps `first` to `steps`, each made while those before are used."""
        with (
            ThreadPoolExecutor(1, "vlscore-batches") as ahead,
            ThreadPoolExecutor(self._threads, "vlscore-images") as pool,
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

    def plain(self, rows: Rows) -> Batch:
        """A batch of pairs as they are, for validation; all of it is this process's."""
        with ThreadPoolExecutor(self._threads) as pool:
            return self._made(rows, slice(None), None, pool)

    def _training_batch(self, step: int, pool: ThreadPoolExecutor) -> Batch:
        size = self._settings.batch_size
        epoch, position = divmod(step, self.steps_in_epoch)
        order = np.random.default_rng([self._settings.seed, epoch]).permutation(len(self.rows))
        rows = self.rows[order[position * size : (position + 1) * size]]
        return self._made(rows, self._processes.share(size), epoch, pool)

    def _made(self, rows: Rows, share: slice, epoch: int | None, pool: ThreadPoolExecutor) -> Batch:
        own = rows[share]
        pixels = torch.stack(list(pool.map(lambda pair: self._pixels(pair, epoch), own)))
        lateral, has_lateral = pixels[:0], None
        if self._lateral:
            has_lateral = torch.from_numpy(self.pairs.has_lateral[own])
            found = [self._lateral_pixels(pair, epoch) for pair in own[has_lateral.numpy()]]
            lateral = torch.stack(found) if found else lateral
        same = self.pairs.same(rows, duplicates_apart=self._settings.duplicates_apart)
        copies = [self._copies_of(pair, epoch) for pair in own]
        texts = [
            text
            for pair, drawn in zip(own, copies, strict=True)
            for text in (self._text(pair, epoch), *(copy.text for copy in drawn))
        ]
        facts = None
        if self._copies is not None:
            facts = torch.tensor([[copy[1:] for copy in drawn] for drawn in copies]).float()
        return Batch(
            rows,
            torch.from_numpy(same),
            self._labels[torch.from_numpy(rows)] if self._labels is not None else None,
            pixels,
            lateral,
            has_lateral,
            self._encoder.tokenize(texts),
            None if facts is None else facts[..., 0],
            None if facts is None else facts[..., 1].bool(),
        )

    def _pixels(self, pair: int, epoch: int | None) -> Tensor:
        return self._seen(self.pairs.frontal(pair), pair, epoch, 0)

    def _lateral_pixels(self, pair: int, epoch: int | None) -> Tensor:
        grey = self.pairs.lateral(pair)
        assert grey is not None
        return self._seen(grey, pair, epoch, 1)

    def _seen(self, grey: Grey, pair: int, epoch: int | None, view: int) -> Tensor:
        if epoch is not None:
            change: Augmentation = self._augmentation
            grey = change(grey, self._chance(epoch, pair, view))
        return self._encoder.preprocess(as_radiograph(grey, self.pairs.ids[pair]))

    def _copies_of(self, pair: int, epoch: int | None) -> list[Copy]:
        if self._copies is None:
            return []
        # Validation sees the same copies in every epoch.
        key = [self._settings.seed, 0 if epoch is None else epoch + 1, int(pair), 3]
        return self._copies.draw(int(pair), np.random.default_rng(key))

    def _text(self, pair: int, epoch: int | None) -> str:
        text = self.pairs.texts[pair]
        if epoch is None or self._settings.sentences == "all":
            return text
        return reworded(text, self._settings.sentences, self._chance(epoch, pair, 2))

    def _chance(self, epoch: int, pair: int, what: int) -> np.random.Generator:
        return np.random.default_rng([self._settings.seed, epoch, int(pair), what])


def reworded(text: str, how: str, generator: np.random.Generator) -> str:
    """The sentences of a report in any order ("shuffled"), or "one" of them.

    >>> reworded("Clear lungs. No effusion.", "one", np.random.default_rng(0))
    'No effusion.'
    """
    sentences = _sentences(text)
    if len(sentences) < 2:
        return text
    if how == "one":
        return sentences[int(generator.integers(len(sentences)))]
    return " ".join(sentences[k] for k in generator.permutation(len(sentences)))


def _sentences(text: str) -> Sequence[str]:
    found = [re.sub(r"\s+", " ", each.text).strip() for each in split_sentences(text)]
    return [sentence for sentence in found if sentence]
