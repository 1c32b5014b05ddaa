"""Read a radiograph from a file, an array or a picture in memory.

Pillow reads PNG, JPEG, TIFF and other files (`read_raster`), and its images in memory are accepted,
too (`radiograph_from_pil`). DICOM files go to `dicom`.
"""

import io
import os
import threading
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from vlscore.data.images.file_formats import head, is_dataset, is_dicom, opened, refusing_damage
from vlscore.data.images.policy import (
    LEAVE_OR_ACCEPT,
    ImagePolicy,
    full_range,
    hushed,
)
from vlscore.data.images.radiograph import Radiograph, check_size, radiograph_from_array
from vlscore.errors import UnreadableImage

_FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "JPEG2000", "PPM", "WEBP", "GIF")
_TIFF_PHOTOMETRIC, _ORIENTATION = 262, 274

_opening = threading.Lock()


def read_raster(stream: BinaryIO, policy: ImagePolicy, name: str) -> Radiograph:
    """Read a file with Pillow.

    The EXIF orientation is applied, transparency is laid on black, colour becomes ITU-R 601 luma.
    Raises: UnreadableImage that names the file and the reason.
    """
    with refusing_damage(name, "image data"), _open(stream, name) as image:
        check_size((image.height, image.width), policy, name)
        # The other pictures of an MPO are thumbnails or the other eye of a stereo camera.
        if image.format != "MPO" and (count := getattr(image, "n_frames", 1)) > 1:
            image.seek(policy.frame_of(count, "images", name))
        return radiograph_from_pil(image, policy, name=name)


def radiograph_from_pil(image: Image.Image, policy: ImagePolicy, *, name: str) -> Radiograph:
    """Make an upright radiograph from a PIL image of any mode."""
    check_size((image.height, image.width), policy, name)
    with refusing_damage(name, "image data"):  # an opened file is decoded only now
        values = _stored_values(image, name)
    return radiograph_from_array(values, policy, name=name, format=(image.format or "pil").lower())


def _open(stream: BinaryIO, name: str) -> Image.Image:
    """Open an image of any size: `check_size` replaces Pillow's own check."""
    Image.init()
    with _opening:
        most, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            return Image.open(stream, formats=_FORMATS)
        except UnidentifiedImageError:
            raise UnreadableImage(
                f"{name}: is no image that can be read; expected DICOM, PNG, JPEG or TIFF"
            ) from None
        finally:
            Image.MAX_IMAGE_PIXELS = most


def _stored_values(image: Image.Image, name: str) -> NDArray[Any]:
    """Return grey or RGB values as stored, dense tissue bright."""
    # Pillow itself inverts TIFF files of 8 bits that store dense tissue as dark.
    tags = getattr(image, "tag_v2", None) or {}
    white_is_zero = image.mode.startswith(("I", "F")) and tags.get(_TIFF_PHOTOMETRIC) == 0
    # Only if needed: Pillow would also copy images that are upright.
    if image.getexif().get(_ORIENTATION, 1) != 1:
        image = ImageOps.exif_transpose(image)
    if image.mode in ("P", "PA", "CMYK", "YCbCr", "LAB", "HSV"):
        transparent = image.mode == "PA" or "transparency" in image.info
        image = image.convert("RGBA" if transparent else "RGB")
    if image.mode in ("RGBA", "LA", "La", "RGBa"):
        colour = "RGB" if image.mode.startswith("RGB") else "L"
        with_alpha = image.convert("RGBA" if colour == "RGB" else "LA")
        canvas = Image.new(colour, image.size, 0)
        canvas.paste(with_alpha.convert(colour), mask=with_alpha.getchannel("A"))
        image = canvas
    values = np.asarray(image)
    if image.mode == "I" and values.size and values.min() >= 0 and values.max() <= 65535:
        # Pillow widens 16-bit files to 32 bits; the file's own depth decides the window.
        values = values.astype(np.uint16)
    if values.dtype.kind == "f":
        values = _floats_to_unit_range(values, name)
    if white_is_zero:
        values = 1 - values if values.dtype.kind == "f" else np.invert(values)
    return values


