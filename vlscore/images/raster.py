"""PNG, JPEG, TIFF and other files that Pillow reads."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from vlscore.errors import UnreadableImage
from vlscore.images.arrays import check_size, radiograph_from_array
from vlscore.images.policy import ImagePolicy
from vlscore.images.radiograph import Radiograph

_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "JPEG2000", "PPM", "WEBP", "GIF")


def read_raster(path: Path, policy: ImagePolicy) -> Radiograph:
    """Read a file with Pillow.

    The EXIF orientation is applied, transparency is laid on black, colour becomes ITU-R 601 luma.
    Raises: UnreadableImage naming the file and the reason.
    """
    name = str(path)
    Image.init()
    try:
        # The size check below replaces Pillow's own, which only warns up to twice its limit.
        with _no_limit(), Image.open(path, formats=_FORMATS) as image:
            check_size((image.height, image.width), policy, name)
            frames = getattr(image, "n_frames", 1)
            if frames > 1 and image.format != "MPO":
                _seek(image, policy.frame, frames, name)
            image.load()
            upright = ImageOps.exif_transpose(image)
            return radiograph_from_pil(upright, policy, name=name, format=image.format)
    except UnidentifiedImageError:
        raise UnreadableImage(
            f"{name}: is no image that can be read; expected DICOM, PNG, JPEG or TIFF"
        ) from None
    except UnreadableImage:
        raise
    except (OSError, SyntaxError, ValueError, EOFError, MemoryError, OverflowError) as error:
        raise UnreadableImage(
            f"{name}: the image data is damaged or truncated ({type(error).__name__}); "
            "fetch or export the file again"
        ) from None


def radiograph_from_pil(
    image: Image.Image, policy: ImagePolicy, *, name: str, format: str | None = None
) -> Radiograph:
    """A radiograph from a PIL image of any mode."""
    format = (format or image.format or "pil").lower()
    if image.mode in ("P", "PA", "CMYK", "YCbCr", "LAB", "HSV"):
        transparent = image.mode == "PA" or "transparency" in image.info
        image = image.convert("RGBA" if transparent else "RGB")
    if image.mode in ("RGBA", "LA", "La", "RGBa"):
        image = _on_black(image)
    values = np.asarray(image)
    if image.mode == "I" and values.min() >= 0 and values.max() <= 65535:
        # Pillow widens 16-bit files to 32 bits; the file's own depth decides the window.
        values = values.astype(np.uint16)
    if values.dtype.kind == "f":
        # Float TIFFs have no stated range; their own is the only one to go by.
        values = _floats_to_stored(values, name)
    return radiograph_from_array(values, policy, name=name, format=format)


def _floats_to_stored(values: np.ndarray, name: str) -> np.ndarray:
    if not np.isfinite(values).all():
        raise UnreadableImage(f"{name}: holds values that are not finite")
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        return values
    if low == high:
        raise UnreadableImage(f"{name}: every pixel has the value {low:g}; it shows nothing")
    return ((values - low) / (high - low)).astype(np.float32)


def _on_black(image: Image.Image) -> Image.Image:
    colour = "RGB" if image.mode.startswith("RGB") else "L"
    with_alpha = image.convert("RGBA" if colour == "RGB" else "LA")
    canvas = Image.new(colour, image.size, 0)
    canvas.paste(with_alpha.convert(colour), mask=with_alpha.getchannel("A"))
    return canvas


def _seek(image: Image.Image, frame: int | None, frames: int, name: str) -> None:
    if frame is None:
        raise UnreadableImage(
            f"{name}: holds {frames} images; name one with ImagePolicy(frame=...), counted from 0"
        )
    if not 0 <= frame < frames:
        raise UnreadableImage(f"{name}: has no frame {frame}; it holds {frames}")
    image.seek(frame)


class _no_limit:
    """Switch Pillow's decompression-bomb check off, for ours has run on the header already."""

    def __enter__(self) -> None:
        self._limit = Image.MAX_IMAGE_PIXELS
        Image.MAX_IMAGE_PIXELS = None

    def __exit__(self, *_: object) -> None:
        Image.MAX_IMAGE_PIXELS = self._limit
