"""Pictures of more than 8 bits with several numbers a pixel, and TIFF that Pillow cannot read.

Pillow reduces them to the upper 8 bits, or does not open them. OpenCV reads them whole; PPM files
are read here, because OpenCV swaps their bytes.
"""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from vlscore.data.images.codestreams import codestream
from vlscore.data.images.tiff_tags import TiffPicture, plane_of, tiff_pictures
from vlscore.errors import UnreadableImage

_ORIENTATION = 274
_OF_EIGHT_BITS = ("RGB", "RGBA", "RGBX", "RGBa", "LA", "La", "CMYK", "LAB")
_WORDS = {"u": "whole numbers", "i": "signed numbers", "f": "floats"}
_PPM_WORD = re.compile(rb"(?:\s|#[^\n\r]*[\n\r])*(\S+)")


def deep_values(image: Image.Image, name: str) -> NDArray[Any] | None:
    """Return the values (height, width) or (height, width, 3) of a picture Pillow would reduce.

    The picture is upright, and transparency lies on black. None for pictures that Pillow reads
    whole, and for those that OpenCV cannot read either (CMYK).

    Args: image: opened from a file, and not loaded yet.
    Raises: any error of OpenCV on damaged files.
    """
    stream: Any = getattr(image, "fp", None)
    arguments = decoder_arguments(image)
    if stream is None or arguments is None or image.mode not in _OF_EIGHT_BITS:
        return None
    is_ppm = image.format == "PPM" and isinstance(arguments, tuple) and arguments[-1] > 255
    if not (is_ppm or is_reduced(image) or image.format in ("JPEG2000", "TIFF")):
        return None
    content = _content(stream)
    if is_ppm:
        return _ppm(content)
    if image.format == "TIFF":
        frame = image.tell()
        pictures = tiff_pictures(content)
        if frame >= len(pictures) or pictures[frame].is_common:
            return None
        return tiff_values(content, pictures[frame], frame, name)
    bits = 16
    if image.format == "JPEG2000":
        head = codestream(content)
        if head is None or head.bits <= 8:
            return None
        bits = head.bits
    decoded = _on_black(_decoded(content, 0), 2.0**bits - 1)
    return turned(decoded, image.getexif().get(_ORIENTATION, 1))


def decoder_arguments(image: Image.Image) -> Any:
    """Return what Pillow passes to its decoder of a file; None for loaded and other images."""
    tiles: Any = getattr(image, "tile", None)
    return tiles[0][3] if tiles else None


def is_reduced(image: Image.Image) -> bool:
    """Return True if Pillow will read a file with the upper half of its 16 bits.

    Args: image: opened from a file, and not loaded yet.
    """
    arguments = decoder_arguments(image)
    raw_mode = str(arguments[0] if isinstance(arguments, tuple) and arguments else arguments)
    return image.mode in _OF_EIGHT_BITS and ";16" in raw_mode


def tiff_values(content: bytes, picture: TiffPicture, frame: int, name: str) -> NDArray[Any]:
    """Return the values of a picture of a TIFF file, upright, dense tissue bright.

    Raises: UnreadableImage for kinds of pictures that OpenCV cannot read or reads with other
        numbers; any error of OpenCV on damaged files.
    """
    if picture.orientation_at is not None and picture.orientation != 1:
        # OpenCV turns some pictures and fails on others.
        at, order = picture.orientation_at
        content = content[:at] + (b"\1\0" if order == "<" else b"\0\1") + content[at + 2 :]
    # OpenCV mistakes planes for rows.
    found = _of_planes(content, picture) if picture.is_planar else _decoded(content, frame)
    shape = (picture.height, picture.width, *([picture.samples] if picture.samples > 1 else []))
    kind = f"{picture.kind}{picture.bits // 8}"
    if found is None or found.shape != shape or found.dtype != np.dtype(kind):
        raise UnreadableImage(
            f"{name}: is a TIFF of {picture.samples} {_WORDS[picture.kind]} of {picture.bits} bits "
            "a pixel, which cannot be read; convert it to one of 8 or 16 bits, grey or RGB"
        )
    # OpenCV inverts those of 8 bits itself.
    if picture.photometric == 0 and picture.samples == 1 and picture.bits > 8:
        found = inverted(found)
    if found.ndim == 3:
        most = float(np.iinfo(found.dtype).max) if found.dtype.kind != "f" else 1.0
        found = _on_black(found, most if picture.alpha == 2 else None)
    return turned(found, picture.orientation)


