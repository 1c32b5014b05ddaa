"""From a file, an array or a picture in memory to a radiograph."""

import io
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import UnreadableImage
from vlscore.images.arrays import radiograph_from_array, require_no_colour_noise
from vlscore.images.files import head, is_dataset, is_dicom, opened
from vlscore.images.policy import LEAVE_OR_ACCEPT, ImagePolicy
from vlscore.images.quiet import hushed
from vlscore.images.radiograph import Radiograph
from vlscore.images.raster import radiograph_from_pil, read_raster

# What is read of an open file; no image that max_pixels admits by default is larger.
_MOST_BYTES = 1 << 31


def read_image(path: str | os.PathLike[str], policy: ImagePolicy | None = None) -> Radiograph:
    """Read a radiograph from a DICOM, PNG, JPEG or TIFF file, told apart by content.

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
    """A radiograph from anything that holds one image; from a Radiograph as it is.

    Args:
        image: a path; the content of a file as bytes, or the file opened in binary mode; a PIL
            image; an array or tensor; a pydicom Dataset, which stays as it is.
        policy: how stored values become grey levels; default: `ImagePolicy()`.

    Raises: UnreadableImage naming what was given and the reason.
    """
    policy = policy or ImagePolicy()
    if isinstance(image, Radiograph):
        return image
    if isinstance(image, str | os.PathLike):
        return read_image(image, policy)
    if isinstance(image, bytes | bytearray | memoryview):
        return _read(io.BytesIO(image), policy, "bytes")
    if is_dataset(image):
        from vlscore.images.dicom import radiograph_from_dataset

        with hushed():
            return _picture(radiograph_from_dataset(image, policy, "pydicom Dataset"), policy)
    if any(base.__module__ == "PIL.Image" for base in type(image).__mro__):
        with hushed():
            return _picture(radiograph_from_pil(image, policy, name="PIL image"), policy)
    if hasattr(image, "detach") and hasattr(image, "cpu"):
        return _from_values(_numpy(image), policy, "tensor")
    if isinstance(image, np.ndarray):
        return _from_values(image, policy, "array")
    if hasattr(image, "read"):
        return _from_open_file(image, policy)
    raise UnreadableImage(
        f"a {type(image).__name__} is no image: give a path, a PIL image, an array or a tensor"
    )


def _read(stream: BinaryIO, policy: ImagePolicy, name: str) -> Radiograph:
    first = head(stream, name)
    if is_dicom(first):
        # Importing pydicom takes a third of a second, which a folder of PNG can do without. The
        # import sets the level of its logger, and must come before that is silenced.
        from vlscore.images.dicom import read_dicom

        with hushed():
            radiograph = read_dicom(stream, policy, name)
    else:
        with hushed():
            radiograph = read_raster(stream, first, policy, name)
    return _picture(radiograph, policy)


def _from_open_file(file: Any, policy: ImagePolicy) -> Radiograph:
    name = getattr(file, "name", None)
    name = name if isinstance(name, str) else "file"
    try:
        content = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        raise UnreadableImage(f"{name}: cannot be read ({type(error).__name__})") from None
    if not isinstance(content, bytes):
        raise UnreadableImage(f"{name}: gives no bytes; open the file in binary mode")
    if len(content) > _MOST_BYTES:
        raise UnreadableImage(f"{name}: holds more than {_MOST_BYTES:,} bytes; give its path")
    return _read(io.BytesIO(content), policy, name)


def _from_values(values: NDArray[Any], policy: ImagePolicy, name: str) -> Radiograph:
    if policy.other_modalities == "refuse":
        require_no_colour_noise(values, name)
    return _picture(radiograph_from_array(values, policy, name=name), policy)


def _numpy(tensor: Any) -> NDArray[Any]:
    tensor = tensor.detach().cpu()
    # numpy has no bfloat16.
    values: NDArray[Any] = (tensor.float() if tensor.is_floating_point() else tensor).numpy()
    return values


def _picture(radiograph: Radiograph, policy: ImagePolicy) -> Radiograph:
    """The radiograph itself, where it shows something."""
    if policy.other_modalities == "refuse" and radiograph.is_blank:
        raise UnreadableImage(
            f"{radiograph.name}: every pixel has the same value, it shows nothing; "
            + LEAVE_OR_ACCEPT
        )
    return radiograph
