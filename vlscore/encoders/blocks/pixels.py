"""Pixels: image pipelines, and the authors' ways from a grey image or file to pixels.

`Uint8Pipeline` is a pipeline whose picture has 8 bits until its last step. So one byte a pixel is
sent between processes, to the disk and to the device, and the last step (scaling, copying to three
channels) runs on the device for a whole batch. `PadCropPipeline` is GLoRIA's, which LIMITR, MGCA
and its ConVIRT also use.
"""

import contextlib
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vlscore.data import ImagePolicy, Radiograph, as_radiograph, hushed
from vlscore.encoders.image_pipeline import ImagePipeline, reading_as_authors
from vlscore.errors import UnreadableImage

if TYPE_CHECKING:
    from torch import Tensor


Grey = NDArray[np.uint8]

# Limit of pixels of a padded square: twice as many as the largest radiographs have.
_LARGEST_SQUARE = 200_000_000

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def too_elongated(height: int, width: int, name: str) -> UnreadableImage:
    """Return the error for an image so elongated that a pipeline cannot use it."""
    return UnreadableImage(
        f"{name}: {width}×{height} pixels are too elongated for a radiograph and its encoder"
    )


def read_with_opencv(path: Path, *, colour: bool = False) -> Grey:
    """Read a file with cv2.imread: always 8 bits, of 16 bits the upper 8.

    Returns: (height, width), or (height, width, 3) in the order red, green, blue.
    Raises: UnreadableImage where OpenCV cannot read the file.
    """
    import cv2

    try:
        pixels = cv2.imread(str(path), cv2.IMREAD_COLOR if colour else cv2.IMREAD_GRAYSCALE)
    except cv2.error:  # more pixels than OpenCV takes
        pixels = None
    if pixels is None:
        raise UnreadableImage(
            f'{path}: OpenCV, which the image policy "authors" reads with, cannot read it; '
            "use the default image policy"
        )
    return np.ascontiguousarray(pixels[..., ::-1] if colour else pixels, dtype=np.uint8)


def read_with_pillow(path: Path) -> Image.Image:
    """Open a file with Pillow; 16-bit grey values are clipped at 255, as in Pillow 13."""
    with open_with_pillow(path) as image:
        image.load()
    if image.mode.startswith("I"):
        return Image.fromarray(np.clip(np.asarray(image), 0, 255).astype(np.uint8))
    return image


def to_unit_range(levels: "Tensor") -> "Tensor":
    """Convert uint8 levels to float32 in [0, 1], as torchvision's ToTensor does."""
    return levels.float().div(255)


def normalise(x: "Tensor", mean: tuple[float, ...], std: tuple[float, ...]) -> "Tensor":
    """Normalise (..., c, h, w) -> (..., len(mean), h, w), rounded as torchvision's Normalize."""
    offsets, scales = (x.new_tensor(v)[:, None, None] for v in (mean, std))
    return (x - offsets) / scales


