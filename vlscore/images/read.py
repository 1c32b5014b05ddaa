"""From a file, an array or a picture in memory to a radiograph."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.errors import UnreadableImage
from vlscore.images.arrays import radiograph_from_array
from vlscore.images.dicom import read_dicom
from vlscore.images.dicom_header import is_dicom
from vlscore.images.policy import ImagePolicy
from vlscore.images.quiet import hushed
from vlscore.images.radiograph import Radiograph
from vlscore.images.raster import radiograph_from_pil, read_raster


def read_image(path: str | os.PathLike[str], policy: ImagePolicy | None = None) -> Radiograph:
    """Read a radiograph from a DICOM, PNG, JPEG or TIFF file, told apart by content.

    Args:
        path: the file.
        policy: how stored values become grey levels; default: `ImagePolicy()`.

    Returns: a Radiograph; its pixels are float32 (height, width) in [0, 1].
    Raises: UnreadableImage naming the file and the reason.
    """
    policy = policy or ImagePolicy()
    path = Path(path)
    head = _head(path)
    with hushed():
        read = read_dicom if is_dicom(head) else read_raster
        radiograph = read(path, policy)
    if policy.other_modalities == "refuse":
        _require_a_picture(radiograph)
    return radiograph


def as_radiograph(image: Any, policy: ImagePolicy | None = None) -> Radiograph:
    """A radiograph from a path, PIL image, array, tensor, or from a Radiograph as it is.

    Raises: UnreadableImage naming what was given and the reason.
    """
    policy = policy or ImagePolicy()
    if isinstance(image, Radiograph):
        return image
    if isinstance(image, str | os.PathLike):
        return read_image(image, policy)
    kind = type(image)
    if any(base.__module__ == "PIL.Image" for base in kind.__mro__):
        with hushed():
            return radiograph_from_pil(image, policy, name="PIL image")
    if hasattr(image, "detach") and hasattr(image, "cpu"):
        return radiograph_from_array(_numpy(image), policy, name="tensor")
    if isinstance(image, np.ndarray):
        return radiograph_from_array(image, policy, name="array")
    raise UnreadableImage(
        f"a {kind.__name__} is no image: give a path, a PIL image, an array or a tensor"
    )


def _numpy(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().cpu()
    # numpy has no bfloat16.
    return (tensor.float() if tensor.is_floating_point() else tensor).numpy()


def _require_a_picture(radiograph: Radiograph) -> None:
    pixels = radiograph.pixels
    if pixels.min() == pixels.max():
        raise UnreadableImage(
            f"{radiograph.name}: every pixel has the same value, it shows nothing; leave the file "
            'out, or accept it with ImagePolicy(other_modalities="accept")'
        )


def _head(path: Path) -> bytes:
    """The first bytes of a file; raises UnreadableImage where there are none."""
    try:
        if path.is_dir():
            raise UnreadableImage(f"{path}: is a folder; give the image file in it")
        if path.exists() and not path.is_file():
            raise UnreadableImage(f"{path}: is no regular file; give the image file itself")
        with path.open("rb") as stream:
            head = stream.read(4096)
    except FileNotFoundError:
        raise UnreadableImage(
            f"{path}: no such file; check the path and the image root it is relative to"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path is malformed"
        raise UnreadableImage(f"{str(path)!r}: cannot be opened ({reason})") from None
    if not head:
        raise UnreadableImage(f"{path}: the file is empty")
    return head
