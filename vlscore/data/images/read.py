"""Read a radiograph from a file, an array or a picture in memory, in whatever form it is given.

DICOM files go to `dicom`, all others to `raster`.
"""

import io
import os
from typing import Any, BinaryIO

import numpy as np

from vlscore.core import warn_caller
from vlscore.data.images.file_formats import head, is_dataset, is_dicom, local_path, opened
from vlscore.data.images.policy import LEAVE_OR_ACCEPT, ImagePolicy, hushed
from vlscore.data.images.radiograph import (
    Radiograph,
    radiograph_from_array,
    radiograph_from_masked,
)
from vlscore.data.images.raster import radiograph_from_pil, read_raster
from vlscore.errors import ImageNoteWarning, UnreadableImage


def read_image(path: str | os.PathLike[str], policy: ImagePolicy | None = None) -> Radiograph:
    """Read a radiograph from a DICOM, PNG, JPEG or TIFF file, recognized by content.

    Args:
        path: the file.
        policy: how stored values become grey levels; default: `ImagePolicy()`.

    Returns: a Radiograph; its pixels are float32 (height, width) in [0, 1].
    Warns: ImageNoteWarning for each note of the provenance.
    Raises: UnreadableImage naming the file and the reason.
    """
    if not isinstance(path, str | os.PathLike):
        raise UnreadableImage(f"an image's path is a text, not a {type(path).__name__}")
    path = local_path(path)
    with opened(path) as stream:
        return _read(stream, policy or ImagePolicy(), str(path))


def as_radiograph(image: Any, policy: ImagePolicy | None = None) -> Radiograph:
    """Make a radiograph from anything that holds one image; return a Radiograph unchanged.

    Args:
        image: a path; the content of a file as bytes, or the file opened in binary mode; a PIL
            image; an array or tensor; a pydicom Dataset, which does not change.
        policy: how stored values become grey levels; default: `ImagePolicy()`.

    Warns: ImageNoteWarning for each note of the provenance.
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
            radiograph = read_dicom(image, policy, "pydicom Dataset")
        return _picture(radiograph, policy)
    if any(base.__module__ == "PIL.Image" for base in type(image).__mro__):
        with hushed():
            radiograph = radiograph_from_pil(image, policy, name="PIL image")
        return _picture(radiograph, policy)
    if hasattr(image, "detach") and hasattr(image, "cpu"):
        tensor = image.detach().cpu()
        if str(tensor.layout) != "torch.strided":
            tensor = tensor.to_dense()
        # numpy has no bfloat16.
        values = (tensor.float() if tensor.is_floating_point() else tensor).numpy()
        return _picture(radiograph_from_array(values, policy, name="tensor"), policy)
    if isinstance(image, np.ndarray):
        is_masked = isinstance(image, np.ma.MaskedArray)
        read = radiograph_from_masked if is_masked else radiograph_from_array
        return _picture(read(image, policy, name="array"), policy)
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
    """Return the radiograph, unless every pixel is equal and the policy refuses that.

    Warns of the notes of its provenance.
    """
    if policy.other_modalities == "refuse" and radiograph.is_blank:
        raise UnreadableImage(
            f"{radiograph.name}: every pixel has the same value, it shows nothing; "
            + LEAVE_OR_ACCEPT
        )
    for note in radiograph.provenance.notes:
        warn_caller(f"{radiograph.name}: {note}", ImageNoteWarning)
    return radiograph
