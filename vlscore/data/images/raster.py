"""PNG, JPEG, TIFF and other pictures: read by Pillow, or by OpenCV where Pillow loses values."""

import threading
from dataclasses import replace
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from vlscore.data.images.deep_colour import (
    decoder_arguments,
    deep_values,
    inverted,
    is_reduced,
    tiff_values,
)
from vlscore.data.images.file_formats import refusing_damage
from vlscore.data.images.policy import ImagePolicy, full_range, limits
from vlscore.data.images.radiograph import Radiograph, check_size, radiograph_from_array, to_grey
from vlscore.data.images.tiff_tags import TIFF_HEADS, tiff_pictures
from vlscore.errors import UnreadableImage

# Formats, and Pillow's modules that read them; those of sixty others would take longer to load than
# a picture takes to decode.
_FORMATS = {
    "PNG": "Png",
    "JPEG": "Jpeg",
    "TIFF": "Tiff",
    "BMP": "Bmp",
    "JPEG2000": "Jpeg2K",
    "PPM": "Ppm",
    "WEBP": "WebP",
    "GIF": "Gif",
}
_TIFF_BITS, _TIFF_PHOTOMETRIC, _ORIENTATION, _TIFF_FORMAT = 258, 262, 274, 339
_UNSIGNED, _SIGNED = 1, 2
_REDUCED = "the picture was read with the upper 8 bits of each number"

_opening = threading.Lock()


def read_raster(stream: BinaryIO, policy: ImagePolicy, name: str) -> Radiograph:
    """Read a file that is no DICOM file.

    The EXIF orientation is applied, transparency is laid on black, colour becomes ITU-R 601 luma.
    Raises: UnreadableImage that names the file and the reason.
    """
    with refusing_damage(name, "image data"):
        if (radiograph := _read_other_tiff(stream, policy, name)) is not None:
            return radiograph
        with _open(stream, name) as image:
            check_size((image.height, image.width), policy, name)
            # The other pictures of an MPO are thumbnails or the other eye of a stereo camera.
            if image.format != "MPO" and (count := getattr(image, "n_frames", 1)) > 1:
                image.seek(policy.frame_of(count, "images", name))
            return radiograph_from_pil(image, policy, name=name)


def radiograph_from_pil(image: Image.Image, policy: ImagePolicy, *, name: str) -> Radiograph:
    """Make an upright radiograph from a PIL image of any mode."""
    check_size((image.height, image.width), policy, name)
    with refusing_damage(name, "image data"):  # an opened file is decoded only now
        notes = (_REDUCED,) if is_reduced(image) else ()
        values = deep_values(image, name)
        if values is not None:
            notes = ()
        else:
            values = _stored_values(image)
        return _of_values(values, policy, name, (image.format or "pil").lower(), notes)


def _of_values(
    values: NDArray[Any], policy: ImagePolicy, name: str, format: str, notes: tuple[str, ...] = ()
) -> Radiograph:
    """Make a radiograph of stored values; floats beyond [0, 1] take their own range.

    A file of floats has no stated range.
    """
    words = None
    if values.dtype.kind == "f":
        if not np.isfinite(values).all():
            raise UnreadableImage(f"{name}: holds values that are not finite")
        values = to_grey(values, name)
        low, high = float(values.min()), float(values.max())
        if low == high and not 0 <= low <= 1:
            raise UnreadableImage(f"{name}: every pixel has the value {low:g}; it shows nothing")
        if low < 0 or high > 1:
            low, high, words = limits(values, policy.window, stored=(low, high), bits=32)
            values = full_range(values, low, high)
    radiograph = radiograph_from_array(values, policy, name=name, format=format)
    provenance = replace(radiograph.provenance, notes=notes)
    radiograph.provenance = provenance if words is None else replace(provenance, window=words)
    return radiograph


def _read_other_tiff(stream: BinaryIO, policy: ImagePolicy, name: str) -> Radiograph | None:
    """Read a TIFF file of numbers for which Pillow has no mode; None for all other files."""
    is_tiff = stream.read(4) in TIFF_HEADS
    stream.seek(0)
    if not is_tiff:
        return None
    content = stream.read()
    stream.seek(0)
    pictures = tiff_pictures(content)
    if not pictures or all(each.is_common for each in pictures):
        return None
    frame = policy.frame_of(len(pictures), "images", name)
    picture = pictures[frame]
    if picture.is_common:
        return None
    check_size((picture.height, picture.width), policy, name)
    return _of_values(tiff_values(content, picture, frame, name), policy, name, "tiff")


def _open(stream: BinaryIO, name: str) -> Image.Image:
    """Open an image of any size: `check_size` replaces Pillow's own check."""
    for plugin in _FORMATS.values():
        import_module(f"PIL.{plugin}ImagePlugin")
    with _opening:
        most, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
        try:
            return Image.open(stream, formats=tuple(_FORMATS))
        except UnidentifiedImageError:
            raise UnreadableImage(
                f"{name}: is no image that can be read; expected DICOM, PNG, JPEG or TIFF"
            ) from None
        finally:
            Image.MAX_IMAGE_PIXELS = most


def _stored_values(image: Image.Image) -> NDArray[Any]:
    """Return grey or RGB values as stored, dense tissue bright."""
    # Pillow itself inverts TIFF files of 8 bits that store dense tissue as dark.
    tags = getattr(image, "tag_v2", None) or {}
    white_is_zero = image.mode.startswith(("I", "F")) and tags.get(_TIFF_PHOTOMETRIC) == 0
    key, is_file = _transparent_value(image), image.format is not None
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
    values = _with_the_files_sign(np.asarray(image), tags)
    if image.mode == "I" and is_file and values.size and 0 <= values.min() <= values.max() <= 65535:
        # Pillow widens 16-bit files to 32 bits; the file's own depth decides the window.
        values = values.astype(np.uint16)
    if key is not None:
        is_key = np.equal(values, key)
        values = np.where(
            is_key.all(axis=2, keepdims=True) if values.ndim == 3 else is_key, 0, values
        )
        values = values.astype(bool if image.mode == "1" else values.dtype)
    return inverted(values) if white_is_zero else values


def _transparent_value(image: Image.Image) -> Any:
    """Return the grey value or the colour that a PNG file states as transparent; None without one.

    Pillow gives it as the file has it, but scales grey values of 2 and 4 bits to 8.
    """
    found = image.info.get("transparency")
    if image.format != "PNG" or found is None or image.mode not in ("1", "L", "RGB", "I;16", "I"):
        return None
    if image.mode == "RGB":
        return np.array(found, np.uint8)
    raw_mode = str(decoder_arguments(image))
    bits = int(raw_mode.partition(";")[2]) if raw_mode.startswith("L;") else 8
    if image.mode == "L":
        return found * 255 // (2**bits - 1)
    return bool(found) if image.mode == "1" else found


def _with_the_files_sign(values: NDArray[Any], tags: Any) -> NDArray[Any]:
    """Return values of a TIFF file as its tags state them: Pillow mistakes some for others."""
    format = (tags.get(_TIFF_FORMAT) or (_UNSIGNED,))[0]
    bits = (tags.get(_TIFF_BITS) or (0,))[0]
    if bits == 8 and format == _SIGNED and values.dtype == np.uint8:
        return values.view(np.int8)
    if bits == 32 and format == _UNSIGNED and values.dtype == np.int32:
        return values.view(np.uint32)
    return values