def centre_crop(grey: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Crop the middle square as torchvision's CenterCrop; the image must not be smaller."""
    height, width = grey.shape[:2]
    top, left = round((height - side) / 2), round((width - side) / 2)
    return grey[top : top + side, left : left + side]


def read_deep(path: Path) -> NDArray[np.generic]:
    """Read stored values as skimage.io.imread: all bits; DICOM without window or inversion.

    Raises: UnreadableImage where the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            is_dicom = file.read(132)[128:] == b"DICM"
    except OSError as error:
        raise UnreadableImage(f"{path}: {error.strerror}") from None
    if not is_dicom:
        with open_with_pillow(path) as image:
            return np.asarray(image.convert("RGB") if image.mode == "P" else image)
    import pydicom

    try:
        # Warnings and messages may quote header values, and a header names its patient.
        with hushed():
            return pydicom.dcmread(path).pixel_array
    except Exception as error:  # pydicom and its decoders raise many unrelated types
        raise UnreadableImage(
            f"{path}: no pixels could be decoded ({type(error).__name__})"
        ) from None


@contextlib.contextmanager
def open_with_pillow(path: Path) -> Iterator[Image.Image]:
    """Open an image with Pillow. Raises: UnreadableImage if Pillow cannot read it."""
    try:
        with hushed(), Image.open(path) as image:
            yield image
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise UnreadableImage(
            f'{path}: Pillow, which the image policy "authors" reads with, cannot read it '
            f"({error}); use the default image policy"
        ) from None


def check_square(height: int, width: int, name: str) -> None:
    """Reject an image so elongated that padding it to a square would need gigabytes.

    Raises: UnreadableImage.
    """
    if max(height, width) ** 2 > _LARGEST_SQUARE:
        raise too_elongated(height, width, name)


def padded_square(radiograph: Radiograph, side: int) -> "Tensor":
    """Pad with black to a square and shrink by area: (side, side) float32.

    Raises: UnreadableImage for an image that is too elongated.
    """
    import cv2
    import torch

    pixels = radiograph.pixels
    height, width = pixels.shape
    check_square(height, width, radiograph.name)
    longest = max(height, width)
    top, left = (longest - height) // 2, (longest - width) // 2
    square = np.zeros((longest, longest), dtype=np.float32)
    square[top : top + height, left : left + width] = pixels
    return torch.from_numpy(cv2.resize(square, (side, side), interpolation=cv2.INTER_AREA))


def equalised_square(radiograph: Radiograph, side: int) -> "Tensor":
    """Stretch to a square, shrink by area, and equalise the histogram: (side, side) float32.

    All grey levels are then equally frequent, so that exposure and window of a machine matter less.
    Levels are from 0 to 255.
    """
    import cv2
    import torch

    grey = cv2.resize(radiograph.to_uint8(), (side, side), interpolation=cv2.INTER_AREA)
    return torch.from_numpy(cv2.equalizeHist(grey).astype(np.float32))


def standardise(pixels: "Tensor") -> "Tensor":
    """Scale each (..., height, width) to mean 0 and standard deviation 1; constant images to 0."""
    mean = pixels.mean(dim=(-2, -1), keepdim=True)
    deviation = pixels.std(dim=(-2, -1), keepdim=True, correction=0)
    return (pixels - mean) / deviation.clamp(min=1e-4)


class Uint8Pipeline(ImagePipeline):
    """A pipeline of two steps: grey levels at the encoder's size, then pixels."""

    @staticmethod
    @abstractmethod
    def read_as_authors(path: Path) -> Any:
        """Read a file exactly as the authors' code reads it, for `uint8_pixels`."""

    @abstractmethod
    def uint8_pixels(self, picture: Any, name: str) -> Grey:
        """Convert one picture to uint8 (channels, height, width), of one size for all.

        Args:
            picture: (h, w) uint8, a radiograph's grey levels; or what `read_as_authors` returned.
            name: its name in messages.
        """

    @abstractmethod
    def from_stored(self, stored: "Tensor") -> "Tensor":
        """Convert uint8 (n, channels, height, width) to float32 pixels, on the same device."""

    def __call__(self, radiograph: Radiograph) -> "Tensor":
        return self._pixels(self.uint8_pixels(radiograph.to_uint8(), radiograph.name))

    def as_authors(self, path: Path) -> "Tensor":
        return self._pixels(self._uint8_as_authors(path))

    def load_stored(self, image: Any, policy: ImagePolicy) -> NDArray[Any]:
        if policy.as_authors:
            return reading_as_authors(self._uint8_as_authors, image)
        radiograph = as_radiograph(image, policy)
        return self.uint8_pixels(radiograph.to_uint8(), radiograph.name)

    def _uint8_as_authors(self, path: Path) -> Grey:
        return self.uint8_pixels(self.read_as_authors(path), str(path))

    def _pixels(self, levels: Grey) -> "Tensor":
        import torch

        return self.from_stored(torch.from_numpy(levels)[None])[0]


SIDE = 256
CROP = 224


class PadCropPipeline(Uint8Pipeline):
    """Resize the longest side to 256 by OpenCV's area interpolation, pad with black to a square,
    crop the middle 224 pixels, and scale to [-1, 1] in three equal channels."""

    read_as_authors = staticmethod(read_with_opencv)

    def identity(self) -> str:
        # Squares of some sizes have had other pixels, which caches and signatures must not mix up.
        return f"{super().identity()}, sides truncated"

    def uint8_pixels(self, picture: Grey, name: str) -> Grey:
        height, width = fitted_shape(picture.shape[0], picture.shape[1], name)
        square = pad_to_square(self.resize(picture, height, width))
        return centre_crop(square, CROP)[np.newaxis].copy()

    def resize(self, grey: Grey, height: int, width: int) -> Grey:
        """Resize to uint8 (height, width)."""
        import cv2

        resized = cv2.resize(grey, (width, height), interpolation=cv2.INTER_AREA)
        return np.asarray(resized, dtype=np.uint8)

    def from_stored(self, stored: "Tensor") -> "Tensor":
        return to_unit_range(stored).sub(0.5).div(0.5).expand(-1, 3, -1, -1)


def read_grey_with_pillow(path: Path) -> Grey:
    """Read a file's grey levels with Pillow; 16-bit grey values are clipped at 255."""
    return np.asarray(read_with_pillow(path).convert("L"))


class PillowPadCropPipeline(PadCropPipeline):
    """The same with Pillow's bilinear interpolation, as in the package `vlscore-cxr`."""

    read_as_authors = staticmethod(read_grey_with_pillow)  # type: ignore[assignment]

    def resize(self, grey: Grey, height: int, width: int) -> Grey:
        resized = Image.fromarray(grey).resize((width, height), Image.Resampling.BILINEAR)
        return np.asarray(resized)


def fitted_shape(height: int, width: int, name: str = "image") -> tuple[int, int]:
    """Return height and width of an image that is resized to fit (256, 256).

    Raises: UnreadableImage if the shorter side would become 0.

    The authors compute the shorter side in float64 and truncate it. They take the width of a
    square for it, which so becomes 255 at some sizes:

    >>> fitted_shape(300, 100), fitted_shape(500, 500), fitted_shape(498, 498)
    ((256, 85), (256, 256), (256, 255))
    """
    ratio = SIDE / float(max(height, width))
    fitted = (
        (SIDE, int(float(width) * ratio)) if height >= width else (int(float(height) * ratio), SIDE)
    )
    if not all(fitted):
        raise too_elongated(height, width, name)
    return fitted


def pad_to_square(grey: Grey) -> Grey:
    """Pad (h, w), of which one is 256, with black to (256, 256): evenly, the odd row last.

    >>> pad_to_square(np.full((256, 85), 9, np.uint8)).any(axis=0).nonzero()[0][[0, -1]].tolist()
    [85, 169]
    """
    height, width = grey.shape
    rows, columns = SIDE - height, SIDE - width
    before = rows // 2, columns // 2
    padding = [(before[0], rows - before[0]), (before[1], columns - before[1])]
    return np.pad(grey, padding)