def _floats_to_unit_range(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Scale floats beyond [0, 1] by their own limits, because a float TIFF has no stated range."""
    if not np.isfinite(values).all():
        raise UnreadableImage(f"{name}: holds values that are not finite")
    low, high = float(values.min()), float(values.max())
    if low >= 0 and high <= 1:
        return values
    if low == high:
        raise UnreadableImage(f"{name}: every pixel has the value {low:g}; it shows nothing")
    return full_range(values, low, high)


def read_image(path: str | os.PathLike[str], policy: ImagePolicy | None = None) -> Radiograph:
    """Read a radiograph from a DICOM, PNG, JPEG or TIFF file, recognized by content.

    Args:
        path: the file.
        policy: how stored values become grey levels; default: `ImagePolicy()`.

    Returns: a Radiograph; its pixels are float32 (height, width) in [0, 1].
    Raises: UnreadableImage naming the file and the reason.
    """
    path = Path(path)
    with opened(path) as stream:
        return _read(stream, policy or ImagePolicy(), str(path))


def as_radiograph(image: Any, policy: ImagePolicy | None = None) -> Radiograph:
    """Make a radiograph from anything that holds one image; return a Radiograph unchanged.

    Args:
        image: a path; the content of a file as bytes, or the file opened in binary mode; a PIL
            image; an array or tensor; a pydicom Dataset, which does not change.
        policy: how stored values become grey levels; default: `ImagePolicy()`.

    Raises: UnreadableImage that names the image and the reason.
    """
    policy = policy or ImagePolicy()
    if isinstance(image, Radiograph):
        return image
    if isinstance(image, str | os.PathLike):
        return read_image(image, policy)
    if isinstance(image, bytes | bytearray | memoryview):
        return _read(io.BytesIO(image), policy, "bytes")
    if is_dataset(image):
        from vlscore.data.images.dicom import read_dicom

        with hushed():
            return _picture(read_dicom(image, policy, "pydicom Dataset"), policy)
    if any(base.__module__ == "PIL.Image" for base in type(image).__mro__):
        with hushed():
            return _picture(radiograph_from_pil(image, policy, name="PIL image"), policy)
    if hasattr(image, "detach") and hasattr(image, "cpu"):
        tensor = image.detach().cpu()
        # numpy has no bfloat16.
        values = (tensor.float() if tensor.is_floating_point() else tensor).numpy()
        return _picture(radiograph_from_array(values, policy, name="tensor"), policy)
    if isinstance(image, np.ndarray):
        return _picture(radiograph_from_array(image, policy, name="array"), policy)
    if hasattr(image, "read"):
        return _from_open_file(image, policy)
    raise UnreadableImage(
        f"a {type(image).__name__} is no image: give a path, a PIL image, an array or a tensor"
    )


def _read(stream: BinaryIO, policy: ImagePolicy, name: str) -> Radiograph:
    first = head(stream, name)
    if is_dicom(first):
        # Importing pydicom takes a third of a second, which a folder of PNG does not need. The
        # import sets the level of its logger, so it must come before `hushed`.
        from vlscore.data.images.dicom import read_dicom

        with hushed():
            radiograph = read_dicom(stream, policy, name)
    else:
        with hushed():
            radiograph = read_raster(stream, policy, name)
    return _picture(radiograph, policy)


def _from_open_file(file: Any, policy: ImagePolicy) -> Radiograph:
    name = getattr(file, "name", None)
    name = name if isinstance(name, str) else "file"
    try:
        content = file.read()
    except (OSError, ValueError) as error:
        raise UnreadableImage(f"{name}: cannot be read ({type(error).__name__})") from None
    if not isinstance(content, bytes):
        raise UnreadableImage(f"{name}: gives no bytes; open the file in binary mode")
    return _read(io.BytesIO(content), policy, name)


def _picture(radiograph: Radiograph, policy: ImagePolicy) -> Radiograph:
    """Return the radiograph, unless every pixel is equal and the policy refuses that."""
    if policy.other_modalities == "refuse" and radiograph.is_blank:
        raise UnreadableImage(
            f"{radiograph.name}: every pixel has the same value, it shows nothing; "
            + LEAVE_OR_ACCEPT
        )
    return radiograph
