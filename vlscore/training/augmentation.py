"""Augmentations: random changes of a training image that do not make its report wrong.

No recipe mirrors an image: a report that says "left" would become wrong, and a heart on the other
side is a finding. Recipes of papers that mirror (ConVIRT, half of the time) leave out only that.
All random numbers come from one generator argument, so that a pair's image in an epoch depends on
the seed alone: not on threads, processes or an interruption.
"""

from dataclasses import dataclass

import numpy as np

from vlscore.core import Registry
from vlscore.training.training_pairs import Grey


@dataclass(frozen=True)
class Augmentation:
    """Recipe of an augmentation; new values are drawn for every image.

    Attributes:
        name: its name for `--augmentation`.
        source: where the numbers come from.
        crop: least share of the area in a crop, which has the image's proportions, at any position.
        rotation: largest angle in degrees, either way.
        shift: largest shift as a share of the longer side, along either axis.
        zoom: smallest and largest change of scale.
        brightness, contrast: largest change of the factor, as 0.4 for 0.6 to 1.4.
        blur: largest deviation of a Gaussian blur in pixels; the least is 0.1.
        stretch: largest change of the ratio of width and height, as 0.2 for 1 / 1.2 to 1.2.
        shading: largest change of brightness from the middle to an edge, as 0.3 for 0.7 to 1.3.
        frontal_alone: share of the studies of both views whose lateral image is left out.
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
    stretch: float = 0.0
    shading: float = 0.0
    frontal_alone: float = 0.0

    def __call__(self, grey: Grey, generator: np.random.Generator) -> Grey:
        """Change (height, width) grey levels; the result has the same shape."""
        import cv2

        drawn = generator.uniform(-1, 1, 11)
        if self.crop < 1 or self.rotation or self.shift or self.stretch or self.zoom != (1, 1):
            matrix = self._map(grey.shape[0], grey.shape[1], drawn)
            grey = cv2.warpAffine(grey, matrix, grey.shape[::-1], flags=cv2.INTER_LINEAR)  # type: ignore[assignment]
        if self.brightness or self.contrast:
            factor = (1 + self.brightness * drawn[5]) * (1 + self.contrast * drawn[6])
            # Contrast is about the image's mean, as torchvision's colour jitter has it.
            mean = (1 + self.brightness * drawn[5]) * float(grey.mean())
            changed = grey * factor + mean * (-self.contrast * drawn[6])
            grey = np.clip(np.rint(changed), 0, 255).astype(np.uint8)
        if self.shading:
            rows, columns = (np.linspace(-1, 1, length, dtype=np.float32) for length in grey.shape)
            factor = 1 + self.shading * (drawn[9] * rows[:, None] + drawn[10] * columns) / 2
            grey = np.clip(np.rint(grey * factor), 0, 255).astype(np.uint8)
        if self.blur:
            deviation = 0.1 + (self.blur - 0.1) * (drawn[7] + 1) / 2
            grey = cv2.GaussianBlur(grey, (0, 0), deviation)  # type: ignore[assignment]
        return grey

    def _map(self, height: int, width: int, drawn: "np.ndarray[tuple[int], np.dtype[np.float64]]"):  # type: ignore[no-untyped-def]
        """Return the (2, 3) affine map of pixel coordinates, x first, from image to result."""
        share = self.crop + (1 - self.crop) * (drawn[0] + 1) / 2
        margin = (1 - share**0.5) / 2
        smallest, largest = self.zoom
        scale = share**-0.5 * (smallest + (largest - smallest) * (drawn[4] + 1) / 2)
        angle = np.deg2rad(self.rotation * drawn[3])
        turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        turn *= (1 + self.stretch) ** (drawn[8] * np.array([[0.5], [-0.5]]))
        # From the middle of the first pixel to the middle of the last.
        length = np.array([width, height]) - 1
        centre = length / 2
        middle = centre + (margin * length + self.shift * length.max()) * drawn[1:3]
        return np.column_stack([turn, centre - turn @ middle])


# A crop has 224 of 256 pixels, at any position; an encoder's own crop is in the middle.
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
        "hospitals",
        "ours: as much as other machines and positions change images, for images from elsewhere",
        crop=0.7,
        rotation=10,
        brightness=0.2,
        contrast=0.2,
        blur=1.0,
        stretch=0.2,
        shading=0.3,
        frontal_alone=0.3,
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