def _of_planes(content: bytes, picture: TiffPicture) -> NDArray[Any] | None:
    if content[2:4] not in (b"*\0", b"\0*"):
        return None
    planes = [_decoded(plane_of(content, picture, k), 0) for k in range(picture.samples)]
    found = [each for each in planes if each is not None]
    return np.stack(found, -1) if len(found) == len(planes) else None


def inverted(values: NDArray[Any]) -> NDArray[Any]:
    """Return values that are bright where `values` are dark."""
    if values.dtype.kind != "f":
        flipped: NDArray[Any] = np.invert(values)
        return flipped
    # Floats beyond [0, 1] take their own range.
    bright: NDArray[Any] = 1 - values if values.min() >= 0 and values.max() <= 1 else -values
    return bright


def turned(values: NDArray[Any], orientation: int) -> NDArray[Any]:
    """Return a picture upright, by the number of its EXIF or TIFF orientation."""
    if orientation in (5, 6, 7, 8):
        values = np.swapaxes(values, 0, 1)
    if orientation in (2, 3, 6, 7):
        values = values[:, ::-1]
    if orientation in (3, 4, 7, 8):
        values = values[::-1]
    return values


def _content(stream: Any) -> bytes:
    before = stream.tell()
    stream.seek(0)
    content: bytes = stream.read()
    stream.seek(before)
    return content


def _decoded(content: bytes, frame: int) -> NDArray[Any] | None:
    """Decode a picture with OpenCV, colours in the order red, green, blue; None if it cannot."""
    import cv2

    encoded = np.frombuffer(content, np.uint8)
    level = cv2.utils.logging.getLogLevel()
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    try:
        if frame:
            each = cv2.imdecodemulti(encoded, cv2.IMREAD_UNCHANGED, range=(frame, frame + 1))[1]
            found: NDArray[Any] | None = each[0] if each else None
        else:
            found = cv2.imdecode(encoded, cv2.IMREAD_UNCHANGED)
    finally:
        cv2.utils.logging.setLogLevel(level)
    if found is None or found.ndim == 2:
        return found
    in_order: NDArray[Any] = found[..., [2, 1, 0, 3][: found.shape[2]]]
    return in_order


def _on_black(values: NDArray[Any] | None, most: float | None) -> NDArray[Any]:
    """Lay (height, width, 4) on black by its alpha; return other pictures unchanged.

    Args: most: alpha of what is not transparent; None if the colours are multiplied by it already.
    """
    if values is None:
        raise ValueError("OpenCV cannot decode the picture")
    if values.ndim == 2 or values.shape[2] != 4:
        return values
    colours, alpha = values[..., :3], values[..., 3:]
    if most is None or (alpha >= most).all():
        return colours
    weighted: NDArray[Any] = colours * (np.clip(alpha, 0, most) / most)
    rounded = weighted if colours.dtype.kind == "f" else np.rint(weighted)
    return rounded.astype(colours.dtype)


def _ppm(content: bytes) -> NDArray[Any]:
    """Read a colour PPM of 16 bits, binary or plain."""
    tokens: list[bytes] = []
    position = 0
    while len(tokens) < 4:
        match = _PPM_WORD.match(content, position)
        if match is None:
            raise ValueError("the head of the PPM file ends")
        tokens.append(match[1])
        position = match.end()
    width, height = int(tokens[1]), int(tokens[2])
    count = width * height * 3
    if tokens[0] == b"P6":
        values = np.frombuffer(content, ">u2", count, position + 1)
    else:
        values = np.array(content[position:].split()[:count], np.uint16)
    return values.reshape(height, width, 3).astype(np.uint16)
