"""The authors' ways from a grey image, or a file, to the pixels their towers take."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vlscore.errors import UnreadableImage
from vlscore.images import Radiograph
from vlscore.images.quiet import hushed

if TYPE_CHECKING:
    from torch import Tensor

Grey = NDArray[np.uint8]
# Numbers in a square as long as a picture; as many as the largest radiographs have, twice.
_LARGEST_SQUARE = 200_000_000

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


def too_elongated(height: int, width: int, name: str) -> UnreadableImage:
    """The error for a strip of which a pipeline would make nothing, or gigabytes."""
    return UnreadableImage(
        f"{name}: {width}×{height} pixels are too elongated for a radiograph and its encoder"
    )


def read_with_opencv(path: Path, *, colour: bool = False) -> Grey:
    """cv2.imread: 8 bits whatever the file has; of 16 bits the upper 8 are kept.

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
    """PIL.Image.open, with 16-bit grey values cut off at 255, as Pillow 13 converts them."""
    with open_with_pillow(path) as image:
        image.load()
    if image.mode.startswith("I"):
        return Image.fromarray(np.clip(np.asarray(image), 0, 255).astype(np.uint8))
    return image


def to_unit_range(levels: "Tensor") -> "Tensor":
    """uint8 levels -> float32 in [0, 1], as torchvision's ToTensor divides them."""
    return levels.float().div(255)


def normalise(x: "Tensor", mean: tuple[float, ...], std: tuple[float, ...]) -> "Tensor":
    """(..., c, h, w) -> (..., len(mean), h, w), rounded as torchvision's Normalize rounds."""
    offsets, scales = (x.new_tensor(v)[:, None, None] for v in (mean, std))
    return (x - offsets) / scales


def centre_crop(grey: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """The middle square, as torchvision's CenterCrop places it; the image must not be smaller."""
    height, width = grey.shape[:2]
    top, left = round((height - side) / 2), round((width - side) / 2)
    return grey[top : top + side, left : left + side]


def read_deep(path: Path) -> NDArray[np.generic]:
    """Stored values as skimage.io.imread gives them: all bits; DICOM without window or inversion.

    Raises: UnreadableImage where the file cannot be read.
    """
    if is_dicom(path):
        return _stored_dicom_values(path)
    with open_with_pillow(path) as image:
        return np.asarray(image.convert("RGB") if image.mode == "P" else image)


def is_dicom(path: Path) -> bool:
    """Whether the file bears DICOM's mark."""
    try:
        with path.open("rb") as file:
            return file.read(132)[128:] == b"DICM"
    except OSError as error:
        raise UnreadableImage(f"{path}: {error.strerror}") from None


def _stored_dicom_values(path: Path) -> NDArray[np.generic]:
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
    """Pillow's image, open; raises UnreadableImage where Pillow cannot read it."""
    try:
        with hushed(), Image.open(path) as image:
            yield image
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise UnreadableImage(
            f'{path}: Pillow, which the image policy "authors" reads with, cannot read it '
            f"({error}); use the default image policy"
        ) from None


def check_square(height: int, width: int, name: str) -> None:
    """Refuse a strip of which a square would be made that takes gigabytes.

    Raises: UnreadableImage.
    """
    if max(height, width) ** 2 > _LARGEST_SQUARE:
        raise too_elongated(height, width, name)


def padded_square(radiograph: Radiograph, side: int) -> "Tensor":
    """Padded with black to a square, shrunk by area: (side, side) float32.

    Raises: UnreadableImage for a strip.
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


def standardise(pixels: "Tensor") -> "Tensor":
    """(..., height, width) -> the same of mean 0 and deviation 1; a constant image becomes 0."""
    mean = pixels.mean(dim=(-2, -1), keepdim=True)
    deviation = pixels.std(dim=(-2, -1), keepdim=True, correction=0)
    return (pixels - mean) / deviation.clamp(min=1e-4)
